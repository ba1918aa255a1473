/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A plugin of QEMU: how often each translation block ran between two marks, of which
 * instructions-mark.c runs one. At the second mark a line for each block is written to FILE.N (N
 * counts the pairs of marks): its address, its instructions, how often it ran.
 *
 * The declarations are those of QEMU's plugin interface (docs/devel/tcg-plugins in its source):
 * Debian has no package of its header.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "instructions-mark.h"

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;

enum { NO_REGISTERS };

/* nopl disp32(%rax) */
static const unsigned char nopl[] = { 0x0f, 0x1f, 0x80 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t nth);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
					   void (*translated)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*runs)(unsigned, void *),
					  int flags, void *data);

/* The interface since QEMU 9.0. */
EXPORT int qemu_plugin_version = 2;

struct block {
	uint64_t address, instructions, ran;
	struct block *next;
};

/* The VM's CPUs are one thread of QEMU, in virtual time: no locks. */
static struct block *blocks;
static const char *path;
static int pairs;
static bool counts;

static void begin(unsigned cpu, void *data)
{
	for (struct block *block = blocks; block; block = block->next)
		block->ran = 0;
	counts = true;
}

static void end(unsigned cpu, void *data)
{
	char name[4096];
	FILE *file;

	if (!counts)
		return;
	counts = false;
	snprintf(name, sizeof(name), "%s.%d", path, pairs++);
	file = fopen(name, "w");
	if (!file) {
		perror(name);
		return;
	}
	for (struct block *block = blocks; block; block = block->next) {
		if (block->ran)
			fprintf(file, "%016lx %lu %lu\n", block->address, block->instructions,
				block->ran);
	}
	fclose(file);
}

static void note_run(unsigned cpu, void *data)
{
	((struct block *)data)->ran += counts;
}

/* The mark that an instruction is; 0: it is none. */
static uint32_t mark_of(const struct qemu_plugin_insn *insn)
{
	unsigned char found[sizeof(nopl) + sizeof(uint32_t)];
	uint32_t mark;

	if (qemu_plugin_insn_data(insn, found, sizeof(found)) != sizeof(found) ||
	    memcmp(found, nopl, sizeof(nopl)))
		return 0;
	memcpy(&mark, found + sizeof(nopl), sizeof(mark));
	return mark;
}

static void note_block(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t instructions = qemu_plugin_tb_n_insns(tb);
	struct block *block = malloc(sizeof(*block));

	for (size_t nth = 0; nth < instructions; nth++) {
		uint32_t mark = mark_of(qemu_plugin_tb_get_insn(tb, nth));

		if (mark == MARK_BEGIN)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, begin, NO_REGISTERS, NULL);
		else if (mark == MARK_END)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, end, NO_REGISTERS, NULL);
	}
	*block = (struct block){ qemu_plugin_tb_vaddr(tb), instructions, 0, blocks };
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, note_run, NO_REGISTERS, block);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "to=", 3)) {
		fprintf(stderr, "the plugin wants one argument: to=FILE\n");
		return -1;
	}
	path = strdup(argv[0] + 3);
	qemu_plugin_register_vcpu_tb_trans_cb(id, note_block);
	return 0;
}
