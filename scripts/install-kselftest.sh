#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# install-kselftest.sh FOLDER: puts the tests into a folder that runs on any machine of this kind with
# weir.ko loaded, without this tree: static programs that print KTAP, and a script that runs them all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"

to=${1:?usage: install-kselftest.sh FOLDER}
bin=$("$here/user-space.sh")
mkdir -p "$to"
# The list is the one that the virtual machines use.
# shellcheck source=scripts/selftests.sh
. "$here/selftests.sh"
for program in "${selftests[@]}"; do
	cp "$bin/$program" "$to/"
done
# What one of them tests.
cp "$bin/weir" "$to/"
printf '%s\n' "${selftests[@]}" >"$to/kselftest-list.txt"
cp "$here/run_kselftest.sh" "$to/"
say "the tests are in $to; run_kselftest.sh there runs them, as root"
