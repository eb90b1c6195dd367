# make demo, make test and make local need nothing but Go.

GO ?= go
CHROME ?= chromium
BIN := bin
LINT := $(BIN)/golangci-lint
ACTIONLINT := $(BIN)/actionlint
# The folders that have their own go.mod.
STORES := stores/redisstore stores/redisstore/redisquorum stores/s3store stores/azblobstore
MODULES := . $(STORES) redelivery telemetry/otellock cmd/lambdalock integration examples examples/composition infra infra/app/function tools/mutants
HUGO := $(BIN)/hugo
CFN_LINT := infra/.venv/bin/cfn-lint
CDK_VERSION := 2.1148.1

# The linter's own default is one cache for the machine, which answers with the paths of
# another clone: https://github.com/golangci/golangci-lint/issues/6656
export GOLANGCI_LINT_CACHE := $(CURDIR)/$(BIN)/lint-cache

# What the shell sets for functions and clients of its own, such as a profile, a lock
# table or a CA bundle, reaches no demo and no test.
unexported := LOCK_% LAMBDALOCK_STORE
ifeq ($(origin TABLE) for $(MAKECMDGOALS),command line for integration)
export LAMBDALOCK_TABLE := $(or $(TABLE),$(error TABLE is empty))
export LAMBDALOCK_BUCKET := $(if $(filter command,$(origin BUCKET)),$(BUCKET))
export LAMBDALOCK_LIMITED := $(if $(filter command,$(origin LIMITED)),$(LIMITED))
else
$(if $(filter command,$(origin TABLE) $(origin BUCKET)),$(error the command is make integration TABLE=name, or with BUCKET=name as well))
LAMBDALOCK_TABLE :=
unexported += AWS_% LAMBDALOCK_TABLE LAMBDALOCK_BUCKET LAMBDALOCK_LIMITED
endif
$(foreach name,$(filter $(unexported),$(.VARIABLES)),$(eval unexport $(name)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: command
command: $(BIN)
	cd cmd/lambdalock && $(GO) build -tags lambda.norpc -o "$(CURDIR)/$(BIN)/lambdalock" .

.PHONY: demo
demo: $(BIN) ## run the demo: one S3 function without a lock, then with it
	cd cmd/lambdalock && $(GO) build -tags demo,lambda.norpc -o "$(CURDIR)/$(BIN)/lambdalock-demo" .
	$(BIN)/lambdalock-demo demo --html $(BIN)/demo.html

DEMOS := demo-redis demo-s3 demo-azure

.PHONY: demos $(DEMOS)
demos: $(DEMOS) ## run the demo on Redis, S3 and Azure (demo-redis: only there), whose servers it fetches into integration/.servers
$(DEMOS): demo-%: command
	cd integration && $(GO) run ./servers/run $* sh -c 'exec "$$0" demo --store "$$LAMBDALOCK_STORE" --html "$$1"' "$(CURDIR)/$(BIN)/lambdalock" "$(CURDIR)/$(BIN)/$@.html"

.PHONY: picture
picture: demo ## draw the images of the README from the demo (needs Chromium; CHROME names another browser of its family)
	for theme in 0-dark 1-light; do \
		$(CHROME) --headless --hide-scrollbars --force-device-scale-factor=2 --window-size=880,642 \
			--blink-settings=preferredColorScheme=$${theme%-*} --screenshot=docs/demo-$${theme#*-}.png \
			file://"$(CURDIR)/$(BIN)/demo.html#picture" || exit 1; \
	done

# What -short leaves out, make weekly runs.
TESTFLAGS := -short

.PHONY: test
test: ## run all tests that need nothing but Go, with -short; what has not changed is not run again
	@GO="$(GO)" TESTFLAGS="$(TESTFLAGS)" .ci/test . cmd/lambdalock stores/redisstore/redisquorum stores/redisstore stores/s3store examples stores/azblobstore redelivery telemetry/otellock # the longest first

.PHONY: table
table: ## check that the table of planted bugs fits the code, and the cutter
	cd tools/mutants && $(GO) test -count=1 ./... # what it reads is outside its module, so the cache would not see a change
	cd tools && $(GO) test ./cutter

.PHONY: facts
facts: ## print the pages of AWS that a promise rests on, and when they were read (docs/PROMISES.md)
	@sed -n '/^## Facts about AWS/,/^## What is not/p' docs/PROMISES.md | awk -F' [|] ' \
		'$$3 ~ /^20/ {while (match($$2, /https:[^)]+/)) {print $$3, substr($$2, RSTART, RLENGTH); $$2 = substr($$2, RSTART+RLENGTH)}}' | sort

.PHONY: composition
composition: ## run the examples with tracers, HTTP adapters and dynamolock (downloads their modules)
	cd examples/composition && $(GO) test -shuffle=on ./...

.PHONY: local
local: ## run every example on a duplicated event, without SAM and Docker
	cd examples && $(GO) run ./internal/runner

.PHONY: check
check: test table demo local lint infra sam race tidy integration ## run everything that CI runs for each change

.PHONY: weekly
weekly: TESTFLAGS :=
weekly: test seeds race-all cover composition rehearse short demos ## run what CI runs once a week: what takes long and seldom finds more than check (docs/TESTING.md)

# The other runs play the same seeds each time, from 0 on.
seeds: export LAMBDALOCK_SEED := $(shell date +%Y%m%d)000
seeds: export LAMBDALOCK_SEEDS := 400
.PHONY: seeds
seeds: ## run the simulations of all stores with seeds of this day, which it prints
	@echo "from seed $$LAMBDALOCK_SEED"
	$(GO) test -run Simulation ./lock ./middleware ./stores/...
	@for m in $(STORES); do (cd $$m && $(GO) test -run 'Simulation|QuorumHistories' ./...) || exit 1; done

.PHONY: lint
lint: $(LINT) $(ACTIONLINT) ## run golangci-lint, which includes go vet, in every module, and check the workflows
	$(ACTIONLINT)
	@for m in $(MODULES) tools site; do (cd $$m && "$(CURDIR)/$(LINT)" run ./...) || exit 1; done

# The paste of macOS reads a pipe only if it is named.
NO_RACE := $(shell grep -v '^\#' .ci/no-race | paste -s -d '|' -)

.PHONY: race
race: ## run the tests with the race detector, without the simulations (needs a C compiler)
	@GO="$(GO)" TESTFLAGS="-race -short -shuffle=on -skip $(NO_RACE)" EXCEPT='robustness/explore$$|/docs$$' .ci/test stores/redisstore/redisquorum . $(filter-out %/redisquorum,$(STORES)) redelivery telemetry/otellock # the longest first; EXCEPT plays one order at a time, or reads files

.PHONY: race-all
race-all: ## run all tests with the race detector, also those of the command and on real servers
	$(GO) test -race -short -shuffle=on ./...
	@for m in $(STORES) redelivery telemetry/otellock; do (cd $$m && $(GO) test -race -short -shuffle=on ./...) || exit 1; done
	cd cmd/lambdalock && $(GO) test -race -shuffle=on -p 1 ./... # it starts many processes, whose requests have two seconds
	$(MAKE) integration RACE=-race

ROUNDS ?= 50

.PHONY: flake
flake: ## run what race runs ROUNDS times in a row (50), in another order each time
	.ci/flake $(ROUNDS) '$(NO_RACE)'

# In the stores' modules, packages that only help tests, and the examples, are not counted.
.PHONY: cover
cover: $(BIN) ## check that each package of lock, middleware, keyfuncs, stores and telemetry has 90 % coverage
	$(GO) test -short -coverpkg=./lock,./lock/driver,./middleware,./keyfuncs/...,./internal/event/...,./stores/...,./telemetry/... -coverprofile=$(BIN)/cover.out \
		./lock/... ./middleware/... ./keyfuncs/... ./stores/... ./internal/event/... ./telemetry/...
	@sh .ci/coverage $(BIN)/cover.out
	@for m in $(STORES) telemetry/otellock; do (cd $$m && \
		packages=$$($(GO) list ./... | grep -vE '/internal/[a-z]+test$$|/examples/' | paste -s -d , -) && \
		$(GO) test -short -coverpkg="$$packages" -coverprofile="$(CURDIR)/$(BIN)/cover.out" ./... && \
		sh "$(CURDIR)/.ci/coverage" "$(CURDIR)/$(BIN)/cover.out") || exit 1; done

.PHONY: download
download: $(CFN_LINT) ## download the modules and tools that the other targets use (needs Node and Python)
	@for m in $(MODULES) tools; do (cd $$m && $(GO) mod download) || exit 1; done
	npx --yes aws-cdk@$(CDK_VERSION) --version

.PHONY: tidy
tidy: ## check that go.mod and go.sum are complete
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff) || exit 1; done

.PHONY: servers
servers: ## fetch the real servers into integration/.servers
	cd integration && $(GO) run ./servers/fetch

.PHONY: integration
integration: $(if $(LAMBDALOCK_TABLE),,servers) ## run the tests on real servers, or (TABLE=name BUCKET=name) in an AWS account: docs/TESTING.md
	cd integration && $(GO) test $(RACE) -short -parallel 6 -timeout 30m $(if $(LAMBDALOCK_TABLE),-skip '^TestSimulation$$',./...) # more than there are processors, because most wait

.PHONY: sam
sam: ## check and build the SAM template (needs Python)
	GO="$(GO)" sam-local/check

.PHONY: infra
infra: $(CFN_LINT) ## synthesise and check the CDK construct (needs Node and Python)
	cd infra && $(GO) test -shuffle=on ./...
	cd infra/app/function && GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -tags lambda.norpc -ldflags "-s -w" -o dist/bootstrap .
	cd infra/app && npx --yes aws-cdk@$(CDK_VERSION) synth --quiet
	$(CFN_LINT) --non-zero-exit-code error infra/app/cdk.out/*.template.json

SITE ?= main

.PHONY: site
site: $(HUGO) command demo ## build the documents as a site into bin/site, and check every link (SITE=v0.1.0: that version's)
	GO="$(GO)" site/build $(SITE)

VERSION ?= v0.1.0

.PHONY: rehearse
rehearse: ## rehearse the release of VERSION (v0.1.0), and follow docs/START.md with it in an empty folder (needs Node)
	.ci/rehearse $(VERSION)

.PHONY: binaries
binaries: ## build the command of the released VERSION for every system into bin/release
	.ci/binaries $(VERSION) $(BIN)/release

.PHONY: soak
soak: ## run the simulations and the integration tests in their long form
	LAMBDALOCK_SEEDS=20000 $(GO) test -v -run Simulation -timeout 180m ./lock ./middleware
	LAMBDALOCK_DEPTH=long $(GO) test -v -run 'Explore|TransactOrders|TestConformance$$' -timeout 60m ./internal/robustness/explore ./stores/dynamostore ./stores/objectstore
	cd stores/redisstore && LAMBDALOCK_DEPTH=long $(GO) test -v -run 'TestConformance$$' -timeout 60m .
	LAMBDALOCK_SEEDS=20000 $(GO) test -v -run Simulation -timeout 12h ./stores/dynamostore/...
	@for m in $(STORES); do (cd $$m && LAMBDALOCK_SEEDS=20000 $(GO) test -v -run 'Simulation|QuorumHistories' -timeout 12h ./...) || exit 1; done
	@for m in $(filter stores/redis%,$(STORES)); do (cd $$m && LAMBDALOCK_DEPTH=long $(GO) test -v -run Chaos -timeout 60m ./...) || exit 1; done
	LAMBDALOCK_SEEDS=500 $(GO) test -v -run Delivery -timeout 60m ./internal/robustness/delivery
	LAMBDALOCK_SEEDS=6250 $(GO) test -v -run Deadline -timeout 60m ./internal/robustness/delivery
	LAMBDALOCK_SEEDS=10000 $(GO) test -v -run 'Hostile|Hashed' ./lock ./middleware ./keyfuncs
	cd cmd/lambdalock && LAMBDALOCK_SEEDS=10000 $(GO) test -v -run HostileKeys ./internal/operate
	cd integration && $(GO) test -race -v -timeout 180m ./...
	cd infra && LAMBDALOCK_FUNCTIONS=500 $(GO) test -v -run LargeApp -timeout 60m .

.PHONY: mutants
mutants: ## plant bugs, one at a time, and check that the tests notice every one (ONLY=regexp: only those)
	cd tools/mutants && $(GO) test -count=1 -timeout=0 -parallel=2 -v -run '^TestPlanted$$' . -only '$(ONLY)'

REV ?= origin/main

.PHONY: cut
cut: ## cut the lines of Go that have changed since the branch left REV (origin/main), one at a time, and list what no test notices (CUT='lock/retry.go:12-34': only there; CUT=-list: list the cuts)
	@cd tools && $(GO) run ./cutter -rev "$(REV)" $(CUT)

.PHONY: bench
bench: ## run the benchmarks, which compare with the bare clients and with other libraries (PEERS=1: only with Powertools and other locks, which are downloaded; needs Node and Python)
ifdef PEERS
	cd integration && LAMBDALOCK_PEERS=1 $(GO) test -run '^$$' -bench 'Peers$$' -benchtime 1x -timeout 30m .
else
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./telemetry/...
	cd telemetry/otellock && $(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) .
	cd integration && $(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(BENCHFLAGS) ./...
endif

POWERTOOLS_GO := github.com/rambow-cloud/powertools-lambda-go@fee1bebd91439f75809f5d40c1d315ff3d6b598d

.PHONY: compare
compare: ## play the cases of docs/COMPARISON.md with other tools, which are downloaded (needs Node and Python), and compare the page's tables
	cd integration && LAMBDALOCK_PEERS=1 $(GO) test -run '^TestComparison$$' -count 1 -parallel 6 -timeout 30m # without a package, so that it prints
	@if $(GO) mod download $(POWERTOOLS_GO) 2>/dev/null; then echo "Powertools' Go port can be fetched: add it to the cases"; \
		else echo "Powertools' Go port cannot be fetched, so it was not run"; fi

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## fuzz key functions and the expression parsers, each for FUZZTIME (1m; 500x: 500 runs)
	@for p in ./keyfuncs ./keyfuncs/jmespath ./internal/event/canonical ./internal/local/fakedynamo; do \
		listed=$$($(GO) test -list '^Fuzz' $$p) || exit 1; \
		for f in $$(echo "$$listed" | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

.PHONY: short
short: ## check that benchmarks and fuzz targets run
	$(MAKE) bench BENCHFLAGS="-short -benchtime=1x"
	$(MAKE) fuzz FUZZTIME=500x

$(LINT): tools/go.mod | $(BIN)
	cd tools && $(GO) build -o "$(CURDIR)/$(LINT)" github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(ACTIONLINT): tools/go.mod | $(BIN)
	cd tools && $(GO) build -o "$(CURDIR)/$(ACTIONLINT)" github.com/rhysd/actionlint/cmd/actionlint

$(HUGO): site/go.mod | $(BIN)
	cd site && CGO_ENABLED=0 $(GO) build -o "$(CURDIR)/$(HUGO)" github.com/gohugoio/hugo

# The versions are those of sam-local/check, so that both lint by the same rules.
$(CFN_LINT): sam-local/requirements.txt
	python3 -m venv infra/.venv
	infra/.venv/bin/pip install --quiet --disable-pip-version-check -c sam-local/requirements.txt cfn-lint
	@touch $@

$(BIN):
	@mkdir -p $(BIN)
