#!/bin/sh
# The demonstration: the newest Debian 6.1 against the newest 6.12 on the exact machine, one seed.
set -eu
mkdir -p demo
compare() {
    # 1 says that something is worse and 3 that something is unclear: both are results. All else is a failure.
    status=0
    target/release/marvin compare deb:6.1 deb:6.12 --quick "$@" || status=$?
    case $status in 0 | 1 | 3) ;; *) exit "$status" ;; esac
}
target/release/marvin setup
compare
compare --quiet --format html --output demo/report.html
echo
echo "The same as a page: demo/report.html"
echo "With five seeds, which show what depends on layout or timing:"
echo "  target/release/marvin compare deb:6.1 deb:6.12"
