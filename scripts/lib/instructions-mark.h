/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Instructions of x86 that do nothing and that no compiler emits: nopl MARK(%rax). Between the
 * first and the second one instructions-plugin.c counts.
 */
#ifndef INSTRUCTIONS_MARK_H
#define INSTRUCTIONS_MARK_H

#define MARK_BEGIN 0x12345678
#define MARK_END 0x12345679

#endif /* INSTRUCTIONS_MARK_H */
