# shellcheck shell=bash
# Pages of docs/ with measured figures name the commit that was measured. Sourced after
# common.sh, where git is installed.

# Ends the script if what is to be measured is not committed; pages made before may wait for that.
require_clean_tree() {
	[ -z "$(git -C "$TREE" status --porcelain -- . ":!docs")" ] ||
		die "commit first: the page names the commit it was measured at"
}

# The commit that is measured, as a page names it. scripts/pages looks for these words.
at_commit() { printf 'at commit %s' "$(git -C "$TREE" rev-parse --short HEAD)"; }
