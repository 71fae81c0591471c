#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs the Debian packages that building and testing for ARCH= need, where one is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/suite.sh
. "$here/suite.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

# What each is for: the kernel build; C++ for the test of the header; LLVM (clang builds the kernel,
# libclang is bindgen's); the virtual machine; the set-up itself.
wanted=(
	make gcc g++ libc6-dev flex bison bc libelf-dev libssl-dev cpio kmod dwarves xz-utils zstd rsync patch perl python3
	clang-19 lld-19 llvm-19 libclang-19-dev
	busybox-static
	ca-certificates git util-linux shellcheck
)
# perf, which scripts/perf.sh builds for this machine's own architecture, with all that its libraries need to be
# linked statically.
if [ "$architecture" = x86_64 ]; then
	wanted+=(libdw-dev libtraceevent-dev zlib1g-dev liblzma-dev libbz2-dev libzstd-dev pkgconf)
fi
# Of another architecture, clang compiles the kernel; programs need a linker and a C library.
if [ "$architecture" = arm64 ]; then
	wanted+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
fi

missing=()
for package in "${wanted[@]}"; do
	# `${Status}` is dpkg's own field, not the shell's.
	# shellcheck disable=SC2016
	status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
	[ "$status" = "install ok installed" ] || missing+=("$package")
done
# A Rust of any origin will do; toolchain.sh judges it. Without one, the distribution's.
if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
	# shellcheck source=scripts/distribution-rust.sh
	. "$here/distribution-rust.sh"
	missing+=("${distribution_rust[@]}")
fi
# And a QEMU of any origin. An older one can be used, but not well: see tests/vm/src/host/qemu.rs.
wanted_qemu=10
qemu=$("$qemu_program" --version 2>/dev/null | sed -nE 's/^QEMU emulator version ([0-9]+)\..*/\1/p')
backport=
if [ "${qemu:-0}" -lt "$wanted_qemu" ]; then
	# Of Debian's own, that of 13 is recent enough; 12 has one in its backports.
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	if [ "$codename" = bookworm ] && [ "$(id -u)" -eq 0 ] &&
		[ -z "$(find "$WEIR_CACHE/apt/no-qemu" -mmin -1440 2>/dev/null)" ]; then
		backport=$codename-backports
	elif [ -z "$qemu" ]; then
		missing+=("$qemu_package")
	fi
fi

[ ${#missing[@]} -gt 0 ] || [ -n "$backport" ] || exit 0
command -v apt-get >/dev/null ||
	die "these packages are missing and there is no apt-get: ${missing[*]}; install them by hand"
[ "$(id -u)" -eq 0 ] ||
	die "these packages are missing: ${missing[*]}; as root: apt-get install --no-install-recommends ${missing[*]}"

mkdir -p "$WEIR_CACHE/log"
export DEBIAN_FRONTEND=noninteractive
install_missing() {
	apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"
}
install_backport() {
	suite_setup "$backport ${backport%-backports}" &&
		apt-get install -y --no-install-recommends -t "$backport" "$qemu_package"
}
if [ ${#missing[@]} -gt 0 ]; then
	say "installing ${#missing[@]} Debian packages: ${missing[*]}"
	with_progress "packages" "$WEIR_CACHE/log/packages.log" install_missing
fi
if [ -n "$backport" ]; then
	say "installing a newer QEMU from $backport"
	if ! with_progress "QEMU" "$WEIR_CACHE/log/qemu.log" install_backport; then
		say "going on with the older QEMU; the next attempt is tomorrow"
		: >"$WEIR_CACHE/apt/no-qemu"
		missing=("$qemu_package")
		[ -n "$qemu" ] || with_progress "packages" "$WEIR_CACHE/log/packages.log" install_missing
	fi
fi
