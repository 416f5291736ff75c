# `make` lists the targets. They need Go and bash. They fetch everything else (linters and an S3 server into .cache/bin, at the
# versions below; with Node.js, what .ci/judges names), or it is optional (PostgreSQL, see .ci/with-postgres).

GO         ?= go
PKGS       ?= ./...
TESTFLAGS  ?=
BENCH      ?= .
BENCHFLAGS ?=
FUZZTIME   ?= 30s

GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION   := v1.8.0
VERSITYGW_VERSION     := $(shell awk '$$1 == "github.com/versity/versitygw" { print $$2 }' .ci/s3.mod)
PEBBLE_VERSION        := $(shell awk '$$1 == "github.com/letsencrypt/pebble/v2" { print $$2 }' .ci/acme.mod)
OIDC_VERSION          := $(shell awk '$$2 == "github.com/zitadel/oidc/v3" { print $$3 }' .ci/oidc.mod)
GOTESTSUM_VERSION     := $(shell awk '$$1 == "gotest.tools/gotestsum" { print $$2 }' .ci/gotestsum.mod)
CYCLONEDX_VERSION     := $(shell awk '$$1 == "github.com/CycloneDX/cyclonedx-gomod" { print $$2 }' .ci/sbom.mod)

WITH_POSTGRES := bash .ci/with-postgres
TOOLS         := .cache/bin
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOVULNCHECK   := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
VERSITYGW     := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)
PEBBLE        := $(TOOLS)/pebble-$(PEBBLE_VERSION)
OIDC          := $(TOOLS)/oidc-server-$(OIDC_VERSION)
GOTESTSUM     := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)
CYCLONEDX     := $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX_VERSION)

# Tests start a private S3 server with this program (see blobstore/s3blob/s3test).
WITH_S3 := if [ -z "$$FORMSVC_TEST_VERSITYGW" ]; then \
		if $(MAKE) --no-print-directory -s $(VERSITYGW); then export FORMSVC_TEST_VERSITYGW='$(CURDIR)/$(VERSITYGW)'; \
		else echo 'WARNING: versitygw $(VERSITYGW_VERSION) cannot be built here; S3 tests will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# Likewise a private ACME server (see cmd/formsvc/acme_internal_test.go).
WITH_ACME := if [ -z "$$FORMSVC_TEST_PEBBLE" ]; then \
		if $(MAKE) --no-print-directory -s $(PEBBLE); then export FORMSVC_TEST_PEBBLE='$(CURDIR)/$(PEBBLE)'; \
		else echo 'WARNING: pebble $(PEBBLE_VERSION) cannot be built here; the test with an ACME server will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# And a private OpenID provider (see cmd/formsvc/oidc_browser_internal_test.go).
WITH_OIDC := if [ -z "$$FORMSVC_TEST_OIDC" ]; then \
		if $(MAKE) --no-print-directory -s $(OIDC); then export FORMSVC_TEST_OIDC='$(CURDIR)/$(OIDC)'; \
		else echo 'WARNING: the OpenID provider $(OIDC_VERSION) cannot be built here; the test with it will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# Modules of their own, so that nobody else downloads what they need.
TORTURE   := cmd/formsvc/torture
FORMBENCH := cmd/formbench
RECEIVERS := examples/receivers
HOST      := examples/host
PROSE     := .ci/prose
MODULES   := $(TORTURE) $(FORMBENCH) $(RECEIVERS) $(HOST) $(PROSE)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help test race test-long test-tagged test-failpoints test-receivers test-host test-formbench test-connectors test-n8n torture mutants walks bare \
	bench bench-peers microbench check fmt prose vet tidy lint lint-tool judges vuln release fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
	@echo '  PKGS=./webhook TESTFLAGS="-run Verify -v" narrow test, race and test-long; BENCH, BENCHFLAGS="-rounds 1" and FUZZTIME narrow the others'

# gotestsum ends with what failed, and what was skipped and why. GOTESTSUMFLAGS are further flags of it.
GOTESTSUMFLAGS ?=
TESTS = bash .ci/in-memory $(GOTESTSUM) --format $(if $(filter -v,$(TESTFLAGS)),standard-verbose,standard-quiet) $(GOTESTSUMFLAGS)

test: $(GOTESTSUM) ## run the fast tests, with private PostgreSQL and S3 servers
	@$(WITH_S3) $(WITH_POSTGRES) $(TESTS) --packages='$(PKGS)' -- -vet=off -timeout 10m $(TESTFLAGS)

# The packages that have concurrency of their own. SQLite itself, C translated to Go with locks of its own, is left out of the detector,
# which makes the tests on SQLite several times faster. The driver and our code are watched.
RACEPKGS := ./formsvc ./httpx ./webhook/delivery/... ./storage/memory ./storage/sqlite ./storage/internal/bunstore
RACE     := -race -shuffle=on -gcflags='modernc.org/sqlite/lib=-race=false -d=checkptr=0' \
	-gcflags='modernc.org/libc=-race=false -d=checkptr=0' -gcflags='modernc.org/memory=-race=false -d=checkptr=0'

