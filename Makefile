# What people type. Everything else is cargo's.
PREFIX ?= /usr/local
CARGO ?= cargo
# Where `make install` takes the programs from, and where it puts the rest.
BIN ?= target/release
SHARE = $(DESTDIR)$(PREFIX)/share
MAN = $(SHARE)/man/man1
BASH = $(SHARE)/bash-completion/completions
ZSH = $(SHARE)/zsh/site-functions
FISH = $(SHARE)/fish/vendor_completions.d
DOC = $(SHARE)/doc/marvin
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

.PHONY: help build dump deb release demo check figures test test-full bench bench-configs bench-cycles bench-dump bench-access bench-stats fuzz install clean

help: ## Show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## Build target/release/marvin, with the agent in it
	@scripts/needs.sh build
	$(CARGO) build --release --locked -p marvin

dump: ## Build marvin-dump, static: it runs in a capture initramfs (TARGET=aarch64-unknown-linux-gnu for Arm)
	$(if $(TARGET),CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc) $(CARGO) rustc --release --locked \
		-p marvin-dump --bin marvin-dump $(addprefix --target=,$(TARGET)) -- -C target-feature=+crt-static

deb: dump ## Build a Debian package of marvin-dump, and print its path
	@scripts/deb.sh

release: ## Write release/: a static program for any Linux, its machine, hashes, sources, licences
	@scripts/needs.sh build
	@CARGO="$(CARGO)" scripts/release.sh

demo: ## Compare the newest Debian 6.1 and 6.12: table here, page in demo/report.html
	@scripts/needs.sh demo
	$(CARGO) build --release --locked -p marvin
	@scripts/demo.sh

check: ## What every edit can afford: format, lints, unit tests, layers
	@scripts/gate.sh check

figures: ## Print how dense the code is and how much its comments explain
	@$(CARGO) run --locked -q -p tidy --bin figures

test: ## The whole gate: format, lints, documents, layers, tests
	@scripts/needs.sh test
	@scripts/gate.sh

test-full: test ## The same and what takes too long for every change
	@scripts/needs.sh test-full
	@scripts/gate.sh full

bench: ## Print one line per figure
	@scripts/needs.sh bench
	$(CARGO) build --release --locked -p marvin
	@$(CARGO) run --release --locked -q -p benches
	@$(CARGO) run --release --locked -q -p benches --bin stats
	@$(CARGO) run --release --locked -q -p benches --bin walls
	@$(CARGO) run --release --locked -q -p benches --bin planted
	@$(CARGO) run --release --locked -q -p benches --bin estimates
	@$(CARGO) run --release --locked -q -p benches --bin search
	@MARVIN_FULL=bench $(CARGO) test --release --locked -q -p marvin --test program real_source:: -- --nocapture
	@$(CARGO) run --release --locked -q -p benches --bin web
	@$(CARGO) run --release --locked -q -p benches --bin store
	@$(CARGO) run --release --locked -q -p benches --bin large
	@$(CARGO) run --release --locked -q -p benches --bin console
	@$(CARGO) run --release --locked -q -p benches --bin slurm
	@$(CARGO) run --release --locked -q -p benches --bin contention
	@$(CARGO) run --release --locked -q -p benches --bin observing

bench-configs: ## Print what Marvin's kernel configs reach and cost (DATA=data directory, DEB=kernel package, for its changelog)
	$(CARGO) build --release --locked -p marvin
	@$(CARGO) run --release --locked -q -p benches --bin configs -- $(DATA) $(DEB)

bench-cycles: ## Print how estimated cycles order rows beside this host's times (DATA=data directory, KERNEL=git:HEAD, TREE=directory, CONFIG=running+X86_IOPL_IOPERM=y)
	@$(CARGO) run --release --locked -q -p benches --bin cycles -- $(DATA) $(or $(KERNEL),git:HEAD) $(TREE) $(or $(CONFIG),running+X86_IOPL_IOPERM=y)

bench-dump: ## Print figures of marvin-dump beside makedumpfile's (MAKEDUMPFILE=program, VMCORE=real dump)
	$(CARGO) build --release --locked -p marvin-dump
	@$(CARGO) run --release --locked -q -p benches --bin dump

bench-access: ## Print how reading a dump mapped compares with read(2) (VMCORE=dump, OF=map-size|cycles|calls, SVG=file)
	@$(CARGO) run --release --locked -q -p benches --bin dump_access -- $(or $(OF),map-size) $(VMCORE) $(addprefix --svg ,$(SVG))

bench-stats: ## Print speed and error rates of the statistics beside Otava's (OTAVA=python that has apache-otava)
	@$(CARGO) run --release --locked -q -p benches --bin stats

fuzz: ## Run every reader on damaged files (MINUTES=10, FROM=number), and print executions, the slowest and memory
	@$(CARGO) run --release --locked -q -p fuzz -- --minutes $(or $(MINUTES),10) $(addprefix --from ,$(FROM))

# Root's PATH may have no cargo: then the programs that the user built are installed.
install: $(if $(shell command -v $(CARGO)),build dump) ## Install programs, man pages, completions, units, docs and samples below PREFIX (/usr/local)
	install -D -m 755 $(BIN)/marvin $(DESTDIR)$(PREFIX)/bin/marvin
	install -D -m 755 $(BIN)/marvin-dump $(DESTDIR)$(PREFIX)/bin/marvin-dump
	install -d $(MAN) $(BASH) $(ZSH) $(FISH)
	$(BIN)/marvin man $(MAN)
	$(BIN)/marvin completions bash > $(BASH)/marvin
	$(BIN)/marvin completions zsh > $(ZSH)/_marvin
	$(BIN)/marvin completions fish > $(FISH)/marvin.fish
	chmod 644 $(MAN)/marvin*.1 $(BASH)/marvin $(ZSH)/_marvin $(FISH)/marvin.fish
	cd docs && find . -type f -exec install -D -m 644 {} $(abspath $(DOC))/{} \;
	install -d $(UNITS) $(SHARE)/marvin
	for unit in scripts/systemd/*.service scripts/systemd/*.timer; do sed 's|/usr/local/|$(PREFIX)/|' $$unit > $(UNITS)/$${unit##*/}; done
	install -m 644 crates/lab/store/schema/roles.sql $(SHARE)/marvin
	install -m 644 CHANGELOG.md LICENSE LICENSE-APACHE LICENSE-MIT $(DOC)

clean: ## Remove what was built; Marvin's home is not touched
	$(CARGO) clean
	rm -rf demo
