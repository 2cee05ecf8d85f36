#!/bin/sh
# The check that a slow-down is seen where it is and nowhere else: builds Debian's linux-source-6.12 twice, once with
# 100 instructions more in handle_mm_fault(), and compares the two. Every page fault row must show those 100
# instructions to within one, and nothing that does not fault may be worse; of a workload's other functions at most a
# thousandth of what it costs may move. Takes as long as building a kernel.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/target/slowdown
marvin=$root/target/release/marvin
mkdir -p "$work"
cd "$work"

missing=
for tool in flex bison bc python3; do
    command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
done
[ -e /usr/include/libelf.h ] || missing="$missing libelf-dev"
if [ -n "$missing" ]; then
    echo "slowdown.sh: apt-get install$missing"
    as_root=$([ "$(id -u)" = 0 ] || echo sudo)
    # shellcheck disable=SC2086 # lists of words on purpose
    $as_root apt-get install -y -qq --no-install-recommends $missing
fi

MARVIN_HOME=$work/home
export MARVIN_HOME
"$marvin" build deb-src:6.12 --config tiny
# The source package as a git history, and a patch on top of it.
tree=$MARVIN_HOME/workshop/debian
base=git:6.12
slow=patch:$root/scripts/slowdown.patch@6.12

status=0
"$marvin" compare "$base" "$slow" --tree "$tree" --config tiny --seeds 2 --format json --output comparison.json || status=$?
[ "$status" = 1 ] || { echo "slowdown.sh: expected something worse, exit code was $status"; exit 1; }
"$marvin" profile "$base" "$slow" --tree "$tree" --config tiny --workload fault \
    --format json --output profile.json
"$marvin" profile "$base" "$slow" --tree "$tree" --config tiny --workload fault-anon,fork-exec --model --no-calls --format json --output modelled.json
"$marvin" profile "$base" "$slow" --tree "$tree" --config tiny --workload fault --path --format json --output path.json
python3 - <<'CHECK'
import json, sys
wrong = []
costs = {}
for row in json.load(open("comparison.json"))["rows"]:
    name, other = row["workload"], row["others"][0]
    more = other["measured"]["median"] - row["base"]["median"]
    costs[name] = row["base"]["median"]
    print(f"{name:<20} {more:+10.2f} instructions/op  {other['verdict']}")
    if name.startswith("fault-"):
        if abs(more - 100) > 1: wrong.append(f"{name}: {more:+.2f} instructions, expected +100")
    elif other["verdict"] != "same":
        wrong.append(f"{name}: {other['verdict']}, although it is no page fault")
for each in json.load(open("profile.json"))["workloads"]:
    # Interrupts and other tasks meet the workload at other points; what it does itself is exact.
    lines = [line for line in each["lines"] if line["share"] in ("kernel", "user code")]
    first, others = lines[0], lines[1:]
    found = f"{first['function']} {first['added_per_operation']:+.2f}"
    print(f"{each['workload']:<20} {found} instructions/op")
    if first["function"] != "handle_mm_fault" or abs(first["added_per_operation"] - 100) > 0.01:
        wrong.append(f"{each['workload']}: the profile names {found} first")
    moved = sum(abs(line["added_per_operation"]) for line in others)
    # Slower faults move ticks, and with them how full the lists of free pages are: a thousandth at most.
    if moved > costs[each['workload']] / 1000: wrong.append(f"{each['workload']}: {moved:.2f} instructions moved elsewhere")
for each in json.load(open("path.json"))["workloads"]:
    # The place is where the instructions were put: each time the paths part there, it is 100 of them.
    places = [place for place in each["divergences"] if place["function"] == "handle_mm_fault" and place["more"] > 0]
    more, times = sum(place["more"] for place in places), sum(place["times"] for place in places)
    print(f"{each['workload']:<20} paths part {times} times in handle_mm_fault, {more:+} instructions")
    if not times or more != 100 * times: wrong.append(f"{each['workload']}: {more:+} instructions at {times} times, expected 100 each")
for each in json.load(open("modelled.json"))["workloads"]:
    # What seeds move, such as branches that share an entry of the predictor, must not be taken for the kernel's doing.
    found = [row["name"] for row in each["modelled"]["estimated_cycles_by_function"]]
    print(f"{each['workload']:<20} the model finds {', '.join(found) or 'nothing'}")
    others = [name for name in found if name != "handle_mm_fault"]
    if others: wrong.append(f"{each['workload']}: the model finds {', '.join(others)}")
print("\n".join(wrong) or "the slow-down is where it is and nowhere else")
sys.exit(1 if wrong else 0)
CHECK
