# Prints what the own kernel's start depends on, after facts.sh, and ends the answer. Arguments: those of facts.sh.
echo "machine_id=$(first /etc/machine-id | sha256sum | cut -c 1-16)"
if [ -n "$is_own" ]; then
    # The server's own kernel: what its next start boots, and whose initramfs finds the root disk.
    for file in /boot/initrd.img-$release /boot/initramfs-$release.img /boot/initrd-$release /boot/initramfs-linux.img; do
        [ -e "$file" ] && initrd=$file && break
    done
    echo "own_initrd=${initrd:-}"
    [ -n "$2" ] && [ -w "$home" ] && printf '%s\n%s\n%s\n' "$release" "${initrd:-}" "$(cat /proc/cmdline)" > "$home/own.part" 2>/dev/null && mv "$home/own.part" "$home/own"
    if [ "$3" = grub-once ]; then
        [ -w /boot/grub ] && echo "loader.writable=yes"
        # What update-grub has made of GRUB_DEFAULT=saved, of the entry for one boot, and of custom.cfg.
        for words in 'default="${saved_entry}"' next_entry custom.cfg; do
            grep -qF "$words" /boot/grub/grub.cfg 2>/dev/null || echo "grub.lacks=$words"
        done
        # GRUB cannot write its environment there (grub-mkconfig's 00_header, GRUB's manual 15.2): the entry would stay.
        kind=$(grub-probe --target=fs /boot/grub 2>/dev/null)
        case $kind in btrfs | zfs | cpiofs | newc | odc | romfs | squash4 | tarfs) echo "grub.unwritable=$kind" ;; esac
        for layer in $(grub-probe --target=abstraction /boot/grub 2>/dev/null); do
            case $layer in lvm | diskfilter | mdraid* | raid*) echo "grub.unwritable=$layer" ;; esac
        done
    fi
    if [ "$3" = systemd-boot-once ]; then
        id=4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
        [ -e "$vars/LoaderInfo-$id" ] && echo "loader.runs=yes"
        place=$(bootctl --print-boot-path 2>/dev/null) esp=$(bootctl --print-esp-path 2>/dev/null)
        [ -n "$place" ] && [ -w "$place" ] && [ -w "$vars" ] && echo "loader.writable=yes"
        # The variable of bootctl set-default comes before loader.conf; both have a pattern.
        if [ -e "$vars/LoaderEntryDefault-$id" ]; then
            default=$(tail -c +5 "$vars/LoaderEntryDefault-$id" | tr -d '\000')
        else
            default=$(sed -n 's/^default[[:space:]]\{1,\}//p' "$esp/loader/loader.conf" 2>/dev/null | tail -n 1)
        fi
        default=$(echo "$default" | tr '[:upper:]' '[:lower:]')
        for entry in marvin.conf "$place"/loader/entries/*.conf "$esp"/loader/entries/*.conf "$place"/EFI/Linux/*.efi "$esp"/EFI/Linux/*.efi; do
            entry=$(echo "${entry##*/}" | tr '[:upper:]' '[:lower:]')
            # shellcheck disable=SC2254 # It is a pattern.
            case $entry in
                '*.conf' | '*.efi') ;;
                # The build's is first: a pattern that means it, too, is no certain default.
                $default) echo "loader.default=$entry" && break ;;
            esac
        done
    fi
fi
echo "done=yes"
