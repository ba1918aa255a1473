#!/usr/bin/env bash
# Metrics, as a real Prometheus sees them.
# only: 7
# vm: --slow-virtual-time
. "$(dirname "$0")/lib.bash"

get() { python3 -c 'import sys,urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=30).read().decode())' "$1"; }

# The value that Prometheus has for expression $1.
query() {
	python3 - "$1" <<-'PYTHON'
		import json, sys, urllib.parse, urllib.request
		url = "http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(sys.argv[1])
		result = json.load(urllib.request.urlopen(url, timeout=30))["data"]["result"]
		print(result[0]["value"][1] if result else "nothing")
	PYTHON
}

# Wait until expression $1 is `$2`.
becomes() {
	local i
	for i in $(seq 60); do
		[ "$(query "$1" 2>/dev/null)" != "$2" ] || return 0
		sleep 1
	done
	fail "'$1' is $(query "$1"), not $2, after $i s"
}

start --mode packing --metrics
powerpack-load workload --seconds 10 light >/dev/null
get http://127.0.0.1:9994/metrics >/tmp/metrics
# Prometheus' own parser is lenient, and promtool knows the older format alone.
python3 - >/tmp/faults 2>&1 <<-'PYTHON' || fail "this is no OpenMetrics: $(tail -n 1 /tmp/faults)"
	from prometheus_client.openmetrics.parser import text_fd_to_metric_families
	families = list(text_fd_to_metric_families(open("/tmp/metrics")))
	assert len(families) > 15, families
	assert all(family.documentation for family in families)
PYTHON
for path in / /metrics/x; do
	! get http://127.0.0.1:9994$path 2>/dev/null || fail "$path is there"
done
# What alerts and dashboards are checked against afterwards.
mkdir -p "$TREE/build"
cp /tmp/metrics "$TREE/build/metrics.txt"

echo "a real Prometheus"
cat >/tmp/prometheus.yml <<-'YAML'
	global: { scrape_interval: 1s }
	scrape_configs:
	  - { job_name: scx_powerpack, static_configs: [{ targets: ["127.0.0.1:9994"] }] }
YAML
prometheus --config.file=/tmp/prometheus.yml --storage.tsdb.path=/tmp/tsdb \
	--web.listen-address=127.0.0.1:9090 >/tmp/prometheus.log 2>&1 &
prometheus=$!
becomes 'up{job="scx_powerpack"}' 1
becomes 'scx_powerpack_mode{mode="packing"}' 1
becomes 'scx_powerpack_online_cpus' 4
becomes 'count(scx_powerpack_cpu_non_idle_seconds_total)' 4
becomes 'count(scx_powerpack_cpu_interrupts_total > 0)' 4
becomes 'scx_powerpack_latency_budget_seconds' 0.005
becomes 'histogram_quantile(0.5, scx_powerpack_wakeup_latency_seconds_bucket) > bool 0' 1
scx_powerpack mode spread >/dev/null
becomes 'scx_powerpack_mode{mode="spread"}' 1
becomes 'scx_powerpack_active_cpus' 4
kill $prometheus
wait $prometheus || true

echo "an address that is taken"
refused 'another sched_ext|runs already' scx_powerpack --metrics 127.0.0.1:9994
stop
python3 -c 'import socket,time
s = socket.socket(); s.bind(("127.0.0.1", 9995)); s.listen(); time.sleep(60)' &
holder=$!
sleep 1
refused 'cannot serve metrics on 127.0.0.1:9995: Address already in use' scx_powerpack --metrics 127.0.0.1:9995

echo "an address that is taken does not keep what the file asks for from starting"
config=/tmp/metrics.toml
printf 'mode = "spread"\nmetrics = "127.0.0.1:9995"\n' >$config
start --config $config
grep -q 'Address already in use' $LOG || fail "nothing is said of the address"
status_says 'mode spread' || fail "the rest is not in force"
stop

echo "an address that is taken, then free; and another host of the same port"
printf 'mode = "packing"\nmetrics = "127.0.0.1:9994"\n' >$config
start --config $config
printf 'mode = "spread"\nmetrics = "127.0.0.1:9995"\n' >$config
for _ in $(seq 50); do
	! grep -q 'Address already in use' $LOG || break
	sleep 0.1
done
grep -q 'Address already in use' $LOG || fail "nothing is said of the address"
reloaded=$(scx_powerpack reload)
[[ $reloaded == spread* ]] || fail "an address that is taken is in the way of the rest"
[[ $reloaded == *'available on this machine now: cannot serve metrics on 127.0.0.1:9995: Address already in use'* ]] || fail "reload says $reloaded"
[ "$(grep -c 'Address already in use' $LOG)" = 1 ] || fail "it is said again at each reload: $(<$LOG)"
get http://127.0.0.1:9994/metrics >/dev/null || fail "metrics are not where they were"
kill $holder
wait $holder || true
scx_powerpack reload >/dev/null
get http://127.0.0.1:9995/metrics >/dev/null || fail "the address is free, and there are no metrics after a reload"
sed -i 's/127.0.0.1/0.0.0.0/' $config
scx_powerpack reload >/dev/null
get http://127.0.0.2:9995/metrics >/dev/null || fail "no metrics for others"

echo "more connections than it takes, and fewer file descriptors than it needs"
python3 -c 'import socket, time
held = [socket.create_connection(("127.0.0.1", 9995)) for _ in range(500)]
print("held", flush=True)
time.sleep(60)' >/tmp/held &
holder=$!
for _ in $(seq 50); do
	[ ! -s /tmp/held ] || break
	sleep 0.1
done
fds=$(find /proc/$PID/fd | wc -l)
[ "$fds" -lt 100 ] || fail "500 connections take $fds file descriptors"
scx_powerpack status >/dev/null || fail "no answers while there are too many connections"
prlimit --nofile=8 --pid $PID
# Connections that cannot be accepted must not keep a CPU busy.
scx_powerpack status >/dev/null 2>&1 &
asking=$!
before=$(ps -o cputimes= -p $PID)
sleep 3
busy_s=$(($(ps -o cputimes= -p $PID) - before))
[ $busy_s -le 1 ] || fail "the agent was busy for $busy_s of 3 s"
prlimit --nofile=1024 --pid $PID
wait $asking || true
kill $holder
wait $holder || true
for _ in $(seq 20); do
	! get http://127.0.0.1:9995/metrics >/dev/null 2>&1 || break
	sleep 0.5
done
get http://127.0.0.1:9995/metrics >/dev/null || fail "no metrics after there were too many connections"
scx_powerpack status >/dev/null || fail "no answers after there were too many connections"
stop
