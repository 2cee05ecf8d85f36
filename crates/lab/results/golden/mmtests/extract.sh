#!/bin/sh
# Prints the values that MMTests extracts from a tree of this directory: test, row, sample number, value.
#
#   extract.sh MMTESTS TREE >TREE.tsv
#
# MMTESTS is a work tree of gormanm/mmtests: of 900eadcc29b1 for 2025-12, the last commit before kernbench, hackbench,
# tbench and stream changed their files; of 638401e07e70 for 2026-06. It needs perl with File::Slurp, YAML::PP,
# List::MoreUtils.
set -eu
mmtests=$1
here=$(cd "$(dirname "$0")" && pwd)
for logs in "$here/$2"/iter-0/*/logs; do
	test=$(basename "$(dirname "$logs")")
	"$mmtests"/bin/extract-mmtests.pl -d "$here" -n "$2" -b "$test" |
		awk -v test="$test" 'NF == 3 || NF == 4 { print test "\t" $1 "\t" (NF == 4 ? $3 : 0) "\t" $NF }'
done
