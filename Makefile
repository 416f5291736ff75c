# `make` lists the targets. Needed: Go and bash. Everything else is fetched (linters and an S3 server into .cache/bin, at the
# versions below; with Node.js, what .ci/judges names) or optional (PostgreSQL, see .ci/with-postgres).

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
GOTESTSUM_VERSION     := $(shell awk '$$1 == "gotest.tools/gotestsum" { print $$2 }' .ci/gotestsum.mod)

WITH_POSTGRES := bash .ci/with-postgres
TOOLS         := .cache/bin
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOVULNCHECK   := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
VERSITYGW     := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)
PEBBLE        := $(TOOLS)/pebble-$(PEBBLE_VERSION)
GOTESTSUM     := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)

# Tests start an S3 server of their own with the program that this names (see blobstore/s3blob/s3test).
WITH_S3 := if [ -z "$$FORMSVC_TEST_VERSITYGW" ]; then \
		if $(MAKE) --no-print-directory -s $(VERSITYGW); then export FORMSVC_TEST_VERSITYGW='$(CURDIR)/$(VERSITYGW)'; \
		else echo 'WARNING: versitygw $(VERSITYGW_VERSION) cannot be built here; S3 tests will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# Likewise an authority for certificates (see cmd/formsvc/acme_test.go).
WITH_ACME := if [ -z "$$FORMSVC_TEST_PEBBLE" ]; then \
		if $(MAKE) --no-print-directory -s $(PEBBLE); then export FORMSVC_TEST_PEBBLE='$(CURDIR)/$(PEBBLE)'; \
		else echo 'WARNING: pebble $(PEBBLE_VERSION) cannot be built here; the test with an ACME server will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# The benchmark program is a module of its own, and so is what it measures beside; it is tested with that.
FORMBENCH  := cmd/formbench
PEERS      := $(FORMBENCH)/peers
WITH_PEERS := if [ -z "$$FORMSVC_TEST_PEERS" ]; then \
		if $(GO) -C $(PEERS) build -o '$(CURDIR)/$(TOOLS)/formbench-peers' .; then export FORMSVC_TEST_PEERS='$(CURDIR)/$(TOOLS)/formbench-peers'; \
		else echo 'WARNING: PocketBase and River cannot be built here; tests beside them will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build test torture torture-long mutants walks test-connectors test-n8n race bench bench-peers microbench check fmt vet tidy lint judges vuln fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
	@echo '  PKGS=./webhook TESTFLAGS="-run Verify -v" narrow test and race; BENCH, BENCHFLAGS="-rounds 1" and FUZZTIME likewise'

build: ## compile everything
	@$(GO) build ./...

# What attacks the binary is a module of its own, so that nobody else downloads what that needs.
TORTURE := cmd/formsvc/torture

# So are the examples of receivers, which need routers, and Node.js, Python, Ruby, PHP and a JDK for their tests.
RECEIVERS := examples/receivers

# The whole is run by gotestsum, which says at the end what failed, and what was skipped and why. Narrowed by PKGS it is "go test".
ifeq ($(PKGS),./...)
WITH_ALL  := $(WITH_S3) $(WITH_ACME) $(WITH_PEERS) $(WITH_POSTGRES)
TEST_WITH  = $(WITH_ALL) $(GOTESTSUM) --format standard-quiet --raw-command -- env LIMIT=$(1) bash .ci/parts $(2)
else
TEST_WITH  = $(WITH_S3) $(if $(filter ./cmd/formsvc,$(PKGS)),$(WITH_ACME)) \
	$(WITH_POSTGRES) $(GO) test -timeout $(1) $(2) $(PKGS)
endif

test: $(if $(filter ./...,$(PKGS)),$(GOTESTSUM)) ## run the tests, with PostgreSQL and S3 servers for the time they take
	@$(call TEST_WITH,15m,$(TESTFLAGS))

# FOR=10m ROUNDS=300 RUN='TestKill$$' narrow it; figures go to REPORT, a line of JSON for each fault.
FOR    ?= 10m
RUN    ?= .
ROUNDS ?=
REPORT ?= $(CURDIR)/.cache/torture.jsonl

torture: ## hurt the binary in every way there is, for ten minutes, and check that nothing is lost (FOR, RUN, ROUNDS)
	@mkdir -p '$(dir $(REPORT))'
	@$(WITH_S3) $(WITH_POSTGRES) $(GO) -C $(TORTURE) test -timeout 6h -count 1 -parallel 1 -v -run '$(RUN)' . \
		$(if $(ROUNDS),-rounds $(ROUNDS),-for $(FOR)) -report '$(REPORT)'

torture-long: ## the same for an hour
	@$(MAKE) --no-print-directory torture FOR=1h

mutants: ## plant bugs, one after the other, and see the tests catch each (about 10 minutes)
	@$(WITH_S3) $(WITH_POSTGRES) bash .ci/mutants/run $(MUTANTS)

test-connectors: ## test the connectors of examples/connectors, one of them in a real Node-RED (a few minutes; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/testing/run

test-n8n: ## test the connector for n8n in a real n8n (minutes, and gigabytes in .cache the first time; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/n8n/test/run

