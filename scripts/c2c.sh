#!/bin/sh
# Records a workload of the suite contention with perf c2c on a machine with a PMU, to lay beside what exact-smp says of the same
# kernel: marvin profile KERNEL KERNEL --on exact-smp --workload WORKLOAD. As root, on an otherwise quiet machine.
# Untried: no machine of this project has hardware counters.
#   cargo build --release -p agent; scripts/c2c.sh target/release/marvin-agent share-fault [OPERATIONS]
set -eu

agent=${1:?usage: scripts/c2c.sh AGENT WORKLOAD [OPERATIONS]}
workload=${2:?usage: scripts/c2c.sh AGENT WORKLOAD [OPERATIONS]}
operations=${3:-1000000}

perf c2c record --help >/dev/null 2>&1 || {
    echo "perf c2c is not there, or not for this processor" >&2
    exit 2
}
data=$(mktemp)
trap 'rm -f "$data"' EXIT
perf c2c record -o "$data" -a -- "$agent" run "$workload" "$operations"
# Lines by HITM, each with the functions that load and store it.
perf c2c report -i "$data" --stdio --full-symbols --coalesce iaddr --call-graph none
