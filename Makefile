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
GOTESTSUM_VERSION     := $(shell awk '$$1 == "gotest.tools/gotestsum" { print $$2 }' .ci/gotestsum.mod)
CYCLONEDX_VERSION     := $(shell awk '$$1 == "github.com/CycloneDX/cyclonedx-gomod" { print $$2 }' .ci/sbom.mod)

WITH_POSTGRES := bash .ci/with-postgres
TOOLS         := .cache/bin
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOVULNCHECK   := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
VERSITYGW     := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)
PEBBLE        := $(TOOLS)/pebble-$(PEBBLE_VERSION)
GOTESTSUM     := $(TOOLS)/gotestsum-$(GOTESTSUM_VERSION)
CYCLONEDX     := $(TOOLS)/cyclonedx-gomod-$(CYCLONEDX_VERSION)

# Tests start a private S3 server with this program (see blobstore/s3blob/s3test).
WITH_S3 := if [ -z "$$FORMSVC_TEST_VERSITYGW" ]; then \
		if $(MAKE) --no-print-directory -s $(VERSITYGW); then export FORMSVC_TEST_VERSITYGW='$(CURDIR)/$(VERSITYGW)'; \
		else echo 'WARNING: versitygw $(VERSITYGW_VERSION) cannot be built here; S3 tests will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# Likewise a private ACME server (see cmd/formsvc/acme_test.go).
WITH_ACME := if [ -z "$$FORMSVC_TEST_PEBBLE" ]; then \
		if $(MAKE) --no-print-directory -s $(PEBBLE); then export FORMSVC_TEST_PEBBLE='$(CURDIR)/$(PEBBLE)'; \
		else echo 'WARNING: pebble $(PEBBLE_VERSION) cannot be built here; the test with an ACME server will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

# The benchmark program and its peers are modules of their own, tested together.
FORMBENCH  := cmd/formbench
PEERS      := $(FORMBENCH)/peers
WITH_PEERS := if [ -z "$$FORMSVC_TEST_PEERS" ]; then \
		if $(GO) -C $(PEERS) build -o '$(CURDIR)/$(TOOLS)/formbench-peers' .; then export FORMSVC_TEST_PEERS='$(CURDIR)/$(TOOLS)/formbench-peers'; \
		else echo 'WARNING: PocketBase and River cannot be built here; tests beside them will be skipped' >&2; [ "$$CI" != true ] || exit 1; fi; \
	fi;

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build test torture torture-long mutants walks test-connectors test-n8n race bench bench-peers microbench check fmt prose vet tidy lint judges vuln release fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile
	@echo '  PKGS=./webhook TESTFLAGS="-run Verify -v" narrow test and race; BENCH, BENCHFLAGS="-rounds 1" and FUZZTIME narrow the others'

build: ## compile everything
	@$(GO) build ./...

# Fault injection is a module of its own, so that nobody else downloads what it needs.
TORTURE := cmd/formsvc/torture

# So are the receiver examples, which need routers, and Node.js, Python, Ruby, PHP and a JDK for their tests.
RECEIVERS := examples/receivers

# gotestsum runs all tests and lists at the end what failed, and what was skipped and why. With PKGS, "go test" runs the packages.
ifeq ($(PKGS),./...)
WITH_ALL  := $(WITH_S3) $(WITH_ACME) $(WITH_PEERS) $(WITH_POSTGRES)
TEST_WITH  = $(WITH_ALL) $(GOTESTSUM) --format standard-quiet --raw-command -- env LIMIT=$(1) bash .ci/parts $(2)
else
TEST_WITH  = $(WITH_S3) $(if $(filter ./cmd/formsvc,$(PKGS)),$(WITH_ACME)) \
	$(WITH_POSTGRES) $(GO) test -timeout $(1) $(2) $(PKGS)
endif

test: $(if $(filter ./...,$(PKGS)),$(GOTESTSUM)) ## run all tests, with private PostgreSQL and S3 servers
	@$(call TEST_WITH,30m,$(TESTFLAGS))

# FOR=10m, ROUNDS=300 and RUN='TestKill$$' narrow it. Results go to REPORT, a line of JSON for each fault.
FOR    ?= 10m
RUN    ?= .
ROUNDS ?=
REPORT ?= $(CURDIR)/.cache/torture.jsonl

torture: ## inject every fault into the binary for ten minutes, and check that nothing is lost (FOR, RUN, ROUNDS)
	@mkdir -p '$(dir $(REPORT))'
	@$(WITH_S3) $(WITH_POSTGRES) $(GO) -C $(TORTURE) test -timeout 6h -count 1 -parallel 1 -v -run '$(RUN)' . \
		$(if $(ROUNDS),-rounds $(ROUNDS),-for $(FOR)) -report '$(REPORT)'

