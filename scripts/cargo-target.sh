# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced after cache.sh: cargo's results go to the cache, so that another clone need not compile the
# same crates again. Cargo knows by itself what is out of date or half done there. Programs of two clones
# have the same names in it, so who wants one takes a copy while nobody else builds: see
# user-space.sh.
# Who works in several clones at once gives each a CARGO_TARGET_DIR of its own.
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$WEIR_CACHE/cargo-$(rustc -V | digest)}"
export CARGO_TARGET_DIR

# It takes crates of this workspace for the same in every clone, and looks at the time of their files only: what
# another clone has built from newer files would be taken for what is here. So those are built anew then.
mkdir -p "$CARGO_TARGET_DIR"
# Who sources this knows the top of the tree.
# shellcheck disable=SC2154
if [ "$(cat "$CARGO_TARGET_DIR/clone" 2>/dev/null)" != "$top" ]; then
	# Programs for a target that is named are one folder deeper.
	rm -rf "$CARGO_TARGET_DIR"*/{*,*/*}/.fingerprint/{weir,libweir}*
	printf '%s' "$top" >"$CARGO_TARGET_DIR/clone"
fi
