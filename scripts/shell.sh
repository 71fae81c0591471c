#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A shell in a virtual machine with the module loaded and the weir command in it. Leaving the shell ends
# the machine. WEIR_KERNEL=debug takes the kernel that checks itself.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"
# shellcheck source=scripts/selftests.sh
. "$here/selftests.sh"

vm_setup "${WEIR_KERNEL:-release}" || exit
files=(--file "$vm_bin/weir:/bin/weir")
for program in "${selftests[@]}"; do
	files+=(--file "$vm_bin/$program:/bin/$program")
done
exec "$vm_bin/weir-vm" shell "${vm_options[@]}" --modules "$vm_modules" "${files[@]}"
