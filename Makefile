# Two commands do everything: `make run` and `make test`.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
override VERSION := $(VERSION:v%=%)
LDFLAGS := -s -w -X main.version=$(VERSION)
GO      ?= go
NPM     ?= npm

# One set of flags for everything that is compiled without the race detector, so
# that builds, linters and tests share the build cache, and the tests run the
# binary that is shipped.
export CGO_ENABLED ?= 0
export GOFLAGS     ?= -trimpath

# Several targets install the npm packages of web; with make -j they must not do so
# at once.
.NOTPARALLEL:

.PHONY: help run dev build test test-fast test-go test-e2e test-web test-clients test-bench test-soak test-live cover bench eval lint tidy check fmt page engine setup clean cross man screenshots packages audit

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: build ## build everything and start Junctor with its web page
	./bin/junctor serve

dev: ## rebuild and restart on every change
	./scripts/dev

# Without Node.js, everything but the page and the script engine is built.
build: bin ## the binary, with the web page in it

.PHONY: bin no-page
no-page:
	@echo 'make: npm is missing, so the web page and run_code are left out. Install Node.js 20.19 or later and make again.' >&2

# -v prints each compiled package: the first build takes minutes.
bin: $(if $(shell command -v $(NPM)),page engine,no-page)
	@echo 'Compiling Junctor. The first time this downloads and compiles what it uses, which takes a few minutes.' >&2
	$(GO) build -v -ldflags '$(LDFLAGS)' -o bin/junctor ./cmd/junctor

# The page is rebuilt when its sources are newer than the result.
page: internal/webui/dist/index.html ## the web page
WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/generated/*') internal/toolsapi/openapi.json
internal/webui/dist/index.html: $(WEB_SOURCES)
	@echo 'Building the web page.' >&2
	./scripts/npm-install web && cd web && $(NPM) run build

# The parts of internal/script that come from npm packages.
engine: internal/script/engine/dist/quickjs.wasm.gz
internal/script/engine/dist/quickjs.wasm.gz: $(addprefix internal/script/engine/,build.mjs package.json package-lock.json)
	@echo 'Building the script engine.' >&2
	./scripts/npm-install internal/script/engine && cd internal/script/engine && $(NPM) run --silent build

setup: ## install what the tests need (npm packages; Debian packages when root)
	./scripts/setup

# scripts/suites runs test suites and ends with one summary. npm packages are
# installed before, so that a failed installation is not a failed test.
SUITES := $(GO) run ./scripts/suites

test: setup page engine client-packages ## all tests but bench, soak and live (7 minutes)
	@$(SUITES) go quality e2e web python typescript

test-fast: ## for the edit loop: no race detector, browser, npm or PostgreSQL (a minute)
	@$(SUITES) -short go

test-go: page engine ## the Go packages, with the race detector (3 minutes)
	@$(SUITES) go quality

test-e2e: setup page engine ## the binary with real clients, servers and browsers
	@$(SUITES) e2e

test-web: setup
	@$(SUITES) web

test-clients: client-packages
	@$(SUITES) python typescript

test-bench: ## the benchmarks, which are a separate module
	@$(SUITES) bench

test-soak: ## long tests: load, kills and failures, repeated
	@$(SUITES) soak

.PHONY: client-packages
client-packages:
	./scripts/npm-install clients/typescript

test-live: ## optional tests against real providers, with the keys in the environment
	JUNCTOR_LIVE=1 $(GO) test -run Live ./...

cover: setup ## statement coverage, including the tests of the binary
	./scripts/cover

bench: ## the numbers of docs/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./internal/...
	$(GO) -C bench run .

eval: ## search quality: our set, and ../shared/search-eval if it exists
	$(GO) -C bench run ./eval

cross: ## compile for every platform
	./scripts/cross

man: ## manual pages and completions, in dist/extras
	VERSION=$(VERSION) ./scripts/extras dist/extras

screenshots: setup build ## update the pictures of README.md and docs
	$(GO) build -o bin/llmscript ./internal/llm/llmtest/cmd/llmscript
	cd e2e && CHROMIUM=$${CHROMIUM:-$$(command -v chromium chromium-browser google-chrome-stable google-chrome | head -n 1)} JUNCTOR_BIN=$(CURDIR)/bin/junctor LLMSCRIPT_BIN=$(CURDIR)/bin/llmscript node web/screenshots.mjs ../docs/images

packages: page engine ## the npm packages, in dist/npm
	VERSION=$(VERSION) ./scripts/cross dist/binaries
	node packaging/npm/build.mjs dist/binaries $(VERSION) dist/npm
	cd dist/npm && for p in */; do $(NPM) pack --silent "./$$p"; done

audit: ## known vulnerabilities in the dependencies
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...
	$(GO) -C bench run golang.org/x/vuln/cmd/govulncheck@latest ./...
	@for folder in web clients/typescript; do [ ! -f "$$folder/package-lock.json" ] || (cd "$$folder" && $(NPM) audit --omit=dev --audit-level=high) || exit 1; done

lint: ## format, vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run make fmt'; exit 1; }
	@for module in . bench; do (set -ex; cd $$module; $(GO) vet ./...; $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...; $(GO) mod tidy -diff) || exit 1; done

tidy: ## go.mod and go.sum of both modules
	$(GO) mod tidy && $(GO) -C bench mod tidy

fmt:
	gofmt -w $$(git ls-files '*.go')

check: lint test ## the linters and all tests

clean:
	rm -rf bin dist .cache
