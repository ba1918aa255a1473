#!/usr/bin/env bash
# Check packaging/ansible, kubernetes, prometheus and grafana with their own tools.
# check-fleet.sh [METRICS [PROGRAM]]: every metric they name must be in METRICS, a /metrics
# text, and PROGRAM, a scx_powerpack, must take their configurations.
set -euo pipefail
. "$(dirname "$0")/common.sh"
. "$TREE/scripts/lib/deps.sh"
. "$TREE/scripts/lib/tools.sh"

PACKAGES=(python3-venv jq shellcheck)
PYTHON_TOOLS=(ansible-core==2.19.14 ansible-lint==26.10.1 kubernetes-validate==1.37.0)
# The oldest Kubernetes that is supported anywhere, and one of today.
KUBERNETES=(1.30 1.37)

fail() {
	echo "failed: $*" >&2
	exit 1
}

# All that the example configuration says, what is commented out there too. Not where metrics
# are served: with the role systemd opens that port.
example() { sed 's/^#: //' config.toml | grep -v '^metrics'; }

# Two TOML files say the same.
same_toml() {
	python3 - "$1" "$2" <<-'PYTHON'
		import sys, tomllib
		one, two = (tomllib.load(open(name, "rb")) for name in sys.argv[1:])
		sys.exit(0 if one == two else f"not the same:\n{one}\n{two}")
	PYTHON
}

# The role's template writes what the example says, given the same as variables.
check_template() {
	example >"$work/example.toml"
	python3 - "$work/example.toml" >"$work/vars.json" <<-'PYTHON'
		import json, sys, tomllib
		example = tomllib.load(open(sys.argv[1], "rb"))
		print(json.dumps({"scx_powerpack_" + key: value for key, value in example.items()}))
	PYTHON
	ansible localhost -i localhost, -c local -m ansible.builtin.template \
		-e "ansible_python_interpreter=$CACHE/fleet-venv/bin/python3" \
		-e @ansible/roles/scx_powerpack/defaults/main.yml -e "@$work/vars.json" \
		-a "src=$PWD/ansible/roles/scx_powerpack/templates/config.toml.j2 dest=$work/role.toml"
	same_toml "$work/example.toml" "$work/role.toml" || fail "the role writes another configuration"
}

check_ansible() {
	# The profile is the strictest that ansible-lint has.
	(cd ansible && ansible-lint --offline --strict --profile production -q .)
	ansible-playbook -i localhost, --syntax-check ansible/site.yml
	check_template
}

# Every file is applied, and what is a configuration there is one.
check_kustomization() {
	python3 - "$work/pods.toml" <<-'PYTHON'
		import pathlib, sys, tomllib, yaml
		here = pathlib.Path("kubernetes")
		listed = set(yaml.safe_load((here / "kustomization.yaml").read_text())["resources"])
		there = {path.name for path in here.glob("*.yaml")} - {"kustomization.yaml"}
		if listed != there:
		    sys.exit(f"kustomization.yaml lists {sorted(listed)}, there are {sorted(there)}")
		text = yaml.safe_load((here / "configmap.yaml").read_text())["data"]["config.toml"]
		tomllib.loads(text)
		pathlib.Path(sys.argv[1]).write_text(text)
	PYTHON
}

# A node as preflight.sh sees it: its capabilities, what /sys has, and what is said of it. SELinux's label is $LABEL.
preflight() {
	local sys=$work/sys said
	rm -rf "$sys"
	mkdir -p "$sys/kernel"
	printf 'CapEff:\t%s\n' "$1" >"$work/status"
	(cd "$sys/kernel" && eval "$2")
	printf '%s\0' "${LABEL:-}" >"$work/label"
	said=$(kubernetes/preflight.sh "$sys" "$work/status" "$work/label" 2>&1) || said="fails: $said"
	case $said in
	"$3"*) ;;
	*) fail "preflight.sh says '$said', not '$3'" ;;
	esac
	[ "$(wc -l <<<"$said")" = 1 ] || fail "preflight.sh says more than a sentence: $said"
}

