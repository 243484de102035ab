# SPDX-License-Identifier: Apache-2.0
# tokmap. `make` builds and prints which optional parts are in; `make help` lists the targets.

CFLAGS ?= -O3 -g
PYTHON ?= python3
BUILD = build
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
T = 60
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
, := ,
# A copy of include/ and src/ alone can be built, too.
PARTS := $(wildcard tests/sanitizers.mk bench/bench.mk docs/packaging/release.mk)

# ---- Lists: a new source file is found by its folder and name ----

VERSION := $(shell sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' include/tokmap.h)
# The number in the SONAME, and the first version that has it. It is raised only by a change that breaks
# programs: docs/VERSIONS.md.
ABI := 0
ABI_SINCE := 0.2.0
# The public address of the project, when it has one: for pkg-config, Python and Debian packages.
HOMEPAGE :=
# Who holds the copyright, for the file NOTICE of archives and wheels.
HOLDER := the authors of tokmap
TOKENIZER := tokenize_tools/tokenizer/library

c_files = $(if $(wildcard $1),$(sort $(shell find $1 -name '*.c')))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(c_files))
MAIN := $(BUILD)/obj/tokenize_tools/main.o
program = $(BUILD)/$(basename $(notdir $1))
TEST_FILES := $(wildcard tests/*/test_*.c)
TOOL_FILES := $(wildcard tests/support/tool_*.c)
TESTS := $(foreach f,$(TEST_FILES),$(call program,$f))
HELPERS := $(foreach f,$(TOOL_FILES),$(call program,$f))
# Tests of their own targets: tokbench and what compares others with tokmap; what builds or installs again. Sanitizers still
# run the first ones.
BENCH_TESTS := $(filter-out %_smoke.sh %_tables.py,$(wildcard tests/bench/test_*.sh tests/bench/test_*.py))
BUILD_TESTS := $(addprefix tests/,house/test_build.sh house/test_install.sh house/test_lto.sh python/test_source_archive.py python/test_wheel.py)
SCRIPTS := $(filter-out $(BUILD_TESTS) $(if $(TOKMAP_SANITIZED),,$(BENCH_TESTS)),$(wildcard tests/*/test_*.sh tests/*/test_*.py))
# `make check` leaves them out; for others they start first, the slowest before all, so that none ends alone.
SLOW_NAMES := $(if $(wildcard tests/slow.txt),$(shell sed '/^\#/d; s/ .*//' tests/slow.txt))
SLOW := $(foreach name,$(SLOW_NAMES),$(filter %/$(name),$(SCRIPTS) $(TESTS)))
# Compiled by a test of Python, against the headers of the Python that runs it, which need not be here.
FOR_PYTHON := tests/support/interrupt_at.c
# What tests share: all files of tests/ that are no program of their own.
SHARED_FILES = $(filter-out $(TEST_FILES) $(TOOL_FILES) tests/fuzz/fuzz_% %/check.c %/faults.c \
	%/stand_in_driver.c %/stand_in_failures.c %/stand_in_processors.c %/stand_in_pages.c \
	%/replay.c %/canary.c $(FOR_PYTHON),$(call c_files,tests))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
LIBRARIES := libtokmap.so libtokmap_tokenizer.so
ARCHIVES := libtokmap.a libtokmap_tokenizer.a
PRODUCTS := $(addprefix $(BUILD)/,$(ARCHIVES) $(LIBRARIES) tokmap tokbench $(notdir $(wildcard python/tokmap-python)))
C_FILES := $(sort $(shell find include src tokenize_tools bench $(wildcard tests) -name '*.[ch]'))
MAN_PAGES := $(wildcard docs/man/*.[1357])
CPPCHECKS := $(addprefix lint-cppcheck-,tests tokenize_tools src bench)

WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wundef -Wvla -Wwrite-strings -Wformat=2 -Wno-missing-field-initializers $(if $(WERROR),-Werror)
# Headers are included by folder and name; `make lint` checks which ones. Without -ffp-contract=off, compilers for
# processors with a fused operation would round once where others round twice, and the order of samples would differ.
FLAGS = -std=c11 -D_GNU_SOURCE -pthread -fPIC -fvisibility=hidden $(PREFIX_MAP) \
	$(filter-out -pie -Wl%,$(HARDENING)) -I$(BUILD) -Iinclude \
	-Isrc $(XXHASH_IN_TREE:%=-I%) $(if $(filter-out src/%,$<),-Itokenize_tools) \
	$(if $(filter bench/%,$<),-Ibench) $(if $(filter tests/%,$<),-Itests) \
	$(WARNINGS) $(CPPFLAGS) $(CFLAGS) -ffp-contract=off
LINK = $(CC) $(filter -Wl% $(if $(findstring .so,$@),,-pie),$(HARDENING)) $(CFLAGS) -pthread -o $@ \
	$(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) -Wl,--as-needed $(LIBS)
# A program for another processor becomes a script that runs it.
emulated = $(if $(EMULATOR),&& mkdir -p $(@D)/elf && mv $@ $(@D)/elf && \
	printf '\043!/bin/sh\nexec $(EMULATOR) $(abspath $(@D))/elf/$(@F) "$$@"\n' >$@ && chmod +x $@)

say = $(if $(V),,@printf '  %-5s %s\n' $1 $2;)
# For targets that call make again: in parallel, unless the user has set -j.
again = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- Probes: compile and link two lines. ZSTD=no (or =yes) on the command line overrides one ----

# Targets that build nothing themselves; some of them first install what a probe would miss.
WITHOUT_PROBES := help clean uninstall fmt deps deps-% docs demo test asan ubsan tsan test-clang test-clang-sanitized test-unsigned-char fuzz fuzz-names lint wheel sdist dist release reproducible deb try-packages test-engines test-aarch64 vocabularies
ifneq ($(filter-out $(WITHOUT_PROBES),$(or $(MAKECMDGOALS),all)),)

# What was found is remembered until compiler or flags change. What is missing is probed again each
# time, so that a package that is installed later is found.
CONFIG_KEY := $(strip $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(WERROR))
-include $(BUILD)/config.mk
ifeq ($(CONFIG_KEY),$(OLD_KEY))
    REMEMBERED := $(OLD_FOUND)
    HARDENING := $(OLD_HARDENING)
endif
$(shell mkdir -p $(BUILD))

links = $(shell echo 'int main(void) { return (int)(long)$2; }' | $(CC) $(CPPFLAGS) $(CFLAGS) -w \
	-include $1 -x c - -o $(BUILD)/probe $3 $(LDFLAGS) >/dev/null 2>&1 && echo yes || echo no)
have = $(or $(filter yes no,$($1)),$(if $(filter $1,$(REMEMBERED)),yes),$(call links,$2,$3,$4))
number = $1 $(if $(filter yes,$(HAVE_$1)),1,0)

# Of these flags, all that the compiler takes; CPPFLAGS, CFLAGS and LDFLAGS come later and win.
takes = $(if $(shell printf '\043include <stdlib.h>\n\043if LEVEL + 0 > __USE_FORTIFY_LEVEL + 0\n\043error\n\043endif\nint \
	main(void) { return 0; }' | $(CC) -Werror $1 $2 $(CPPFLAGS) $(CFLAGS) -x c - -o $(BUILD)/probe $(LDFLAGS) \
	>/dev/null 2>&1 && echo yes),$1)

HAVE_XXHASH := $(call have,XXHASH,xxhash.h,XXH3_64bits,-lxxhash)
# Source archives bring a folder xxhash, for systems that have none.
XXHASH_IN_TREE := $(if $(filter yes,$(HAVE_XXHASH)),,$(wildcard xxhash))
HAVE_XXH_DISPATCH := $(if $(XXHASH_IN_TREE),$(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),yes,no),$(call \
	have,XXH_DISPATCH,xxh_x86dispatch.h,XXH3_64bits_dispatch,-lxxhash))
HAVE_ZSTD := $(call have,ZSTD,zstd.h,ZSTD_decompressStream,-lzstd)
HAVE_ZLIB := $(call have,ZLIB,zlib.h,inflate,-lz)
HAVE_ISAL := $(call have,ISAL,isa-l/igzip_lib.h,isal_inflate,-lisal)
HAVE_NVCC := $(or $(filter yes no,$(NVCC)),\
	$(shell PATH="$$PATH:/usr/local/cuda/bin"; command -v nvcc >/dev/null && echo yes || echo no))

ifeq ($(HAVE_XXHASH)$(XXHASH_IN_TREE),no)
    $(error $(if $(call takes,-w),xxHash is required and was not found: install the package libxxhash-dev,$(strip \
	a C compiler is required and '$(CC)' does not work: install the packages gcc and libc6-dev)))
endif
LIBS := $(if $(XXHASH_IN_TREE),,-lxxhash) -ldl -lm $(if $(filter yes,$(HAVE_ZSTD)),-lzstd) $(if $(filter yes,$(HAVE_ZLIB)),-lz) \
	$(if $(filter yes,$(HAVE_ISAL)),-lisal)

# The C library only fortifies what is optimized.
fortify = $(call takes,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$1,-DLEVEL=$1)
ifeq ($(HARDENING),)
    HARDENING := $(strip $(call takes,-fstack-protector-strong) $(call takes,-fstack-clash-protection) \
	$(or $(call takes,-fcf-protection=full),$(call takes,-mbranch-protection=standard)) \
	$(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))$(findstring -fsanitize,$(CFLAGS)),, \
	    $(or $(call fortify,3),$(call fortify,2))) \
	$(if $(findstring -static,$(CFLAGS) $(LDFLAGS)),,$(call takes,-pie)) \
	$(call takes,-Wl$(,)-z$(,)relro$(,)-z$(,)now$(,)-z$(,)noexecstack))
endif
# No byte depends on the folder of the source or of the build.
prefix_map = -ffile-prefix-map=$1=$2
PREFIX_MAP := $(call takes,$(call prefix_map,$(CURDIR),.) $(if $(filter /%,$(BUILD)),$(call prefix_map,$(BUILD),build)))

FOUND := $(foreach p,XXHASH XXH_DISPATCH ZSTD ZLIB ISAL,$(if $($p),,$(HAVE_$p:yes=$p)))
endif

# Objects depend on this file, which changes when a flag or the result of a probe changes.
$(BUILD)/config.h: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'OLD_KEY := $(CONFIG_KEY)' 'OLD_FOUND := $(filter-out no,$(FOUND))' \
	    'OLD_HARDENING := $(HARDENING)' >$(@D)/config.mk
	@{ echo '/* $(CONFIG_KEY) $(HARDENING) */'; printf '\043define HAVE_%s\n' \
	    $(foreach p,XXH_DISPATCH ZSTD ZLIB ISAL NVCC,'$(call number,$p)'); } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
FORCE:

# ---- Build ----

why = $(if $(filter no,$($1)),disabled by $1=no,$2 not found)
part = @printf '  %-8s %-4s %s\n' $1 $2 $3

missing_parts = $(strip $(if $(filter no,$(HAVE_ZSTD)),.zst input is refused without libzstd-dev.) $(if \
	$(filter yes,$(HAVE_ISAL)),,.gz input is $(if $(filter yes,$(HAVE_ZLIB)),read more slowly without \
	libisal-dev.,refused without libisal-dev or zlib1g-dev.)))
## all: library, tokmap, tokbench; prints which optional parts are in, and why not (default)
all: $(PRODUCTS)
	$(call part,xxHash,yes,'checksums$(if $(XXHASH_IN_TREE),$(,) from the folder xxhash)$(if $(filter \
	    no,$(HAVE_XXH_DISPATCH)),; $(call why,XXH_DISPATCH,xxh_x86dispatch.h): without AVX2 and AVX-512)')
	$(call part,zstd,$(HAVE_ZSTD),'$(if $(filter yes,$(HAVE_ZSTD)),reads .zst input,$(call \
	    why,ZSTD,libzstd-dev): .zst input is refused)')
	$(call part,zlib,$(HAVE_ZLIB),'$(if $(filter yes,$(HAVE_ZLIB)),reads .gz input,$(call \
	    why,ZLIB,zlib1g-dev)$(if $(filter yes,$(HAVE_ISAL)),,: .gz input is refused))')
	$(call part,ISA-L,$(HAVE_ISAL),'$(if $(filter yes,$(HAVE_ISAL)),reads .gz input instead of \
	    zlib,$(call why,ISAL,libisal-dev))')
	$(call part,CUDA,yes,'batches on a GPU if a driver is found at run time$(if $(filter \
	    yes,$(HAVE_NVCC)),; nvcc found: make ptx works)')
	$(if $(missing_parts),@echo 'Left out: $(missing_parts)')

# The library contains the kernel as PTX text, which the driver compiles for its device.
$(BUILD)/expand_ptx.h: src/stage/cuda/expand.ptx
	@mkdir -p $(@D)
	@{ echo 'static const char tokmap_i_expand_ptx[] ='; \
	    sed -e '/^\/\//d' -e 's/["\\]/\\&/g' -e 's/.*/    "&\\n"/' $<; echo '    ;'; } >$@
# The program prints the scripts with which shells complete its command lines.
COMPLETIONS := $(addprefix tokenize_tools/completion/,tokmap.bash _tokmap tokmap.fish)
$(BUILD)/completion_scripts.h: $(COMPLETIONS)
	@mkdir -p $(@D)
	@for script in $(COMPLETIONS); do echo "static const char completion_$$(basename $$script | tr . _)[] ="; \
	    sed -e 's/["\\]/\\&/g' -e 's/.*/    "&\\n"/' $$script; echo '    ;'; done >$@
$(foreach f,tokenize_tools/completion/completion,$(BUILD)/obj/$f.o $(BUILD)/lint/$f.tidy) $(CPPCHECKS): \
    $(BUILD)/completion_scripts.h
$(foreach f,src/stage/open tests/stage/test_gpu,$(BUILD)/obj/$f.o $(BUILD)/lint/$f.tidy) $(CPPCHECKS): \
    $(BUILD)/expand_ptx.h

$(BUILD)/obj/%.o: %.c $(BUILD)/config.h
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(FLAGS) -MMD -MP -c -o $@ $<

# libsrc.a is what the programs here link; of $(ARCHIVES), other programs see only the public names.
$(BUILD)/libsrc.a: $(call objects,src) $(XXHASH_IN_TREE:%=$(BUILD)/xxhash.o)
# One object: weak references to its functions for AVX2 load none from an archive.
$(BUILD)/xxhash.o: $(patsubst %.c,$(BUILD)/obj/%.o,$(if $(filter yes,$(HAVE_XXH_DISPATCH)),xxhash/xxh_x86dispatch.c) xxhash/xxhash.c)
	$(call say,LINK,$@) $(CC) $(CFLAGS) -r -nostdlib -o $@ $^
$(BUILD)/obj/xxhash/%.o: WARNINGS = -w
$(foreach a,$(ARCHIVES),$(eval $(BUILD)/$a: $(BUILD)/$(a:.a=.o)))
$(BUILD)/libtools.a: $(filter-out $(MAIN),$(call objects,tokenize_tools))
$(BUILD)/libtests.a: $(SHARED_FILES:%.c=$(BUILD)/obj/%.o)
$(BUILD)/%.a:
	@rm -f $@
	$(call say,AR,$@) $(AR) qcsD $@ $^

# Of the archives, all three take only what their own files call.
LIBRARY_OBJECTS := $(filter-out $(addprefix $(BUILD)/obj/src/,base/% fields/%),$(call objects,src)) $(BUILD)/libsrc.a
$(foreach end,o so,$(eval $(BUILD)/libtokmap.$(end): $(LIBRARY_OBJECTS) src/libtokmap.map))
$(foreach end,o so,$(eval $(BUILD)/libtokmap_tokenizer.$(end): $(call objects,$(TOKENIZER)) $(BUILD)/libtools.a \
    $(BUILD)/libsrc.a $(TOKENIZER)/libtokmap_tokenizer.map))
# With -flto, gcc would leave an object of its own language, whose names objcopy cannot hide.
no_lto = $(if $(findstring -flto,$(CFLAGS)),$(shell echo 'int x;' | $(CC) $(CFLAGS) -r -nostdlib -flinker-output=nolto-rel \
	-x c - -o $(BUILD)/probe >/dev/null 2>&1 && echo -flinker-output=nolto-rel))
# All names but those of the map become local.
$(ARCHIVES:%.a=$(BUILD)/%.o):
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(no_lto) -r -nostdlib -o $@ $(filter-out %.map,$^) && \
	    sed -n 's/^ *\(tokmap_[a-z0-9_]*\);$$/\1/p' $(filter %.map,$^) >$@.names && \
	    $(or $(OBJCOPY),$$($(CC) -print-prog-name=objcopy)) --keep-global-symbols=$@.names $@
# A sanitizer's own functions are undefined until the program is linked.
$(BUILD)/%.so:
	$(call say,LINK,$@) $(LINK) -shared -Wl,-soname,$(notdir $@).$(ABI) \
	    -Wl,--version-script=$(filter %.map,$^) $(if $(findstring -fsanitize,$(CFLAGS)),,-Wl,-z,defs)
	@mv $@ $@.$(VERSION) && ln -sf $(notdir $@).$(VERSION) $@ && ln -sf $(notdir $@).$(VERSION) $@.$(ABI)

$(BUILD)/tokmap: $(MAIN) $(BUILD)/libtools.a $(BUILD)/libsrc.a
	$(call say,LINK,$@) $(LINK) $(emulated)

$(BUILD)/tokbench: $(call objects,bench) $(BUILD)/libtools.a $(BUILD)/libsrc.a
	$(call say,LINK,$@) $(LINK) $(emulated)

# What `tokmap` executes for the commands in Python: with the package of this checkout, and the library that is built. The
# interpreter is found in PATH, where `python -m tokmap` and tests/run.sh put theirs.
$(BUILD)/tokmap-python: python/tokmap-python
	$(call say,MAKE,$@) sed -e '1s|python|/usr/bin/env $(if $(findstring /,$(PYTHON)),python3,$(PYTHON))|' -e 's|^sys.path.sort.*|&\
	sys.path.insert(0, "$(CURDIR)/python")\
	os.environ.setdefault("TOKMAP_LIBRARY", "$(abspath $(BUILD))/libtokmap.so")|' $< >$@ && chmod +x $@

# Compiled like a user's program, with only the public headers.
EXAMPLES := $(patsubst docs/examples/%.c,$(BUILD)/%,$(wildcard docs/examples/*.c))
$(EXAMPLES): $(BUILD)/%: docs/examples/%.c $(BUILD)/libtools.a $(BUILD)/libsrc.a
	$(call say,CC,$<) $(CC) -std=c11 -D_GNU_SOURCE $(WARNINGS) $(CPPFLAGS) $(CFLAGS) -pthread -Iinclude -o $@ $^ \
	    $(LDFLAGS) $(LIBS) $(emulated)

INSIDES := $(BUILD)/libtests.a $(BUILD)/libtools.a $(BUILD)/libsrc.a
$(foreach f,$(TEST_FILES) $(TOOL_FILES),$(eval $(call program,$f): $(BUILD)/obj/$(f:.c=.o)))
$(TESTS): $(BUILD)/obj/tests/support/check.o
# Its functions replace those of libc, only in the programs that link it.
$(foreach f,$(shell grep -l 'support/fault' /dev/null $(TEST_FILES) $(TOOL_FILES)),$(call program,$f)): \
    $(BUILD)/obj/tests/support/faults.o
$(TESTS) $(HELPERS): $(INSIDES)
	$(call say,LINK,$@) $(LINK) $(emulated)

# A stand-in for libcuda.so.1, so that `test_gpu` itself is tested on machines without a driver.
STAND_IN := $(BUILD)/stand_in/libcuda.so.1
$(STAND_IN): $(BUILD)/obj/tests/stage/stand_in_driver.o $(BUILD)/libsrc.a
	@mkdir -p $(@D)
	$(call say,LINK,$@) $(LINK) -shared

FAILURES := $(BUILD)/libfailures.so
$(FAILURES): $(BUILD)/obj/tests/support/stand_in_failures.o
PAGES := $(BUILD)/libpages.so
$(PAGES): $(BUILD)/obj/tests/support/stand_in_pages.o
PROCESSORS := $(BUILD)/libprocessors.so
$(PROCESSORS): $(BUILD)/obj/tests/support/stand_in_processors.o
$(FAILURES) $(PAGES) $(PROCESSORS):
	$(call say,LINK,$@) $(LINK) -shared

$(FUZZ:%=$(BUILD)/replay_%): $(BUILD)/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o \
    $(BUILD)/obj/tests/fuzz/replay.o $(INSIDES)
	$(call say,LINK,$@) $(LINK) $(emulated)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
.SECONDARY:

# What may be missing, by the jobs of .ci/need.
DEPS := $(addprefix deps-,build test lint fuzz wheel reproducible engines aarch64 deb try-packages docs)
$(DEPS): deps-%:
	@sh .ci/need $*
## deps: prints and installs what `make test` needs; deps-lint, deps-fuzz, deps-wheel: for these targets
deps: deps-test
	@sh .ci/python $(abspath $(BUILD)) >/dev/null

## demo: the main commands on the text of docs/demo; installs missing packages first
demo: deps-build
	@$(again) all
	@TOKMAP=$(abspath $(BUILD))/tokmap sh docs/demo.sh

## docs: the documents as a site, build/docs/index.html; installs Sphinx first, and needs no network after that
docs: deps-docs
	@$(PYTHON) bench/peers/install.py $(BUILD)/docs-venv docs/site/requirements.txt
	@rm -rf $(BUILD)/docs $(BUILD)/docs-trees
	@$(BUILD)/docs-venv/bin/python docs/site/pages.py $(BUILD)/docs-pages
	@$(BUILD)/docs-venv/bin/python -m sphinx -q -W --keep-going -c docs/site -d $(BUILD)/docs-trees $(BUILD)/docs-pages $(BUILD)/docs
	@sed 's,(\([A-Za-z-]*\)\.md),(docs/\1.html),g' docs/llms.txt >$(BUILD)/docs/llms.txt
	@echo "The site: $(BUILD)/docs/index.html"

# ---- Tests ----

include $(PARTS)

## check: the quick tests: those that are not in tests/slow.txt
PROGRAMS := $(filter-out $(LEFT_OUT),$(TESTS) $(FUZZ:%=$(BUILD)/replay_%))
check: LEFT_OUT += $(SLOW)
check check-all: $(PRODUCTS) $(PROGRAMS) $(HELPERS) $(EXAMPLES) $(STAND_IN) $(FAILURES) $(PAGES)
	@TOKMAP_BUILD=$(abspath $(BUILD)) bash tests/run.sh $(filter-out $(LEFT_OUT), \
	    $(SLOW) $(filter-out $(SLOW),$(PROGRAMS) $(SCRIPTS)))

## test: the tests, also those that need gigabytes; installs missing packages first
test: deps
	@$(again) all
	@TOKMAP_LONG=$${TOKMAP_LONG:-1} PYTHON=$$(sh .ci/python -n $(abspath $(BUILD))) $(again) check-all
#: test-long: test with many more random cases: half an hour on two cores
test-long:
	@TOKMAP_LONG=all $(again) test

#: test-bench: tokbench, its pages and reports, and what compares other loaders and packers
test-bench: $(PRODUCTS) $(HELPERS) $(STAND_IN) $(BUILD)/test_gpu
	@TOKMAP_LONG=1 TOKMAP_BUILD=$(abspath $(BUILD)) PYTHON=$$(sh .ci/python $(abspath $(BUILD))) bash tests/run.sh $(BENCH_TESTS)
#: test-builds: what builds or installs tokmap again: make in other ways, make install, the source archive, the wheel
test-builds: $(PRODUCTS) $(HELPERS)
	@TOKMAP_LONG=1 TOKMAP_BUILD=$(abspath $(BUILD)) PYTHON=$$(sh .ci/python $(abspath $(BUILD))) bash tests/run.sh $(BUILD_TESTS)

#: slow: runs the tests and writes tests/slow.txt: those that took SLOW_SECONDS=20 or more, the slowest first
SLOW_SECONDS = 20
slow:
	@rm -f $(BUILD)/seconds.txt
	@TOKMAP_SECONDS=$(abspath $(BUILD))/seconds.txt $(MAKE) --no-print-directory test
	@{ sed -n '/^\#/p' tests/slow.txt; sort -k2,2nr -k1,1 $(BUILD)/seconds.txt | awk '$$2 >= $(SLOW_SECONDS) { print $$1, $$2 }'; } >$(BUILD)/slow.txt
	@mv $(BUILD)/slow.txt tests/slow.txt

#: first-day: commands as new users type them, and what they must say: a quarter of an hour, and a network for bare.sh
first-day: $(PRODUCTS)
	@TOKMAP_BUILD=$(abspath $(BUILD)) PYTHON=$$(sh .ci/python -n $(abspath $(BUILD))) TOKMAP_TIMEOUT=3600 JOBS=1 \
	    bash tests/run.sh $(addprefix tests/first_day/,cluster.sh mixed.sh contributor.sh bare.sh)

#: abi: names, symbol versions, prototypes, layouts and values against abi.txt; each header alone; an archive of LTO
abi: $(PRODUCTS)
	@$(PYTHON) tests/house/abi.py
	@TOKMAP_LONG=1 TOKMAP_BUILD=$(abspath $(BUILD)) bash tests/run.sh tests/house/test_exports.sh tests/house/test_lto.sh tests/house/test_abi.py

# ---- Kernel text, format, lint ----

## fmt: clang-format all C files in place
fmt:
	clang-format -i $(C_FILES)

## lint: format, cppcheck, rooms and rules: about half a minute, later 10 seconds
lint:
	@sh .ci/need -n lint
	@$(again) -k lint-cppcheck lint-rules lint-format
lint-format:
	$(call say,LINT,format) printf "%s\n" $(C_FILES) | xargs -P 4 -n 24 clang-format --dry-run -Werror || \
	    { echo 'make fmt mends this'; exit 1; }
lint-rules:
	$(call say,LINT,rules) $(PYTHON) tests/house/lint_rules.py && $(PYTHON) tests/house/rooms.py --sizes
# A process for each tree, the longest first: cppcheck's own -j uses little more than one processor. Not the generated tables of
# Unicode, which hold nothing to find and take a third of the time.
lint-cppcheck: $(CPPCHECKS)
$(CPPCHECKS): lint-cppcheck-%: $(BUILD)/config.h
	@mkdir -p $(BUILD)/cppcheck/$*
	$(call say,LINT,cppcheck-$*) cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr \
	    --enable=warning,performance,portability --cppcheck-build-dir=$(BUILD)/cppcheck/$* \
	    --suppress=missingInclude --suppress=selfAssignment --suppress=uninitvar \
	    --suppress=ctuuninitvar -I$(BUILD) -Iinclude -Isrc -Itokenize_tools -Ibench -Itests \
	    $(filter-out %_tables.c,$(filter $*/%.c,$(C_FILES)))

#: tidy: clang-tidy on all C files: five minutes, later only on those that changed (NODES=100000: less deep, half the time)
tidy:
	@sh .ci/need -n lint
	@$(again) -k tidy-files
tidy-files: $(patsubst %.c,$(BUILD)/lint/%.tidy,$(filter-out $(FOR_PYTHON),$(filter %.c,$(C_FILES))))

# Tests replace functions of libc, run commands and read their own output.
LESS_IN_TESTS := -clang-analyzer-*,-bugprone-reserved-identifier,-cert-env33-c,-cert-err34-c,$(strip \
    -bugprone-not-null-terminated-result)

# One stamp per file, valid until the file, an include of it or the list of checks changes.
$(BUILD)/lint/%.tidy: %.c .clang-tidy $(BUILD)/config.h
	@mkdir -p $(@D)
	$(call say,TIDY,$<) clang-tidy --quiet $(if $(filter tests/%,$<),--checks='$(LESS_IN_TESTS)') $< \
	    -- $(FLAGS) $(NODES:%=-Xclang -analyzer-config -Xclang max-nodes=%) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@$(CC) $(FLAGS) -MM -MP -MT $@ -MF $@.d $< && touch $@
-include $(shell find $(BUILD)/lint -name '*.tidy.d' 2>/dev/null)

# ---- Install ----

DEST = $(DESTDIR)$(PREFIX)
CMAKE_DIR = $(DESTDIR)$(LIBDIR)/cmake/tokmap
BASH_COMPLETIONS = $(DEST)/share/bash-completion/completions
ZSH_COMPLETIONS = $(DEST)/share/zsh/site-functions
FISH_COMPLETIONS = $(DEST)/share/fish/vendor_completions.d
STRIP_TOOL = $$($(CC) -print-prog-name=strip)
# Does this for each call of the library, whose page is that of its header.
each_call = for page in $(notdir $(wildcard docs/man/*.h.3)); do for call in $$(sed -n 's/^\.\\" call //p' docs/man/$$page); do \
	$1; done; done
man_page = $(DEST)/share/man/man$(subst .,,$(suffix $1))/$(notdir $1)
fill = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	$(if $(XXHASH_IN_TREE),-e 's|-lxxhash ||; s|"xxhash;|"|') -e 's|@ABI@|$(ABI)|' $(if $(HOMEPAGE),-e 's|@HOMEPAGE@|$(HOMEPAGE)|',-e '/@HOMEPAGE@/d') -e 's|@ABI_SINCE@|$(ABI_SINCE)|'

## install: to PREFIX=/usr/local, below DESTDIR= if given; STRIP=1 strips libraries and programs
install: all
	install -d $(DEST)/bin $(DEST)/include $(CMAKE_DIR) $(DESTDIR)$(LIBDIR)/pkgconfig
	install $(BUILD)/tokmap $(BUILD)/tokbench $(DEST)/bin
	install -m 644 include/*.h $(DEST)/include
	install -m 644 $(ARCHIVES:%=$(BUILD)/%) $(DESTDIR)$(LIBDIR)
	$(foreach so,$(LIBRARIES),install -m 644 $(BUILD)/$(so).$(VERSION) $(DESTDIR)$(LIBDIR) && \
	    ln -sf $(so).$(VERSION) $(DESTDIR)$(LIBDIR)/$(so).$(ABI) && \
	    ln -sf $(so).$(ABI) $(DESTDIR)$(LIBDIR)/$(so) &&) true
	$(fill) src/tokmap.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/tokmap.pc
	$(fill) $(TOKENIZER)/tokmap_tokenizer.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/tokmap_tokenizer.pc
	$(fill) src/tokmapConfig.cmake.in >$(CMAKE_DIR)/tokmapConfig.cmake
	$(fill) src/tokmapConfigVersion.cmake.in >$(CMAKE_DIR)/tokmapConfigVersion.cmake
	install -D -m 644 tokenize_tools/completion/tokmap.bash $(BASH_COMPLETIONS)/tokmap
	ln -sf tokmap $(BASH_COMPLETIONS)/tokbench
	install -D -m 644 -t $(ZSH_COMPLETIONS) tokenize_tools/completion/_tokmap
	install -D -m 644 -t $(FISH_COMPLETIONS) tokenize_tools/completion/tokmap.fish
	ln -sf tokmap.fish $(FISH_COMPLETIONS)/tokbench.fish
	$(foreach page,$(MAN_PAGES),install -D -m 644 $(page) $(call man_page,$(page)) &&) true
	@$(call each_call,echo ".so man3/$$page" >$(DEST)/share/man/man3/$$call.3)
	$(if $(filter 1,$(STRIP)),$(STRIP_TOOL) --strip-unneeded $(DEST)/bin/tokmap $(DEST)/bin/tokbench \
	    $(LIBRARIES:%=$(DESTDIR)$(LIBDIR)/%.$(VERSION)) && $(STRIP_TOOL) --strip-debug $(ARCHIVES:%=$(DESTDIR)$(LIBDIR)/%))
	@echo 'Libraries and programs $(if $(filter 1,$(STRIP)),were stripped.,have symbols for debuggers; STRIP=1 leaves them out.)'
	$(if $(DESTDIR),,@ldconfig 2>/dev/null || echo 'Run ldconfig, so that programs find libtokmap.so.')

#: uninstall: remove what install has installed
uninstall:
	rm -f $(DEST)/bin/tokmap $(DEST)/bin/tokbench $(ZSH_COMPLETIONS)/_tokmap
	rm -f $(addprefix $(BASH_COMPLETIONS)/,tokmap tokbench) $(addprefix $(FISH_COMPLETIONS)/,tokmap.fish tokbench.fish)
	rm -f $(addprefix $(DEST)/,$(wildcard include/*.h))
	rm -f $(DESTDIR)$(LIBDIR)/libtokmap.* $(DESTDIR)$(LIBDIR)/libtokmap_tokenizer.*
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/pkgconfig/,tokmap.pc tokmap_tokenizer.pc)
	rm -f $(foreach page,$(MAN_PAGES),$(call man_page,$(page)))
	@$(call each_call,rm -f $(DEST)/share/man/man3/$$call.3)
	rm -rf $(CMAKE_DIR)

#: clean: remove the build folder
clean:
	rm -rf $(BUILD)

#: help: this list
list = sed -n 's/^$1 \([a-z0-9-]*\): /\1|/p' Makefile $(PARTS) | awk -F'|' '{ printf "  make %-17s %s\n", $$1, $$2 }'
help:
	@$(call list,\#\#); echo; echo Also:; $(call list,\#:)

.PHONY: all deps $(DEPS) demo docs check check-all test test-long test-bench test-builds slow first-day abi fmt lint lint-format lint-rules lint-cppcheck $(CPPCHECKS) tidy \
    tidy-files install uninstall clean help FORCE
