# shellcheck shell=bash
# docs/campaign.md, of the results of scripts/campaign: files of a line with status, seconds and commit, and of
# what the job printed. Sourced, not run.

# The commit at which result $1 was made. scripts/pages looks for these words.
commit_of() { awk 'NR == 1 { print "at commit " $3; exit }' "$1"; }

# The verdict of test $2 in result $1: ok, skipped, **failed**, or nothing.
verdict_of() {
	local verdict
	verdict=$(sed -n "s/^\(ok\|skipped\|FAILED\) *$2\$/\1/p" "$1" | head -n 1)
	[ "$verdict" != FAILED ] || verdict='**failed**'
	echo "${verdict:-**no word**}"
}

# The value of figure $2 in result $1.
figure_of() { sed -n "s/^figure: $2 //p" "$1" | head -n 1; }

# The version of the kernel called $1, as it is in the cache.
version_of() {
	local image
	image=$CACHE/kernels/$(kernel_name "$1" amd64)/vmlinuz
	[ ! -e "$image" ] || file -bL "$image" | sed -n 's/.*version \([^ ]*\).*/\1/p'
}

# A row for each kernel: its version, what became of the tests $1.., a column each, and the commit.
kernel_table() {
	local file kernel test cause
	printf '| kernel | version |' && printf ' %s |' "$@" measured && echo
	printf '| --- | --- |' && printf ' --- |%.0s' "$@" measured && echo
	for file in "$results"/kernels:*; do
		[[ -e $file && $file != *.log && $file != *.new ]] || continue
		kernel=${file##*/kernels:}
		printf '| %s | %s |' "$kernel" "$(version_of "$kernel")"
		cause=$(sed -n 's/^ok  *refused: //p' "$file")
		if [ -n "$cause" ]; then
			printf ' cannot load any (%s), and that is said |' "$cause"
			printf ' |%.0s' "${@:2}"
		else
			for test in "$@"; do printf ' %s |' "$(verdict_of "$file" "$test")"; done
		fi
		printf ' %s |\n' "$(commit_of "$file")"
	done
}

# Of each size what it was measured to take.
size_table() {
	local size file figures=('loaded in' 'switched in' 'unloaded in') figure
	printf '| CPUs | verdict |' && printf ' %s |' "${figures[@]}" measured && echo
	echo '| ---: | --- | ---: | ---: | ---: | --- |'
	for size in $SIZES; do
		file=$results/sizes:$size
		[ -e "$file" ] || continue
		printf '| %s | %s |' "$size" "$(verdict_of "$file" size)"
		for figure in "${figures[@]}"; do printf ' %s |' "$(figure_of "$file" "$figure")"; done
		printf ' %s |\n' "$(commit_of "$file")"
	done
	file=$results/sizes:1024
	[ ! -e "$file" ] ||
		printf '| 1,024, four of them online | %s | | | | %s |\n' "$(verdict_of "$file" large)" "$(commit_of "$file")"
}

# How often each fault was, on each kernel, and which seeds failed.
fault_table() {
	local kernel files=()
	compgen -G "$results/faults:*" >/dev/null || { echo "Not run." && echo && return; }
	for kernel in $FAULT_KERNELS; do
		mapfile -t files < <(compgen -G "$results/faults:$kernel:*" | grep -vE '\.(log|new)$' || true)
		[ ${#files[@]} != 0 ] || continue
		awk -v kernel="$kernel" '
			FNR == 1 { seeds++; at[$3]; if ($1 != 0) { sub(".*:", "", FILENAME); failed = failed " " FILENAME } }
			/^figure: / { times[$2] += $3; all += $3 }
			END {
				for (commit in at) commits = commits ", at commit " commit
				printf "%s: %d seed%s, %d faults%s; %s.\n\n| fault | times |\n| --- | ---: |\n",
					kernel, seeds, (seeds == 1 ? "" : "s"), all, commits,
					failed ? "**failed with seeds" failed "**" : "after each all was well"
				fflush()
				for (name in times) printf "| %s | %d |\n", name, times[name] | "sort"
				close("sort")
				print ""
			}' "${files[@]}"
	done
}

# How often each kernel was suspended to each depth.
suspend_table() {
	local file kernel verdict
	compgen -G "$results/suspend:*" >/dev/null || { echo "Not run." && echo && return; }
	echo '| kernel | depth | times | measured |'
	echo '| --- | --- | ---: | --- |'
	for kernel in $SUSPEND_KERNELS; do
		file=$results/suspend:$kernel
		[ -e "$file" ] || continue
		verdict=$(verdict_of "$file" suspend)
		[ "$verdict" = ok ] || printf '| %s | %s | | %s |\n' "$kernel" "$verdict" "$(commit_of "$file")"
		sed -n "s/^figure: \([^ ]*\) \(.*\)/| $kernel | \1 | \2 | $(commit_of "$file") |/p" "$file"
	done
	echo
}

# How late real-time threads wake on each kernel, mean and longest, a column for each of LATENCY_SYSTEMS.
latency_table() {
	local file kernel system load
	compgen -G "$results/latency:*" >/dev/null || { echo "Not run." && echo && return; }
	# shellcheck disable=SC2086 # a list of words
	printf '| kernel, beside |' && printf ' %s |' $LATENCY_SYSTEMS measured && echo
	# shellcheck disable=SC2086
	printf '| --- |' && printf ' ---: |%.0s' $LATENCY_SYSTEMS && echo ' --- |'
	for kernel in $LATENCY_KERNELS; do
		file=$results/latency:$kernel
		[ -e "$file" ] || continue
		[ "$(verdict_of "$file" latency)" = ok ] ||
			printf '| %s | %s |%s %s |\n' "$kernel" "$(verdict_of "$file" latency)" \
				"$(printf ' |%.0s' ${LATENCY_SYSTEMS#* })" "$(commit_of "$file")"
		for load in $(awk '/^figure: / { print $2 }' "$file" | sort -u); do
			printf '| %s, %s |' "$kernel" "$load"
			for system in $LATENCY_SYSTEMS; do
				printf ' %s |' "$(figure_of "$file" "$load $system" | tr ' ' /)"
			done
			printf ' %s |\n' "$(commit_of "$file")"
		done
	done
	echo
}

# Other people's tests, of result $1: a row each, a column for each scheduler. What passes under the kernel's and not
# under ours is in bold.
others_table() {
	local file=$1
	[ -e "$file" ] || { echo "Not run." && return; }
	awk '
		/^figure: / {
			if (!($2 in known_system)) { known_system[$2] = 1; system_of[++nr_systems] = $2 }
			if (!($3 in known)) { known[$3] = 1; program[++nr] = $3 }
			verdict[$3, $2] = $4
			value[$3, $2] = $5 ? " (" $5 ($6 ? " " $6 : "") ")" : ""
		}
		END {
			printf "| program |"
			for (i = 1; i <= nr_systems; i++) printf " %s |", system_of[i]
			printf "\n| --- |"
			for (i = 1; i <= nr_systems; i++) printf " --- |"
			for (p = 1; p <= nr; p++) {
				printf "\n| %s |", program[p]
				for (i = 1; i <= nr_systems; i++) {
					is = verdict[program[p], system_of[i]]
					if (is == "") is = "not run"
					lost = is == "fail" && verdict[program[p], system_of[1]] == "pass"
					printf " %s%s |", lost ? "**" is "**" : is, value[program[p], system_of[i]]
				}
			}
			print ""
		}' "$file"
}

# The page on stdin, and what page $1 has of jobs whose results are not here, as they are in no repository: sections of
# which nothing has been run, and rows of tables that say when each was measured.
with_rows_of() {
	awk '
		# What a row is of: its first cell, and the depth of a suspend.
		function key_of(row, cell) { split(row, cell, "|"); return section cell[2] (section ~ /Suspend/ ? cell[3] : "") }
		function add_rows(i) {
			for (i = 1; i <= nr_rows[section]; i++)
				if (!(key_of(row[section, i]) in has)) print row[section, i]
		}
		function put_section(i, in_table) {
			if (not_run && section in old) printf "%s", old[section]
			for (i = 1; i <= nr && !(not_run && section in old); i++) {
				if (line[i] ~ /^[|].* measured [|]$/) in_table = 1
				if (line[i] ~ /^[|]/) has[key_of(line[i])]
				else if (in_table) in_table = add_rows()
				print line[i]
			}
			nr = not_run = 0
		}
		/^## / { if (NR != FNR) put_section(); section = $0 }
		NR == FNR {
			old[section] = old[section] $0 "\n"
			if (/^[|].* at commit [0-9a-f]+ [|]$/) row[section, ++nr_rows[section]] = $0
			next
		}
		FNR == 1 { section = "" }
		/^Not run[.]$/ { not_run = 1 }
		{ line[++nr] = $0 }
		END { put_section() }' "$1" -
}

# What the campaign was meant to have too, and what limits it.
not_reached() {
	cat <<'TEXT'

## What is not reached

- Each kind of fault a thousand times, and a day of virtual time without a stall: a fault takes 10 to 15 s of a CPU with
  Linux 7 and 50 with the kernel that checks itself, so that all would take a week. Another seed is another hundred.
- Real kernels of 255 CPUs: in emulation one had not come up after half an hour. [bench-sizes.md](bench-sizes.md) has 64
  and 128, the simulator 1,024 ([many-cpus.md](many-cpus.md)).
- LTP and schbench, which Debian does not package; the suites `seeds` and `costs` have a load like schbench's. Of rt-app's
  files Debian's version cannot read that of the video, and `cpufreq_governor_efficiency` compares governors, which a VM
  does not have.
- Every flavour of every version: of each version there is one at least, and of the newest all that Debian has for
  machines of that kind. Kernels that check themselves are of 6.12 alone.
TEXT
}

# write_campaign_page RESULTS PAGE
write_campaign_page() {
	local results=$1 page=$2 others=$1/others:$OTHERS_KERNEL
	{
		echo "# The campaign"
		echo
		echo "Made by \`scripts/campaign\` of the last result of each job; not edited by hand. What it does is in"
		echo "[testing.md](testing.md)."
		echo
		echo "## Kernels"
		echo
		echo "Tests of \`tests/vm\` on every kernel; \`debian-\` are Debian's own, the others our builds."
		echo
		# shellcheck disable=SC2086 # a list of words
		kernel_table $KERNEL_TESTS
		echo
		echo "## Sizes"
		echo
		echo "In virtual time; one and two CPUs in slow virtual time, in which a busy CPU takes four times as long ([testing.md](testing.md))."
		echo
		size_table
		echo
		echo "## Faults"
		echo
		fault_table
		echo "## Suspend"
		echo
		echo "A VM of four busy CPUs to memory, to idle (s2idle), and as far as each test of suspend that the kernel has"
		echo "(\`pm_test\`): after each our scheduler ran, all tasks went on, and the kernel's log had no complaint."
		echo
		suspend_table
		echo "## Real-time threads"
		echo
		echo "How late cyclictest wakes at priority 80, each millisecond for ten seconds: mean/longest, in us of virtual time,"
		echo "with one CPU, alone, beside two hogs, and beside tasks that send each other messages"
		echo "(\`tests/campaign/latency.sh\`). QEMU's CPUs take turns of 0.8 ms where there are several, under every"
		echo "scheduler; what takes longer on many CPUs is in [many-cpus.md](many-cpus.md)."
		echo
		latency_table
		echo "## Other people's tests"
		echo
		[ ! -e "$others" ] || printf 'Measured %s. ' "$(commit_of "$others")"
		echo "Unchanged, with Linux $OTHERS_KERNEL: stress-ng's scheduler class, a second each, the line of it that sched-ext's own CI"
		echo "uses, rt-tests, perf's benchmarks of schedulers, and rt-app's files. In bold: what passes under the kernel's"
		echo "scheduler (EEVDF) and not under ours. Beside it, of one run: operations per second, the longest latency, the"
		echo "time or that of a round trip; of rt-app the 99th percentile of how late its threads wake. In slow virtual time, in"
		echo "which each of four busy CPUs does 62 million instructions a second: what a scheduler does so many times a"
		echo "second, as to let a task that wakes take a CPU, costs twenty times the share of one that does a thousand million."
		echo "\`resched\` and \`yield\` do nothing but call sched_yield(): each is a change of tasks, which takes 6,200 instructions"
		echo "under ours and 3,400 under EEVDF, as a task passes through a DSQ of a BPF scheduler (\`scripts/instructions --mode"
		echo "spread --per do_sched_yield stress-ng --yield 2 --timeout 1\`). \`tee\` counts calls, each of what is in the pipe by"
		echo "then, and not bytes; \`nice\`, \`wait\` and \`inotify\` differ by as much between runs of one scheduler."
		echo "hackbench over sockets, as \`perf-messaging\`, depends on how fast a CPU is: a receiver that wakes may take the CPU"
		echo "of a sender that has run for 1 ms, in which that sends nine messages here and 37 in virtual time. So __schedule()"
		echo "is called 0.70 times for each message here, and 0.19 times in virtual time, where a message takes ours 6,900"
		echo "instructions and EEVDF 8,600 (\`scripts/instructions --per unix_stream_sendmsg hackbench -g 2 -l 200\`, here with"
		echo "\`--slow-virtual-time\`). \`exit-group\` has sixteen threads that"
		echo "contend for a lock: 15 switches each time under ours and 12 under EEVDF, and most of them in a queue that other"
		echo "CPUs take from, of 300,000 instructions and 240,000 (\`scripts/instructions --per do_group_exit stress-ng"
		echo "--exit-group 2 --timeout 2\`)."
		echo
		others_table "$others"
		not_reached
	} | with_rows_of "$page" >"$page.new"
	mv "$page.new" "$page"
}
