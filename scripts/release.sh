#!/bin/sh
# Writes a folder with all that a host needs: the program (static), its machine, their hashes, the sources and licences of both.
# The same inputs give the same bytes.
#   RELEASE=FOLDER   where to (default: release)
#   MARVIN=PROGRAM   take this program, and build none
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=x86_64-unknown-linux-musl
build=${CARGO_TARGET_DIR:-$PWD/target}
out=${RELEASE:-release}
home=$build/release-home # keeps the machine from one time to the next
crates=${CARGO_HOME:-$HOME/.cargo}

if [ -z "${MARVIN:-}" ]; then
    if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || ! command -v musl-gcc >/dev/null; then
        echo "release.sh: needs rustup target add $target, and musl-gcc: apt-get install musl-tools" >&2
        exit 1
    fi
    # No path of this host is in the program.
    RUSTFLAGS="--remap-path-prefix=$PWD=/marvin --remap-path-prefix=$crates=/cargo --remap-path-prefix=$build=/target" \
        CFLAGS_x86_64_unknown_linux_musl="-ffile-prefix-map=$crates=/cargo -ffile-prefix-map=$build=/target" \
        "$cargo" build --release --locked -p marvin --target "$target"
    MARVIN=$build/$target/release/marvin
fi

rm -rf "$out"
mkdir -p "$out/licences/machine" "$out/licences/rust"
install -m 755 "$MARVIN" "$out/marvin"
strip "$out/marvin"

"$out/marvin" --home "$home" setup --force --pack "$out"
cp LICENSE-MIT LICENSE-APACHE "$out"
cp -R "$home/qemu/debian-7.2.22/share/doc/." "$out/licences/machine"

# The sources of all in the machine, and of the C library in the guest programs.
{
    cat <<'END'
# Debian's sources of the machine: QEMU and its plugins' host (GPL-2), glib, the GNU C library, which the guest programs in
# `marvin` contain too (LGPL-2.1), firmware (SeaBIOS, qboot, option roms of QEMU: LGPL-3, GPL-2), and the other libraries.
# Nothing in them was changed. Licences: licences/machine. Marvin's own source has the guest programs, ready to be linked again.
# SOURCE VERSION PATH SHA256 BYTES; PATH is below http://deb.debian.org/, or, when that has newer versions, below
# http://snapshot.debian.org/archive/: debian/20261126T000000Z/pool/..., debian-security/20261126T000000Z/pool/...
END
    cat crates/lab/machine/src/qemu/debian-7.2.22.sources
} >"$out/SOURCES"

# The licences of the packages that are linked into the program.
"$cargo" tree --locked -p marvin --target "$target" -e normal --prefix none --format '{p}|{l}' |
    sed -e 's/ (\*)//' -e 's/ (.*)|/|/' -e 's/ (proc-macro)//' | LC_ALL=C sort -u >"$out/licences/rust/PACKAGES"
while IFS='|' read -r package _; do
    name=$(echo "$package" | sed 's/ v/-/')
    for source in "$crates"/registry/src/*/"$name"; do
        for file in "$source"/LICEN[CS]E* "$source"/COPYING* "$source"/NOTICE* "$source"/UNLICENSE "$source"/*/LICENSE "$source"/*/COPYING; do
            [ -f "$file" ] || continue
            mkdir -p "$out/licences/rust/$name"
            cp "$file" "$out/licences/rust/$name/"
        done
    done
done <"$out/licences/rust/PACKAGES"
chmod -R u=rwX,go=rX "$out"

(cd "$out" && find . -type f ! -name 'SHA256SUMS*' | sed 's,^\./,,' | LC_ALL=C sort | xargs -d '\n' sha256sum) >"$out/SHA256SUMS.new"
mv "$out/SHA256SUMS.new" "$out/SHA256SUMS"
echo "release.sh: $out, $(du -sh "$out" | cut -f1)"
