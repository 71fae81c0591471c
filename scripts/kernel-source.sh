#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the folder of the kernel source, and fetches it first where the cache lacks it. It is
# Debian's source package of the version below; where the suite has no such package any more, the
# newest it has. `WEIR_KERNEL_SRC=` takes a tree or a tarball of the user's own instead.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/suite.sh
. "$here/suite.sh"

readonly preferred=7.3
readonly oldest=7.2

fetch() {
	local dir="$1" package="$2"
	set -o pipefail
	cd "$dir" &&
		say "fetching $package" &&
		suite_download "$package" &&
		say "unpacking $package" &&
		dpkg-deb --fsys-tarfile "${package%%=*}"_*.deb | tar -x -O "./usr/src/${package%%=*}.tar.xz" |
		tar -x -J --strip-components=1 &&
		rm "${package%%=*}"_*.deb &&
		[ -e rust/Makefile ]
}

unpack() {
	say "unpacking $2"
	tar -x -f "$2" -C "$1" --strip-components=1 || return 1
	[ -e "$1/rust/Makefile" ] || die "WEIR_KERNEL_SRC=$2 holds no kernel with Rust support"
}

if [ -n "${WEIR_KERNEL_SRC:-}" ]; then
	if [ -d "$WEIR_KERNEL_SRC" ]; then
		[ -e "$WEIR_KERNEL_SRC/rust/Makefile" ] ||
			die "WEIR_KERNEL_SRC=$WEIR_KERNEL_SRC holds no kernel with Rust support (rust/Makefile is missing)"
		(cd "$WEIR_KERNEL_SRC" && pwd)
	else
		[ -f "$WEIR_KERNEL_SRC" ] || die "WEIR_KERNEL_SRC=$WEIR_KERNEL_SRC does not exist"
		cache_entry "source-$(digest <"$WEIR_KERNEL_SRC")" unpack "$(realpath "$WEIR_KERNEL_SRC")"
	fi
	exit 0
fi

# A source that was fetched once stays the one in use: a newer one in the suite must not rebuild
# everything behind the user's back. Removing the entry takes the newest.
for entry in "$WEIR_CACHE"/source-debian-*/.complete; do
	[ -e "$entry" ] || continue
	dirname "$entry"
	exit 0
done

suite_setup "$WEIR_SUITES" || die "set WEIR_KERNEL_SRC= to a kernel source tree or tarball"
package=linux-source-$preferred
if ! apt-cache show "$package" >/dev/null 2>&1; then
	package=$(apt-cache search --names-only '^linux-source-[0-9]+\.[0-9]+$' | cut -d' ' -f1 | sort -V | tail -n 1)
	first=$(printf '%s\n' "linux-source-$oldest" "$package" | sort -V | head -n 1)
	if [ -z "$package" ] || [ "$first" != "linux-source-$oldest" ]; then
		die "the Debian suites have no kernel source of $oldest or later: set WEIR_KERNEL_SRC="
	fi
	say "linux-source-$preferred is not there any more: taking $package"
fi
version=$(apt-cache madison "$package" | awk -F'|' '{gsub(/ /, "", $2); print $2; exit}')
cache_entry "source-debian-$version" fetch "$package=$version"