race: $(GOTESTSUM) ## run the fast tests of concurrent packages with the race detector, in random order
	@$(WITH_POSTGRES) $(TESTS) --packages='$(if $(filter ./...,$(PKGS)),$(RACEPKGS),$(PKGS))' -- -vet=off -timeout 10m $(RACE) $(TESTFLAGS)

test-long: ## run every test there is, one package at a time (about an hour; PKGS narrows it to packages of this module)
	@$(if $(filter ./...,$(PKGS)),bash .ci/long,$(MAKE) --no-print-directory test-tagged)

# The part of test-long that is in this module.
test-tagged: $(GOTESTSUM)
	@$(WITH_S3) $(WITH_ACME) $(WITH_OIDC) $(WITH_POSTGRES) $(TESTS) --packages='$(PKGS)' -- -vet=off -tags long -p 1 -timeout 60m $(TESTFLAGS)

test-failpoints: $(GOTESTSUM) ## kill a build with failpoints at each of them
	@$(WITH_POSTGRES) $(TESTS) --packages=./cmd/formsvc -- -tags long,failpoints -run Failpoint -timeout 20m $(TESTFLAGS)

test-receivers: ## test the receiver examples (needs Node.js, Python, Ruby, PHP and a JDK)
	@$(GO) -C $(RECEIVERS) test $(TESTFLAGS) ./...

test-host: ## test the example of a whole host program
	@$(WITH_POSTGRES) $(GO) -C $(HOST) test $(TESTFLAGS) ./...

# The benchmark program, and the one with PocketBase and River.
FORMBENCH_BIN := $(CURDIR)/$(TOOLS)/formbench
PEERS_BIN     := $(CURDIR)/$(TOOLS)/formbench-peers
BUILD_PEERS   := $(GO) -C $(FORMBENCH) build -o '$(PEERS_BIN)' ./peers

test-formbench: ## test the benchmark program beside PocketBase and River
	@$(BUILD_PEERS) && FORMSVC_TEST_PEERS='$(PEERS_BIN)' $(WITH_POSTGRES) $(GO) -C $(FORMBENCH) test -timeout 15m $(TESTFLAGS) ./...

# FOR=10m, ROUNDS=300 and RUN='TestKill$$' narrow it.
FOR    ?= 10m
RUN    ?= .
ROUNDS ?=

torture: ## inject every fault into the binary for ten minutes, and check that nothing is lost (FOR, RUN, ROUNDS)
	@$(WITH_S3) $(WITH_POSTGRES) $(GO) -C $(TORTURE) test -timeout 6h -count 1 -parallel 1 -v -run '$(RUN)' . \
		$(if $(ROUNDS),-rounds $(ROUNDS),-for $(FOR))

mutants: ## run the mutation tests (about 10 minutes; MUTANTS=name)
	@$(WITH_POSTGRES) bash .ci/mutants/run $(MUTANTS)

test-connectors: ## test the connectors, one of them in a real Node-RED (a few minutes; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/testing/run

test-n8n: ## test the n8n nodes in a real n8n (minutes; the first run downloads gigabytes; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/n8n/test/run

walks: ## run every guide's commands, each in an empty directory (GUIDES=webhook/README.md)
	@$(WITH_POSTGRES) bash .ci/walk $(GUIDES)

bare: ## run the README's commands and the walks in a new Debian that has only Go, git and make
	@bash .ci/bare

RUN_BENCH := $(GO) -C $(FORMBENCH) build -o '$(FORMBENCH_BIN)' . && $(WITH_POSTGRES) --durable '$(FORMBENCH_BIN)'

bench: ## measure the binary (about 10 minutes; BENCHFLAGS="-binary old=PATH -binary new=PATH" compares two)
	@$(RUN_BENCH) $(BENCHFLAGS)

bench-peers: ## measure the binary beside PocketBase and River (about 20 minutes)
	@$(BUILD_PEERS) && $(RUN_BENCH) -peers '$(PEERS_BIN)' $(BENCHFLAGS)

microbench: ## run the benchmarks of the packages
	@$(WITH_S3) $(WITH_POSTGRES) --durable $(GO) test -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem $(TESTFLAGS) $(PKGS)

check: fmt vet tidy lint lint-tool judges race vuln ## run everything that a change must pass
	@echo 'check: ok'

fmt: ## list the files that gofmt would change
	@bad=$$(find . -name node_modules -prune -o -name '*.go' -print0 | xargs -0 gofmt -l) || exit 1; [ -z "$$bad" ] || { echo "$$bad"; echo 'fmt: run gofmt -w on these files'; exit 1; }

