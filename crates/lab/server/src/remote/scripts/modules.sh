# Gives an installed kernel its module directory on the root file system; a directory of the distribution stays.
# Arguments: tag, release.
set -eu
from=/var/lib/marvin/kernels/$1/root/usr/lib/modules/$2
[ -d "$from" ] || from=/var/lib/marvin/kernels/$1/root/lib/modules/$2
place=/lib/modules/$2
if [ -d "$from" ] && { [ ! -e "$place" ] || [ -e "$place/.marvin" ]; }; then
    rm -rf "$place"
    cp -r "$from" "$place"
    echo "$1" > "$place/.marvin"
fi
