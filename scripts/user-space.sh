#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the user side for ARCH= statically, for the initramfs of a virtual machine and for machines without our
# libraries, and prints the folder with the programs. The one that starts such a machine is for this one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")
# shellcheck source=scripts/cache.sh
. "$here/cache.sh"
# shellcheck source=scripts/cargo-target.sh
. "$here/cargo-target.sh"
# shellcheck source=scripts/architecture.sh
. "$here/architecture.sh"

to="$top/build/${architecture_prefix}bin"
mkdir -p "$WEIR_CACHE/log" "$WEIR_CACHE/lock" "$to"
log="$WEIR_CACHE/log/${architecture_prefix}user-space.log"

# The flags are for the programs only: naming the target keeps them from build scripts and macros.
static="-C target-feature=+crt-static"
flags=$static
if [ "$rust_target" != "$host_target" ]; then
	std=$("$here/rust-std.sh" "$rust_target")
	flags+=" -C linker=$c_compiler${std:+ --sysroot $std}"
fi

build() {
	cd "$top/tools" &&
		RUSTFLAGS=$flags cargo build --locked --release --target "$rust_target" \
			-p weir -p weir-bench -p weir-selftests -p weir-vm || return
	[ "$rust_target" = "$host_target" ] ||
		RUSTFLAGS=$static cargo build --locked --release --target "$host_target" -p weir-vm --bin weir-vm
}

(
	flock 9
	# It is quiet where little is to do, so that it can be called every time.
	if [ ! -e "$CARGO_TARGET_DIR/$rust_target/release/weir-vm" ]; then
		say "building the user side${ARCH:+ for $ARCH} (once; a minute or two)"
	fi
	if ! (build) >"$log" 2>&1 </dev/null 9>&-; then
		tail -n 40 "$log" >&2
		die "the user side does not build; the whole log is $log"
	fi
	# The samples for user space, too.
	"$c_compiler" -static -O2 -Wall -Wextra -I "$top/rust/include/uapi" -I "$top/samples/c" \
		"$top/samples/user/print_switches.c" -o "$to/print_switches.new"
	mv "$to/print_switches.new" "$to/print_switches"
	# The programs that a tracer of the benchmarks has the kernel run. Not every clang knows that machine.
	rm -f "$to/ring.bpf.o"
	if clang-19 -print-targets | grep -qw bpf; then
		clang-19 -target bpf -O2 -Wall -Wextra -I "/usr/include/$(uname -m)-linux-gnu" \
			-c "$top/tests/bench/bpf/ring.bpf.c" -o "$to/ring.bpf.o.new"
		mv "$to/ring.bpf.o.new" "$to/ring.bpf.o"
	fi
	find "$CARGO_TARGET_DIR/$rust_target/release" -maxdepth 1 -type f -executable ! -name weir-vm \
		-exec cp -u -t "$to" {} +
	cp -u -t "$to" "$CARGO_TARGET_DIR/$host_target/release/weir-vm"
) 9>"$WEIR_CACHE/lock/user-space"
printf '%s\n' "$to"
