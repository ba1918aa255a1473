# shellcheck shell=bash
# The tests on real kernels: those that want the same VM share a boot. Sourced after steps.sh.

# The test of the package, and whether there is one of this commit that it is to be run with.
DEB_TEST=tests/vm/deb.sh
with_deb=false
has_deb() { [ -n "$(scripts/lib/current-deb.sh 2>/dev/null)" ]; }

# Tests that are wanted, as files; none: all of them.
wanted=()

# Tests of what the agent does on any kernel say "# only: 7": once is enough, if not wanted. Those that
# other kernels than 6.12 and 7 need too name one in a line "# also:". $1: a kernel, with -arm64 at its end
# if it is one for that.
tests_for() {
	local file only kernel=${1%-arm64}
	if [ ${#wanted[@]} -gt 0 ]; then
		printf '%s\n' "${wanted[@]}"
		return
	fi
	for file in tests/vm/*.sh; do
		[ "$file" != "$DEB_TEST" ] || $with_deb || continue
		case $kernel in
		debian-*) only=$(sed -n 's/^# also: //p' "$file") && only=${only:-none} ;;
		*) only=$(sed -n 's/^# only: //p' "$file") ;;
		esac
		[ "${only:-$kernel}" != "$kernel" ] || echo "$file"
	done
}

# The options that a test's "# vm:" line asks for.
vm_options() { sed -n 's/^# vm: //p' "$1"; }

# A test that leaves the kernel in disorder has a line "# alone": its name, to have a boot of its own.
boot_of_its_own() { ! grep -q '^# alone' "$1" || basename "$1"; }

# Tests that share a boot, at most: a boot takes as long as a test, but two run at once, and
# the last one is not to keep a CPU idle.
TESTS_PER_BOOT=6

# How long each test took in this machine's last run: a line each as in $STEPS/tests.
LAST_RUN=$CACHE/test-seconds
# One of which nothing is known.
TEST_SECONDS=60

# Boots (stdin), those first that took longest in the last run: a long one that begins last
# leaves a CPU idle.
longest_first() {
	touch "$LAST_RUN"
	awk -v default_seconds=$TEST_SECONDS '
		FILENAME != "-" { split($0, field, "\t"); took[field[3]] = field[1]; next }
		{
			split($0, part, "|"); tests = split(part[3], test, " "); sum = 0
			for (i = 1; i <= tests; i++) {
				name = test[i]; sub(".*/", "", name); sub("[.]sh$", "", name)
				name = name " on Linux " part[1]
				sum += (name in took) ? took[name] : default_seconds
			}
			print sum "\t" $0
		}' "$LAST_RUN" - | sort -s -rn -k1,1 | cut -f2-
}

# The boots that these kernels need: a line each of kernel, options and tests, separated by "|".
boots() {
	local kernel file
	for kernel in "$@"; do
		for file in $(tests_for "$kernel"); do
			echo "$kernel|$(vm_options "$file")|$(boot_of_its_own "$file")|$file"
		done
	done | sort -s -t'|' -k1,3 | awk -F'|' -v max=$TESTS_PER_BOOT '
		function print_boot() { if (files) print vm "|" files; files = ""; count = 0 }
		$1 "|" $2 != vm || $3 != alone || count == max { print_boot(); vm = $1 "|" $2; alone = $3 }
		{ files = files " " $4; count++ }
		END { print_boot() }' | longest_first
}

