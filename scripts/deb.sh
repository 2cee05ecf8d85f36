#!/bin/sh
# Builds the Debian package of marvin-dump: one static program. Prints the package's path.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
install -D -m 755 target/release/marvin-dump "$root/usr/bin/marvin-dump"
strip "$root/usr/bin/marvin-dump"
install -D -m 644 docs/dump.debian "$root/usr/share/doc/marvin-dump/README.Debian"
install -D -m 644 LICENSE "$root/usr/share/doc/marvin-dump/copyright"
mkdir "$root/DEBIAN"
cat > "$root/DEBIAN/control" <<END
Package: marvin-dump
Version: $version
Architecture: $architecture
Maintainer: The Marvin authors <marvin@localhost>
Section: admin
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Enhances: kdump-tools
Description: filters and compresses memory dumps of crashed kernels
 Reads /proc/vmcore, leaves out pages that are not needed, and writes files
 that crash, drgn and makedumpfile read. With a link it takes the place of
 makedumpfile: see /usr/share/doc/marvin-dump/README.Debian.
END
package=target/marvin-dump_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" > /dev/null
echo "$package"
