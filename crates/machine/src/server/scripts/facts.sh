# Prints what the server is: lines NAME=VALUE. Holds it if the lab has a name. Arguments: the lab's token, its name for
# people.
home=/var/lib/marvin
first() { head -n 1 "$1" 2>/dev/null; }
boot=$(first /proc/sys/kernel/random/boot_id)
echo "boot_id=$boot"
echo "release=$(uname -r)"
echo "version=$(uname -v)"
echo "cmdline=$(first /proc/cmdline)"
echo "user=$(id -un)"
# A hold ends after two hours of running without contact of the lab that holds the server. The uptime counts, as NTP sets the
# time of day, and a reboot may lose it.
up=$(first /proc/uptime)
up=${up%%.*}
if [ -r "$home/held" ] && read -r token of since who < "$home/held" && [ "$token" != "$1" ]; then
    [ "$of" = "$boot" ] || since=0
    if [ $((up - since)) -lt 7200 ]; then
        echo "held_by=$who"
        [ -n "$2" ] && exit 0
    fi
fi
if [ -n "$2" ] && [ "$(id -u)" = 0 ]; then
    if mkdir -p "$home/kernels" 2>/dev/null; then
        # One file, made by link(2), which only one lab can do.
        rm -f "$home/held"
        echo "$1 $boot $up $2" > "$home/held.$$" && ln "$home/held.$$" "$home/held" 2>/dev/null || echo "held_by=another lab"
        rm -f "$home/held.$$"
    else
        echo "unwritable=$(mkdir -p "$home/kernels" 2>&1)"
    fi
fi
for kernel in "$home"/kernels/*/ready; do
    [ -e "$kernel" ] && kernel=${kernel%/ready} && echo "installed=${kernel##*/}"
done
echo "free_kib=$({ df -Pk "$home" || df -Pk /var/lib; } 2>/dev/null | awk 'NR==2 {print $4}')"
echo "clock=$(first /sys/devices/system/clocksource/clocksource0/current_clocksource)"
for tool in kexec cpio depmod taskset timeout grub-reboot bootctl systemctl; do
    command -v "$tool" >/dev/null 2>&1 && echo "tool.$tool=yes"
done
# Secure boot: the fifth byte of the variable (UEFI specification 3.3). Lockdown: Documentation of the kernel, lockdown.
for variable in /sys/firmware/efi/efivars/SecureBoot-*; do
    [ -e "$variable" ] && echo "secure_boot=$(od -An -tu1 -j4 -N1 "$variable" | tr -d ' ')"
done
echo "lockdown=$(first /sys/kernel/security/lockdown)"
# The drivers of the root disk and of the network, each with those of the devices it hangs on.
chain() {
    path=$(readlink -f "$1") || return
    while [ "${path#/sys/devices/}" != "$path" ]; do
        if [ -e "$path/driver/module" ]; then
            echo "driver=$(basename "$(readlink -f "$path/driver/module")") $2"
        elif [ -e "$path/driver" ]; then
            echo "built_in=$(basename "$(readlink -f "$path/driver")")"
        fi
        path=${path%/*}
    done
}
disk=$(stat -c %d / 2>/dev/null)
[ -n "$disk" ] && chain "/sys/dev/block/$((disk / 256)):$((disk % 256))" "the root disk"
while read -r device place type rest; do
    [ "$place" = / ] && [ -d "/sys/module/$type/holders" ] && [ -e "/sys/module/$type/initstate" ] && echo "driver=$type the root file system"
done < /proc/mounts
for card in /sys/class/net/*/device; do
    [ -e "$card" ] && chain "$card" "the network"
done
# All loaded modules: a build gets those it has.
while read -r module rest; do echo "driver=$module"; done < /proc/modules
echo "machine_id=$(first /etc/machine-id | sha256sum | cut -c 1-16)"
if ! grep -q marvin.build= /proc/cmdline; then
    # The server's own kernel: what its next start boots, and whose initramfs finds the root disk.
    release=$(uname -r)
    for file in /boot/initrd.img-$release /boot/initramfs-$release.img /boot/initrd-$release /boot/initramfs-linux.img; do
        [ -e "$file" ] && initrd=$file && break
    done
    echo "own_initrd=${initrd:-}"
    [ -n "$2" ] && [ -w "$home" ] && printf '%s\n%s\n%s\n' "$release" "${initrd:-}" "$(cat /proc/cmdline)" > "$home/own.part" 2>/dev/null && mv "$home/own.part" "$home/own"
fi
echo "done=yes"
