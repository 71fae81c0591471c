#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Writes rust-project.json, from which rust-analyzer knows the kernel's crates and ours. The kernel's
# own generator finds no crate that depends on another of the same module, so ours are added to what it
# says of the kernel.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"

kdir=$("$here/kernel.sh" release)
out=$("$here/module.sh" release)
mapfile -t toolchain < <("$here/toolchain.sh")
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
# The generator writes into the folder of the module that it is asked for; an empty one will do.
printf 'obj-m :=\n' >"$project/Kbuild"
make -C "$kdir" M="$project" "${toolchain[@]}" rust-analyzer >&2
python3 "$here/rust_analyzer.py" "$project/rust-project.json" "$top" "$out" >"$top/rust-project.json"
say "rust-project.json is written"
