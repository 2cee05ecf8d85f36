#!/bin/sh
# cargo's runner of test programs: says how long each test took, which libtest can but calls unstable.
#
# With MARVIN_TEST_LOGS, a directory, it starts the program beside others, as many as there are processors, and leaves its output
# and exit code there: tests that boot kernels wait most of the time, and cargo runs one program after the other. The tests that
# MARVIN_TEST_ALONE names are left out: they need a processor of their own.
set -eu
case "$(basename "$(dirname "$1")")" in
deps)
    RUSTC_BOOTSTRAP=1
    export RUSTC_BOOTSTRAP
    set -- "$@" -Z unstable-options --report-time
    ;;
esac
[ -n "${MARVIN_TEST_LOGS:-}" ] || exec "$@"

for name in ${MARVIN_TEST_ALONE:-}; do
    set -- "$@" --skip "$name"
done
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
program=$(basename "$1")
(
    begun=$(date +%s)
    status=0
    "$@" >"$logs/$program.log" 2>&1 </dev/null || status=$?
    echo "$status" >"$logs/$program.status"
    # The second line of `times` has the processor time of the children: user and system.
    echo "== ${program%-*} ended with $status after $(($(date +%s) - begun)) s; processor: $(times | tail -n 1)"
    rmdir "$lane"
) &
