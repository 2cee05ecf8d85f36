#!/bin/sh
# Prints the rows of MMTests' own parse-results for the logs of `formats`: test, row, sample number, value.
#
#   extract-formats.sh MMTESTS >formats.tsv
#
# MMTESTS is a work tree of gormanm/mmtests at 638401e07e70. It needs perl, gawk and gzip. Logs that a parser reads
# compressed are compressed in a copy.
set -eu
mmtests=$1
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$here/formats/iter-0/." "$copy"
gzip "$copy/numactl.txt"
for logs in "$copy"/*/logs; do
	test=$(basename "$(dirname "$logs")")
	case $test in
	coremark | fsmark | saladfork | stutterp | thpchallenge) gzip "$logs"/*.log ;;
	esac
	"$mmtests/shellpack_src/src/$test/parse-results" "$logs" 2>/dev/null |
		awk -F '\t' -v test="$test" 'NF >= 5 {
			row = $1
			if ($2 != "_" && $2 != "") row = row "-" $2
			if ($3 != "_" && $3 != "") row = row "-" $3
			print test "\t" row "\t" $4 "\t" $5
		}'
done
