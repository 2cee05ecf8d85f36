# Runs the agent if the server is still in the boot that it should be in. Arguments: boot id, agent, deadline (s), processors
# (empty for all; the agent keeps to the last of them unless its job uses more), the archive of a program's files (empty for
# none) with the script that runs the agent among them, and the agent's own.
[ "$(cat /proc/sys/kernel/random/boot_id)" = "$1" ] || exit 97
agent=$2 deadline=$3 cpus=${4:-0-$(($(getconf _NPROCESSORS_ONLN) - 1))} archive=$5 program=$6
shift 6
# An agent whose connection was cut may still run. One that only describes ends none.
[ "$1" = describe ] || for process in /proc/[0-9]*/exe; do
    if [ "$(readlink "$process" 2>/dev/null)" = "$agent" ]; then
        process=${process#/proc/}
        kill -9 "${process%/exe}" 2>/dev/null
    fi
done
[ -n "$archive" ] || exec timeout -k 5 "$deadline" taskset -c "$cpus" "$agent" "$@"
command -v unshare >/dev/null || { echo "the server has no unshare: apt-get install util-linux" >&2; exit 96; }
[ -e /proc/self/ns/pid ] || { echo "this kernel has no PID namespaces: it needs CONFIG_PID_NS" >&2; exit 96; }
exec timeout -k 5 "$deadline" taskset -c "$cpus" unshare -m -p -f sh -c "$program" "$archive" "$agent" "$@"
