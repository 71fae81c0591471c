#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the user side statically, for the initramfs of a virtual machine and for machines without our
# libraries, and prints the folder with the programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/cargo-target.sh
. "$here/cargo-target.sh"

target=x86_64-unknown-linux-gnu
to="$top/build/bin"
mkdir -p "$WEIR_CACHE/log" "$WEIR_CACHE/lock" "$to"
log="$WEIR_CACHE/log/user-space.log"

# The flags are for the programs only: naming the target keeps them from build scripts and macros.
build() {
	cd "$top/tools" &&
		RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --release --target "$target" \
			-p weir -p weir-bench -p weir-selftests -p weir-vm
}

(
	flock 9
	# It is quiet where little is to do, so that it can be called every time.
	if [ ! -e "$CARGO_TARGET_DIR/$target/release/weir-vm" ]; then
		say "building the user side (once; a minute or two)"
	fi
	if ! (build) >"$log" 2>&1 </dev/null 9>&-; then
		tail -n 40 "$log" >&2
		die "the user side does not build; the whole log is $log"
	fi
	# The samples for user space, too.
	cc -static -O2 -Wall -Wextra -I "$top/rust/include/uapi" -I "$top/samples/c" \
		"$top/samples/user/print_switches.c" -o "$to/print_switches.new"
	mv "$to/print_switches.new" "$to/print_switches"
	# The programs that a tracer of the benchmarks has the kernel run. Not every clang knows that machine.
	rm -f "$to/ring.bpf.o"
	if clang-19 -print-targets | grep -qw bpf; then
		clang-19 -target bpf -O2 -Wall -Wextra -I "/usr/include/$(uname -m)-linux-gnu" \
			-c "$top/tests/bench/bpf/ring.bpf.c" -o "$to/ring.bpf.o.new"
		mv "$to/ring.bpf.o.new" "$to/ring.bpf.o"
	fi
	find "$CARGO_TARGET_DIR/$target/release" -maxdepth 1 -type f -executable -exec cp -u -t "$to" {} +
) 9>"$WEIR_CACHE/lock/user-space"
printf '%s\n' "$to"