prose: ## check documents and comments against STYLE.md (PROSEFLAGS=-v)
	@$(GO) -C $(PROSE) run . $(PROSEFLAGS)

vet: ## run go vet
	@$(GO) vet -tags long,failpoints ./... && for module in $(TORTURE) $(PROSE); do $(GO) -C $$module vet ./... || exit 1; done

tidy: ## compare go.mod and go.sum with the code
	@for module in . $(MODULES); do $(GO) -C $$module mod tidy -diff || exit 1; done

lint: ## run golangci-lint
	@if $(MAKE) --no-print-directory -s lint-tool; then \
		for module in . $(MODULES); do (cd $$module && '$(CURDIR)/$(GOLANGCI_LINT)' run ./...) || exit 1; done; \
	else \
		echo 'lint: golangci-lint $(GOLANGCI_LINT_VERSION) cannot be built here: NOT RUN'; [ "$$CI" != true ]; \
	fi

lint-tool: $(GOLANGCI_LINT)

judges: ## check the OpenAPI document and the console with redocly and axe (minutes; needs Node.js)
	@bash .ci/judges/run

# The database is https://vuln.go.dev, or GOVULNDB (file:///some/directory). Being offline is no failure. An unreadable GOVULNDB is.
vuln: ## look for known vulnerabilities
	@if ! $(MAKE) --no-print-directory -s $(GOVULNCHECK); then \
		echo 'vuln: govulncheck $(GOVULNCHECK_VERSION) cannot be built here: NOT RUN'; exit 0; \
	fi; \
	status=0; output=$$($(GOVULNCHECK) $${GOVULNDB:+-db "$$GOVULNDB"} ./... 2>&1) || status=$$?; \
	case $$status in \
	0) ;; \
	3) echo "$$output"; exit 1 ;; \
	*) echo "vuln: NOT RUN: $$(echo "$$output" | tail -n 1)"; [ -z "$$GOVULNDB" ] ;; \
	esac

# `make -s .cache/bin/...` builds a tool. Its name has the version, so changing the number builds the new version.
$(GOLANGCI_LINT):
	@echo 'building golangci-lint $(GOLANGCI_LINT_VERSION) (once, takes minutes)' >&2
	@output=$$(GOFLAGS= GOBIN='$(CURDIR)/$(TOOLS)' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv $(TOOLS)/golangci-lint $@

$(GOVULNCHECK):
	@output=$$(GOFLAGS= GOBIN='$(CURDIR)/$(TOOLS)' $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv $(TOOLS)/govulncheck $@

# The server belongs to another module, so its versions and hashes are in a separate go.mod and go.sum.
$(VERSITYGW):
	@echo 'building versitygw $(VERSITYGW_VERSION) (once, takes minutes)' >&2
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/s3.mod -o '$@.new' github.com/versity/versitygw/cmd/versitygw 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

$(PEBBLE):
	@echo 'building pebble $(PEBBLE_VERSION) (once)' >&2
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/acme.mod -o '$@.new' github.com/letsencrypt/pebble/v2/cmd/pebble 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

$(OIDC):
	@echo 'building the OpenID provider $(OIDC_VERSION) (once)' >&2
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/oidc.mod -o '$@.new' github.com/zitadel/oidc/v3/example/server 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

$(GOTESTSUM):
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/gotestsum.mod -o '$@.new' gotest.tools/gotestsum 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

$(CYCLONEDX):
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/sbom.mod -o '$@.new' github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

RELEASE := .cache/release

release: $(CYCLONEDX) ## build the binary of the last commit in two directories, compare them, and list their contents (CycloneDX)
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@for copy in first second; do \
		git clone -q . $(RELEASE)/$$copy && \
		CGO_ENABLED=0 $(GO) build -C $(RELEASE)/$$copy -trimpath -buildvcs=true -ldflags='-s -w' -o ../$$copy.bin ./cmd/formsvc || exit 1; \
	done
	@cmp $(RELEASE)/first.bin $(RELEASE)/second.bin
	@rm -rf $(RELEASE)/first $(RELEASE)/second $(RELEASE)/second.bin && mv $(RELEASE)/first.bin $(RELEASE)/formsvc
	@$(CYCLONEDX) bin -json -output $(RELEASE)/formsvc.cdx.json $(RELEASE)/formsvc

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@find . -name '*_test.go' -not -path './.cache/*' -not -path '*/node_modules/*' -exec grep -H '^func Fuzz' {} + | \
	sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort | \
	while read -r dir target; do \
		echo "$$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

clean: ## remove build output and caches
	@rm -rf .cache examples/connectors/*/node_modules examples/connectors/*/dist examples/clients/typescript/node_modules
	@find . -type f \( -name '*.test' -o -name '*.prof' -o -name 'coverage.*' \) -not -path './.git/*' -delete
