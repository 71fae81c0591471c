#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What the kernel's own lints say of the module for ARCH=, and whether a panic can be reached in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

kdir=$("$here/kernel.sh" release)
mapfile -t toolchain < <("$here/toolchain.sh")
build="$top/build${architecture_prefix:+/${architecture_prefix%-}}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# build NAME SOURCE ARGUMENT...: builds into a folder of its own; a warning is an error.
build() {
	local out="$build/$1" source="$2"
	shift 2
	mkdir -p "$out"
	if ! make -C "$kdir" M="$source" MO="$out" ARCH="$architecture" "${toolchain[@]}" "$@" modules >"$log" 2>&1 ||
		grep -qE 'warning|WARNING' "$log"; then
		cat "$log"
		return 1
	fi
}

failed=0
# Clippy changes the code that is made, so its result is not for use; and it says nothing of files
# that are not compiled, so everything is.
rm -rf "$build/lint"
if build lint "$top" CLIPPY=1 W=1 &&
	build lint/tests "$top/tests/module" W=1 KBUILD_EXTRA_SYMBOLS="$build/lint/Module.symvers" &&
	build lint/bench "$top/tests/bench/module" W=1 KBUILD_EXTRA_SYMBOLS="$build/lint/Module.symvers" &&
	build lint/samples/c "$top/samples/c" W=1 KBUILD_EXTRA_SYMBOLS="$build/lint/Module.symvers" &&
	build lint/samples/rust "$top/samples/rust" CLIPPY=1 W=1 \
		KBUILD_EXTRA_SYMBOLS="$build/lint/Module.symvers"; then
	printf 'ok CLIPPY=1 W=1\n'
else
	printf 'not ok CLIPPY=1 W=1\n'
	failed=1
fi

# Without its unit tests, the module calls nothing that panics. The compiler leaves such a call out
# where it can prove that it is not reached, so one that stays is one that we cannot rule out. The
# kernel crate's own assertions, compiled into our object, are the exception.
build plain "$top" WEIR_KUNIT=n
callers=$(llvm-objdump-19 -dr "$build/plain/weir.ko" |
	awk '/^[0-9a-f]+ <.*>:$/ { caller = $2 } /R_(X86_64_PLT32|AARCH64_(CALL|JUMP)26).*9panicking/ { print caller }' |
	grep -vE '<_RI?NvNtCs[0-9A-Za-z]+_4core9panicking' | sort -u |
	grep -vE '<_RNvMs[0-9a-z]*_NtCs[0-9A-Za-z]+_6kernel10miscdevice' || true)
if [ -z "$callers" ]; then
	printf 'ok no panic\n'
else
	printf 'not ok no panic: it can be reached from\n%s\n' "$callers"
	failed=1
fi
exit $failed