torture-long: ## torture for an hour
	@$(MAKE) --no-print-directory torture FOR=1h

mutants: ## run the mutation tests (about 10 minutes; MUTANTS=name)
	@$(WITH_S3) $(WITH_POSTGRES) bash .ci/mutants/run $(MUTANTS)

test-connectors: ## test the connectors, one of them in a real Node-RED (a few minutes; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/testing/run

test-n8n: ## test the n8n nodes in a real n8n (minutes; the first run downloads gigabytes; needs Node.js)
	@$(WITH_POSTGRES) bash examples/connectors/n8n/test/run

walks: ## run every guide's commands, each in an empty directory (GUIDES=webhook/README.md)
	@$(WITH_POSTGRES) bash .ci/walk $(GUIDES)

# -short leaves out what tells the detector nothing new: other programs that look at ours, and more of the same.
race: $(if $(filter ./...,$(PKGS)),$(GOTESTSUM)) ## run the tests with the race detector, in random order
	@$(call TEST_WITH,40m,-race -short -shuffle=on $(TESTFLAGS))

BUILD_FORMBENCH = $(GO) -C $(FORMBENCH) build -o '$(CURDIR)/$(TOOLS)/formbench' .

bench: ## compare requests and files with their limits, and deliveries with River (about 30 minutes)
	@$(BUILD_FORMBENCH) && $(WITH_S3) peer='$(CURDIR)/$(TOOLS)/formbench-peers'; \
	$(GO) -C $(PEERS) build -o "$$peer" . || { echo 'bench: River cannot be built here: NOT MEASURED' >&2; peer=; }; \
	$(WITH_POSTGRES) --durable $(TOOLS)/formbench -river "$$peer" $(BENCHFLAGS)

# Unlike in "bench", a peer that cannot be built is an error, because there is nothing else to measure.
bench-peers: ## compare this project with PocketBase and River (about 20 minutes)
	@$(BUILD_FORMBENCH) && peer='$(CURDIR)/$(TOOLS)/formbench-peers'; \
	$(GO) -C $(PEERS) build -o "$$peer" . && \
	$(WITH_POSTGRES) --durable $(TOOLS)/formbench -only peers,deliver -peers "$$peer" -river "$$peer" $(BENCHFLAGS)

microbench: ## run the benchmarks of the packages
	@$(WITH_S3) $(WITH_POSTGRES) --durable $(GO) test -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem $(TESTFLAGS) $(PKGS)

check: fmt vet tidy lint judges race vuln ## run everything that a change must pass
	@echo 'check: ok'

fmt: ## list the files that gofmt would change
	@bad=$$(find . -name node_modules -prune -o -name '*.go' -print0 | xargs -0 gofmt -l) || exit 1; [ -z "$$bad" ] || { echo "$$bad"; echo 'fmt: run gofmt -w on these files'; exit 1; }

# A module of its own, below a folder that "./..." doesn't reach. "make test" runs it as one of its parts.
PROSE := .ci/prose

prose: ## check documents and comments against STYLE.md (PROSEFLAGS=-v)
	@$(GO) -C $(PROSE) run . $(PROSEFLAGS)

vet: ## run go vet
	@$(GO) vet ./... && $(GO) vet -tags failpoints ./cmd/formsvc && $(GO) -C $(TORTURE) vet ./... && $(GO) -C $(FORMBENCH) vet ./... && $(GO) -C $(PEERS) vet ./... && $(GO) -C $(RECEIVERS) vet ./... && $(GO) -C $(PROSE) vet ./...

tidy: ## compare go.mod and go.sum with the code
	@$(GO) mod tidy -diff && $(GO) -C $(TORTURE) mod tidy -diff && $(GO) -C $(FORMBENCH) mod tidy -diff && $(GO) -C $(PEERS) mod tidy -diff && $(GO) -C $(RECEIVERS) mod tidy -diff && $(GO) -C $(PROSE) mod tidy -diff

lint: ## run golangci-lint
	@if $(MAKE) --no-print-directory -s $(GOLANGCI_LINT); then \
		for module in . $(TORTURE) $(RECEIVERS) $(FORMBENCH) $(PEERS) $(PROSE); do (cd $$module && '$(CURDIR)/$(GOLANGCI_LINT)' run ./...) || exit 1; done; \
	else \
		echo 'lint: golangci-lint $(GOLANGCI_LINT_VERSION) cannot be built here: NOT RUN'; [ "$$CI" != true ]; \
	fi

judges: ## check the OpenAPI document, the service and its pages with redocly, prism and axe (minutes; needs Node.js)
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
	@rm -rf .cache examples/connectors/*/node_modules examples/connectors/*/dist
	@find . -type f \( -name '*.test' -o -name '*.prof' -o -name 'coverage.*' \) -not -path './.git/*' -delete
