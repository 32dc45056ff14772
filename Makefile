# Everything that people and CI call. `make help` lists it.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CRDS := charts/kuberay-operator/crds
TESTBED_CACHE := $(or $(KUBERAY_TESTBED_CACHE),$(HOME)/.cache/kuberay-testbed)
DENY_VERSION := 0.20.2
DENY := $(TESTBED_CACHE)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny
CYCLONEDX_VERSION := 0.5.9
CYCLONEDX := $(TESTBED_CACHE)/cargo-cyclonedx-$(CYCLONEDX_VERSION)/bin/cargo-cyclonedx
UNIT := -p shared -p telemetry -p certs -p webhook -p operator
E2E := $(basename $(notdir $(wildcard tests/e2e/tests/*.rs)))

include tests/cluster/targets.mk

.PHONY: help
help: ## Lists the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## Runs the SidecarSubmitterRestart guide on a real node with real Ray, from nothing, and cleans up.
	cargo run -p e2e-tests --bin demo

.PHONY: test
test: ## Everything: format, lints, unit, API-level and end-to-end tests.
	tests/run-suites check test-unit test-api test-e2e

.PHONY: test-unit
test-unit: ## Tables over pure code, and each program on its own. No cluster.
	cargo test --no-fail-fast $(UNIT)

.PHONY: test-api
test-api: ## Both programs at a real API server.
	cargo build --workspace --bins
	cargo test --no-fail-fast -p testcluster -p api-tests

.PHONY: test-e2e
test-e2e: images ## Both programs on a real node with real Ray.
	trap '$(TESTCLUSTER) down' EXIT
	# api-tests is named so that its dependencies are built as for `make test-api`, not a second time.
	cargo test --no-fail-fast -p api-tests -p e2e-tests $(E2E:%=--test %) -- --test-threads=1 --nocapture
	$(TESTCLUSTER) down
	$(TESTCLUSTER) leftovers

.PHONY: bench
bench: ## Measures the programs; PEER_WEBHOOK=path and PEER_OPERATOR=path put others beside them.
	cargo build --release --workspace --bins
	cargo run --release --quiet -p benchmarks -- all

FUZZ_SECONDS ?= 600

.PHONY: fuzz
fuzz: ## Feeds the admission path with anything: FUZZ_SECONDS (600) for each target.
	tests/fuzz/run $(FUZZ_SECONDS)

.PHONY: check
check: $(DENY) ## Format, lints, dependency policy, generated files.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(DENY) --log-level error check bans licenses sources
	cargo run --quiet -p shared --example crdgen -- --check $(CRDS)
	tests/check-chart

.PHONY: crds
crds: ## Writes the CustomResourceDefinitions from the types into the chart.
	cargo run --quiet -p shared --example crdgen -- $(CRDS)

.PHONY: chart-docs
chart-docs: ## Writes the tables of values into the charts' READMEs.
	cargo run --quiet -p shared --example chartdoc -- charts/kuberay-operator charts/ray-cluster

.PHONY: pictures
pictures: ## Draws the README's pictures anew, from a run of both programs with a real Prometheus.
	cargo build --workspace --bins
	KUBERAY_WRITE_PICTURES=1 cargo test -p testcluster -p api-tests --test observability -- a_prometheus_sees

.PHONY: sbom
sbom: $(CYCLONEDX) ## Writes what is in both programs (CycloneDX 1.5) into target/sbom.
	trap 'find . -path ./target -prune -o -name "*.cdx.json" -exec rm {} +' EXIT
	$(CYCLONEDX) cyclonedx --quiet --format json --spec-version 1.5 --describe binaries
	mkdir -p target/sbom
	for program in operator webhook; do
	  mv $$program/kuberay-$${program}_bin.cdx.json target/sbom/kuberay-$$program.cdx.json
	done
	ls -l target/sbom

$(DENY): TOOL = cargo-deny
$(DENY): VERSION = $(DENY_VERSION)
$(CYCLONEDX): TOOL = cargo-cyclonedx
$(CYCLONEDX): VERSION = $(CYCLONEDX_VERSION)
$(DENY) $(CYCLONEDX):
	echo "building $(TOOL) $(VERSION) (once, some minutes)"
	cargo install --quiet --locked $(TOOL) --version $(VERSION) --root $(TESTBED_CACHE)/$(TOOL)-$(VERSION) \
		--target-dir $(TESTBED_CACHE)/build/$(TOOL)
	rm -rf $(TESTBED_CACHE)/build/$(TOOL)
