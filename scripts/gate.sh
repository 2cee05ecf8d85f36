#!/bin/sh
# The gate that every change passes. `full` adds what takes too long for every change.
set -eu
step() {
    echo "== $*"
    "$@"
}
cargo=${CARGO:-cargo}
if [ "${1:-}" = full ]; then
    step "$cargo" build --release --locked -q -p marvin
    step scripts/slowdown.sh
    step "$cargo" rustc --release --locked -q -p marvin-dump --bin marvin-dump -- -C target-feature=+crt-static
    MARVIN_DUMP=${MARVIN_DUMP:-$PWD/target/release/marvin-dump}
    export MARVIN_DUMP
    step env MARVIN_FULL=1 "$cargo" test --locked -p lab --test vm -- --nocapture --test-threads 1
    # Builds two kernels from nothing, which takes minutes each, and prints what bisections of real sources take.
    step env MARVIN_FULL=1 "$cargo" test --locked -p marvin --test program real_source:: -- --nocapture
    # What could not be checked is among what the tests print.
    step "$cargo" test --locked -p crash-guests --test dumps -- --nocapture --test-threads 2
    exit 0
fi
step "$cargo" fmt --all --check
step "$cargo" clippy --locked --workspace --all-targets -q -- -D warnings
step env RUSTDOCFLAGS="-D warnings" "$cargo" doc --locked --workspace --no-deps --document-private-items -q
step "$cargo" test --locked --workspace
