# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: the names of the distribution's own Rust, recent enough for the kernel (1.85), into
# `distribution_rust`. Debian 13 has it as `rustc`; Debian 12 has an old `rustc`, and beside it the
# newer one that its browsers are built with, `rustc-web`.
if [ "$(. /etc/os-release && printf '%s' "${VERSION_ID:-0}" | cut -d. -f1)" = 12 ]; then
	# shellcheck disable=SC2034
	distribution_rust=(rustc-web cargo-web rust-web-src rustfmt-web rust-web-clippy)
else
	# shellcheck disable=SC2034
	distribution_rust=(rustc cargo rust-src rustfmt rust-clippy)
fi
