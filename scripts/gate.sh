#!/bin/sh
# The gate that every change passes. `full` adds what takes too long for every change.
set -eu
step() {
    echo "== $*"
    "$@"
}
cargo=${CARGO:-cargo}
if [ "${1:-}" = full ]; then
    step env MARVIN_TEST_FULL=1 "$cargo" test --locked --workspace -- --nocapture
    exit 0
fi
step "$cargo" fmt --all --check
step "$cargo" clippy --locked --workspace --all-targets -q -- -D warnings
step env RUSTDOCFLAGS="-D warnings" "$cargo" doc --locked --workspace --no-deps --document-private-items -q
step "$cargo" test --locked --workspace
