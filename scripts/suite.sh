# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Sourced: a private apt configuration in the cache that knows further suites of Debian. It is derived
# from the machine's own source list, so no host is named here and the machine's own configuration
# stays as it is.

# The suites that carry the kernel sources and the Rust sources of recent versions.
# shellcheck disable=SC2034
WEIR_SUITES="trixie-backports trixie"

# suite_setup SUITES [ARCHITECTURE]: prepares one; once a day the lists are fetched anew. What apt is then asked
# for comes from these suites alone, and is for ARCHITECTURE, by default this machine's.
suite_setup() {
	local suites="$1" of="${2:-}" root uri keyring
	root="$WEIR_CACHE/apt/${suites%% *}${of:+-$of}"
	export APT_CONFIG="$root/apt.conf"
	if [ -n "$(find "$root/fresh" -mmin -1440 2>/dev/null)" ]; then
		return 0
	fi
	uri=$(suite_uri)
	if [ -z "$uri" ]; then
		say "found no Debian mirror in /etc/apt"
		return 1
	fi
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$root/etc/sources.list.d" "$root/etc/preferences.d" "$root/state/lists/partial" "$root/cache/archives/partial"
	# Proxies and the like of the machine keep counting.
	rm -rf "$root/etc/apt.conf.d"
	cp -r /etc/apt/apt.conf.d "$root/etc/" 2>/dev/null || true
	cat >"$root/etc/sources.list.d/weir.sources" <<-END
		Types: deb
		URIs: $uri
		Suites: $suites
		Components: main
		Signed-By: $keyring
	END
	cat >"$APT_CONFIG" <<-END
		Dir::Etc "$root/etc";
		Dir::State "$root/state";
		Dir::State::status "/var/lib/dpkg/status";
		Dir::Cache "$root/cache";
		APT::Sandbox::User "root";
		${of:+APT::Architecture "$of"; APT::Architectures { "$of"; \};}
	END
	# A suite that is not there is an error, not a warning.
	if ! apt-get update -qq --error-on=any >&2; then
		say "cannot fetch the lists of $suites from the machine's own mirror"
		return 1
	fi
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
	apt-get download -qq "$1" >&2
}
