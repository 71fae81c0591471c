#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# torture.sh MINUTES: the tests that write at full speed, for so long, half of the time on each kernel, with four
# processors: every model and mode, writers in tasks, softirqs, timers and NMIs, readers that are slow, fast,
# and mapped, CPUs that go and come back.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"

minutes=${1:?usage: torture.sh MINUTES}
case "$minutes" in
'' | *[!0-9]* | 0) die "MINUTES=$minutes is no number of minutes" ;;
esac
# About so many parts of the programs below write for as long as they are told to.
parts=50
seconds=$((minutes * 60 / 2))
each=$(awk "BEGIN { printf \"%.2f\", $seconds / $parts }")
limit=$((seconds * 4 + 120))
failed=0
for kernel in release debug; do
	vm_setup "$kernel" || exit
	programs=()
	for program in channel_torture channel_models channel_mmap kernel_api channel_order; do
		# shellcheck disable=SC2154
		programs+=(--program "$program:$limit=$vm_bin/$program --seconds $each")
	done
	programs+=(--program "channel_hotplug:$limit=$vm_bin/channel_hotplug --times $((seconds / 6 + 1))")
	say "torture on the $kernel kernel, for about $seconds s"
	# shellcheck disable=SC2154
	"$vm_bin/weir-vm" run "${vm_options[@]}" --smp 4 --timeout "$((limit * 3))" --modules "$vm_modules" \
		"${programs[@]}" || failed=1
done
exit "$failed"
