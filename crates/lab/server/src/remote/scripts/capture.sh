# Loads the server's own kernel as the capture kernel, which a panic of the kernel under test starts: it saves that one's
# memory, and restarts the server. Argument: the program that filters the memory.
set -eu
home=/var/lib/marvin
[ "$(stat -c %d /)" = "$(stat -c %d "$home")" ] || { echo "$home is not on the root file system" >&2; exit 1; }
[ "$(cat /sys/kernel/kexec_crash_size)" -gt 0 ] || { echo "the kernel reserved no memory (CONFIG_CRASH_DUMP)" >&2; exit 1; }
rm -f "$home/vmcore" "$home/vmcore.part" "$home/vmcore.log"
cat > "$home/collect" <<END
#!/bin/sh
# The capture kernel's first process.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc 2>/dev/null
mount -o remount,rw /
$1 -d 31 --size-limit 64M /proc/vmcore $home/vmcore.part > $home/vmcore.log 2>&1
[ -s $home/vmcore.part ] && mv $home/vmcore.part $home/vmcore
sync
mount -o remount,ro /
echo 1 > /proc/sys/kernel/sysrq
echo b > /proc/sysrq-trigger
END
chmod 700 "$home/collect"
sync
release=$(sed -n 1p "$home/own") initrd=$(sed -n 2p "$home/own") line=
for word in $(sed -n '3,$p' "$home/own" | tr '\n' ' '); do
    case $word in BOOT_IMAGE=* | initrd=* | crashkernel=* | panic=* | oops=* | init=* | quiet) ;; *) line="$line $word" ;; esac
done
# The mark: if the server starts its services all the same, Marvin restarts it.
line="${line# } panic=10 nr_cpus=1 reset_devices irqpoll init=$home/collect marvin.build=capture"
kexec -a -p "/boot/vmlinuz-$release" --initrd="$initrd" --command-line="$line"
