# shellcheck shell=bash
# Roots of other Debian systems, made with mmdebstrap, and how they reach the network. To be sourced.

# Of how apt reaches the mirror here, what the mirror needs. The last two: whether it is a
# snapshot, whose signatures have expired.
network_apt_conf() {
	apt-config dump --format '%f "%v";%n' Acquire::http Acquire::https \
		Acquire::Check-Valid-Until Acquire::Check-Date | sed '/""/d'
}

# Tell root $1 how this machine reaches the network, which is not its user's to find out.
lay_out_network() {
	cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
	[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$1/etc/"
	cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$1/etc/ssl/certs/ca-certificates.crt"
	network_apt_conf >"$1/etc/apt/apt.conf.d/99network"
}

# The variables that say how the network is reached.
network_environment() {
	env | grep -iE '^((http|https|no|all)_proxy|PIP_INDEX_URL|PIP_DEFAULT_TIMEOUT)=' || true
	echo SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
	echo PIP_CERT=/etc/ssl/certs/ca-certificates.crt
}
