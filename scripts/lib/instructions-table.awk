# Of two runs: instructions by function for each call of PER. Files: the symbols of a run, by address,
# and its blocks (instructions-plugin.c), of both runs. Addresses are 16 hexadecimal digits, which
# compare as text. bpf_prog_TAG_NAME is NAME.
function symbol_at(address, low, high, middle) {
	low = 1
	high = nr_symbols
	while (low < high) {
		middle = int((low + high + 1) / 2)
		if (addresses[middle] <= address)
			low = middle
		else
			high = middle - 1
	}
	return low
}

FNR == 1 {
	file++
	run = int((file - 1) / 2)
	if (file % 2)
		nr_symbols = 0
}

# Symbols.
file % 2 {
	if ($2 !~ /^[tTwW]$/)
		next
	addresses[++nr_symbols] = $1 ""
	name = $3
	sub(/\..*/, "", name)
	ours[nr_symbols] = sub(/^bpf_prog_[0-9a-f]+_/, "", name)
	names[nr_symbols] = name
	next
}

# User space is the lower half of all addresses.
$1 < "8" {
	all[run, "user space"] += $2 * $3
	next
}

{
	at = symbol_at($1 "")
	name = names[at]
	all[run, ours[at] ? "BPF programs" : "kernel"] += $2 * $3
	instructions[run, name] += $2 * $3
	if (addresses[at] == $1 "")
		calls[run, name] += $3
	seen[name]
}

function line(name, a, b, calls_a, calls_b) {
	printf "%-36.36s %10.1f %10.1f %+10.1f %8.2f %8.2f\n", name, a, b, b - a, calls_a, calls_b
}

END {
	if (!calls[0, per] || !calls[1, per]) {
		print "instructions: nothing called " per "()" >"/dev/stderr"
		exit 1
	}
	printf "%-36s %10s %10s %10s %8s %8s\n", "for each " per "()", "eevdf", mode, "more", "calls", "calls"
	split("user space,kernel,BPF programs", parts, ",")
	for (i = 1; i <= 3; i++)
		line(parts[i], all[0, parts[i]] / calls[0, per], all[1, parts[i]] / calls[1, per], 0, 0)
	print ""
	for (name in seen) {
		a = instructions[0, name] / calls[0, per]
		b = instructions[1, name] / calls[1, per]
		more = b > a ? b - a : a - b
		if (more >= 0.05)
			printf "%.1f\t%s\n", more, name | "sort -rn | head -40 | cut -f 2 >" order
	}
	close("sort -rn | head -40 | cut -f 2 >" order)
	while ((getline name <order) > 0)
		line(name, instructions[0, name] / calls[0, per], instructions[1, name] / calls[1, per],
			calls[0, name] / calls[0, per], calls[1, name] / calls[1, per])
}
