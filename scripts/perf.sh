#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints a static perf of the kernel that is tested, and builds it first where the cache lacks it: what counts
# beside weir in the virtual machine. It has no scripting languages, no BPF and no vendors' event tables.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

[ "$architecture" = x86_64 ] || die "perf is built for x86_64 only: its libraries are this machine's"

# What could be found by chance on one machine and not on another is left out.
options=(
	WERROR=0 NO_JEVENTS=1 NO_SHELLCHECK=1 NO_RUST=1
	NO_LIBPYTHON=1 NO_LIBBPF=1 BUILD_BPF_SKEL=0 NO_LIBLLVM=1 NO_CAPSTONE=1 NO_BABELTRACE2=1 NO_DEMANGLE=1
	NO_SLANG=1 NO_LIBNUMA=1 NO_LIBPFM4=1 NO_LIBDEBUGINFOD=1 NO_SDT=1 NO_JVMTI=1
	NO_PERF_READ_VDSO32=1 NO_PERF_READ_VDSOX32=1
)

# can_link_libelf: whether perf can have the symbols of programs. The static libelf of Debian 13 refers to functions of
# elfutils that no package has (eu_search_tree_init).
can_link_libelf() {
	printf '#include <libelf.h>\nint main(void) { return !elf_begin(0, ELF_C_READ, 0); }\n' |
		"$c_compiler" -x c - -x none -static -o /dev/null -lelf 2>/dev/null
}
features=(LIBELF LIBDW)
if ! can_link_libelf; then
	options+=(NO_LIBELF=1)
	features=()
fi

# build FOLDER: leaves nothing but the program there.
build() {
	local dir="$1" out="$1/build"
	say "building perf (once; about a minute on two processors)"
	[ ${#features[@]} -gt 0 ] || say "it will not know the symbols of programs: libelf cannot be linked statically here"
	# Not as an argument: its makefiles add to LDFLAGS. Nor with the flags of a make that calls this.
	mkdir "$out" &&
		LDFLAGS=-static with_progress perf "$log" env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u ARCH \
			make -C "$source/tools/perf" -f Makefile.perf O="$out" CC="$c_compiler" "${options[@]}" \
			-j"$(nproc)" "$out/perf" || return
	# It does without what it does not find.
	for feature in LIBTRACEEVENT "${features[@]}"; do
		if ! grep -qx "CONFIG_$feature=y" "$out/.config-detected"; then
			say "perf was built without $feature: run scripts/packages.sh; the whole log is $log"
			return 1
		fi
	done
	strip -o "$dir/perf" "$out/perf" &&
		"$dir/perf" version >&2 &&
		rm -r "$out"
}

source=$("$here/kernel-source.sh")
# shellcheck disable=SC2016
key=$({
	printf '%s\n' "$source" "${options[@]}"
	"$c_compiler" --version | head -n 1
	dpkg-query -W -f='${Package} ${Version}\n' libc6-dev libelf-dev libdw-dev libtraceevent-dev 2>/dev/null || true
} | digest)

mkdir -p "$WEIR_CACHE/log"
log="$WEIR_CACHE/log/perf.log"
folder=$(cache_entry "perf-$key" build)
printf '%s\n' "$folder/perf"
