# Short words for the commands of CONTRIBUTING.md. Nothing here is needed: every target is one or two plain commands.

DURATION ?= 30s

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r t d; do printf '  %-8s %s\n' $$t "$$d"; done

.PHONY: test
test: ## run the tests
	go test ./...

.PHONY: race
race: ## run the tests as CI does: race detector, random order
	go test -race -shuffle=on ./...

.PHONY: lint
lint: ## run the pinned linter (the first time it is built, which takes a minute or two)
	go tool -modfile=tools/go.mod golangci-lint run ./...

.PHONY: tidy
tidy: ## write the module files anew; a dependency of the root is one of the modules beside it
	for m in docs/examples/plugin bench tools .; do go -C $$m mod tidy || exit; done

.PHONY: fuzz
fuzz: ## fuzz every target, each for DURATION (30s)
	.ci/fuzz $(DURATION)

.PHONY: soak
soak: ## look for what takes too long for every day: seeds, kills, days of virtual time, an outage of a name server, restarts
	nice env MILLRACE_SEEDS=10000 go test -C actors -count=1 -run '^TestSeeds$$' -timeout 2h
	nice env MILLRACE_WIRE_SEEDS=2000 go test -C consumer/rocketmq -count=1 -run '^TestSeedsOverTheWire$$' -timeout 2h
	nice env MILLRACE_HOURS=24 MILLRACE_STOPS=20 go test ./actors -count=1 -run '^(TestHoursOfTrouble|TestHundredJobsStopAtOnce)$$' -v -timeout 1h
	nice env MILLRACE_KILLS=1000 go test -C actors -count=1 -run '^TestKilledProcessesLoseNothing$$' -v -timeout 2h
	MILLRACE_SCENE_OUTAGE=1m MILLRACE_SCENE_KILLS=100 MILLRACE_SCENE_CYCLES=100 go test -count=1 -timeout 30m -v ./consumer/rocketmq \
		-run '^(TestKilledMembersLoseNothing|TestRealBrokerInTrouble)$$'

.PHONY: bench
bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: demo
demo: ## run the main job on a real feed
	go run ./cmd/demo

.PHONY: ci
ci: ## run all that CI runs
	.ci/run
