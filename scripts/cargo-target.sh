# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced after cache.sh: cargo's results go to the cache, so that another clone need not compile the
# same crates again. Cargo knows by itself what is out of date or half done there. Programs of two clones
# have the same names in it, so who wants one takes a copy while nobody else builds: see
# user-space.sh.
CARGO_TARGET_DIR="$WEIR_CACHE/cargo-$(rustc -V | digest)"
export CARGO_TARGET_DIR
