#!/bin/sh
# cargo's runner of test programs: says how long each test took, which libtest can but calls unstable.
#
# With MARVIN_TEST_LOGS, a directory, it starts the program beside others, as many as there are processors, and leaves its output
# and exit code there: tests that boot kernels wait most of the time, and cargo runs one program after the other.
set -eu
case "$(basename "$(dirname "$1")")" in
deps)
    RUSTC_BOOTSTRAP=1
    export RUSTC_BOOTSTRAP
    set -- "$@" -Z unstable-options --report-time
    ;;
esac
[ -n "${MARVIN_TEST_LOGS:-}" ] || exec "$@"

logs=$MARVIN_TEST_LOGS
lane=
while [ -z "$lane" ]; do
    for number in $(seq "$(nproc)"); do
        # mkdir is atomic: a lane belongs to the program that could make its directory.
        if mkdir "$logs/lane.$number" 2>/dev/null; then
            lane=$logs/lane.$number
            break
        fi
    done
    [ -n "$lane" ] || sleep 0.2
done
log=$logs/$(basename "$1")
(
    status=0
    "$@" >"$log.log" 2>&1 || status=$?
    echo "$status" >"$log.status"
    rmdir "$lane"
) </dev/null >/dev/null 2>&1 &
