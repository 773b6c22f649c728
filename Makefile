# `make help` lists every target.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Settings of a soak, which may also be environment variables. They are passed to soak as flags, because SECONDS is a
# special variable of bash.
CONNECTIONS ?= 1200
SECONDS ?= 3600
NOOP_INTERVAL ?= 15
RUNNERS ?= 2
BACKEND_URL ?=
PREFIX ?=
OUT ?= results
unexport SECONDS RUNS JOBS SEED

# An attestation contains the time of the build. With it, the same programs would make a new image, and containers would restart.
export BUILDX_NO_DEFAULT_ATTESTATIONS := 1

SOAK_FLAGS = --connections '$(CONNECTIONS)' --seconds '$(SECONDS)' --noop-interval '$(NOOP_INTERVAL)' \
	--runners '$(RUNNERS)' --backend-url '$(BACKEND_URL)' --prefix '$(PREFIX)' --out '$(OUT)'

GO ?= go
LOW_PRIORITY = nice -n 19
STATICCHECK = $(LOW_PRIORITY) $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI = $(LOW_PRIORITY) $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK = $(LOW_PRIORITY) $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0
VALE = CGO_ENABLED=1 $(LOW_PRIORITY) $(GO) run github.com/vale-cli/vale/v3/cmd/vale@v3.22.0
ACTIONLINT = $(LOW_PRIORITY) $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME ?= 4s

.PHONY: help
help: ## list the targets
	@echo 'sse-soak: check that a service delivers every message of its event streams'
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r t d; do printf '  %-16s %s\n' "$$t" "$$d"; done
	@echo
	@echo 'Settings: CONNECTIONS=$(CONNECTIONS) SECONDS=$(SECONDS) NOOP_INTERVAL=$(NOOP_INTERVAL) RUNNERS=$(RUNNERS) BACKEND_URL=$(BACKEND_URL) PREFIX=$(PREFIX) OUT=$(OUT)'

.PHONY: soak
soak: build ## run the main job: 1200 streams for an hour, and check every noop
	@bin/soak run $(SOAK_FLAGS)

.PHONY: smoke
smoke: build ## run a short soak: 100 streams for 30 s, a noop every second
	@bin/soak run --connections 100 --seconds 30 --noop-interval 1 --runners '$(RUNNERS)' \
		--backend-url '$(BACKEND_URL)' --prefix '$(PREFIX)' --out '$(OUT)'

.PHONY: build
build: internal/report/html/bundle/page.js ## build bin/soak, bin/k6, bin/backend (the first k6 takes a few minutes)
	@test -d bin || echo 'building; the first build of k6 takes 2 to 8 minutes, later ones seconds'
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o bin/ ./cmd/soak ./backend
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/k6 ./cmd/k6