walks: ## do what the guides say, each from an empty directory, as a newcomer would (GUIDES=webhook/README.md)
	@$(WITH_POSTGRES) bash .ci/walk $(GUIDES)

race: $(if $(filter ./...,$(PKGS)),$(GOTESTSUM)) ## run the tests in another order each time, with the race detector
	@$(call TEST_WITH,40m,-race -shuffle=on $(TESTFLAGS))

BUILD_FORMBENCH = $(GO) -C $(FORMBENCH) build -o '$(CURDIR)/$(TOOLS)/formbench' .

bench: ## requests and files beside their limits, deliveries beside River, in one run (about 30 minutes)
	@$(BUILD_FORMBENCH) && $(WITH_S3) peer='$(CURDIR)/$(TOOLS)/formbench-peers'; \
	$(GO) -C $(PEERS) build -o "$$peer" . || { echo 'bench: River cannot be built here: NOT MEASURED' >&2; peer=; }; \
	$(WITH_POSTGRES) --durable $(TOOLS)/formbench -river "$$peer" $(BENCHFLAGS)

# Unlike with "bench", a peer that cannot be built is an error here: there is nothing else to measure.
bench-peers: ## this project beside PocketBase and River, in one run (about 20 minutes)
	@$(BUILD_FORMBENCH) && peer='$(CURDIR)/$(TOOLS)/formbench-peers'; \
	$(GO) -C $(PEERS) build -o "$$peer" . && \
	$(WITH_POSTGRES) --durable $(TOOLS)/formbench -only peers,deliver -peers "$$peer" -river "$$peer" $(BENCHFLAGS)

microbench: ## run the benchmarks of the packages
	@$(WITH_S3) $(WITH_POSTGRES) --durable $(GO) test -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem $(TESTFLAGS) $(PKGS)

check: fmt vet tidy lint judges race vuln ## everything a change must pass
	@echo 'check: ok'

fmt: ## name the files gofmt would change
	@bad=$$(find . -name node_modules -prune -o -name '*.go' -print0 | xargs -0 gofmt -l) || exit 1; [ -z "$$bad" ] || { echo "$$bad"; echo 'fmt: run gofmt -w on these files'; exit 1; }

vet: ## run go vet
	@$(GO) vet ./... && $(GO) vet -tags failpoints ./cmd/formsvc && $(GO) -C $(TORTURE) vet ./... && $(GO) -C $(FORMBENCH) vet ./... && $(GO) -C $(PEERS) vet ./... && $(GO) -C $(RECEIVERS) vet ./...

tidy: ## compare go.mod and go.sum with what the code needs
	@$(GO) mod tidy -diff && $(GO) -C $(TORTURE) mod tidy -diff && $(GO) -C $(FORMBENCH) mod tidy -diff && $(GO) -C $(PEERS) mod tidy -diff && $(GO) -C $(RECEIVERS) mod tidy -diff

lint: ## run golangci-lint
	@if $(MAKE) --no-print-directory -s $(GOLANGCI_LINT); then \
		for module in . $(TORTURE) $(RECEIVERS) $(FORMBENCH) $(PEERS); do (cd $$module && '$(CURDIR)/$(GOLANGCI_LINT)' run ./...) || exit 1; done; \
	else \
		echo 'lint: golangci-lint $(GOLANGCI_LINT_VERSION) cannot be built here: NOT RUN'; [ "$$CI" != true ]; \
	fi

judges: ## have redocly and prism judge the OpenAPI document and the service (minutes; needs Node.js)
	@bash .ci/judges/run

# The database is https://vuln.go.dev, or the one in GOVULNDB (file:///some/directory). Being offline is no failure; a
# GOVULNDB that cannot be read is.
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

# `make -s .cache/bin/...` builds a tool. Its version is in its name, so a new version is built when the number changes.
$(GOLANGCI_LINT):
	@echo 'building golangci-lint $(GOLANGCI_LINT_VERSION) (once, takes minutes)' >&2
	@output=$$(GOFLAGS= GOBIN='$(CURDIR)/$(TOOLS)' $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv $(TOOLS)/golangci-lint $@

$(GOVULNCHECK):
	@output=$$(GOFLAGS= GOBIN='$(CURDIR)/$(TOOLS)' $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv $(TOOLS)/govulncheck $@

# The server is of another module, so its versions and hashes are in a go.mod and a go.sum of its own.
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

$(GOTESTSUM):
	@mkdir -p $(TOOLS)
	@output=$$(GOFLAGS= $(GO) build -trimpath -buildvcs=false -modfile=.ci/gotestsum.mod -o '$@.new' gotest.tools/gotestsum 2>&1) || \
		{ echo "$$output" | tail -n 2 >&2; exit 1; }
	@mv '$@.new' $@

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@find . -name '*_test.go' -not -path './.cache/*' -not -path '*/node_modules/*' -exec grep -H '^func Fuzz' {} + | \
	sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort | \
	while read -r dir target; do \
		echo "$$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

clean: ## remove what the other targets leave behind
	@rm -rf .cache examples/connectors/*/node_modules examples/connectors/*/dist
	@find . -type f \( -name '*.test' -o -name '*.prof' -o -name 'coverage.*' \) -not -path './.git/*' -delete
