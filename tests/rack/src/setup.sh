# Runs outside of the new root, which is $1, after its packages are configured. What it leaves is a server as an
# administrator of a laboratory sets it up: serial console, a key for root, a boot loader, and a reboot after a panic.
set -eu
root=$1
cat >"$root/etc/fstab" <<'EOF'
/dev/vda1 / ext4 errors=remount-ro 0 1
EOF
echo rack >"$root/etc/hostname"
echo '127.0.0.1 localhost' >"$root/etc/hosts"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
cat >"$root/etc/systemd/network/80-dhcp.network" <<'EOF'
[Match]
Name=en*
[Network]
DHCP=ipv4
LinkLocalAddressing=no
IPv6AcceptRA=no
[DHCPv4]
UseHostname=no
UseTimezone=no
EOF
ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
# One identity for all boots: an empty one would make each boot the first.
echo 52ac6b1de1a94f5c9d1c0c8e6a1f7b10 >"$root/etc/machine-id"
install -d -m 700 "$root/root/.ssh"
echo '@KEY@' >"$root/root/.ssh/authorized_keys"
# A user without privileges.
chroot "$root" useradd -m -s /bin/bash lab
install -d -m 700 "$root/home/lab/.ssh"
echo '@KEY@' >"$root/home/lab/.ssh/authorized_keys"
chroot "$root" chown -R lab:lab /home/lab/.ssh
# What an emulated processor would spend seconds on at each boot, and no test asks for.
for unit in dev-hugepages.mount dev-mqueue.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-logind.service systemd-pstore.service \
    systemd-ask-password-console.path systemd-ask-password-wall.path getty@tty1.service systemd-sysusers.service \
    systemd-tmpfiles-clean.timer proc-sys-fs-binfmt_misc.automount modprobe@.service kmod-static-nodes.service \
    systemd-rfkill.socket systemd-initctl.socket systemd-hostnamed.service systemd-network-generator.service \
    e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer fstrim.timer dpkg-db-backup.timer \
    kexec-load.service kexec.service hwclock.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# A reboot goes through the firmware, also when a kernel is loaded for kexec.
sed -i 's/^LOAD_KEXEC=.*/LOAD_KEXEC=false/' "$root/etc/default/kexec"
# The first initramfs is made on the build host, which has other devices: a list. Later ones are for the server's own.
sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
echo 'COMPRESSLEVEL=1' >>"$root/etc/initramfs-tools/initramfs.conf"
printf 'virtio_pci\nvirtio_blk\next4\n' >"$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u
sed -i 's/^MODULES=.*/MODULES=dep/' "$root/etc/initramfs-tools/initramfs.conf"
cat >"$root/etc/default/grub" <<'EOF'
GRUB_DEFAULT=saved
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="console=ttyS0,115200 panic=10"
GRUB_TERMINAL="serial console"
GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"
GRUB_DISABLE_OS_PROBER=true
EOF
# What grub-install does, without a device. The first boot replaces this configuration by update-grub's.
install -d "$root/boot/grub/i386-pc"
cp "$root"/usr/lib/grub/i386-pc/*.mod "$root"/usr/lib/grub/i386-pc/*.lst "$root/boot/grub/i386-pc/"
cp "$root/usr/lib/grub/i386-pc/boot.img" "$root/boot/grub/i386-pc/boot.img"
chroot "$root" grub-mkimage -O i386-pc -o /boot/grub/i386-pc/core.img -p '(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2
chroot "$root" grub-editenv /boot/grub/grubenv create
kernel=$(basename "$root"/boot/vmlinuz-*)
cat >"$root/boot/grub/grub.cfg" <<EOF
linux /boot/$kernel root=/dev/vda1 ro console=ttyS0,115200 panic=10
initrd /boot/initrd.img-${kernel#vmlinuz-}
boot
EOF
