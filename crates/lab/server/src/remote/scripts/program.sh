# Runs the agent among a program's files as in a guest: in a root in memory, with mounts and processes of its own. This is the
# first process of its namespace: when it ends, the kernel ends all others and removes the mounts. $0 is the archive;
# arguments: agent, and the agent's own.
agent=$1 root=${1%/*}/root
shift
refuse() {
    echo "$1: $(tail -n 1 "$root.why" 2>/dev/null)" >&2
    exit 96
}
# The agent of a guest kills every process that it sees.
[ $$ = 1 ] || refuse "no PID namespace"
{ mount --make-rprivate / && mkdir -p "$root" && mount -t tmpfs -o mode=755 marvin "$root" && cd "$root"; } 2>"$root.why" || refuse "no file system in memory"
cpio -idm --quiet < "$0" 2>"$root.why" || refuse "its files do not fit into half of the server's memory"
mkdir -p dev proc sys ".${agent%/*}"
{ mount --bind /dev dev && mount -t proc proc proc && mount -t sysfs sysfs sys; } 2>"$root.why" || refuse "no /dev, /proc and /sys"
{ cp "$agent" ".$agent" && ln -s "$agent" agent; } 2>"$root.why" || refuse "no room for the agent"
rm -f "$root.why"
# Not by exec, and not as the last command, which some shells exec: as the first process the agent would be a guest's init.
MARVIN_IN_GUEST=1 chroot . "$agent" "$@"
exit $?
