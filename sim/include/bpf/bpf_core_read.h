/* SPDX-License-Identifier: GPL-2.0-only */
/* Relocations are for real kernels: here the constants are what scx/common.bpf.h says. */
#define bpf_core_enum_value(type, value) value
