# SPDX-License-Identifier: Apache-2.0
# Part of the Makefile: measurements.

# With matplotlib for charts, if it can be installed.
report = python=$(PYTHON); \
    $$python bench/peers/install.py $(BUILD)/report-venv bench/requirements.txt && python=$(BUILD)/report-venv/bin/python; \
    $$python bench/report.py

## bench: measure tokmap against the limits of this machine, and make a page; ten minutes
bench: $(BUILD)/tokbench
	$(BUILD)/tokbench all --json $(BUILD)/bench.json
	@$(report) $(BUILD)/bench.json -o $(BUILD)/bench.html
	@echo "A page with charts: $(BUILD)/bench.html"

#: bench-peers: compare outputs and speed with other tokenizers and loaders, and make a page
# If one half fails, the page shows the other. It also shows peers whose output was wrong.
bench-peers:
	@rm -f $(BUILD)/tokenizers.json $(BUILD)/loaders.json
	@status=0; for half in tokenizers loaders; do \
	    $(MAKE) --no-print-directory bench-$$half || status=$$?; done; \
	$(report) $$(ls $(BUILD)/tokenizers.json $(BUILD)/loaders.json) \
	    -o $(BUILD)/peers.html && echo "A page with charts: $(BUILD)/peers.html" && exit $$status
#: bench-tokenizers: the tokenizers of bench-peers (ARGS='--rounds 3 --out F')
bench-tokenizers: $(BUILD)/tokbench
	@$(PYTHON) bench/peers/install.py $(BUILD)/peers-venv
	@$(BUILD)/peers-venv/bin/python bench/peers/compare.py --tokbench $(BUILD)/tokbench \
	    --out $(BUILD)/tokenizers.json $(ARGS)
#: bench-loaders: the loaders of bench-peers (LOADER_ARGS='--rounds 2 --out F')
bench-loaders: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(BUILD)/loader-peers-venv bench/peers/loader-requirements.txt
	@$(BUILD)/loader-peers-venv/bin/python bench/peers/loaders.py --tokmap $(BUILD)/tokmap \
	    --tokbench $(BUILD)/tokbench --out $(BUILD)/loaders.json $(LOADER_ARGS)
#: bench-parquet: packing and decoding of Parquet beside gigatoken and pyarrow (ARGS='--parquet F --tokenizer F')
bench-parquet: $(BUILD)/tokbench $(BUILD)/tokmap
	@$(PYTHON) bench/peers/install.py $(BUILD)/peers-venv
	@$(BUILD)/peers-venv/bin/python bench/peers/parquet.py --tokmap $(BUILD)/tokmap \
	    --tokbench $(BUILD)/tokbench $(ARGS)
#: bench-packers: packing of rows of several documents beside other packers (ARGS='--rounds 2 --out F')
bench-packers: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(BUILD)/packer-peers-venv bench/peers/packer-requirements.txt
	@$(BUILD)/packer-peers-venv/bin/python bench/peers/packers.py --tokmap $(BUILD)/tokmap $(ARGS)
#: bench-blends: a blend of 200 datasets beside the builder of Megatron-core (ARGS='--rounds 2 --out F')
bench-blends: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(BUILD)/loader-peers-venv bench/peers/loader-requirements.txt
	@TOKMAP_LIBRARY=$(BUILD)/libtokmap.so $(BUILD)/loader-peers-venv/bin/python bench/peers/blends.py \
	    --tokmap $(BUILD)/tokmap $(ARGS)
#: bench-stores: rows from a store of objects beside LanceDB, MosaicML Streaming and litdata (ARGS='--seconds 60 --out F')
bench-stores: $(PRODUCTS)
	@$(PYTHON) bench/peers/install.py $(BUILD)/store-peers-venv bench/peers/stores-requirements.txt
	@$(BUILD)/store-peers-venv/bin/python bench/peers/stores.py --tokmap $(BUILD)/tokmap $(ARGS)

#: bench-gpu: tests and measurements on a GPU (ARGS='--out FILE')
bench-gpu: $(PRODUCTS) $(BUILD)/test_gpu
	@$(PYTHON) bench/gpu/run.py --build $(BUILD) $(ARGS)

.PHONY: bench bench-peers bench-tokenizers bench-loaders bench-parquet bench-packers bench-blends bench-stores bench-gpu
