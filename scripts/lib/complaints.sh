# shellcheck shell=bash disable=SC2034
# What must not be in a kernel's log: for those who look there. A task that hangs is "blocked for more than
# 120 seconds", and a lock that lockdep cannot watch is said in a line INFO.
COMPLAINTS='BUG|WARNING|Oops|stall|lockup|blocked for more than|runtime error|non-static key'
