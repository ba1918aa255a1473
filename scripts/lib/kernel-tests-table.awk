# Of the lines "SYSTEM RESULT TEST" of kernel-tests-guest.sh: a table in Markdown, a column for each of the
# systems (names, in order). A program whose tests all end the same under every system, none with a
# failure, is one row.

function result_of(scheduler, test) {
	return (scheduler, test) in result ? result[scheduler, test] : "not run"
}

# The same under every scheduler, and no failure.
function is_alike(test,   i, is) {
	is = result_of(name[1], test)
	for (i = 2; i <= columns; i++)
		if (result_of(name[i], test) != is) return 0
	return is != "fail"
}

# In bold if EEVDF does better.
function cell(scheduler, test,   is, reference) {
	is = result_of(scheduler, test)
	reference = result_of("eevdf", test)
	if ((is != "pass" && reference == "pass") || (is == "fail" && reference != "fail")) return "**" is "**"
	return is
}

function row_of_test(test,   i) {
	printf "| `%s` |", test
	for (i = 1; i <= columns; i++) printf " %s |", cell(name[i], test)
	print ""
}

function row_of_program(program,   i, text) {
	text = passed[program] + skipped[program] == 1 ? "" : passed[program] " "
	text = passed[program] ? text "pass" : ""
	if (skipped[program]) text = text (text == "" ? "" : ", " skipped[program] " ") "skip"
	printf "| `%s` |", program
	for (i = 1; i <= columns; i++) printf " %s |", text
	print ""
}

BEGIN { columns = split(systems, name, " ") }

$1 == "kernel" { kernel = $2 }

$2 ~ /^(pass|fail|skip)$/ {
	test = $0
	sub(/^[^ ]+ [^ ]+ /, "", test)
	if (!(test in program)) {
		tests[++nr] = test
		program[test] = $3
		sub(/:.*/, "", program[test])
	}
	if (result[$1, test] != "fail") result[$1, test] = $2
}

END {
	for (t = 1; t <= nr; t++) {
		test = tests[t]
		if (!is_alike(test)) differs[program[test]] = 1
		else if (result_of(name[1], test) == "pass") passed[program[test]]++
		else skipped[program[test]]++
	}
	printf "## Linux %s\n\n| test |", kernel
	for (i = 1; i <= columns; i++) printf " %s |", name[i] == "eevdf" ? "EEVDF" : name[i]
	printf "\n| --- |"
	for (i = 1; i <= columns; i++) printf " --- |"
	print ""
	for (t = 1; t <= nr; t++) {
		test = tests[t]
		if (program[test] in differs) row_of_test(test)
		else if (!shown[program[test]]++) row_of_program(program[test])
	}
	print ""
}
