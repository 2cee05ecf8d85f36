# Loads the kernel; kexec_start.sh follows.
kexec -a -l "$kernel/vmlinuz" --initrd="$kernel/initrd" --command-line="$line"
