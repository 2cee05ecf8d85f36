#!/bin/sh
# Takes the picture of the README: the first screen of a lab, light and wide, docs/dashboard.png.
#   scripts/screenshot.sh           of five Debian kernels, measured for it: the exact machine gives everybody the same numbers
#   scripts/screenshot.sh HOME      of what is in a home
set -eu
target=docs/dashboard.png
marvin=${MARVIN:-target/release/marvin}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ $# -gt 0 ]; then
    home=$1
else
    home=$scratch/home
    kernels=$(apt-cache search --names-only '^linux-image-6\.1.*-cloud-amd64$' | cut -d' ' -f1 | grep -v -e '^linux-image-6.1-' -e '^linux-image-6.12-' | sort -V | sed 's/^/deb:/')
    # One of the older line, then the newer one step by step.
    older=$(echo "$kernels" | grep 'deb:linux-image-6\.1\.' | tail -n 1)
    newer=$(echo "$kernels" | grep 'deb:linux-image-6\.12\.' | tail -n 4)
    status=0
    # shellcheck disable=SC2086 # a list of words on purpose
    "$marvin" compare --home "$home" --seeds 2 $older $newer >/dev/null || status=$?
    # 1 says that something is worse and 3 that something is unclear: both are results. All else is a failure.
    case $status in 0 | 1 | 3) ;; *) exit "$status" ;; esac
fi
"$marvin" publish --home "$home" "$scratch/pages" >/dev/null
chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --user-data-dir="$scratch/profile" \
    --force-device-scale-factor=1 --window-size=1400,900 --screenshot="$scratch/shot.png" \
    "file://$scratch/pages/index.html" 2>/dev/null
bytes=$(wc -c <"$scratch/shot.png")
if [ "$bytes" -gt 200000 ]; then
    echo "screenshot.sh: $bytes bytes are more than the 200000 of a picture in the README" >&2
    exit 1
fi
mv "$scratch/shot.png" "$target"
echo "$target: $bytes bytes"
