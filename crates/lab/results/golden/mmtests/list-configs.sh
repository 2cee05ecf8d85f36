#!/bin/sh
# Prints the configs of MMTests, and the tests that each runs: config, tests, the first with a parser or `-`.
#
#   list-configs.sh MMTESTS >configs.tsv
#
# MMTESTS is a work tree of gormanm/mmtests at 638401e07e70. Each config is sourced by bash in an empty environment.
set -eu
mmtests=$1
cd "$mmtests"
for config in configs/config-*; do
	tests=$(env -i PATH="$PATH" SHELLPACK_TOPLEVEL="$mmtests" SHELLPACK_INCLUDE="$mmtests/shellpacks" \
		bash -c '. "./$1" >/dev/null 2>&1; echo $MMTESTS' list "$config" </dev/null 2>/dev/null || true)
	parsers=
	for test in $tests; do
		# A test's parser is that of its longest beginning.
		name=$test
		while [ -n "$name" ] && [ ! -e "$mmtests/shellpack_src/src/$name/parse-results" ]; do
			case $name in
			*-*) name=${name%-*} ;;
			*) name= ;;
			esac
		done
		[ -z "$name" ] || parsers="$parsers${parsers:+ }$test=$name"
	done
	printf '%s\t%s\t%s\n' "${config#configs/}" "${tests:--}" "${parsers:--}"
done
