# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: a private apt configuration in the cache that also knows Debian's newest backports. It is
# derived from the machine's own source list, so no host is named here and the machine's own
# configuration stays as it is.

# The suites that carry the kernel sources and the Rust sources of recent versions.
WEIR_SUITES="trixie-backports trixie"

# suite_setup: prepares it; once a day the lists are fetched anew.
suite_setup() {
	local root="$WEIR_CACHE/apt" uri keyring
	export APT_CONFIG="$root/apt.conf"
	if [ -n "$(find "$root/fresh" -mmin -1440 2>/dev/null)" ]; then
		return 0
	fi
	uri=$(suite_uri)
	[ -n "$uri" ] || die "found no Debian mirror in /etc/apt: set WEIR_KERNEL_SRC= to a kernel source tree or tarball"
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$root/etc/sources.list.d" "$root/etc/preferences.d" "$root/state/lists/partial" "$root/cache/archives/partial"
	# Proxies and the like of the machine keep counting.
	rm -rf "$root/etc/apt.conf.d"
	cp -r /etc/apt/apt.conf.d "$root/etc/" 2>/dev/null || true
	cat >"$root/etc/sources.list.d/weir.sources" <<-END
		Types: deb
		URIs: $uri
		Suites: $WEIR_SUITES
		Components: main
		Signed-By: $keyring
	END
	cat >"$APT_CONFIG" <<-END
		Dir::Etc "$root/etc";
		Dir::State "$root/state";
		Dir::Cache "$root/cache";
		APT::Sandbox::User "root";
	END
	apt-get update >&2 || die "cannot fetch the lists of $WEIR_SUITES from the machine's own mirror"
	: >"$root/fresh"
}

# suite_uri: the first mirror of the machine that serves Debian itself (not its security updates).
suite_uri() {
	{
		# One-line style, then the newer one.
		sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' /etc/apt/sources.list 2>/dev/null || true
		sed -nE 's/^deb +(\[[^]]*\] +)?([^ ]+) .*/\2/p' /etc/apt/sources.list.d/*.list 2>/dev/null || true
		sed -nE 's/^URIs: *([^ ]+).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null || true
	} | grep -v -e security | grep -m 1 -e debian
}

# suite_download PACKAGE[=VERSION]: into the present folder; apt checks signature and hash.
suite_download() {
	apt-get download "$1" >&2
}
