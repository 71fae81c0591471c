# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: what a virtual machine is started with, into `vm_options`; vm_setup KERNEL makes the kernel,
# the modules and the user side first.

# Who sources this knows where it is.
# shellcheck source=scripts/architecture.sh disable=SC2154
. "$here/architecture.sh"

# vm_setup KERNEL: `release` or `debug`, of ARCH=, or `um`. Sets `vm_options`, `vm_modules`, `vm_out` and `vm_bin`.
# shellcheck disable=SC2034,SC2154
vm_setup() {
	local kernel="$1" kdir out busybox
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
		busybox=$("$here/busybox.sh") || return 2
		vm_options+=(--arch "$architecture" --image "$kdir/$kernel_image" --busybox "$busybox")
		;;
	esac
	if [ "$kernel" != um ] && [ "$architecture" = x86_64 ]; then
		# The clocks of the CPUs agree under emulation, but the kernel would look for a long time
		# before it believed it, and change its clock in the middle of the tests.
		vm_options+=(--append tsc=reliable --append no-kvmclock)
	fi
	if [ "$kernel" = debug ]; then
		vm_options+=(--boot-timeout 240 --timeout 1500 --program-timeout 300)
	fi
}
