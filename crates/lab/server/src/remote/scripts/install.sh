# Unpacks a kernel from standard input and makes its initramfs: the one of the server's own kernel, with this kernel's
# modules appended. Arguments: tag, release (empty for a kernel without modules).
set -eu
home=/var/lib/marvin
new=$home/kernels/$1.part
rm -rf "$new"
mkdir -p "$new"
cd "$new"
cpio -idm --quiet
sed -n 2p "$home/own" > own_initrd
read -r base < own_initrd || :
[ -n "$base" ] && [ -r "$base" ] || { echo "the initramfs of its own kernel is not in /boot" >&2; exit 1; }
if [ -n "$2" ]; then
    mkdir -p root/lib/modules
    mv modules "root/lib/modules/$2"
    depmod -b root "$2"
    # Where /lib is a link to usr/lib, it is one in the initramfs.
    if [ -L /lib ]; then mkdir root/usr && mv root/lib root/usr/lib; fi
fi
cp "$base" initrd
# An archive that is not compressed begins at a multiple of four bytes (init/initramfs.c of the kernel).
while [ $(($(stat -c %s initrd) % 4)) != 0 ]; do printf '\0' >> initrd; done
if [ -d root ]; then (cd root && find ./* | sed 's,^\./,,' | cpio -o -H newc --quiet) >> initrd; fi
touch ready
sync
rm -rf "$home/kernels/$1"
mv "$new" "$home/kernels/$1"
