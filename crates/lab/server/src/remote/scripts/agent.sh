# Runs the agent if the server is still in the boot that it should be in. Arguments: boot id, agent, deadline (s), processors
# (empty for all; the agent keeps to the last of them unless its job uses more), and the agent's own.
[ "$(cat /proc/sys/kernel/random/boot_id)" = "$1" ] || exit 97
agent=$2 deadline=$3 cpus=${4:-0-$(($(getconf _NPROCESSORS_ONLN) - 1))}
shift 4
# An agent whose connection was cut may still run. One that only describes ends none.
[ "$1" = describe ] || for program in /proc/[0-9]*/exe; do
    if [ "$(readlink "$program" 2>/dev/null)" = "$agent" ]; then
        process=${program#/proc/}
        kill -9 "${process%/exe}" 2>/dev/null
    fi
done
exec timeout -k 5 "$deadline" taskset -c "$cpus" "$agent" "$@"
