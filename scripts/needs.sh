#!/bin/sh
# Installs what is missing on Debian 12 or 13, and says what before it does. Safe to repeat.
#   scripts/needs.sh build    a compiler for Rust and C
#   scripts/needs.sh demo     that, and the walls
#   scripts/needs.sh bench    that, and what kernels are built with
#   scripts/needs.sh test     that, and what the tests use
#   scripts/needs.sh test-full   that, and what those use that take minutes
set -eu

rust_oldest=1.95
packages=

want() { # want PROGRAM PACKAGE: the package if the program is not there
    command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}

newest_is() { # newest_is A B: true when B is not older than A
    [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

want cc gcc
if command -v cargo >/dev/null 2>&1 && newest_is "$rust_oldest" "$(rustc --version | cut -d' ' -f2)"; then
    :
else
    # Debian 12 carries a current compiler for its browsers beside the old one.
    packages="$packages rustc-web cargo-web"
fi

case "${1:-build}" in
build) ;;
demo)
    # Walls around QEMU and builds. QEMU itself comes by `marvin setup`: the same on every host.
    want bwrap bubblewrap
    ;;
bench | test | test-full)
    want bwrap bubblewrap
    want qemu-system-x86_64 qemu-system-x86
    want setpriv util-linux
    ;;
*)
    echo "usage: scripts/needs.sh build|demo|bench|test|test-full" >&2
    exit 2
    ;;
esac
if [ "${1:-}" = test-full ]; then
    want makedumpfile makedumpfile
    # The static program of a release.
    want musl-gcc musl-tools
    # Guests and programs of 64-bit Arm, and a compiler for them.
    want qemu-system-aarch64 qemu-system-arm
    want qemu-aarch64 qemu-user
    want aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || packages="$packages libc6-dev-arm64-cross"
    # An archive of mailing lists, as lore.kernel.org is.
    want public-inbox-httpd public-inbox
    want b4 b4
    # Programs that people bring: a database, a server, other languages, 32 bits.
    want g++ g++
    want go golang-go
    want redis-server redis-server
    want redis-benchmark redis-tools
    [ -e /usr/include/sqlite3.h ] || packages="$packages libsqlite3-dev"
    want i686-linux-gnu-gcc gcc-i686-linux-gnu
    [ -e /usr/i686-linux-gnu/lib/libc.a ] || packages="$packages libc6-dev-i386-cross"
    [ -e /lib/ld-linux.so.2 ] || packages="$packages libc6-i386"
    # Types in kernels of the config smp.
    want pahole pahole
    # A server of tests/rack that boots by UEFI.
    [ -e /usr/share/OVMF/OVMF_CODE_4M.fd ] || packages="$packages ovmf"
    want mcopy mtools
    [ -e /sbin/mkfs.vfat ] || [ -e /usr/sbin/mkfs.vfat ] || packages="$packages dosfstools"
    [ -e /sbin/sfdisk ] || [ -e /usr/sbin/sfdisk ] || packages="$packages fdisk"
    # Scratch disks of guests.
    [ -e /sbin/mkfs.xfs ] || [ -e /usr/sbin/mkfs.xfs ] || packages="$packages xfsprogs"
    [ -e /bin/mkfs.btrfs ] || [ -e /usr/sbin/mkfs.btrfs ] || [ -e /sbin/mkfs.btrfs ] || packages="$packages btrfs-progs"
fi
if [ "${1:-}" = bench ] || [ "${1:-}" = test ] || [ "${1:-}" = test-full ]; then
    # Small kernels are built from Debian's source.
    for program in git make flex bison bc; do
        want $program $program
    done
    want xz xz-utils
    # Its tool for object files is built with this library.
    [ -e /usr/include/gelf.h ] || packages="$packages libelf-dev"
    want ld binutils
    # A batch system: controller, nodes and their keys on this host.
    want slurmctld slurmctld
    want slurmd slurmd
    want sbatch slurm-client
    want munged munge
    # Debian has its programs beside the PATH, a folder for each version.
    ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || want postgres postgresql
fi
if [ "${1:-}" = bench ]; then
    want ccache ccache
fi
if [ "${1:-}" = test ] || [ "${1:-}" = test-full ]; then
    want cpio cpio
    want openssl openssl
    want python3 python3
    # Servers of tests/rack: made of packages without root, reached by ssh.
    want mmdebstrap mmdebstrap
    want fakeroot fakeroot
    [ "$(id -u)" = 0 ] || want fakechroot fakechroot
    [ -e /sbin/mke2fs ] || [ -e /usr/sbin/mke2fs ] || packages="$packages e2fsprogs"
    want qemu-img qemu-utils
    # Power of servers: a BMC that is simulated, and what asks it.
    want ipmi_sim openipmi
    want ipmitool ipmitool
    want curl curl
    want ssh openssh-client
    # Pages are looked at in a real browser.
    want chromium chromium
    cargo fmt --version >/dev/null 2>&1 || packages="$packages rustfmt-web"
    cargo clippy --version >/dev/null 2>&1 || packages="$packages rust-web-clippy"
fi

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "needs.sh: root or sudo is needed for: $*" >&2
        exit 1
    fi
}

# Tests compare with apt and fetch sources by it: a machine that never fetched its lists has none.
lists_are_there() { apt-cache search --names-only '^linux-image-6\.12.*cloud-amd64$' 2>/dev/null | grep -q .; }

if [ -z "$packages" ] && { [ "${1:-build}" = build ] || [ "$1" = demo ] || lists_are_there; }; then
    exit 0
fi
echo "needs.sh: apt-get update"
as_root apt-get update -qq
if [ -n "$packages" ]; then
    echo "needs.sh: apt-get install --no-install-recommends$packages"
    # Nothing that is there goes: a compiler for Arm would take gcc-multilib away.
    # shellcheck disable=SC2086 # a list of words on purpose
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove $packages; then
        echo "needs.sh: these packages would remove others of this host, or are not to be had:$packages" >&2
        echo "needs.sh: install what you want of them by hand, and run it again" >&2
        exit 1
    fi
fi
