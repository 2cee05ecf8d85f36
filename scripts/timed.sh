#!/bin/sh
# Runs a test program so that it says how long each test took. libtest has the option, but calls it unstable.
case "$(basename "$(dirname "$1")")" in
deps) RUSTC_BOOTSTRAP=1 exec "$@" -Z unstable-options --report-time ;;
*) exec "$@" ;;
esac
