#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the user side statically, for the initramfs of a virtual machine and for machines without our
# libraries, and prints the folder with the programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"

target=x86_64-unknown-linux-gnu
mkdir -p "$WEIR_CACHE/log"
log="$WEIR_CACHE/log/user-space.log"

# The flags are for the programs only: naming the target keeps them from build scripts and macros.
build() {
	cd "$top/tools" &&
		RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --release --target "$target" \
			-p weir -p weir-selftests -p weir-vm
}
# It is quiet where nothing is to do, so that it can be called every time.
if ! build >"$log" 2>&1 </dev/null; then
	tail -n 40 "$log" >&2
	die "the user side does not build; the whole log is $log"
fi
printf '%s\n' "$top/tools/target/$target/release"
