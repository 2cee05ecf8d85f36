# Has systemd-boot boot the kernel at the next start, and restarts.
boot=$(bootctl --print-boot-path)
mkdir -p "$boot/marvin" "$boot/loader/entries"
cp "$kernel/vmlinuz" "$kernel/initrd" "$boot/marvin/"
cat > "$boot/loader/entries/marvin.conf" <<END
title marvin
linux /marvin/vmlinuz
initrd /marvin/initrd
options $line
END
bootctl set-oneshot marvin.conf
sync
nohup sh -c "sleep 1; systemctl reboot" >/dev/null 2>&1 </dev/null &