check_preflight() {
	local caps=000000c000000000 no="fails: scx_powerpack cannot run on this node:"
	local good='mkdir -p sched_ext/root btf; echo cgroup_prep_move >btf/vmlinux; echo disabled >sched_ext/state'
	shellcheck kubernetes/*.sh
	preflight $caps "$good" ""
	LABEL=system_u:system_r:spc_t:s0 preflight $caps "$good" ""
	LABEL=system_u:system_r:container_t:s0:c1,c2 preflight $caps "$good" "$no SELinux forbids bpf(2)"
	preflight 0000008000000000 "$good" "$no the container lacks the capabilities"
	preflight $caps "true" "$no its kernel has no sched_ext"
	preflight $caps "mkdir sched_ext" "$no its kernel has no BTF"
	preflight $caps "$good; : >btf/vmlinux" "scx_powerpack runs on this node, but its kernel has no CONFIG_EXT_GROUP_SCHED"
	good="$good; echo enabled >sched_ext/state"
	preflight $caps "$good; echo powerpack >sched_ext/root/ops" ""
	preflight $caps "$good; echo lavd_1.0 >sched_ext/root/ops" "$no another sched_ext scheduler"
}

# What decides whether the scheduler runs is not asked over the network.
check_liveness() {
	python3 - <<-'PYTHON'
		import sys, yaml
		pod = yaml.safe_load(open("kubernetes/daemonset.yaml"))["spec"]["template"]["spec"]
		for container in pod["containers"]:
		    if set(container["livenessProbe"]) & {"httpGet", "tcpSocket", "grpc"}:
		        sys.exit(f"who reaches the port of {container['name']} can have it killed")
	PYTHON
}

check_kubernetes() {
	local version
	for version in "${KUBERNETES[@]}"; do
		kubernetes-validate --strict --no-warn -k "$version" \
			kubernetes/{namespace,configmap,daemonset}.yaml
	done
	check_kustomization
	check_liveness
	check_preflight
}

check_prometheus() {
	promtool check rules prometheus/alerts.yml
	(cd prometheus && promtool test rules alerts_test.yml)
	# Debian's promtool knows no kubernetes_sd_configs; all else of that job is checked.
	cp prometheus/alerts.yml "$work"
	python3 - >"$work/scrape.yml" <<-'PYTHON'
		import yaml
		config = yaml.safe_load(open("prometheus/scrape.yml"))
		for job in config["scrape_configs"]:
		    job.pop("kubernetes_sd_configs", None)
		print(yaml.safe_dump(config))
	PYTHON
	promtool check config "$work/scrape.yml"
}

# The dashboard's expressions, with its variables replaced.
dashboard_expressions() {
	jq -r '.. | objects | .expr? // empty' grafana/scx_powerpack.json |
		sed 's/\$__rate_interval\|\$__interval\|\$__range/5m/g; s/\$instance\|\${instance}/.+/g'
}

# What of a dashboard depends on the machine where it was made, or is forgotten.
dashboard_faults() {
	jq -r '
		def panels: .panels[] | ., .panels[]?;
		(if .schemaVersion < 38 then "schemaVersion \(.schemaVersion)" else empty end),
		(.. | objects | .datasource? // empty | select(.uid != "${datasource}") | "data source \(.)"),
		(["datasource", "instance"] - [.templating.list[].name] | .[] | "no variable \(.)"),
		(panels | select((.title // "") == "") | "panel \(.id) has no title"),
		(panels | select(.type != "row") |
			select(.fieldConfig.defaults.unit == null) | "\(.title) has no unit"),
		([panels.id] | group_by(.)[] | select(length > 1) | "id \(.[0]) twice")
	' grafana/scx_powerpack.json
}

check_grafana() {
	local faults
	faults=$(dashboard_faults) || fail "the dashboard is no JSON"
	[ -z "$faults" ] || fail "the dashboard: $faults"
	dashboard_expressions >"$work/expressions"
	[ -s "$work/expressions" ] || fail "the dashboard has no expressions"
	jq -R '{record: "dashboard:\(input_line_number)", expr: .}' "$work/expressions" |
		jq -s '{groups: [{name: "dashboard", rules: .}]}' >"$work/dashboard.yml"
	! grep -n '\$' "$work/expressions" || fail "a variable that the dashboard does not have"
	promtool check rules "$work/dashboard.yml"
}

# The names that a /metrics text has, also of counters that were not counted yet.
metric_names() {
	sed -nE 's/^(scx_powerpack_[a-z0-9_]+)[{ ].*/\1/p
		s/^# TYPE (scx_powerpack_[a-z0-9_]+) (gauge|stateset)$/\1/p
		s/^# TYPE (scx_powerpack_[a-z0-9_]+) info$/\1_info/p
		s/^# TYPE (scx_powerpack_[a-z0-9_]+) counter$/\1_total/p
		s/^# TYPE (scx_powerpack_[a-z0-9_]+) histogram$/\1_bucket\n\1_count\n\1_sum/p' "$1" | sort -u
}

check_metrics() {
	local unknown
	metric_names "$1" >"$work/served"
	[ -s "$work/served" ] || fail "$1 has no metrics of scx_powerpack"
		grep -ohE '\bscx_powerpack_[a-z0-9_]+' prometheus/alerts{,_test}.yml grafana/scx_powerpack.json |
		sort -u >"$work/used"
	unknown=$(comm -23 "$work/used" "$work/served")
	[ -z "$unknown" ] || fail "not served: ${unknown//$'\n'/ }"
}

# But for what is right or wrong by machine.
check_configurations() {
	local file
	for file in "$work"/{role,pods}.toml; do
		sed -i -E '/^(max_cores|idle_latency_us|epp\.)/d' "$file"
		"$1" config check --config "$file"
	done
}

metrics=${1:+$(realpath "$1")} program=${2:+$(realpath "$2")}
cd "$TREE/packaging"
ensure_packages "${PACKAGES[@]}"
locked fleet ensure_venv "$CACHE/fleet-venv" "${PYTHON_TOOLS[@]}"
locked fleet ensure_prometheus
export PATH="$CACHE/fleet-venv/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_ansible
check_kubernetes
check_prometheus
check_grafana
[ -z "$metrics" ] || check_metrics "$metrics"
[ -z "$program" ] || check_configurations "$program"
