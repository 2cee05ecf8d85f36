# Starts an image from standard input by kexec: its kernel, then its root with the seal. What runs here ends. Arguments: size of the
# kernel (bytes), the image's command line.
set -eu
home=/var/lib/marvin
place=$home/image
rm -rf "$place"
mkdir -p "$place"
head -c "$1" > "$place/vmlinuz"
cat > "$place/root"
kexec -a -l "$place/vmlinuz" --initrd="$place/root" --command-line="$2"
rm -rf "$place"
# As a file of this system it would keep other labs away when it runs again.
rm -f "$home/held"
sync
if [ -d /run/systemd/system ]; then
    start="systemctl kexec || kexec -e"
else
    start="mount -o remount,ro / 2>/dev/null; kexec -e"
fi
nohup sh -c "sleep 1; $start" >/dev/null 2>&1 </dev/null &
