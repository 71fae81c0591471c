# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: what a virtual machine is started with, into `vm_options`; vm_setup KERNEL makes the kernel,
# the modules and the user side first.

# vm_setup KERNEL: `release`, `debug` or `um`. Sets `vm_options`, `vm_modules`, `vm_out` and `vm_bin`.
# shellcheck disable=SC2034,SC2154
vm_setup() {
	local kernel="$1" kdir out
	# Each in its own line: a failure in an argument would be lost.
	kdir=$("$here/kernel.sh" "$kernel") || return 2
	out=$("$here/module.sh" "$kernel") || return 2
	vm_bin=$("$here/user-space.sh") || return 2
	vm_out="$out"
	vm_modules="$out/weir.ko,$out/tests/weir_torture.ko"
	vm_options=(--kernel "$kernel")
	case "$kernel" in
	um)
		vm_options+=(--image "$kdir/linux")
		;;
	*)
		# The clocks of the CPUs agree under emulation, but the kernel would look for a long time
		# before it believed it, and change its clock in the middle of the tests.
		vm_options+=(
			--image "$kdir/arch/x86/boot/bzImage"
			--append tsc=reliable --append no-kvmclock
		)
		;;
	esac
	if [ "$kernel" = debug ]; then
		vm_options+=(--boot-timeout 240 --timeout 1500 --program-timeout 300)
	fi
}
