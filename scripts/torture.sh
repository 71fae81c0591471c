#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# torture.sh MINUTES: the tests that write at full speed, for so long, half of the time on each kernel: every
# model and mode, writers in tasks, softirqs, timers and NMIs, readers that are slow, fast, mapped, and killed,
# CPUs that go and come back. From the environment:
#
#   SEED    what the rounds follow from; a number of its own each time by default
#   ROUND   runs this round alone, and nothing else
#   LENGTH  how many seconds a round writes; part of what a round is
#   SMP     processors, 4 by default; part of what a round is, too
#   KERNELS the kernels, both by default
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"

# number NAME VALUE: VALUE must be one.
number() {
	case "$2" in
	'' | *[!0-9]*) die "$1=$2 is no number" ;;
	esac
}

minutes=${1:?usage: torture.sh MINUTES}
seed=${SEED:-$((RANDOM << 15 | RANDOM))}
smp=${SMP:-4}
length=${LENGTH:-2}
number MINUTES "$minutes"
number SEED "$seed"
number SMP "$smp"
[ "$minutes" -gt 0 ] || die "MINUTES=$minutes is no time"
[ "$smp" -gt 0 ] || die "SMP=$smp is no machine"
rounds="--seed $seed --length $length"
[ -z "${ROUND:-}" ] || number ROUND "$ROUND"

# Of the time of a kernel two thirds are for rounds. What is left is for the other programs, of which about
# so many parts write for as long as they are told to.
parts=50
seconds=$((minutes * 60 / 2))
each=$(awk "BEGIN { printf \"%.2f\", $seconds / 3 / $parts }")
limit=$((seconds * 4 + 300))

# torture KERNEL: all of it on one kernel.
torture() {
	local kernel="$1" program programs=()
	vm_setup "$kernel" || return
	# shellcheck disable=SC2154
	if [ -n "${ROUND:-}" ]; then
		programs+=(--program "channel_rounds:$limit=$vm_bin/channel_rounds $rounds --round $ROUND")
	else
		programs+=(--program "channel_rounds:$limit=$vm_bin/channel_rounds $rounds --seconds $((seconds * 2 / 3))")
		for program in channel_torture channel_models channel_mmap kernel_api channel_order; do
			programs+=(--program "$program:$limit=$vm_bin/$program --seconds $each")
		done
		programs+=(--program "channel_hotplug:$limit=$vm_bin/channel_hotplug --times $((seconds / 18 + 1))")
	fi
	say "torture on the $kernel kernel with $smp processors, for about $seconds s: SEED=$seed LENGTH=$length SMP=$smp"
	# shellcheck disable=SC2154
	"$vm_bin/weir-vm" run "${vm_options[@]}" --smp "$smp" --timeout "$((limit * 3))" --modules "$vm_modules" \
		"${programs[@]}"
}

failed=0
for kernel in ${KERNELS:-release debug}; do
	torture "$kernel" || failed=1
done
exit "$failed"
