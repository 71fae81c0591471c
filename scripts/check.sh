#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# What can be said of the source without building a kernel, the cheapest first. Every check runs, so that
# one run tells everything; the status is that of the worst.
# shellcheck disable=SC2317 # The functions are called through check().
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/cargo-target.sh
. "$here/cargo-target.sh"
cd "$top"

failed=0
# check TITLE COMMAND...: runs it and shows what it said only if it fails.
check() {
	local title="$1" output
	shift
	if output=$("$@" 2>&1); then
		printf 'ok %s\n' "$title"
	else
		printf 'not ok %s\n%s\n' "$title" "$output"
		failed=1
	fi
}

# Files that git knows or would, by a pattern of their names.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
		[ ! -e "$file" ] || printf '%s\n' "$file"
	done
}

spdx() {
	local missing
	missing=$(files '*.rs' '*.c' '*.h' '*.sh' '*.py' '*.toml' '*.config' '*.rst' '*.md' Makefile Kbuild '*/Kbuild' .ci/run |
		while IFS= read -r file; do
			# A script has its interpreter before it.
			head -n 2 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' || printf '%s\n' "$file"
		done)
	[ -z "$missing" ] || { printf 'no SPDX line: %s\n' "$missing"; return 1; }
}

# unsafe stands in rust/abs, in the C interface and on its other side (rust/api, and the sample that has a probe), and
# where weir_core touches page memory; of the user side, in the file of a crate that is listed here.
unsafe() {
	local found
	found=$(files '*.rs' | grep -vxE "rust/abs/.*|rust/capi(/.*)?\.rs|rust/api/[a-z_]*\.rs|samples/rust/(tracepoint|wakeups)\.rs|rust/core/page_memory\.rs|$(cat <<-'END' | paste -sd'|'
		tools/libweir/src/ioctl\.rs
		tools/libweir/src/held\.rs
		tools/libweir/src/mapped\.rs
		tools/libweir/src/perf\.rs
		tests/engine/src/(memory|native)\.rs
		tests/selftests/src/syscall\.rs
		tests/selftests/src/mapping\.rs
		tests/vm/src/session\.rs
	END
	)" | xargs grep -nE '\bunsafe\b' | grep -vE '^[^:]*:[0-9]*: *//' || true)
	[ -z "$found" ] || { printf 'unsafe where it must not be:\n%s\n' "$found"; return 1; }
}

format_rust() {
	rustfmt --check --edition 2021 rust/weir_main.rs rust/core/weir_core.rs samples/rust/{family,wakeups,writers}.rs && cd tools && cargo fmt --check --all
}

checkpatch() {
	local source ignore=EXPORT_SYMBOL,BIT_MACRO
	source=$("$here/kernel-source.sh") || return 1
	run() {
		xargs perl "$source/scripts/checkpatch.pl" --no-tree --no-summary --terse --strict --file \
			--max-line-length=100 --ignore "$1"
	}
	# The functions that are exported are in Rust, and a header for user space has no BIT().
	files 'rust/*.c' 'rust/*.h' 'tests/module/*.c' 'tests/module/*.h' 'tests/bench/module/*.c' tests/bench/module/bench.h 'samples/*.c' | run "$ignore" || return 1
	# BPF programs have no headers of the kernel, where the macros for attributes are.
	files 'tests/bench/*.bpf.c' | run "$ignore,PREFER_DEFINED_ATTRIBUTE_MACRO" || return 1
	# These crash the kernel, to see that it is noticed; and a macro ends one's file.
	files 'tests/vm/*.c' | run "$ignore,AVOID_BUG,LINE_SPACING"
}

header() {
	local language
	for language in c c++; do
		printf '#include <linux/weir.h>\n' |
			cc -x "$language" -I rust/include/uapi -Wall -Wextra -Wpedantic -Werror -fsyntax-only - || return 1
	done
}

clippy() {
	cd tools && cargo clippy --locked --workspace --all-targets -- -D warnings
}

documentation() {
	cd tools && RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps -p weir_core -p libweir
}

check "licences" spdx
check "unsafe" unsafe
check "rustfmt" format_rust
# shellcheck disable=SC2046
check "shellcheck" shellcheck -x $(files '*.sh' .ci/run)
check "header" header
check "checkpatch" checkpatch
check "clippy" clippy
check "rustdoc" documentation
exit $failed
