#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# kernel.sh NAME: prints the build folder of the kernel configuration NAME (release, debug or um) for
# ARCH=, and builds it first where the cache lacks it. Such a folder is a KDIR= for modules.
#
# The entry is keyed by all it is made from: the source, the fragments, the compilers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

configuration=${1:?usage: kernel.sh release|debug|um}
case "$configuration" in
release | debug) arch=$architecture fragments=("$arch.config" "$configuration.config") ;;
um)
	[ "$architecture" = x86_64 ] || die "user-mode Linux runs on x86_64 only: leave out ARCH=$architecture"
	arch=um fragments=(um.config)
	;;
*) die "there is no kernel configuration '$configuration': release, debug or um" ;;
esac
fragments=("${fragments[@]/#/$here/kernel/}")

# check_config CONFIG FRAGMENT...: every line of the fragments must have survived olddefconfig.
check_config() {
	local config="$1" line symbol bad=0
	shift
	while IFS= read -r line; do
		case "$line" in
		CONFIG_*=*) grep -qxF "$line" "$config" && continue ;;
		'# CONFIG_'*' is not set')
			symbol=${line#\# }
			grep -q "^${symbol%% *}=" "$config" || continue
			;;
		*) continue ;;
		esac
		say "$configuration: '$line' did not survive olddefconfig: $(grep -F "${line%%=*}" "$config" | head -n 1)"
		bad=1
	done < <(cat "$@")
	return $bad
}

# configure FOLDER: tinyconfig, the fragments over it, and defaults for what they leave open.
configure() {
	"${kmake[@]}" tinyconfig &&
		(cd "$source" && scripts/kconfig/merge_config.sh -m -O "$1" "$1/.config" "${fragments[@]}") &&
		"${kmake[@]}" olddefconfig
}

build() {
	local dir="$1"
	local kmake=(make -C "$source" O="$dir" ARCH="$arch" "${toolchain[@]}")
	say "building the $configuration kernel for $arch (once; about ten minutes on two processors)"
	if ! configure "$dir" >"$log" 2>&1; then
		tail -n 40 "$log" >&2
		return 1
	fi
	check_config "$dir/.config" "${fragments[@]}" &&
		with_progress "$configuration kernel" "$log" "${kmake[@]}" -j"$(nproc)" all
}

source=$("$here/kernel-source.sh")
mapfile -t toolchain < <("$here/toolchain.sh")
[ ${#toolchain[@]} -gt 0 ] || die "no toolchain"
key=$({
	printf '%s\n' "$source" "${toolchain[@]}"
	for variable in "${toolchain[@]}"; do
		case "$variable" in
		RUSTC=*) "${variable#RUSTC=}" -vV ;;
		LLVM=*) "clang${variable#LLVM=}" --version | head -n 1 ;;
		esac
	done
	cat "${fragments[@]}"
} | digest)

mkdir -p "$WEIR_CACHE/log"
name="kernel-$architecture_prefix$configuration"
log="$WEIR_CACHE/log/$name.log"
cache_entry "$name-$key" build
