#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# bench.sh [PART...]: what records cost, of weir and of others. Writes raw results, tables and a picture to
# out/bench/. Parts, all by default:
#
#   instructions  on the release kernel, on one emulated processor whose counter counts instructions: every tracer
#                 on the same tracepoint, and buffers that are called directly
#   um            in user-mode Linux, natively: the same buffers in ns, and reading
#   engine        the engine alone, on the host
#   report        tables and picture of what is in out/bench/ now
#   document      the same, and the tables in Documentation/performance.rst; not by default
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/cargo-target.sh
. "$here/cargo-target.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"

out="$top/out/bench"
mkdir -p "$out/raw"

# measure FILE OPTION...: runs a machine with the module that measures, and keeps what its program prints.
measure() {
	local file="$1"
	shift
	# shellcheck disable=SC2154
	"$vm_bin/weir-vm" run "${vm_options[@]}" --no-leaks --passthrough --keep-modules \
		--modules "${vm_modules%%,*},$vm_out/bench/weir_bench.ko" "$@" | grep -v '^$' >"$out/raw/$file.new" ||
		{
			cat "$out/raw/$file.new" >&2
			die "nothing was measured"
		}
	mv "$out/raw/$file.new" "$out/raw/$file"
}

part_instructions() {
	local bpf=() tracepoint
	vm_setup release || exit
	# shellcheck disable=SC2154
	tracepoint="$vm_bin/weir-bench tracepoint"
	if [ -e "$vm_bin/ring.bpf.o" ]; then
		bpf=(--file "$vm_bin/ring.bpf.o:/weir/ring.bpf.o")
		tracepoint+=" --bpf /weir/ring.bpf.o"
	else
		say "clang-19 does not compile for BPF: its ring buffer is not measured"
	fi
	measure instructions.tsv --icount --smp 1 --append mitigations=off "${bpf[@]}" \
		--program "tracepoint=$tracepoint" --program "direct=$vm_bin/weir-bench direct"
}

part_um() {
	vm_setup um || exit
	# The machine has two processors: one that writes, one that reads. It runs as fast as whatever else runs
	# here lets it: so each is measured time and again, in turn.
	measure um.tsv --smp 2 --timeout 300 --program-timeout 300 \
		--program "direct=$vm_bin/weir-bench direct --batches 21 --rounds 15" \
		--program "consumer=$vm_bin/weir-bench consumer"
}

part_engine() {
	# What an older run measured under another name must not be taken for a result.
	rm -rf "$out/criterion"
	(cd "$top/tools" && CRITERION_HOME="$out/criterion" cargo bench --locked -p weir-engine --bench record)
}

part_report() {
	local bin
	bin=$("$here/user-space.sh")
	"$bin/weir-bench-report" "$out" "$@"
}

[ $# -gt 0 ] || set -- instructions um engine report
for part; do
	case "$part" in
	document) part_report --document "$top/Documentation/performance.rst" ;;
	instructions | um | engine | report) "part_$part" ;;
	*) die "there is no part '$part': instructions, um, engine, report, document" ;;
	esac
done
