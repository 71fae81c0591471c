# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced after cache.sh: the architecture that is asked for, and what it is called by whom. ARCH= is the
# kernel's name of it; without it, x86_64. Names of results have `architecture_prefix` before them, which is
# empty for that one.
architecture=${ARCH:-x86_64}
# Who sources this uses some of them.
# shellcheck disable=SC2034
# What the machines are started on.
host_target=x86_64-unknown-linux-gnu
# shellcheck disable=SC2034
case "$architecture" in
x86_64)
	architecture_prefix=
	kernel_image=arch/x86/boot/bzImage
	rust_target=x86_64-unknown-linux-gnu
	c_compiler=cc
	qemu_program=qemu-system-x86_64
	qemu_package=qemu-system-x86
	;;
arm64)
	architecture_prefix=arm64-
	kernel_image=arch/arm64/boot/Image
	rust_target=aarch64-unknown-linux-gnu
	c_compiler=aarch64-linux-gnu-gcc
	qemu_program=qemu-system-aarch64
	qemu_package=qemu-system-arm
	;;
*) die "ARCH=$architecture is not supported: x86_64 or arm64" ;;
esac
