#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the modules that the documentation shows, outside of this tree, with the commands that stand there; and
# some that must not build. Prints KTAP.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
WEIR=$(cd "$here/../.." && pwd)
KDIR=$("$WEIR/scripts/kernel.sh" release)
export WEIR KDIR
"$WEIR/scripts/module.sh" release >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# extract DOCUMENT: writes each block of code under its caption.
extract() {
	awk -v to="$work" '
		/^\.\. code-block::/ { caption = 1; next }
		caption && /^   :caption: / {
			file = to "/" $2
			folder = file
			sub(/\/[^\/]*$/, "", folder)
			system("mkdir -p " folder)
			caption = 0
			next
		}
		caption { caption = 0 }
		file && /^[^ ]/ { file = "" }
		file { sub(/^   /, ""); print >file }' "$1"
}

number=0
failed=0
# result NAME STATUS: prints a line, and what there is to say of a failure.
result() {
	number=$((number + 1))
	if [ "$2" -eq 0 ]; then
		printf 'ok %d %s\n' "$number" "$1"
	else
		sed 's/^/# /' "$work/log"
		printf 'not ok %d %s\n' "$number" "$1"
		failed=1
	fi
}

# build FOLDER: runs its commands as they stand. A warning is a failure, and so is no module.
build() {
	(cd "$work/$1" && sh -eu ./build) >"$work/log" 2>&1 &&
		! grep -qiE '^warning|: warning:' "$work/log" &&
		ls "$work/$1"/*.ko >/dev/null 2>>"$work/log"
}

# refuses NAME FIELD TEXT: a handler with such a field must not build, for this reason.
refuses() {
	local name="$1" field="$2" text="$3" status=0
	rm -rf "${work:?}/refused"
	mkdir "$work/refused"
	cp "$work/rust/Kbuild" "$work/rust/build" "$work/refused/"
	{
		sed '/^impl Drop/,$d' "$work/rust/example.rs"
		printf 'weir::nmi_safe! { struct State { field: %s } }\n' "$field"
	} >"$work/refused/example.rs"
	if build refused; then
		printf 'it was built\n' >>"$work/log"
		status=1
	else
		grep -qF "$text" "$work/log" || status=1
	fi
	result "$name" "$status"
}

extract "$WEIR/Documentation/kernel-api.rst"
extract "$WEIR/Documentation/counters.rst"
echo 'KTAP version 1'
echo '1..6'
for folder in c rust ports; do
	status=0
	build "$folder" || status=1
	result "$folder" "$status"
done
refuses handler_without_lock 'kernel::sync::Arc<kernel::sync::Mutex<u32>>' 'Lock<u32, MutexBackend>: NmiSafe'
refuses handler_without_cell 'KBox<core::cell::Cell<u32>>' 'Cell<u32>: NmiSafe'
refuses handler_without_file 'kernel::sync::aref::ARef<kernel::fs::File>' 'ARef<kernel::fs::File>: NmiSafe'
exit $failed
