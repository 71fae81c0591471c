#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs the Debian packages that building and testing need, where one is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"

# What each is for: the kernel build; LLVM (clang builds the kernel, libclang is bindgen's); the
# virtual machine; the set-up itself.
wanted=(
	make gcc libc6-dev flex bison bc libelf-dev libssl-dev cpio kmod dwarves xz-utils zstd rsync patch perl python3
	clang-19 lld-19 llvm-19 libclang-19-dev
	qemu-system-x86 busybox-static
	ca-certificates git util-linux shellcheck
)

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
[ ${#missing[@]} -eq 0 ] && exit 0

command -v apt-get >/dev/null ||
	die "these packages are missing and there is no apt-get: ${missing[*]}; install them by hand"
[ "$(id -u)" -eq 0 ] ||
	die "these packages are missing: ${missing[*]}; as root: apt-get install --no-install-recommends ${missing[*]}"

mkdir -p "$WEIR_CACHE/log"
say "installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install_missing() {
	apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"
}
with_progress "packages" "$WEIR_CACHE/log/packages.log" install_missing
