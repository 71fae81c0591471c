#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# test.sh STAGE...: runs stages of the tests for ARCH= and ends with a line `N passed, N failed`:
#
#   host     cargo's tests, the model checker
#   um       KUnit and what needs neither counters nor NMI, in user-mode Linux
#   vm       everything in short, on the release kernel in QEMU
#   release  everything, on the release kernel in QEMU
#   debug    everything, on the kernel that checks itself
#   icount   what counts, on the release kernel and one processor that executes an instruction a ns
#   verdicts the virtual machine itself: does it tell failures apart?
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/cargo-target.sh
. "$here/cargo-target.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"
# shellcheck source=scripts/selftests.sh
. "$here/selftests.sh"

summary=$(mktemp)
trap 'rm -f "$summary"' EXIT

# add PASSED FAILED SKIPPED: counts results.
add() {
	printf '%s %s %s\n' "$1" "$2" "$3" >>"$summary"
}

# cargo_test TITLE COMMAND...: runs cargo and counts what its tests say.
cargo_test() {
	local title="$1" log status=0
	shift
	log=$(mktemp)
	say "$title"
	(cd "$top/tools" && "$@") >"$log" 2>&1 </dev/null || status=$?
	# shellcheck disable=SC2046
	add $(awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
		END { print passed + 0, failed + 0, skipped + 0 }' "$log")
	if [ "$status" -ne 0 ]; then
		cat "$log" >&2
		# A build that fails has no test that does.
		grep -q '^test result:.* [1-9][0-9]* failed' "$log" || add 0 1 0
	fi
	rm -f "$log"
}

# ktap TITLE COMMAND...: runs a test that prints KTAP and counts its results.
ktap() {
	local title="$1" log
	shift
	log=$(mktemp)
	say "$title"
	"$@" >"$log" 2>&1 </dev/null || grep -q '^not ok' "$log" || printf 'not ok: no result\n' >>"$log"
	# shellcheck disable=SC2046
	add $(awk '/^ok/ { if (/# SKIP/) skipped++; else passed++ } /^not ok/ { failed++ }
		END { print passed + 0, failed + 0, skipped + 0 }' "$log")
	! grep -q '^not ok' "$log" || cat "$log" >&2
	rm -f "$log"
}

stage_host() {
	ktap "the cache" "$top/tests/scripts/cache.sh"
	cargo_test "host tests" cargo test --locked --workspace --exclude weir-vm
	cargo_test "host tests of the virtual machine" cargo test --locked -p weir-vm --lib --bins
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$CARGO_TARGET_DIR-loom" \
		cargo_test "model checks" cargo test --locked -p weir-engine --test model --test sequence
}

# program_arguments STAGE PROGRAM: what a test program is called with. The stages `um` and `vm` are the loop
# while editing, so they take less time; what takes longer on the debug kernel is the torture's affair.
program_arguments() {
	local reload='--module /weir/weir.ko --torture /weir/weir_torture.ko'
	local counters='--counters /weir/weir_counters.ko'
	case "$1 $2" in
	um\ counter_kernel* | um\ fault_injection) ;;
	*\ counter_kernel | *\ fault_injection) printf '%s' "$counters" ;;
	*\ counter_kernel_stress) printf '%s' "$counters --abandon /weir/weir_abandon.ko" ;;
	*\ samples) printf '%s' '--folder /weir' ;;
	um\ module_reload) printf '%s' "$reload --times 5" ;;
	vm\ module_reload) printf '%s' "$reload --times 10" ;;
	*\ module_reload) printf '%s' "$reload" ;;
	um\ channel_torture) printf '%s' '--seconds 0.05' ;;
	um\ channel_models | um\ channel_mmap | um\ channel_splice | um\ kernel_api) printf '%s' '--seconds 0.03' ;;
	um\ channel_order) printf '%s' '--seconds 0.08' ;;
	um\ channel_nested) printf '%s' '--patience 1' ;;
	um\ channel_rounds | vm\ channel_rounds) printf '%s' '--length 0.1' ;;
	# It is emulated more slowly than the rest.
	release\ channel_rounds) [ "$architecture" = x86_64 ] || printf '%s' '--length 1.5' ;;
	um\ inject_len) printf '%s' '--stride 9' ;;
	um\ inject_fork_storm) printf '%s' '--seconds 0.15' ;;
	vm\ channel_torture | vm\ channel_order) printf '%s' '--seconds 0.2' ;;
	vm\ channel_models | vm\ channel_mmap | vm\ channel_splice | vm\ kernel_api) printf '%s' '--seconds 0.1' ;;
	debug\ channel_models | debug\ channel_mmap | debug\ channel_splice | debug\ kernel_api) printf '%s' '--seconds 0.12' ;;
	vm\ channel_hotplug | debug\ channel_hotplug) printf '%s' '--times 4' ;;
	esac
}

