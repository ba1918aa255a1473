#!/usr/bin/env bash
# Open a report of `scx_powerpack bench` in a real browser: it renders, complains of nothing,
# and prints. check-report.sh REPORT.html
set -euo pipefail
report=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "failed: $*" >&2
	exit 1
}

# As root there is no sandbox.
browser() {
	timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$work/profile" --enable-logging=stderr "$@" "file://$report" 2>"$work/log" ||
		fail "the browser ended with $?: $(tail -n 3 "$work/log")"
	# What a page's console says is logged with this word.
	! grep CONSOLE "$work/log" >&2 || fail "the page complains"
}

browser --dump-dom >"$work/dom"
grep -q '<title>scx_powerpack bench' "$work/dom" || fail "no title"
for what in 'light' 'wake-up latency, 99 %' 'surplus non-idle' 'Not measured: power' '</html>'; do
	grep -q "$what" "$work/dom" || fail "no '$what' in what was rendered"
done
# Bars, heat and latencies of three loads; power against performance of one.
pictures=$(grep -c '<svg' "$work/dom")
[ "$pictures" -ge 8 ] || fail "only $pictures pictures"

browser --print-to-pdf="$work/report.pdf" --no-pdf-header-footer
[ "$(head -c 5 "$work/report.pdf")" = '%PDF-' ] || fail "it does not print"
pages=$(grep -ac '/Type */Page$\|/Type */Page[^s]' "$work/report.pdf")
[ "$pages" -ge 2 ] || fail "it prints $pages pages"

# Blank pages are small: the pictures and tables are there on a phone too.
for size in 390,1500 1100,1500; do
	browser --screenshot="$work/$size.png" --window-size=$size --hide-scrollbars
	[ "$(stat -c %s "$work/$size.png")" -gt 40000 ] || fail "next to nothing is seen at $size"
done
