#!/bin/sh
# Runs a test program so that it says how long each test took. libtest has the option, but calls it unstable.
# A test program that runs beside the others, in a stream of its own.
case "$(basename "$1")" in
"${MARVIN_ELSEWHERE:-none}"-*) exit 0 ;;
esac
case "$(basename "$(dirname "$1")")" in
deps) RUSTC_BOOTSTRAP=1 exec "$@" -Z unstable-options --report-time ;;
*) exec "$@" ;;
esac
