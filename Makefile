# SPDX-License-Identifier: GPL-2.0
#
# What people call. Kbuild has how weir.ko is made; scripts/ has how everything else is.

# The kernel to build against: one of the project's own (release, debug, um), which is made where it
# is missing, or the build folder of any other with Rust.
KDIR ?= release
# What that kernel runs on: x86_64 or arm64. The other one is emulated.
ARCH ?= x86_64
INSTALL_MOD_PATH ?=
# Where install-kselftest puts the tests.
KSFT_INSTALL_PATH ?= out/kselftest

SETUP := scripts/packages.sh

# What is tested: the host and user-mode Linux once, the rest on both. A processor of arm64 has counters
# under emulation, and that of x86_64 has none.
TESTS_x86_64 := host um release debug verdicts
TESTS_arm64 := release icount
TESTS_VM_x86_64 := vm
TESTS_VM_arm64 := vm icount

.PHONY: all modules modules_install clean help run shell test test-host test-um test-vm test-debug \
	check bench torture doc kselftest install-kselftest rust-analyzer setup tools

all: modules

## modules: build weir.ko against KDIR= (default: the project's own kernel)
modules: setup
	@out=$$(scripts/module.sh "$(KDIR)") && echo "$$out/weir.ko"

## modules_install: install it for that kernel, under INSTALL_MOD_PATH=
modules_install: setup
	@scripts/module.sh "$(KDIR)" modules_install INSTALL_MOD_PATH="$(INSTALL_MOD_PATH)" >/dev/null

## tools: build the weir command for this machine
tools: setup
	@cd tools && cargo build --locked --release -p weir && echo "tools/target/release/weir"

## run: record tasks and samples in a virtual machine and print what came out
run: setup
	@scripts/run.sh

## shell: a virtual machine (of ARCH=) with the module loaded, for people
shell: setup
	@scripts/shell.sh

## test: every test: on the host, in user-mode Linux, and on both kernels in QEMU; ARCH=arm64: on that
test: setup
	@scripts/test.sh $(TESTS_$(ARCH))

## test-host: the tests that need no kernel
test-host: setup
	@scripts/test.sh host

## test-um: the fast loop: the module in user-mode Linux
test-um: setup
	@scripts/test.sh um

## test-vm: the module on the release kernel in QEMU, of ARCH=
test-vm: setup
	@scripts/test.sh $(TESTS_VM_$(ARCH))

## test-debug: the module on the kernel that checks itself, of ARCH=
test-debug: setup
	@scripts/test.sh debug

## check: formats and lints, where unsafe stands, and that the module (of ARCH=) cannot panic
check: setup
	@scripts/check.sh
	@scripts/check-module.sh

## torture: every kind of channel at full speed, on both kernels, for MINUTES= (default 5); SEED= ROUND= SMP= choose
torture: setup
	@scripts/torture.sh "$(or $(MINUTES),5)"

## bench: what a record costs, beside other tracers: in instructions, in ns, in GB/s
bench: setup
	@scripts/bench.sh

## kselftest: run the tests on this machine, where the module is loaded (as root)
kselftest: install-kselftest
	@$(KSFT_INSTALL_PATH)/run_kselftest.sh

## install-kselftest: put them into a folder that runs on any machine (KSFT_INSTALL_PATH=)
install-kselftest: setup
	@scripts/install-kselftest.sh "$(KSFT_INSTALL_PATH)"

## doc: the documentation of the crates, as HTML
doc: setup
	@cd tools && cargo doc --locked --no-deps -p weir_core -p libweir

## rust-analyzer: write rust-project.json, for editors
rust-analyzer: setup
	@scripts/rust-analyzer.sh

## setup: install the packages that are missing; the other targets do it by themselves
setup:
	@$(SETUP)

## clean: remove what was built (not the cache: see Documentation/testing.rst)
clean:
	@rm -rf build out tools/target rust-project.json

## help: this list
help:
	@sed -n 's/^## \([a-z_-]*\): /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS='	' read -r target text; do printf '  %-18s %s\n' "$$target" "$$text"; done
