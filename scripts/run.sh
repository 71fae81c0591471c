#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The main job, in a virtual machine: records every task that exists and samples of every CPU while a
# small workload runs, and prints what came out. The raw capture is left in out/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/vm-options.sh
. "$here/vm-options.sh"

vm_setup release || exit
mkdir -p "$top/out"

workload='sha256sum /bin/busybox /weir/weir.ko >/dev/null; find /sys >/dev/null; dd if=/dev/zero of=/dev/null bs=64k count=2000 2>/dev/null'
"$vm_bin/weir-vm" run "${vm_options[@]}" --modules "${vm_modules%%,*}" --no-leaks --passthrough \
	--program "record=$vm_bin/weir record -e cpu-clock -F 997 -o /tmp/weir.data -- /bin/sh -c '$workload'" \
	--collect "/tmp/weir.data:$top/out/weir.data" \
	--collect "/tmp/weir.data.notes.json:$top/out/weir.data.notes.json"
say "the raw capture is out/weir.data; 'weir report out/weir.data' prints this again"
