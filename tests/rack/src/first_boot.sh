# Runs on the booted server, once, before its state is saved.
set -eu
update-grub
release=$(uname -r)
uuid=$(findmnt -no UUID /)
# The kernel that a server falls back to stays the default when others are installed.
grub-set-default "gnulinux-advanced-$uuid>gnulinux-$release-advanced-$uuid"
# A server that has been up for a while is done with this, and the first command finds its files in memory.
systemctl is-system-running --wait || true
uname -a
sync
