# Makes a root that runs from memory of the packages that mmdebstrap installed, and packs it. mmdebstrap runs this outside of the
# root, with its directory; vmlinuz, root and release go to marvin-out there.
set -eu
root=$1
out=$root/marvin-out
mkdir "$out"
release=$(ls "$root/lib/modules")
[ "$(echo "$release" | wc -w)" = 1 ] || { echo "the image has not one kernel: $release" >&2; exit 1; }
echo "$release" > "$out/release"
cp "$root/boot/vmlinuz-$release" "$out/vmlinuz"
rm -f "$root"/boot/initrd.img* "$root"/vmlinuz* "$root"/initrd.img*
# The kernel starts /init of an initramfs. Half of the memory, tmpfs's own limit, is little for a root.
cat > "$root/init" <<'END'
#!/bin/sh
mount -n -o remount,size=80% rootfs / 2>/dev/null
exec /lib/systemd/systemd
END
chmod 755 "$root/init"
: > "$root/etc/fstab"
echo '127.0.0.1 localhost' > "$root/etc/hosts"
rm -f "$root/etc/hostname" "$root/etc/resolv.conf"
ln -s /run/systemd/resolve/resolv.conf "$root/etc/resolv.conf"
cat > "$root/etc/systemd/network/80-marvin.network" <<'END'
[Match]
Type=ether
[Network]
DHCP=yes
[DHCPv4]
ClientIdentifier=mac
END
for unit in systemd-networkd.service ssh.service; do
    ln -sf "/lib/systemd/system/$unit" "$root/etc/systemd/system/multi-user.target.wants/$unit"
done
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
# What runs by the clock, and would run beside a workload.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    systemd-tmpfiles-clean.timer man-db.timer kexec-load.service kexec.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# A reboot goes through the firmware, also when a kernel is loaded for kexec.
[ ! -e "$root/etc/default/kexec" ] || sed -i 's/^LOAD_KEXEC=.*/LOAD_KEXEC=false/' "$root/etc/default/kexec"
# Only the lab's key opens it: no passwords, no host keys of the build.
rm -f "$root"/etc/ssh/ssh_host_*
mkdir -p "$root/etc/ssh/sshd_config.d"
printf 'PasswordAuthentication no\nPermitRootLogin prohibit-password\nHostKey /etc/ssh/ssh_host_ed25519_key\n' > "$root/etc/ssh/sshd_config.d/marvin.conf"
mkdir -p "$root/root/.ssh" "$root/var/lib/marvin"
chmod 700 "$root/root/.ssh"
# What differs from build to build.
rm -rf "$root"/var/log/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/cache/ldconfig/aux-cache \
    "$root"/var/lib/dpkg/*-old "$root"/etc/passwd- "$root"/etc/shadow- "$root"/etc/group- "$root"/etc/gshadow- \
    "$root"/var/lib/systemd/catalog/database "$root"/var/lib/systemd/random-seed "$root"/var/cache/debconf/*
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id"
cd "$root"
# A password that was never set has the day on which its user was made.
sed -i 's/^\([^:]*:[^:]*\):[0-9]*:/\1:20000:/' etc/shadow
# While this runs, the host's devices and the like are there: these directories are added empty. In the directory of temporary
# files is the configuration of apt, which mmdebstrap needs to the end: without it, it would clean the lists of this host.
list() { find . -xdev \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./run -o -path ./marvin-out -o -path './tmp/*' \) -prune -o "$@"; }
pack() { LC_ALL=C sort -z | cpio --reproducible --null -o -H newc --quiet; }
list -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out/top/dev" "$out/top/proc" "$out/top/sys" "$out/top/run"
touch -d "@$SOURCE_DATE_EPOCH" "$out"/top/*
{
    list -print0 | pack
    (cd "$out/top" && printf './dev\0./proc\0./run\0./sys\0' | pack)
} > "$out/root.cpio"
zstd -q -f -T1 -9 --rm "$out/root.cpio" -o "$out/root"
rm -r "$out/top"