# run_vm STAGE FROM STEP [OPTION...]: boots a machine that runs every STEPth of the test programs.
run_vm() {
	local stage="$1" from="$2" step="$3" programs=() files=() index program status=0
	local bench='weir-bench test --module /weir/weir_bench.ko'
	shift 3
	# What is measured must arrive. User-mode Linux has no BPF programs on tracepoints.
	if [ "$stage" != um ] && [ -e "$vm_bin/ring.bpf.o" ]; then
		files=(--file "$vm_bin/ring.bpf.o:/weir/ring.bpf.o")
		bench+=" --bpf /weir/ring.bpf.o"
	fi
	# What else counts, to compare with.
	if [ -n "$perf" ]; then
		files+=(--file "$perf:/weir/perf")
	fi
	for program in "$vm_out"/samples/*/*.ko "$vm_out"/tests/weir_[ac]*.ko; do
		[ ! -e "$program" ] || files+=(--file "$program:/weir/${program##*/}")
	done
	[ "$from" -ne 0 ] || [ "$stage" = icount ] || programs+=(--program "bench=$vm_bin/$bench")
	for ((index = from; index < ${#selftests[@]}; index += step)); do
		program="${selftests[$index]}"
		programs+=(--program "$program=$vm_bin/$program $(program_arguments "$stage" "$program")")
	done
	"$vm_bin/weir-vm" run "${vm_options[@]}" --modules "$vm_modules" \
		--file "$vm_bin/print_switches:/weir/print_switches" --file "$vm_bin/weir:/weir/weir" \
		--file "$vm_out/bench/weir_bench.ko:/weir/weir_bench.ko" "${files[@]}" \
		--summary "$summary" "${programs[@]}" "$@" || status=$?
	# What is no result of a test is a failure all the same.
	[ "$status" -le 1 ] || add 0 1 0
}

# stage_vm STAGE: boots its kernel with the modules and the test programs.
stage_vm() {
	local stage="$1" kernel="$1" perf="" suites second
	case "$stage" in
	vm | icount) kernel=release ;;
	esac
	vm_setup "$kernel" || return 2
	[ "$kernel" != release ] || ktap "modules that are built elsewhere" "$top/tests/scripts/outside.sh"
	if [ "$kernel" != um ] && [ "$architecture" = x86_64 ]; then
		perf=$("$here/perf.sh") || return 2
	fi
	# Every suite that the source has must have run.
	suites=$(grep -rhoE 'kunit_tests\([a-z_]+' "$top/rust" | cut -d'(' -f2 | sort | paste -sd,)
	say "tests on the $architecture_prefix$kernel kernel"
	if [ "$stage" = icount ]; then
		# The others gain nothing from it, and one processor is not enough for some.
		local selftests=("${counting_selftests[@]}")
		run_vm "$stage" 0 1 --icount --smp 1 --append kunit.filter_glob=none
		return
	fi
	if [ "$stage" != um ]; then
		run_vm "$stage" 0 1 --expect-kunit "$suites"
		return
	fi
	# It waits more than it computes: two machines take half the time.
	second=$(mktemp)
	run_vm "$stage" 1 2 --append kunit.filter_glob=none >"$second" 2>&1 &
	run_vm "$stage" 0 2 --expect-kunit "$suites"
	wait $!
	cat "$second"
	rm -f "$second"
}

# stage_verdicts: machines that fail in every way there is must be told apart.
stage_verdicts() {
	local um release debug
	um=$("$here/kernel.sh" um) || return 2
	release=$("$here/kernel.sh" release) || return 2
	debug=$("$here/kernel.sh" debug) || return 2
	vm_bin=$("$here/user-space.sh") || return 2
	WEIR_UML_IMAGE="$um/linux" WEIR_INIT="$vm_bin/weir-init" \
		WEIR_RELEASE_IMAGE="$release/arch/x86/boot/bzImage" \
		WEIR_DEBUG_IMAGE="$debug/arch/x86/boot/bzImage" \
		cargo_test "verdicts on virtual machines" cargo test --locked -p weir-vm --test machine
}

for stage; do
	case "$stage" in
	host) stage_host ;;
	um | vm | release | debug | icount) stage_vm "$stage" || add 0 1 0 ;;
	verdicts) stage_verdicts || add 0 1 0 ;;
	*) die "there is no stage '$stage': host, um, vm, release, debug, icount or verdicts" ;;
	esac
done

awk '{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed", passed, failed
		if (skipped) printf ", %d skipped", skipped
		print ""
		exit failed != 0
	}' "$summary"
