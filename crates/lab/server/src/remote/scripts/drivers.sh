# Prints the drivers of the server, after facts.sh: lines driver=NAME, with what needs it if no boot succeeds without it.
# A driver that is built into this kernel counts if it is a module elsewhere, as modules.builtin says.
release=$(uname -r)
module() {
    case $1 in
        sd) echo sd_mod ;;
        ext2 | ext3) echo ext4 ;;
        *) echo "$1" | tr - _ ;;
    esac
}
need() {
    name=$(module "$1")
    if [ -e "/sys/module/$name/initstate" ] || { [ -r "/lib/modules/$release/modules.builtin" ] && tr - _ < "/lib/modules/$release/modules.builtin" | grep -q "/$name\.ko\$"; }; then
        echo "driver=$name $2"
    else
        echo "driver=$name"
    fi
}
# The drivers of a device and of those it hangs on.
chain() {
    path=$(readlink -f "$1") || return
    while [ "${path#/sys/devices/}" != "$path" ]; do
        if [ -e "$path/driver/module" ]; then
            need "$(basename "$(readlink -f "$path/driver/module")")" "$2"
        elif [ -e "$path/driver" ]; then
            need "$(basename "$(readlink -f "$path/driver")")" "$2"
        fi
        path=${path%/*}
    done
}
# A block device and those it is made of: LVM, RAID, NVMe with several paths. Second argument: how deep to follow.
block() {
    [ "$2" -gt 0 ] || return
    disk=$(readlink -f "$1") || return
    # A partition has what its disk has.
    [ -e "$disk/partition" ] && disk=${disk%/*}
    chain "$disk" "the root disk"
    [ -d "$disk/dm" ] && need dm_mod "the root disk"
    if [ -r "$disk/md/level" ]; then
        need md_mod "the root disk"
        level=$(first "$disk/md/level")
        case $level in raid[456]) level=raid456 ;; esac
        need "$level" "the root disk"
    fi
    case $disk in
        /sys/devices/virtual/nvme-subsystem/*)
            for path in "${disk%/*}"/nvme*; do
                [ -L "$path" ] && chain "$path" "the root disk"
            done
            ;;
    esac
    # Last, as it changes the variables.
    for part in "$disk"/slaves/*; do
        [ -e "$part" ] && block "$part" $(($2 - 1))
    done
}
# A kernel under test is asked for none.
if [ -n "$is_own" ]; then
    root=$(awk '$5 == "/" { for (at = 7; at < NF; at++) if ($at == "-") line = $3 " " $(at + 1) " " $(at + 2) } END { print line }' /proc/self/mountinfo)
    read -r device type source <<END
$root
END
    # It is needed, whether this kernel has it as a module or not. An overlay and the like are no root of a server's disk.
    case $type in '' | rootfs | overlay | tmpfs) ;; *) echo "driver=$(module "$type") the root file system" ;; esac
    case $device in
        0:*)
            # btrfs has a device number of its own, and maybe several disks.
            name=$(basename "$(readlink -f "$source" 2>/dev/null)")
            for pool in /sys/fs/btrfs/*/devices; do
                [ -e "$pool/$name" ] || continue
                for part in "$pool"/*; do block "$part" 8; done
            done
            ;;
        *:*) block "/sys/dev/block/$device" 8 ;;
    esac
    for card in /sys/class/net/*/device; do
        # A card without a link has no part in the connection.
        [ -e "$card" ] && [ "$(first "${card%/device}/operstate")" != down ] && chain "$card" "the network"
    done
    # All loaded modules: a build gets those it has.
    while read -r loaded rest; do echo "driver=$loaded"; done < /proc/modules
fi
