/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs one of the marks of instructions-mark.h: the first one, or with any argument the second.
 */
#include "instructions-mark.h"

int main(int argc, char **argv)
{
	if (argc == 1)
		__asm__ volatile("nopl %c0(%%rax)" ::"i"(MARK_BEGIN));
	else
		__asm__ volatile("nopl %c0(%%rax)" ::"i"(MARK_END));
	return 0;
}
