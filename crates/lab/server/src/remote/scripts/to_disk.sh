# Installs the image that runs from memory on a disk, which loses all that it has. Arguments: disk, command line of its kernel, id.
set -eu
PATH=$PATH:/sbin:/usr/sbin
fail() { echo "$*" >&2; exit 1; }
[ -b "$1" ] || fail "there is no disk $1, only: $(lsblk -dnpo NAME | tr '\n' ' ')"
disk=$(readlink -f "$1")
[ "$(lsblk -dno TYPE "$disk")" = disk ] || fail "$disk is not a whole disk"
for tool in sfdisk mke2fs grub-install update-grub update-initramfs; do
    command -v "$tool" >/dev/null || fail "the image has no $tool"
done
place=/run/marvin-disk
# What was cut off last time.
umount -R -l "$place" 2>/dev/null || :
[ -z "$(lsblk -nro MOUNTPOINT "$disk" | tr -d '\n')" ] || fail "$disk is mounted"
efi=
[ -d /sys/firmware/efi ] && efi=yes
# A partition for GRUB: the EFI system partition, or BIOS boot.
if [ "$efi" ]; then first='size=512MiB, type=U'; else first='size=1MiB, type=21686148-6449-6E6F-744E-656564454649'; fi
printf '%s\ntype=L\n' "$first" | sfdisk -q --label gpt --wipe always --wipe-partitions always "$disk"
udevadm settle
part() { lsblk -lnpo NAME,TYPE "$disk" | awk -v which="$1" '$2 == "part" && ++found == which {print $1}'; }
root=$(part 2)
[ -b "$root" ] || fail "the kernel does not see the partitions of $disk"
mke2fs -q -F -t ext4 "$root"
mkdir -p "$place"
trap 'umount -R -l "$place" 2>/dev/null || :' EXIT
mount "$root" "$place"
# Not what is only for memory: the way into it, and the copy of the root that builds get there.
(cd / && find . -xdev \( -path ./init -o -path './boot/initrd.img-*' -o -path './var/lib/marvin/*' -o -path './tmp/*' \) -prune -o -print0 |
    cpio --null -pdm --quiet "$place")
echo "$3" > "$place/etc/marvin-image"
uuid() { blkid -s UUID -o value "$1"; }
echo "UUID=$(uuid "$root") / ext4 errors=remount-ro 0 1" > "$place/etc/fstab"
for folder in dev proc sys run; do mount --bind "/$folder" "$place/$folder"; done
if [ "$efi" ]; then
    esp=$(part 1)
    mkfs.vfat -F 32 "$esp" >/dev/null
    mkdir -p "$place/boot/efi"
    mount "$esp" "$place/boot/efi"
    echo "UUID=$(uuid "$esp") /boot/efi vfat umask=0077 0 1" >> "$place/etc/fstab"
fi
mkdir -p "$place/etc/default" "$place/boot/grub"
cat > "$place/etc/default/grub" <<END
GRUB_DEFAULT=saved
GRUB_TIMEOUT=1
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="$2"
GRUB_TERMINAL="console"
GRUB_DISABLE_OS_PROBER=true
END
chroot "$place" update-initramfs -c -k "$(uname -r)"
# Firmware without an entry for it boots the removable place.
if [ "$efi" ]; then
    chroot "$place" grub-install --target=x86_64-efi --efi-directory=/boot/efi --removable --no-nvram
else
    chroot "$place" grub-install --target=i386-pc "$disk"
fi
chroot "$place" update-grub
# The kernel to which the server falls back stays the default when others are installed.
id=$(uuid "$root")
chroot "$place" grub-set-default "gnulinux-advanced-$id>gnulinux-$(uname -r)-advanced-$id"
sync
umount -R "$place"
trap - EXIT
