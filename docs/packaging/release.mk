# SPDX-License-Identifier: Apache-2.0
# Part of the Makefile: what a release consists of, and tests of it.

ARCH ?= x86_64
## wheel: build/tokmap-VERSION-py3-none-manylinux_*.whl, with all that it needs but glibc (ARCH=aarch64: for that)
wheel: deps-wheel $(if $(filter aarch64,$(ARCH)),deps-aarch64)
	@[ $(ARCH) = x86_64 ] || sh .ci/aarch64 $(BUILD)/aarch64-root
	@ARCH=$(ARCH) $(PYTHON) python/make_wheel.py $(BUILD)
#: sdist: build/tokmap-VERSION.tar.gz, all of the source, with xxHash, which is downloaded: for packagers, and for pip
sdist:
	@mkdir -p $(BUILD)
	@$(PYTHON) python/make_wheel.py --xxhash
	@$(PYTHON) python/build_backend.py sdist $(BUILD)
#: dist: source archive, wheels and checksums of a commit, in build/dist-VERSION if it has that tag
dist: deps-wheel deps-aarch64
	@sh .ci/aarch64 $(BUILD)/aarch64-root
	@$(PYTHON) python/make_dist.py $(BUILD)
#: release: make dist, then uploads it to an index on this machine and installs it from there by name
release: dist
	@bash docs/packaging/try_release.sh $(BUILD) $(ARGS)
#: reproducible: builds the last commit twice in different surroundings, and compares all of make dist
reproducible:
	@sh .ci/need wheel reproducible
	@TOKMAP_TIMEOUT=7200 bash tests/run.sh tests/house/reproducible.sh

#: deb: Debian packages of the source archive, in build/deb, checked with lintian
deb: deps-deb sdist
	@sh docs/packaging/make_deb.sh $(BUILD)/deb $(BUILD)/tokmap-$(VERSION).tar.gz
#: try-packages: wheel, source archive, Debian packages and container, each in a clean environment (ARGS='wheel bookworm')
try-packages: deps-try-packages wheel deb
	@bash docs/packaging/try_packages.sh $(BUILD) $(ARGS)

#: test-wheel: the wheel in every Python that is found, and the source archive compiled by pip (ARCH=aarch64: in an emulator)
test-wheel: $(PRODUCTS) wheel
	@TOKMAP_WHEEL=$$(ls $(abspath $(BUILD))/tokmap-$(VERSION)-py3-none-manylinux*_$(ARCH).whl) \
	    TOKMAP_BUILD=$(abspath $(BUILD)) TOKMAP_TIMEOUT=1200 bash tests/run.sh tests/python/test_wheel.py

FRAMEWORKS = $(abspath $(BUILD))/frameworks-$(if $(NEWEST),newest-)venv
#: test-frameworks: the wheel in the frameworks that people train with; installs them first (NEWEST=1: their newest versions)
test-frameworks: wheel
	@$(PYTHON) $(if $(NEWEST),tests/frameworks/newest.py install $(FRAMEWORKS),bench/peers/install.py $(FRAMEWORKS) \
	    tests/frameworks/requirements.txt)
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	    --force-reinstall $(BUILD)/tokmap-$(VERSION)-py3-none-manylinux*_$(ARCH).whl
	@TOKMAP_INSTALLED=1 PYTHON=$(FRAMEWORKS)/bin/python JOBS=2 TOKMAP_TIMEOUT=1200 \
	    $(if $(NEWEST),TOKMAP_NEWEST=1 $(PYTHON) tests/frameworks/newest.py run) bash tests/run.sh $(sort $(wildcard tests/frameworks/check_*.py))

#: ptx: compile the kernel to PTX, for the oldest device and driver (needs nvcc)
ptx:
	@bash tests/stage/make_ptx.sh src/stage/cuda/expand.cu >src/stage/cuda/expand.ptx.new
	@mv src/stage/cuda/expand.ptx.new src/stage/cuda/expand.ptx

.PHONY: wheel sdist dist release reproducible deb try-packages test-wheel test-frameworks ptx
