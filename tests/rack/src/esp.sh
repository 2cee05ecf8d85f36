# Makes the EFI system partition of a server in this directory: systemd-boot, and the entry of the server's own kernel, which
# is the default. Argument: the server's disk, whose partition begins at 1 MiB.
set -eu
PATH=$PATH:/sbin:/usr/sbin
disk=$1?offset=1048576
take() {
    debugfs -R "dump $1 $2" "$disk" 2>/dev/null
    [ -s "$2" ]
}
release=$(debugfs -R "ls -p /boot" "$disk" 2>/dev/null | sed -n 's,.*/vmlinuz-\([^/]*\)/.*,\1,p')
take "/boot/vmlinuz-$release" vmlinuz
take "/boot/initrd.img-$release" initrd
take /usr/lib/systemd/boot/efi/systemd-bootx64.efi bootx64.efi
printf 'timeout 0\ndefault own.conf\n' >loader.conf
printf 'title own\nlinux /own/vmlinuz\ninitrd /own/initrd\noptions root=/dev/vda1 ro console=ttyS0,115200 panic=10\n' >own.conf
truncate -s 256M esp.raw
echo 'start=2048, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B' | sfdisk -q --label gpt esp.raw
mkfs.vfat -F 32 --offset 2048 esp.raw $((255 * 1024)) >/dev/null
for folder in EFI EFI/BOOT EFI/systemd loader loader/entries own; do mmd -i esp.raw@@1M "::$folder"; done
mcopy -i esp.raw@@1M bootx64.efi ::EFI/BOOT/BOOTX64.EFI
mcopy -i esp.raw@@1M bootx64.efi ::EFI/systemd/systemd-bootx64.efi
mcopy -i esp.raw@@1M vmlinuz initrd ::own/
mcopy -i esp.raw@@1M loader.conf ::loader/
mcopy -i esp.raw@@1M own.conf ::loader/entries/
cp /usr/share/OVMF/OVMF_VARS_4M.fd vars.fd
rm vmlinuz initrd bootx64.efi loader.conf own.conf
