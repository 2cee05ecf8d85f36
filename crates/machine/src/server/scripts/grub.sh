# Has GRUB boot the kernel at the next start, and restarts.
grep -q '^GRUB_DEFAULT="\{0,1\}saved' /etc/default/grub || {
    echo "GRUB boots an entry once only with GRUB_DEFAULT=saved in /etc/default/grub, and update-grub after it" >&2
    exit 1
}
# Where /boot is a file system of its own, GRUB names its files without /boot.
place=/boot
mountpoint -q /boot && place=
for file in vmlinuz initrd; do
    cp "$kernel/$file" "/boot/marvin-$file.part"
    mv "/boot/marvin-$file.part" "/boot/marvin-$file"
done
uuid=$(grub-probe --target=fs_uuid /boot)
cat > /boot/grub/custom.cfg.part <<END
menuentry 'marvin' --id marvin {
    search --no-floppy --fs-uuid --set=root $uuid
    linux $place/marvin-vmlinuz $line
    initrd $place/marvin-initrd
}
END
mv /boot/grub/custom.cfg.part /boot/grub/custom.cfg
grub-reboot marvin
sync
nohup sh -c "sleep 1; systemctl reboot || reboot" >/dev/null 2>&1 </dev/null &
