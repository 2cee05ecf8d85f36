# Prints what the server is: lines NAME=VALUE. Holds it if the lab has a name. Arguments: the lab's token, its name for
# people, how the server boots builds.
home=/var/lib/marvin
first() { head -n 1 "$1" 2>/dev/null; }
boot=$(first /proc/sys/kernel/random/boot_id)
echo "boot_id=$boot"
echo "release=$(uname -r)"
echo "version=$(uname -v)"
echo "cmdline=$(first /proc/cmdline)"
echo "user=$(id -un)"
echo "disk_image=$(first /etc/marvin-image)"
grep -q marvin.build= /proc/cmdline || is_own=yes
# The kernel that ran before the builds: below, another one may become the own kernel.
echo "own=$(first "$home/own")"
# A hold ends after two hours of running without contact of the lab that holds the server. The uptime counts, as NTP sets the
# time of day, and a reboot may lose it.
up=$(first /proc/uptime)
up=${up%%.*}
if [ -r "$home/held" ] && read -r token of since who < "$home/held" && [ "$token" != "$1" ]; then
    [ "$of" = "$boot" ] || since=0
    if [ $((up - since)) -lt 7200 ]; then
        echo "held_by=$who"
        echo "held_minutes=$(((7200 - up + since + 59) / 60))"
        [ -n "$2" ] && exit 0
    fi
fi
if [ "$(id -u)" = 0 ]; then
    # The directory, or the one in which it will be.
    place=$home/kernels
    while [ -n "$place" ] && [ ! -d "$place" ]; do place=${place%/*}; done
    if [ ! -w "${place:-/}" ]; then
        echo "unwritable=${place:-/} is on a read-only file system"
    elif [ -n "$2" ]; then
        if mkdir -p "$home/kernels" 2>/dev/null; then
            # One file, made by link(2), which only one lab can do.
            rm -f "$home/held"
            if { echo "$1 $boot $up $2" > "$home/held.$$"; } 2>/dev/null; then
                ln "$home/held.$$" "$home/held" 2>/dev/null || echo "held_by=another lab"
            else
                echo "unwritable=no space left in $home"
            fi
            rm -f "$home/held.$$"
        else
            echo "unwritable=$(mkdir -p "$home/kernels" 2>&1)"
        fi
    fi
fi
for kernel in "$home"/kernels/*/ready; do
    [ -e "$kernel" ] && kernel=${kernel%/ready} && echo "installed=${kernel##*/}"
done
echo "free_kib=$({ df -Pk "$home" || df -Pk /var/lib; } 2>/dev/null | awk 'NR==2 {print $4}')"
echo "clock=$(first /sys/devices/system/clocksource/clocksource0/current_clocksource)"
for tool in kexec cpio depmod taskset timeout grub-reboot grub-probe bootctl systemctl; do
    command -v "$tool" >/dev/null 2>&1 && echo "tool.$tool=yes"
done
[ -e /sys/kernel/kexec_loaded ] && echo "has_kexec=yes"
echo "kexec_disabled=$(first /proc/sys/kernel/kexec_load_disabled)"
# Secure boot: the fifth byte of the variable (UEFI specification 3.3). Lockdown: Documentation of the kernel, lockdown.
vars=/sys/firmware/efi/efivars
for variable in "$vars"/SecureBoot-*; do
    [ -e "$variable" ] && echo "secure_boot=$(od -An -tu1 -j4 -N1 "$variable" | tr -d ' ')"
done
echo "lockdown=$(first /sys/kernel/security/lockdown)"
