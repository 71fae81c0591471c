#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Finds or makes the toolchain, and prints it as make variables, one `NAME=value` a line:
#
#     make $(scripts/toolchain.sh) ...
#
# Rust: the machine's own rustc if it is recent enough for the kernel and the sources of its
# standard library can be had in the same version; else the distribution's. bindgen: built once
# into the cache. LLVM: one version for all, the one both Debian 12 and 13 have.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/suite.sh
. "$here/suite.sh"

readonly rust_minimum=1.85.0
readonly bindgen_version=0.72.1
readonly llvm=-19

# at_least A B: whether version A is B or newer.
at_least() {
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]
}

# rust_sources RUSTC: prints the folder with the standard library's sources of that very compiler.
rust_sources() {
	local rustc="$1" version sysroot
	version=$("$rustc" --version | cut -d' ' -f2)
	sysroot=$("$rustc" --print sysroot)
	local at
	for at in "$sysroot/lib/rustlib/src/rust/library" "/usr/src/rustc-$version/library"; do
		if [ -e "$at/core/src/lib.rs" ]; then
			printf '%s\n' "$at"
			return 0
		fi
	done
	if command -v rustup >/dev/null && rustup component add rust-src >&2 &&
		[ -e "$sysroot/lib/rustlib/src/rust/library/core/src/lib.rs" ]; then
		printf '%s\n' "$sysroot/lib/rustlib/src/rust/library"
		return 0
	fi
	at=$(cache_entry "rust-src-$version" fetch_rust_sources "$version") || return 1
	printf '%s\n' "$at/usr/src/rustc-$version/library"
}

fetch_rust_sources() {
	local dir="$1" version="$2" full
	suite_setup "$WEIR_SUITES" || return 1
	full=$(apt-cache madison rust-src | awk -F'|' '{gsub(/ /, "", $2); print $2}' | grep -m 1 "^$version+") || {
		say "there is no Debian package rust-src of version $version"
		return 1
	}
	cd "$dir" &&
		suite_download "rust-src=$full" &&
		dpkg-deb -x rust-src_*.deb . &&
		rm rust-src_*.deb &&
		[ -e "usr/src/rustc-$version/library/core/src/lib.rs" ]
}

build_bindgen() {
	with_progress "bindgen $bindgen_version" "$WEIR_CACHE/log/bindgen.log" \
		cargo install bindgen-cli --version "$bindgen_version" --locked --root "$1"
}

mkdir -p "$WEIR_CACHE/log"

rustc=${RUSTC:-$(command -v rustc || true)}
sources=
if [ -n "$rustc" ] && at_least "$("$rustc" --version | cut -d' ' -f2)" "$rust_minimum"; then
	sources=$(rust_sources "$rustc" || true)
fi
if [ -z "$sources" ]; then
	# shellcheck source=scripts/distribution-rust.sh
	. "$here/distribution-rust.sh"
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		die "no Rust of at least $rust_minimum with its rust-src; as root: apt-get install ${distribution_rust[*]}"
	fi
	say "installing the distribution's Rust: ${distribution_rust[*]}"
	with_progress "rust" "$WEIR_CACHE/log/rust.log" \
		apt-get install -y --no-install-recommends "${distribution_rust[@]}"
	rustc=/usr/bin/rustc
	sources=$(rust_sources "$rustc") || die "the distribution's rustc has no sources to go with it"
fi

bindgen=$(cache_entry "bindgen-$bindgen_version" build_bindgen)/bin/bindgen
command -v "clang$llvm" >/dev/null || die "clang$llvm is missing: run scripts/packages.sh"

# A proxy such as rustup's looks at the folder it is called in; the kernel build calls it in others.
printf 'LLVM=%s\nRUSTC=%s\nBINDGEN=%s\nRUST_LIB_SRC=%s\n' "$llvm" "$rustc" "$bindgen" "$sources"