# The script and style of the charts in report.html, which bin/soak embeds.
internal/report/html/bundle/page.js: $(wildcard internal/report/html/page/*) package-lock.json | node_modules
	@npx esbuild internal/report/html/page/main.js --bundle --minify --format=iife --target=es2022 --charset=utf8 \
		--banner:js="/* uPlot: Copyright (c) 2022 Leon Sorokin, MIT License, https://opensource.org/license/mit */" \
		--outfile=$@ --log-level=warning

# The same commit and Go version make the same bytes on any machine. PLATFORMS=linux/amd64,darwin/arm64 selects platforms.
.PHONY: release
release: internal/report/html/bundle/page.js ## build a release in dist/: archives, bills of materials, image, checksums (docs/getting-started.md)
	@$(GO) build -C tools -o ../bin/ ./release
	@$(LOW_PRIORITY) bin/release $(if $(PLATFORMS),-platforms '$(PLATFORMS)')

.PHONY: test
test: ## run all tests of CI, and list the tests that failed or that this machine could not run
	@MAKE='$(MAKE)' .ci/test

# lint runs at the lowest priority, so that parallel tests do not wait for a core.
.PHONY: lint
lint: node_modules ## run gofmt, vet, staticcheck, golangci-lint, govulncheck, actionlint, tsc, eslint, shellcheck and Vale; check commit subjects; compile for macOS and Windows
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$unformatted" || { echo "gofmt -w these: $$unformatted" >&2; exit 1; }
	@for module in . tools; do (cd $$module && $(LOW_PRIORITY) $(GO) vet -tags e2e,stack,dashboards,browser,k8s,aws ./... && \
		$(STATICCHECK) -tags e2e,stack,dashboards,browser,k8s,aws ./... && $(GOLANGCI) run) || exit; done
	@if curl --silent --fail --max-time 20 --output /dev/null "$${GOVULNDB:-https://vuln.go.dev}/index/db.json"; then $(GOVULNCHECK) ./...; \
	else printf 'known vulnerabilities, because https://vuln.go.dev does not answer\tlint\n' >>"$${NOT_TESTED:-/dev/null}"; fi
	@$(ACTIONLINT) .github/workflows/*.yml examples/ci/github.yml cmd/soak/init_workflow.yml
	@for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 $(LOW_PRIORITY) $(GO) build -trimpath . ./internal/... ./k6/... ./cmd/soak ./backend || exit; done
	@$(LOW_PRIORITY) npx tsc --project tsconfig.json
	@$(LOW_PRIORITY) npx tsc --project internal/report/html/tsconfig.json
	@$(LOW_PRIORITY) npx eslint --max-warnings 0 .
	@.ci/shellcheck
	@.ci/subjects
	@if command -v "$$($(GO) env CC)" >/dev/null; then git ls-files '*.md' '*.go' | grep -vxE -f tools/vale/exempt | xargs env $(VALE) --output=line; \
	else printf 'prose, because there is no C compiler: apt-get install gcc libc6-dev\tlint\n' >>"$${NOT_TESTED:-/dev/null}"; fi

node_modules: package.json package-lock.json
	@echo 'installing the packages of package-lock.json with npm'
	@npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch node_modules

# These packages start no goroutine, or start programs, which the race detector does not observe (soak-aws). Their tests
# take several times as long with the race detector.
SEQUENTIAL = cmd/soak-aws internal/ledger internal/ledger/feed internal/results/archive internal/results/compare internal/secret \
	internal/shard internal/sseclient/coding internal/suite test/docs

# Four packages run in parallel: most tests wait, and linking one with k6 uses 1.3 GB. Six tests of a package run in
# parallel, because by default a package that waits would run only one test per core. Compilers run at the lowest
# priority, so that no test waits for a core because of them. `make lint` vets.
UNIT_FLAGS = -p 4 -parallel 6 -vet=off -toolexec '$(LOW_PRIORITY)'

# The race detector needs cgo, which Go turns off without a C compiler.
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.PHONY: unit unit-sequential unit-race
unit: unit-sequential unit-race ## run unit tests, with the race detector for packages with goroutines
unit-sequential: node_modules
	.ci/gotest '$(SEQUENTIAL:%=./%)' $(UNIT_FLAGS)
unit-race: node_modules
	$(TRY_SERVICES)
	@test -n '$(RACE)' || printf 'data races, because there is no C compiler: apt-get install gcc libc6-dev\tunit\n' >>"$${NOT_TESTED:-/dev/null}"
	.ci/gotest "$$($(GO) list ./... | grep -v $(SEQUENTIAL:%=-e '/%$$') | tr '\n' ' ')" $(RACE) $(UNIT_FLAGS)
	cd tools && ../.ci/gotest ./... $(RACE) $(UNIT_FLAGS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (4s), at the lowest priority
	@.ci/fuzz '$(FUZZTIME)'

# Third-party services for the tests (test/services). nchan is a package of Debian. Tests skip services that cannot be built.
TRY_SERVICES = @$(MAKE) --no-print-directory --keep-going services || echo 'some services could not be built, see above; their tests are skipped' >&2

.PHONY: services
services: bin/services/mercure bin/services/pocketbase bin/services/python/ready gateways ## build the third-party services that tests use (test/services)

bin/services/mercure bin/services/pocketbase: bin/services/%: test/services/%/main.go test/services/%/go.mod test/services/%/go.sum
	@mkdir -p $(@D)
	@cd test/services/$* && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o '$(CURDIR)/$@' .

# Gateways for language models. The tests and gateways-bench start them.
.PHONY: gateways
gateways: bin/services/litellm/ready bin/services/ai-sdk/server.js

bin/services/ai-sdk/server.js: test/services/ai-sdk/server.js test/services/ai-sdk/package.json test/services/ai-sdk/package-lock.json
	@mkdir -p $(@D)
	@cp test/services/ai-sdk/package.json test/services/ai-sdk/package-lock.json $(@D)
	@cd $(@D) && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@cp $< $@

bin/services/python/ready bin/services/litellm/ready: bin/services/%/ready: test/services/%/requirements.txt
	@rm -rf $(@D) && mkdir -p bin/services && python3 -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.PHONY: e2e
e2e: build ## test whole soaks: without faults, with every fault, and with a backend without ids
	$(TRY_SERVICES)
	.ci/gotest ./test/e2e -count=1 -tags e2e -timeout 60m -parallel 12

.PHONY: release-test
release-test: build ## build the archives of a release for all platforms and run one of them
	$(LOW_PRIORITY) .ci/gotest ./test/release -count=1 -tags e2e -timeout 30m

# Random services with random faults or none (docs/reliability.md#campaign). The same SEED selects the same scenarios.
.PHONY: campaign
campaign: build ## soak RUNS random services with random faults, JOBS at a time, and check each verdict (docs/reliability.md#campaign)
	@$(GO) build -C tools -o ../bin/ ./campaign
	@bin/campaign -runs '$(or $(RUNS),100)' -jobs '$(or $(JOBS),4)' $(if $(SEED),-seed '$(SEED)') $(if $(KIND),-kind '$(KIND)') -out '$(OUT)/campaign'

# The tests run in parallel, because they mostly wait. With CALIBRATE, the silence of a stream behind nginx lasts 100 s.
.PHONY: live-test
live-test: build ## test the stack in Docker, every query of the dashboards, a stream that is silent for 100 s, and the reports in chromium
	@mkdir -p certs/server
	CALIBRATE=1 .ci/gotest './test/stack ./test/dashboards ./nginx' -count=1 -tags stack,dashboards -timeout 45m -p 3 -parallel 3
	.ci/gotest './internal/report ./internal/results ./internal/run/live' -count=1 -tags browser -run Browser

.PHONY: bench
bench: build ## measure memory and CPU per stream by Go benchmarks (ONLY: a pattern), and write docs/results/bench.md with limits and peers
	@$(GO) build -C tools -o ../bin/ ./bench
	@mkdir -p '$(OUT)'
	@$(GO) test -C tools -run '^$$' -bench '$(or $(ONLY),.)' -benchtime 1x -count 3 -timeout 4h ./bench | tee '$(OUT)/bench.txt'
	@bin/bench table docs/results/bench <'$(OUT)/bench.txt'

# Defaults of the settings above do not apply here: the default is 2000 streams for 300 s per service.
.PHONY: services-bench
services-bench: build ## soak each service of test/services and bin/backend, and write a table (docs/results/services-compared.md)
	$(TRY_SERVICES)
	@$(GO) build -C tools -o ../bin/ ./thirdparty
	@bin/thirdparty services -out '$(OUT)/services' $(if $(ONLY),-only '$(ONLY)') $(if $(SUITE),-suite '$(SUITE)') \
		$(if $(TOPICS),-topics '$(TOPICS)') $(if $(PUBLISH_RATE),-publish-rate '$(PUBLISH_RATE)') \
		$(foreach s,CONNECTIONS SECONDS RUNNERS,$(if $(filter file,$(origin $s)),,-$(shell echo $s | tr A-Z a-z) '$($s)'))

.PHONY: gateways-bench
gateways-bench: build gateways ## run the numbered model behind gateways for language models, and write a table (docs/results/gateways-compared.md)
	@$(GO) build -C tools -o ../bin/ ./thirdparty
	@bin/thirdparty gateways -out '$(OUT)/gateways' $(if $(ONLY),-only '$(ONLY)') $(if $(RATE),-rate '$(RATE)')

.env: .env.example
	@infra/compose/env .env

.PHONY: up
up: .env ## start the stack: nginx, backend, Prometheus, Grafana (docs/stack.md)
	@mkdir -p certs/server
	@command -v docker >/dev/null && docker compose version >/dev/null 2>&1 || \
		{ echo 'make up needs Docker with its compose plugin (2.20 or newer): https://docs.docker.com/engine/install/' >&2; exit 1; }
	@VERSION="$$(git describe --tags --always --dirty 2>/dev/null)" docker compose up -d --build --wait || \
		{ code=$$?; [ $$code -ne 1 ] || infra/compose/failures; exit $$code; }
	@infra/compose/refresh .env

.PHONY: down
down: .env ## stop the stack; keep the data of Prometheus and Grafana
	docker compose --profile '*' down --remove-orphans

# Uses PROMETHEUS_URL if it is set, otherwise the Prometheus of the stack that `make up` started on this machine.
.PHONY: archive
archive: build ## pack a run (TESTID, or the last run) and its Prometheus data into one archive (docs/report.md#archive-a-run)
	@if [ -z "$$PROMETHEUS_URL" ] && [ -r .env ]; then \
		PROMETHEUS_URL="$$($(GO) run ./infra/compose/prometheusurl)"; export PROMETHEUS_URL; fi; \
	bin/soak archive '$(or $(TESTID),$(OUT)/latest)' $(if $(TO),'$(TO)') --out '$(OUT)'

.PHONY: certs
certs: ## create a local authority, a certificate for the stack's TLS and four for clients in certs/
	@infra/compose/certs certs $(NAMES)

# k8s-soak needs a cluster with the k6-operator, and the images in it: docs/distributed.md.
OVERLAY ?= local

# The architecture of images: amd64 or arm64; default: the architecture of this machine.
ARCH ?= $(shell $(GO) env GOARCH)

.PHONY: images
images: image-k6 ## build the images that run on Kubernetes, for linux/ARCH: sse-soak/k6, backend and bucket
	docker build --platform 'linux/$(ARCH)' --file backend/Dockerfile --target backend --tag sse-soak/backend:local .
	@GOOS=linux GOARCH='$(ARCH)' CGO_ENABLED=0 $(GO) build -C tools -trimpath -buildvcs=false -o '../bin/linux-$(ARCH)/' ./bucket
	docker build --platform 'linux/$(ARCH)' --build-arg 'BIN=bin/linux-$(ARCH)' --file tools/bucket/Dockerfile --tag sse-soak/bucket:local .

# Images for the host of the stack. Programs are built here, so that the host needs no compiler. Programs and images have a
# fixed time, so that the same programs make the same image. A different image would replace the host.
.PHONY: stack-images
stack-images:
	@mkdir -p bin/stack
	@GOOS=linux GOARCH=amd64 CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o bin/stack/ \
		-ldflags="-s -w -X main.version=$$(git describe --tags --always --dirty 2>/dev/null)" ./backend ./cmd/reference ./nginx/nginxconf
	@sed -n '/^FROM scratch AS nginxconf/,$$p' backend/Dockerfile | sed 's,--from=build /out/,,' >bin/stack/Dockerfile
	@touch -t 200001010000 bin/stack/*
	@for image in backend nginxconf reference; do \
		SOURCE_DATE_EPOCH=946684800 docker build --quiet --platform linux/amd64 --target $$image --tag sse-soak/$$image:local bin/stack || exit; \
	done

# The programs of the image are built for Linux and ARCH; the programs in bin/ are for this machine.
.PHONY: image-k6
image-k6: internal/report/html/bundle/page.js
	@mkdir -p 'bin/linux-$(ARCH)'
	@GOOS=linux GOARCH='$(ARCH)' CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o 'bin/linux-$(ARCH)/' ./cmd/soak ./cmd/k6
	@touch -t 200001010000 'bin/linux-$(ARCH)'/*
	SOURCE_DATE_EPOCH=946684800 docker build --platform 'linux/$(ARCH)' --build-arg 'BIN=bin/linux-$(ARCH)' --file cmd/k6/Dockerfile --tag sse-soak/k6:local .

.PHONY: k8s-soak
k8s-soak: build ## run the soak on Kubernetes, under the k6-operator (docs/distributed.md)
	@bin/soak run --on k8s --overlay '$(OVERLAY)' $(SOAK_FLAGS)

.PHONY: e2e-k8s
e2e-k8s: build ## test soaks on a real cluster, without faults and with each way to lose a runner
	$(GO) test -count=1 -tags k8s -timeout 90m -v ./test/cluster

# AWS (docs/aws.md); bin/soak-aws has more commands. Soaks there use the CONNECTIONS and NOOP_INTERVAL of aws-up.
.PHONY: bin/soak-aws
bin/soak-aws:
	@mkdir -p bin
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/soak-aws

# MAX_USD is the maximum price; a more expensive deployment is refused. NAME names one of several deployments. It must be an
# argument of make, because WSL has a variable NAME.
SOAK_AWS = bin/soak-aws $(if $(filter command,$(firstword $(origin NAME))),--name '$(NAME)') $(if $(MAX_USD),--max-usd '$(MAX_USD)')

# CONNECTIONS and NOOP_INTERVAL if they are arguments of make, otherwise the values that the stack was set up for.
AWS_STREAMS = $(foreach s,CONNECTIONS NOOP_INTERVAL,$(if $(filter file,$(origin $s)),,--$(subst _,-,$(shell echo $s | tr A-Z a-z)) '$($s)'))

.PHONY: aws-up
aws-up: bin/soak-aws ## create the stack and the runners on AWS; hosts cost money until aws-down, or for ttl_minutes (180)
	@$(SOAK_AWS) check
	@arch="$$($(SOAK_AWS) arch)" && $(MAKE) --no-print-directory aws-files ARCH="$$arch"
	@$(SOAK_AWS) up $(AWS_STREAMS)

.PHONY: aws-files
aws-files: image-k6 stack-images
	@infra/terraform/files '$(ARCH)'

.PHONY: aws-soak
aws-soak: build bin/soak-aws ## run a soak from the runners on AWS against the stack there; the report is in results/
	@$(SOAK_AWS) soak -- $(AWS_STREAMS) --seconds '$(SECONDS)' --runners '$(RUNNERS)' --prefix '$(PREFIX)' --out '$(OUT)'

.PHONY: aws-down
aws-down: bin/soak-aws ## archive the runs (ARCHIVE=0: no archive), destroy all but the archives (ALL=1: also these), list the remaining resources
	@$(SOAK_AWS) down $(if $(filter 0,$(ARCHIVE)),--no-archive) $(if $(filter 1,$(ALL)),--all) --results '$(OUT)'

# The other tests of cmd/soak-aws need no build tag and are part of unit. `make test` runs both targets in parallel.
.PHONY: aws-test aws-host-test aws-deployment-test
aws-test: aws-host-test aws-deployment-test ## test the Terraform code, and boot the stack's host in a container (root, Docker)
aws-host-test:
	.ci/gotest ./infra/terraform/check -count=1 -tags aws -timeout 45m -parallel 6
aws-deployment-test:
	.ci/gotest ./cmd/soak-aws -count=1 -tags aws -timeout 45m -run 'TestDeployment$$'

.PHONY: clean
clean: ## remove the files of build, release and lint; keep results
	rm -rf bin dist node_modules
