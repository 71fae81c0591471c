#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The cache never gives out an entry that was not completed: not after a failure, a kill, or a full
# disk. Prints KTAP.
# shellcheck disable=SC2317 # The builders are called by cache_entry().
set -u
# shellcheck source=scripts/cache.sh
. "$(cd "$(dirname "$0")/../../scripts" && pwd)/cache.sh"

root=$(mktemp -d)
trap 'mountpoint -q "$root/small" && umount "$root/small"; rm -rf "$root"' EXIT
WEIR_CACHE="$root/cache"

number=0
failed=0
# result NAME STATUS: prints one line of KTAP.
result() {
	number=$((number + 1))
	if [ "$2" -eq 0 ]; then
		printf 'ok %d %s\n' "$number" "$1"
	else
		printf 'not ok %d %s\n' "$number" "$1"
		failed=1
	fi
}

# Builders. Each leaves a line in `calls`.
good() {
	printf 'good\n' >>"$root/calls"
	sleep 0.3
	printf 'content\n' >"$1/file"
}
bad() {
	printf 'bad\n' >>"$root/calls"
	printf 'half\n' >"$1/file"
	return 1
}
endless() {
	printf 'half\n' >"$1/file"
	printf 'endless\n' >>"$root/calls"
	sleep 1000
}
large() {
	head -c 4M /dev/zero >"$1/file"
}
calls() {
	grep -c "$1" "$root/calls"
}

printf 'KTAP version 1\n1..6\n'

dir=$(cache_entry once good) && again=$(cache_entry once good)
[ "$dir" = "$again" ] && [ "$(cat "$dir/file")" = content ] && [ "$(calls good)" -eq 1 ]
result "an entry is made once" $?

! cache_entry failing bad >"$root/out" 2>&1 &&
	dir=$(cache_entry failing good) && [ "$(cat "$dir/file")" = content ]
result "an entry that failed is made again" $?

setsid bash -c ". '$(dirname "${BASH_SOURCE[0]}")/../../scripts/cache.sh'; WEIR_CACHE='$WEIR_CACHE'; root='$root'
	$(declare -f endless); cache_entry killed endless" >/dev/null 2>&1 &
group=$!
until grep -q endless "$root/calls"; do sleep 0.1; done
kill -KILL -- "-$group"
wait "$group" 2>/dev/null
[ "$(cat "$WEIR_CACHE/killed/file")" = half ] && dir=$(cache_entry killed good) && [ "$(cat "$dir/file")" = content ]
result "an entry whose making was killed is made again" $?

before=$(calls good)
cache_entry together good >"$root/first" &
cache_entry together good >"$root/second"
wait $!
cmp -s "$root/first" "$root/second" && [ "$(calls good)" -eq $((before + 1)) ]
result "two that want the same entry make it once" $?

mkdir -p "$root/small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=1M none "$root/small" 2>/dev/null; then
	WEIR_CACHE="$root/small"
	! cache_entry large large >"$root/out" 2>&1 && grep -q 'MiB are free' "$root/out" &&
		[ ! -e "$root/small/large/.complete" ]
	result "a full disk is told and leaves nothing" $?
	WEIR_CACHE="$root/cache"
else
	number=$((number + 1))
	printf 'ok %d a full disk is told and leaves nothing # SKIP a small file system cannot be mounted\n' "$number"
fi

touch "$root/file"
! (WEIR_CACHE="$root/file/cache" cache_entry any good) >"$root/out" 2>&1 &&
	grep -q 'XDG_CACHE_HOME' "$root/out"
result "a cache that cannot be written names the way out" $?

exit $failed