# boot KERNEL OPTIONS TEST..: run these tests in one VM. A test of which nothing is heard,
# because the VM was lost, has failed.
boot() {
	local kernel=$1 options=$2 name="Linux $1 $2" begin=$SECONDS file log verdict seconds
	shift 2
	log=$(mktemp)
	echo $begin >"$STEPS/running/$name"
	# QEMU itself has died (seen twice on 6.12: assertions of its own in physmem.c and
	# msix.c): nothing is known of the tests. A failed one is never run again.
	run_suite "$kernel" "$options" "$log" "$@"
	! grep -q 'the VM ended without a word' "$log" || run_suite "$kernel" "$options" "$log" "$@"
	rm -f "$STEPS/running/$name"
	for file in "$@"; do
		verdict=$(sed -n "s/^\(ok\|skipped\|FAILED\) *$(basename "$file" .sh) (\([0-9]*\) s)/\1 \2/p" "$log" | tail -n 1)
		read -r verdict seconds <<<"${verdict:-FAILED 0}"
		[ "$verdict" != FAILED ] || printed_by "$(basename "$file" .sh)" <"$log" |
			keep_failure "$(basename "$file" .sh) on Linux $kernel"
		printf '%s\t%s\t%s\n' "$seconds" "$verdict" "$(basename "$file" .sh) on Linux $kernel" >>"$STEPS/tests"
	done
	printf '%s\t%s\t%s\n' $((SECONDS - begin)) boot "$name" >>"$STEPS/ended"
	rm -f "$log"
}

# What the failed test $1 has printed, in the log of its boot on stdin; all, if it has no verdict.
printed_by() {
	awk -v test="$1" '
		/^(ok|skipped|FAILED) / { inside = ($1 == "FAILED" && $2 == test); seen = seen || inside; next }
		{ all = all $0 "\n"; if (inside) print }
		END { if (!seen) printf "%s", all }'
}

# One try of boot, which appends what is said to file $3.
run_suite() {
	local kernel=$1 options=$2 log=$3 arch=amd64
	shift 3
	[[ $kernel != *-arm64 ]] || arch=arm64
	# shellcheck disable=SC2086 # a list of words
	scripts/vm --arch $arch --kernel "${kernel%-arm64}" --timeout 1500 $options -- scripts/lib/vm-suite.sh "$@" 2>&1 |
		add_durations | tee -a "$log" | sed -u "s/^/Linux $kernel: /" || true
}

# Behind each verdict how long it took here, with the boot if it is the first: the VM's own
# time may be virtual.
add_durations() {
	local line begin=$SECONDS
	while IFS= read -r line; do
		case $line in
		'ok '* | 'skipped '* | 'FAILED '*)
			line+=" ($((SECONDS - begin)) s)"
			begin=$SECONDS
			;;
		esac
		printf '%s\n' "$line"
	done
}

# Run the boots on stdin: in virtual time QEMU has one thread, so as many at once as there
# are CPUs.
run_boots() {
	local kernel options files
	while IFS='|' read -r kernel options files; do
		while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
		# shellcheck disable=SC2086 # a list of files
		boot "$kernel" "$options" $files &
	done
	wait
}

# For the next run: see longest_first. Those of tests that this one left out stay.
keep_durations() {
	awk -F'\t' '{ line[$3] = $0 } END { for (name in line) print line[name] }' \
		"$LAST_RUN" "$STEPS/tests" >"$LAST_RUN.new"
	mv "$LAST_RUN.new" "$LAST_RUN"
}

# want NAME..: only the tests of these names are run.
want() {
	local name
	for name in "$@"; do
		[ -x "tests/vm/$name.sh" ] || die "there is no test '$name' in tests/vm"
		wanted+=("tests/vm/$name.sh")
	done
}

# All tests, or those that are wanted, on these kernels.
vm_tests() {
	if [[ $* = *-arm64 ]]; then
		step "VM tools" ensure_vm_tools arm64
		step "a root for arm64" ensure_arm64_guest_root
	else
		step "VM tools" ensure_vm_tools
		step "prometheus" locked prometheus ensure_prometheus
	fi
	if [[ $* = *-arm64 ]]; then
		[ ${#wanted[@]} != 0 ] || echo "left out: deb (the package in build/deb is for this machine)"
	elif has_deb; then
		with_deb=true
	elif [ ${#wanted[@]} = 0 ]; then
		echo "left out: deb (scripts/build-deb makes the package that it tests)"
	fi
	boots "$@" | run_boots
	keep_durations
}
