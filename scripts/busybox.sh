#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the static busybox for the guest of ARCH=: this machine's own, or Debian's for the other architecture,
# unpacked into the cache.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/suite.sh
. "$here/suite.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

fetch() {
	suite_setup "$WEIR_SUITES" "$architecture" &&
		cd "$1" &&
		say "fetching busybox-static for $architecture" &&
		suite_download busybox-static &&
		dpkg-deb -x busybox-static_*.deb . &&
		rm busybox-static_*.deb &&
		find . -type f -name busybox -exec mv {} busybox \; &&
		[ -x busybox ]
}

if [ "$architecture" = x86_64 ]; then
	command -v busybox || die "busybox is missing: run scripts/packages.sh"
	exit 0
fi
folder=$(cache_entry "busybox-$architecture" fetch)
printf '%s\n' "$folder/busybox"
