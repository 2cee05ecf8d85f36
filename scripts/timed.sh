#!/bin/sh
# Runs a test program so that it says how long each test took. libtest has the option, but calls it unstable.
# With ONCE=1 what the program's tests keep for the next time goes when it ends.
# With PASSED=FOLDER a program that passed is not run again until something of it, its crate or DOCS=FOLDER changes.
case "$(basename "$(dirname "$1")")" in
deps)
    RUSTC_BOOTSTRAP=1
    export RUSTC_BOOTSTRAP
    times="-Z unstable-options --report-time"
    ;;
*) times= ;;
esac
if [ -n "${ONCE:-}" ]; then
    # shellcheck disable=SC2086
    "$@" $times && status=0 || status=$?
    rm -rf "$(dirname "$1")"/../../tmp/*-home
    exit "$status"
fi
# shellcheck disable=SC2086
[ -n "${PASSED:-}" ] || exec "$@" $times
mkdir -p "$PASSED"
passed=$PASSED/$(basename "$1")
# cargo starts test programs in their crate's directory.
if [ -e "$passed" ] && [ -z "$(find "$1" . "$DOCS" -type f -newer "$passed" -print -quit)" ]; then
    echo "unchanged since it passed: $(basename "$1")"
    exit 0
fi
touch "$passed.new"
# shellcheck disable=SC2086
"$@" $times || exit
mv "$passed.new" "$passed"
