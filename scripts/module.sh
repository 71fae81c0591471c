#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# module.sh KERNEL [MAKE-ARGUMENT...]: builds the modules of this tree against a kernel, and prints the
# folder they are in. KERNEL is a configuration of the project's own (release, debug, um), for ARCH=, or the
# build folder of any other kernel with Rust.
#
# The results of each kernel are in a folder of their own under build/, so several stand side by side.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

kernel=${1:?usage: module.sh release|debug|um|KDIR [MAKE-ARGUMENT...]}
shift

case "$kernel" in
release | debug | um)
	kdir=$("$here/kernel.sh" "$kernel")
	out="$top/build/$architecture_prefix$kernel"
	;;
*)
	[ -d "$kernel" ] ||
		die "KDIR=$kernel does not exist: install the headers of that kernel (linux-headers-$(uname -r) for the one that runs), or leave KDIR= out to build against the project's own"
	kdir=$(cd "$kernel" && pwd)
	out="$top/build/$(printf '%s' "$kdir" | digest)"
	;;
esac

config="$kdir/include/config/auto.conf"
[ -e "$config" ] ||
	die "KDIR=$kdir is no kernel that was configured and built (include/config/auto.conf is missing)"
grep -qx CONFIG_RUST=y "$config" ||
	die "KDIR=$kdir was built without Rust: it needs CONFIG_RUST=y (Documentation/rust/quick-start.rst in the kernel says how)"
[ -e "$kdir/rust/libkernel.rmeta" ] ||
	die "KDIR=$kdir has no metadata of its Rust crates (rust/libkernel.rmeta is missing): it needs the folder that kernel was built in, headers packages leave it out"

arch=x86_64
if grep -qx CONFIG_UML=y "$config"; then
	arch=um
elif grep -qx CONFIG_ARM64=y "$config"; then
	arch=arm64
fi
# The compiler must be of the kind that built the kernel.
mapfile -t toolchain < <("$here/toolchain.sh")
[ ${#toolchain[@]} -gt 0 ] || die "no toolchain"
if ! grep -qx CONFIG_CC_IS_CLANG=y "$config"; then
	toolchain=("${toolchain[@]/#LLVM=*/LLVM=}")
fi

mkdir -p "$out"

# build SOURCE FOLDER SYMBOLS [MAKE-ARGUMENT...]: one module into a folder.
build() {
	local source="$1" to="$2" symbols="$3"
	shift 3
	mkdir -p "$to"
	if ! make -C "$kdir" M="$source" MO="$to" ARCH="$arch" KBUILD_EXTRA_SYMBOLS="$symbols" \
		"${toolchain[@]}" "${@:-modules}" >"$to/log" 2>&1; then
		cat "$to/log" >&2
		return 1
	fi
	# Warnings are for people; the rest is not.
	[ $# -ne 0 ] || grep -E -A 8 'warning|WARNING' "$to/log" >&2 || true
}

build "$top" "$out" '' "$@"
# The others call functions of the first. They are built, but they are nothing to install.
if [ $# -eq 0 ]; then
	others=("tests/module $out/tests" "samples/c $out/samples/c" "samples/rust $out/samples/rust")
	if grep -qx CONFIG_RING_BUFFER=y "$config"; then
		others+=("tests/bench/module $out/bench")
	fi
	jobs=()
	for other in "${others[@]}"; do
		build "$top/${other%% *}" "${other#* }" "$out/Module.symvers" &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do
		wait "$job" || exit 1
	done
fi
printf '%s\n' "$out"
