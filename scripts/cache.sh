# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced by the set-up scripts: the cache outside the tree, and how an entry becomes trusted.
#
# An entry is a folder. It is made under its final name (a kernel build keeps absolute paths, so it
# cannot be moved), and it counts only once the file `.complete` stands in it. That file is written
# last, after a sync of the file system, so a kill, a full disk or a power cut in the middle leaves
# a folder without it, which the next run throws away. A lock per entry keeps two runs apart.

WEIR_CACHE="${WEIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weir}"

# say TEXT...: tells the user what takes long. Standard output is for results.
say() {
	printf 'weir: %s\n' "$*" >&2
}

# die TEXT...: says what is wrong and what to do about it, and stops.
die() {
	printf 'weir: error: %s\n' "$*" >&2
	exit 1
}

# digest: a short name for whatever is on standard input.
digest() {
	sha256sum | cut -c1-12
}

# cache_entry NAME BUILDER [ARG...]: prints the folder of entry NAME, and makes it first when it is
# not complete, by calling `BUILDER FOLDER ARG...` on an empty folder. The builder says by its status
# whether it succeeded; `set -e` does not hold in it, so its steps are chained with `&&`.
cache_entry() {
	local name="$1" dir="$WEIR_CACHE/$1"
	shift
	if [ -e "$dir/.complete" ]; then
		printf '%s\n' "$dir"
		return 0
	fi
	mkdir -p "$WEIR_CACHE/lock" || die "cannot create $WEIR_CACHE (set XDG_CACHE_HOME to a writable place)"
	(
		flock 9
		# Another run may have finished it while this one waited.
		[ -e "$dir/.complete" ] && exit 0
		rm -rf "$dir"
		mkdir -p "$dir"
		if ! ("$1" "$dir" "${@:2}") 9>&- >&2; then
			say "$name was not completed; $(disk_hint "$dir")the next run starts it again"
			exit 1
		fi
		sync -f "$dir" && : >"$dir/.complete.new" && mv "$dir/.complete.new" "$dir/.complete"
	) 9>"$WEIR_CACHE/lock/$(printf '%s' "$name" | tr / _)" || return 1
	printf '%s\n' "$dir"
}

# disk_hint FOLDER: words for the case that the disk is full, nothing otherwise.
disk_hint() {
	local free
	free=$(df --output=avail -k "$1" | tail -n 1)
	if [ "$free" -lt 2097152 ]; then
		printf 'only %s MiB are free there; ' "$((free / 1024))"
	fi
}

# with_progress TITLE LOG COMMAND...: runs COMMAND with its output in LOG, and says every half
# minute how far it is, in lines of that log. On failure it shows the end of the log.
with_progress() {
	local title="$1" log="$2" pid start=$SECONDS tick=0
	shift 2
	"$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# A kill of this script must not leave the work behind.
	# shellcheck disable=SC2064
	trap "kill $pid 2>/dev/null; exit 143" INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		tick=$((tick + 1))
		if [ $((tick % 30)) -eq 0 ]; then
			say "$title: $((SECONDS - start)) s, $(wc -l <"$log") steps"
		fi
	done
	trap - INT TERM
	if ! wait "$pid"; then
		tail -n 40 "$log" >&2
		say "$title failed; the whole log is $log"
		return 1
	fi
	say "$title: done in $((SECONDS - start)) s"
}
