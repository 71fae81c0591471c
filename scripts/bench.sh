#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What one record costs in the kernel, in instructions, of weir and of others in the same run: on the
# release kernel, on one emulated processor whose counter counts instructions. Prints a table, and leaves
# the raw results in out/bench/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"

vm_setup release || exit
results="$top/out/bench/instructions.tsv"
mkdir -p "$top/out/bench"
# shellcheck disable=SC2154
"$vm_bin/weir-vm" run "${vm_options[@]}" --icount --smp 1 --append mitigations=off --no-leaks --passthrough \
	--keep-modules --modules "${vm_modules%%,*},$vm_out/bench/weir_bench.ko" \
	--program "bench=guest:/bin/cat /sys/module/weir_bench/parameters/result" |
	grep -v '^$' >"$results" || die "nothing was measured"

# Each line: what, then the median, least and most of the batches of 1000 calls, and how many failed.
awk -F'\t' '
	NF != 5 { print "not a result: " $0; bad = 1; next }
	$5 != 0 { print $1 ": " $5 " calls failed, so this is worth nothing"; bad = 1 }
	$1 == "empty call" { empty = $2 }
	NR == 1 { printf "%-40s %12s %12s\n", "instructions a call", "as measured", "less empty" }
	{ printf "%-40s %12.1f %12.1f\n", $1, $2 / 1000, ($2 - empty) / 1000 }
	END { exit bad || NR == 0 }' "$results"
