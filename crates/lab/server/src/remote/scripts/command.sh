# Runs the site's program, which has the kernel booted once. Further arguments: the program with its own.
shift
export MARVIN_KERNEL="$kernel/vmlinuz" MARVIN_INITRD="$kernel/initrd" MARVIN_COMMAND_LINE="$line"
sync
"$@"
