# Sets `kernel` to the directory of an installed kernel and `line` to its command line: that of the server's own kernel,
# with a mark, and with `crash` if that is set. A kernel that dies restarts the server, which boots its own kernel then. One that
# hangs is asked by sysrq why, which distributions allow in part only.
# Argument: tag.
set -eu
home=/var/lib/marvin
kernel=$home/kernels/$1
line=
for word in $(sed -n '3,$p' "$home/own" | tr '\n' ' '); do
    case $word in BOOT_IMAGE=* | initrd=* | crashkernel=* | panic=* | oops=* | sysrq_always_enabled) ;; *) line="$line $word" ;; esac
done
line="${line# } panic=10 oops=panic sysrq_always_enabled${crash:+ $crash} marvin.build=$1"
