#!/bin/sh
# The gate that every change passes. `check` is what each edit can afford, `full` adds what takes too long for every change.
set -eu
step() {
    echo "== $*"
    "$@"
}
cargo=${CARGO:-cargo}

target=${CARGO_TARGET_DIR:-$PWD/target}

# Runs tests and then lists the ten slowest. Only the tests see the runner, so nothing is compiled anew for it.
timed() {
    log=$target/tests.log
    echo "== $*"
    {
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/scripts/timed.sh" "$@" && status=0 || status=$?
        echo "$status" >"$log.status"
    } 2>&1 | tee "$log"
    echo "== disk: $(df -h "$target" | tail -n 1)"
    echo "== the ten slowest tests"
    sed -n 's/^test \(.*\) \.\.\. .* <\([0-9.]*\)s>$/\2 s  \1/p' "$log" | sort -rn | head -n 10
    return "$(cat "$log.status")"
}

# A test that samples this host's kernel: samples are lost where others take the processors.
alone=this_host_samples_its_kernel_if_allowed

# What the compiler and its companions say of the code, without running any of it.
lints() {
    step "$cargo" clippy --locked --workspace --all-targets -q -- -D warnings &&
        # Tests that only `full` runs.
        step "$cargo" clippy --locked --workspace --test dumps --test kdump_tools -q -- -D warnings &&
        # The library alone, without what its features need.
        step "$cargo" clippy --locked -p vmcore -q -- -D warnings
}

documents() {
    step env RUSTDOCFLAGS="-D warnings" "$cargo" doc --locked --workspace --no-deps --document-private-items -q &&
        # Examples in documents.
        step "$cargo" test --locked --workspace --doc -q
}

case "${1:-all}" in
full)
    step "$cargo" build --release --locked -q -p marvin
    step scripts/slowdown.sh
    step "$cargo" rustc --release --locked -q -p marvin-dump --bin marvin-dump -- -C target-feature=+crt-static
    MARVIN_DUMP=${MARVIN_DUMP:-$PWD/target/release/marvin-dump}
    export MARVIN_DUMP
    arm=aarch64-unknown-linux-gnu
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$arm" ]; then
        step make dump "TARGET=$arm"
        MARVIN_DUMP_ARM64=$PWD/target/$arm/release/marvin-dump
        export MARVIN_DUMP_ARM64
    else
        echo "== skipped: marvin-dump on 64-bit Arm: this Rust has no $arm; rustup target add $arm"
    fi
    if command -v musl-gcc >/dev/null && [ -d "$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-musl" ]; then
        step make release RELEASE=target/full-release
        MARVIN_STATIC=$PWD/target/full-release/marvin
        export MARVIN_STATIC
    else
        echo "== skipped: hosts where only a static program starts: no musl-gcc, or rustup target add x86_64-unknown-linux-musl"
    fi
    # Roots of other hosts: the same tables and samples in each, and the matrix of docs/hosts.md.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program -- hosts:: released:: --nocapture
    MARVIN_FULL=1 timed "$cargo" test --locked -p lab --test vm -- --nocapture --test-threads 1
    # The carried guest programs, built again: the same bytes.
    step env MARVIN_FULL=1 "$cargo" test --locked -p lab --test guest_programs -- --nocapture
    # Builds kernels from nothing, which takes minutes each, and prints what bisections and stabilisations of real sources take
    # and what planted sharing is named.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program -- real_ stabilised:: planted_sharing --nocapture
    # Programs that are slow for one reason each, alone and beside busy neighbours, with a swap file and a limit of dirty bytes.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program -- explains:: --nocapture --test-threads 1
    # A kernel against itself on a busy host: all workloads.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program exact:: -- --nocapture
    # 200 labs of 800 noisy series without any change: none may be an alert.
    step env MARVIN_FULL=1 "$cargo" test --release --locked -p history large_labs -- --nocapture
    # Servers boot kernels by kexec and GRUB, once, and come back; each boot takes a minute.
    step env MARVIN_FULL=1 "$cargo" test --locked -p rack --test rack -- --nocapture --test-threads 1
    # The same with Marvin: kernels that die, hang and lose the network, full disks, killed Marvins.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program server:: -- --nocapture --test-threads 1
    # What could not be checked is among what the tests print.
    step "$cargo" test --locked -p crash-guests --test dumps -- --nocapture --test-threads 2
    # Each series of kernels that Debian serves says of each frame what it is, and judges what is kept of it.
    step env MARVIN_FULL=1 "$cargo" test --locked -p crash-guests --test oracle -- --nocapture
    # Debian's kdump-tools saves a crash with the package marvin-dump, on its disk and over ssh.
    step "$cargo" test --locked -p crash-guests --test kdump_tools -- --nocapture
    # A hostile culprit of a bisection, a worker that stalls until it loses its job, nodes and a controller of Slurm that die,
    # a public-inbox, benchmarks of a tree as a module, series on a virtual machine.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program -- hostile:: shared_queue:: slurm:: walls:: watched:: \
        chained:: patch_series:: tree_benchmarks:: series_output:: foreign:: observed:: --nocapture
    # A thousand kills, and fifty guests that attack QEMU for a minute each.
    step env MARVIN_FULL=1 "$cargo" test --locked -p subprocess -- killed_process --nocapture
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program killed:: -- --nocapture
    step env MARVIN_FULL=1 "$cargo" test --locked -p crash-guests --test hostile -- --nocapture
    # An hour of kills, stops, full disks and restarts in one data directory; MARVIN_SOAK_MINUTES sets another length.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program soak:: -- --nocapture
    exit 0
    ;;
esac
step "$cargo" fmt --all --check
if [ "${1:-all}" = check ]; then
    lints
    # The gate runs all of them; an edit of one crate changes the programs of that crate and of those above it.
    PASSED=$target/passed
    DOCS=$PWD/docs
    export PASSED DOCS
    timed "$cargo" test --locked --workspace --lib --bins
    step "$cargo" test --locked -p tidy -q
    exit 0
fi
if "$cargo" deny --version >/dev/null 2>&1; then
    # Advisories change from day to day and need GitHub: `cargo deny check advisories` asks for them.
    step "$cargo" deny --locked check licenses bans sources
else
    echo "== skipped: cargo deny check licenses bans sources (deny.toml): cargo-deny is not installed; cargo install --locked cargo-deny"
fi
step "$cargo" test --locked --workspace --no-run -q
echo "== disk: $(df -h "$target" | tail -n 1)"
# One test program runs after the other, and those that boot kernels wait: lints and documents take what they leave.
lints_log=$target/lints.log
rm -f "$lints_log.status"
echo "== lints and documents, beside the tests: $lints_log"
{
    # The tests have cargo's lock first: they compile nothing.
    sleep 15
    (lints && documents) && status=0 || status=$?
    echo "$status" >"$lints_log.status"
} >"$lints_log" 2>&1 &
renice -n 19 $! >/dev/null
# One more at a time than there are processors: some wait for deadlines, leases and guests.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))}
export RUST_TEST_THREADS
failed=
timed "$cargo" test --locked --workspace --tests --no-fail-fast -- --skip "$alone" || failed="$failed tests"
wait
cat "$lints_log"
[ "$(cat "$lints_log.status")" = 0 ] || failed="$failed lints-or-documents"
step "$cargo" test --locked -p lab --test vm -- "$alone" || failed="$failed $alone"
[ -z "$failed" ] || {
    echo "== failed:$failed"
    exit 1
}
