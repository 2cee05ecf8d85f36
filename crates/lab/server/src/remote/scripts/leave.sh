# Removes what only builds need, once the server runs its own kernel again, and lets other labs use it. Arguments: the
# lab's token, how the server boots builds.
home=/var/lib/marvin
read -r token rest < "$home/held" && [ "$token" = "$1" ] || exit 0
if ! grep -q marvin.build= /proc/cmdline; then
    # The reboot has set back what was set for measuring.
    rm -f "$home/undo"
    case $2 in
        grub-once)
            custom=/boot/grub/custom.cfg
            if grep -q '^### BEGIN marvin' "$custom" 2>/dev/null; then
                sed '/^### BEGIN marvin/,/^### END marvin/d' "$custom" > "$custom.marvin" && mv "$custom.marvin" "$custom"
                [ -s "$custom" ] || rm -f "$custom"
            fi
            rm -f /boot/marvin-vmlinuz /boot/marvin-initrd /boot/marvin-*.part
            ;;
        systemd-boot-once)
            boot=$(bootctl --print-boot-path 2>/dev/null) && rm -rf "$boot/loader/entries/marvin.conf" "$boot/marvin"
            ;;
    esac
fi
# The files of users' own programs, and the place of their root.
rm -rf "$home/programs" "$home/root.why"
rmdir "$home/root" 2>/dev/null
# And what a lab that was killed while it took the server left beside it.
rm "$home/held" && rm -f "$home"/held.*
