/* SPDX-License-Identifier: GPL-2.0-only */
/* Relocations are for real kernels: here the constants are what scx/common.bpf.h says. */
#define bpf_core_enum_value(type, value) value
/* A kernel that reports cpu.max, without CONFIG_UCLAMP_TASK. */
#define bpf_core_field_exists(field)                                                               \
	((void)sizeof(field), !__builtin_strcmp(#field, "args->bw_quota_us"))
#define BPF_CORE_READ_BITFIELD(from, field) ((void)(from), 0)
#define bpf_core_read(to, size, from) ((void)(to), (void)(from))
#define BPF_CORE_READ(from, field) (from)->field
#define cpu_cgrp_id 0
#define cpuset_cgrp_id 0
#define bpf_core_enum_value_exists(type, value) ((void)sizeof(value), 0)
#define bpf_probe_read_kernel(to, size, from) (__builtin_memcpy(to, from, size), 0)
