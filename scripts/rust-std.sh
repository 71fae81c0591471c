#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# rust-std.sh TARGET: prints what rustc is to be given as --sysroot to compile programs for TARGET with the
# machine's own rustc; nothing where it has the standard library for that by itself. Else the library is
# built from its sources, once.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"

target=${1:?usage: rust-std.sh TARGET}

# build FOLDER: has cargo compile the library for a crate with nothing in it, and lays out what comes of it as
# rustc looks for it. Only there cargo and rustc are told to take what is not stable.
build() {
	local dir="$1" to="$1/lib/rustlib/$target/lib"
	mkdir -p "$dir/crate/src" "$to" &&
		printf '[package]\nname = "nothing"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' >"$dir/crate/Cargo.toml" &&
		: >"$dir/crate/src/lib.rs" &&
		cd "$dir/crate" &&
		say "building Rust's standard library for $target (once; a minute)" &&
		RUSTC="$rustc" RUSTC_BOOTSTRAP=1 __CARGO_TESTS_ONLY_SRC_ROOT="$sources" CARGO_TARGET_DIR="$dir/crate/target" \
			with_progress "the standard library" "$WEIR_CACHE/log/rust-std.log" \
			cargo build --release -Z build-std=std,panic_unwind --target "$target" &&
		cp "$dir/crate/target/$target/release/deps/"*.rlib "$to/" &&
		rm "$to"/libnothing-*.rlib &&
		rm -rf "$dir/crate"
}

rustc=$(command -v rustc)
if [ -n "$(find "$("$rustc" --print target-libdir --target "$target")" -name 'libstd-*.rlib' 2>/dev/null)" ]; then
	exit 0
fi
mapfile -t toolchain < <("$here/toolchain.sh")
[ ${#toolchain[@]} -gt 0 ] || die "no toolchain"
for variable in "${toolchain[@]}"; do
	case "$variable" in
	RUSTC=*) rustc=${variable#*=} ;;
	RUST_LIB_SRC=*) sources=${variable#*=} ;;
	esac
done
mkdir -p "$WEIR_CACHE/log"
cache_entry "rust-std-$target-$("$rustc" -vV | digest)" build
