# Has GRUB boot the kernel at the next start, and restarts.
# Where /boot is a file system of its own, GRUB names its files without /boot.
place=/boot
mountpoint -q /boot && place=
for file in vmlinuz initrd; do
    cp "$kernel/$file" "/boot/marvin-$file.part"
    mv "/boot/marvin-$file.part" "/boot/marvin-$file"
done
uuid=$(grub-probe --target=fs_uuid /boot)
custom=/boot/grub/custom.cfg
# The site's own entries stay.
{
    if [ -e "$custom" ]; then sed '/^### BEGIN marvin/,/^### END marvin/d' "$custom"; fi
    cat <<END
### BEGIN marvin
menuentry 'marvin' --id marvin {
    search --no-floppy --fs-uuid --set=root $uuid
    linux $place/marvin-vmlinuz $line
    initrd $place/marvin-initrd
}
### END marvin
END
} > "$custom.marvin"
mv "$custom.marvin" "$custom"
grub-reboot marvin
sync
nohup sh -c "sleep 1; systemctl reboot || reboot" >/dev/null 2>&1 </dev/null &
