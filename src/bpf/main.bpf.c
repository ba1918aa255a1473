/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_powerpack: pack tasks on the fewest CPUs whose capacity carries them.
 *
 * The CPUs are ranked once, in the order in which they are to be filled; the
 * active set is a prefix of that order, sized by measured utilization. Tasks
 * run on active CPUs, wait for them within a latency budget, and spill beyond it. The ops below
 * are in the order in which the kernel calls them for a task; each is a few lines. What they
 * decide is in policy.h, how they do it in place.bpf.h (wakeups), dispatch.bpf.h (what runs next),
 * active.bpf.h (how many CPUs); agent.bpf.h is what the agent calls.
 * docs/how-it-decides.md has it in prose.
 */
#include "agent.bpf.h"
#include "cgroups.bpf.h"
#include "dump.bpf.h"
#include "hotplug.bpf.h"
#include "waker.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

/* ops.exit writes here so that the agent may sleep until the scheduler ends. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PP_EXIT_RING_BYTES);
} exit_ring SEC(".maps");

s32 BPF_STRUCT_OPS_SLEEPABLE(powerpack_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct pp_task *task =
		bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!task)
		return -ENOMEM;
	task->fresh = true;
	task->run_est_ns = PP_RUN_FIRST_NS;
	task->updated_ns = task->counted_ns = scx_bpf_now();
	task->weight = PP_WEIGHT_NICE_0;
	/* p is not in its cgroup yet: most often that is the one of its parent. */
	if (args->fork)
		inherit_cgroup(task, task_of(bpf_get_current_task_btf()));
	invalidate_cgroup(task);
	return 0;
}

void BPF_STRUCT_OPS(powerpack_enable, struct task_struct *p)
{
	struct pp_task *task = task_of(p);

	note_prologue();
	if (!task)
		return;
	task->waits_since_ns = 0;
	/* It may be back from a real-time class, into which a lock that a real-time task waits for
	 * takes it for a moment: it owes what it has had, and runs as long as it did. */
	if (!task->born_ns)
		task->born_ns = scx_bpf_now();
	refresh_allowed(p, task);
}

void BPF_STRUCT_OPS(powerpack_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct pp_task *task = task_of(p);

	if (task)
		refresh_allowed(p, task);
}

void BPF_STRUCT_OPS(powerpack_set_weight, struct task_struct *p, u32 weight)
{
	struct pp_task *task = task_of(p);

	if (task)
		invalidate_cgroup(task);
}

s32 BPF_STRUCT_OPS(powerpack_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct pp_task *task = task_of(p);
	s32 here = bpf_get_smp_processor_id(), cpu;
	bool sync = wake_flags & SCX_WAKE_SYNC, waker_first, stacks;
	u64 now = scx_bpf_now();
	u32 scope;

	if (!task)
		return prev_cpu;
	look_at_idle_perf(now);
	note_wakeup(task);
	note_waker(task, wake_flags);
	scope = scope_of_runnable(p, task);
	account_wakeup(task, prev_cpu, now);
	/* Left to ops.enqueue, which holds it. */
	if (is_throttled(task))
		return prev_cpu;
	waker_first = sync && waker_makes_way(scope, here, now);
	cpu = waker_first ? -1 : claim_for_scope(scope, task, prev_cpu);
	/* Where all are busy the waker's CPU is free next. */
	stacks = cpu < 0 && sync && can_stack(task, scope, here, now);
	if (stacks) {
		go_direct(here);
		cpu = here;
	} else if (waker_first) {
		cpu = claim_for_scope(scope, task, prev_cpu);
	}
	if (cpu < 0)
		return task->restricted ? prev_cpu : queueing_cpu(scope, prev_cpu);
	count(stacks ? PP_EV_WAKE_SYNC : PP_EV_WAKE_IDLE);
	note_why(p, task, stacks ? PP_WHY_WAKER : PP_WHY_IDLE, cpu);
	/* Bound it is not, or this would not be called. */
	run_by(p, task, cpu, is_for_some_cpus(task) ? cpu_queue(cpu) : llc_queue(cpu),
	       stacks && cpu_state(here)->running_since_ns ? 0 : enq_immed());
	return cpu;
}

/* Put a task where it may wait or run, by the kind of its affinity. */
static __always_inline void place(struct task_struct *p, struct pp_task *task, u64 enq_flags)
{
	u32 scope;

	if (is_bound(p)) {
		place_bound(p, task, enq_flags);
		return;
	}
	scope = scope_of_runnable(p, task);
	if (task->restricted || scope == PP_SCOPE_EFFICIENT) {
		count(PP_EV_BOUND);
		place_confined(p, task, scope, enq_flags);
		return;
	}
	if (enq_flags & SCX_ENQ_LAST)
		count(PP_EV_EVACUATE);
	place_free(p, task, scope, enq_flags);
}

void BPF_STRUCT_OPS(powerpack_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct pp_task *task = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct pp_cpu *state = cpu_state(cpu);

	if (!task) {
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, PP_SLICE_ALONE_NS, enq_flags);
		return;
	}
	leave_queue(task);
	end_hold(task);
	if ((enq_flags & SCX_ENQ_REENQ) && !state->running_since_ns)
		note_taken_back(state);
	/* The kernel does not call ops.select_cpu for a task that may run on one CPU only. */
	if (enq_flags & SCX_ENQ_WAKEUP)
		note_wakeup(task);
	/* ops.dispatch is not called any more on a CPU that goes offline, and it must
	 * not kick others. The kernel wakes the CPU that gets the task. */
	if (!state->online || is_dying_here()) {
		note_why(p, task, PP_WHY_OFFLINE, cpu);
		run_on(p, task, cpu, enq_flags);
		return;
	}
	if (task->limit && hold(p, task, enq_flags))
		return;
	if (state->rt_preempts && task->rt_preempted && waits_for_rt(p, task, state))
		wait_for_rt(p, task, cpu, enq_flags);
	else
		place(p, task, enq_flags);
	task->rt_preempted = false;
	task->async_woken = false;
}

void BPF_STRUCT_OPS(powerpack_dispatch, s32 cpu, struct task_struct *prev)
{
	lower_perf_when_woken(cpu);
	dispatch_cpu(cpu, prev);
}

void BPF_STRUCT_OPS(powerpack_running, struct task_struct *p)
{
	struct pp_task *task = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct pp_cpu *state = cpu_state(cpu);
	u64 now = scx_bpf_now();
	bool direct = state->direct_waiting;

	if (!task)
		return;
	account_rt(state, now);
	state->running_since_ns = now;
	begin_turn(p, state, now);
	state->direct_waiting = 0;
	state->curr_run_ns = task_run_pessimistic(task);
	begin_waker(task, cpu);
	task->off_demand = is_off_demand(task, cpu);
	leave_queue(task);
	end_hold(task);
	end_wait(task, now);
	observe_running(p, task, cpu, now);
	follow_clock(task, cpu);
	set_curr(state, task);
	pass_clock(task);
	update_perf_at_start(state, cpu, task, now);
	if (direct && !task->run_ns)
		let_earlier_first(state, cpu);
	note_tickless(p, state, cpu);
	note_misfit(p, task, cpu);
	if (task->limit)
		begin_limited(p, task);
}

void BPF_STRUCT_OPS(powerpack_tick, struct task_struct *p)
{
	tick_cpu(p, scx_bpf_task_cpu(p), scx_bpf_now());
	start_timers_again();
}

/* sched_yield(): if none waits for the CPU @from goes on, as under the kernel's own scheduler; else
 * it would be put back and taken again, some hundred times in each turn of a lock that spins that
 * way. That is why no kfunc is called before a counter says that one waits: what gets into the
 * local DSQ without being counted is seen by the next tick. */
bool BPF_STRUCT_OPS(powerpack_yield, struct task_struct *from, struct task_struct *to)
{
	s32 cpu = bpf_get_smp_processor_id();

	if (!to && (cpu_state(cpu)->direct_waiting || queues_wait(cpu)))
		scx_bpf_task_set_slice(from, 0);
	return false;
}

/* A running task that is given another nice value, affinity or cgroup is taken off its CPU as
 * if it went to sleep, and is put back: its run goes on, as its state says. */
void BPF_STRUCT_OPS(powerpack_stopping, struct task_struct *p, bool runnable)
{
	struct pp_task *task = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct pp_cpu *state = cpu_state(cpu);
	u64 now = scx_bpf_now();

	look_at_freq(state, cpu);
	account_run(task, state, now);
	state->running_since_ns = 0;
	state->rt_since_ns = now;
	end_misfit(cpu);
	if (!task)
		return;
	end_waker(task, cpu, now);
	if (task->charged)
		end_limited(p, task);
	follow_cgroup(p, task, now, stop_of(p, runnable));
	if (!runnable && p->__state != TASK_RUNNING)
		account_sleep(task, state, now);
	else if (runnable && p->scx.slice)
		note_rt_preempts(p, task, state);
	refresh_kind(p, task);
}

void BPF_STRUCT_OPS(powerpack_update_idle, s32 cpu, bool idle)
{
	struct pp_cpu *state = cpu_state(cpu);
	u64 now = scx_bpf_now();

	if (idle)
		account_rt(state, now);
	else
		state->rt_since_ns = now;
	if (!state->online)
		idle = false;
	set_idle(rank_of(cpu), idle);
	if (idle) {
		lower_perf_when_idle(state, cpu, now);
		fetch_misfit(cpu);
		start_timers_again();
	}
	/* One may have been queued after this CPU looked for a task and before it could be seen to
	 * be idle; it is counted before the kernel has put it in the queue. */
	if (idle && queues_counted(cpu))
		scx_bpf_kick_cpu(cpu, 0);
}

void BPF_STRUCT_OPS(powerpack_disable, struct task_struct *p)
{
	struct pp_task *task = task_of(p);

	if (task) {
		leave_queue(task);
		end_hold(task);
	}
}

void BPF_STRUCT_OPS(powerpack_cpu_online, s32 cpu)
{
	note_hotplug(cpu, true);
	/* Where one is that was offline as we were loaded was not known then, and is a constant
	 * now: an SMT sibling would be a core of its own. The agent loads again. */
	if (!was_online(rank_of(cpu)))
		scx_bpf_exit(SCX_ECODE_ACT_RESTART,
			     "CPU %d was offline as this was loaded: loading again", cpu);
}

void BPF_STRUCT_OPS(powerpack_cpu_offline, s32 cpu)
{
	note_hotplug(cpu, false);
	/* First, as one that a timer releases meanwhile comes to the CPU's own queue. */
	move_held_off(cpu);
	move_waiting_off(cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(powerpack_init)
{
	u32 llc, rank, node, queue;
	s32 err;

	slice_shared_ns = pp_slice_of_ticks(topology.tick_ns);
	bpf_for (llc, 0, topology.nr_llcs) {
		err = scx_bpf_create_dsq(llc, NUMA_NO_NODE);
		if (err) {
			scx_bpf_error("cannot create the queue of LLC %u: error %d", llc, err);
			return err;
		}
	}
	bpf_for (queue, 0, PP_HELD_QUEUES) {
		err = begin_held_queue(queue);
		if (err)
			return err;
	}
	bpf_for (rank, 0, topology.nr_ranks) {
		err = scx_bpf_create_dsq(cpu_queue(cpu_at(rank)), NUMA_NO_NODE);
		if (err) {
			scx_bpf_error("cannot create the queue of CPU %d: error %d", cpu_at(rank),
				      err);
			return err;
		}
		begin_cpu(rank);
		note_state(rank);
		/* Until its first tick or change of task says otherwise. */
		if (cpu_state(cpu_at(rank))->online) {
			idle_ranks[rank_word(rank)] |= rank_bit(rank);
			idle_words |= 1ULL << rank_word(rank);
			/* What the kernel gives at first. Lowered by each CPU itself, see
			 * look_at_idle_perf(): Linux 6.12 takes no lock to set another one's, and
			 * warns as it finds the clock of that run queue not up to date. */
			cpu_state(cpu_at(rank))->perf = PP_CAPACITY_MAX;
		}
	}
	bpf_for (node, 0, topology.nr_nodes)
		begin_node(node);
	active_set.nr = topology.nr_nodes;
	request_sizing();
	return 0;
}

void BPF_STRUCT_OPS(powerpack_exit, struct scx_exit_info *ei)
{
	u32 news = 1;

	UEI_RECORD(uei, ei);
	bpf_ringbuf_output(&exit_ring, &news, sizeof(news), BPF_RB_FORCE_WAKEUP);
}

SCX_OPS_DEFINE(powerpack_ops, .init_task = (void *)powerpack_init_task,
	       .enable = (void *)powerpack_enable, .set_cpumask = (void *)powerpack_set_cpumask,
	       .set_weight = (void *)powerpack_set_weight,
	       .select_cpu = (void *)powerpack_select_cpu, .enqueue = (void *)powerpack_enqueue,
	       .dispatch = (void *)powerpack_dispatch, .running = (void *)powerpack_running,
	       .tick = (void *)powerpack_tick, .yield = (void *)powerpack_yield,
	       .stopping = (void *)powerpack_stopping, .update_idle = (void *)powerpack_update_idle,
	       .disable = (void *)powerpack_disable, .cpu_online = (void *)powerpack_cpu_online,
	       .cpu_offline = (void *)powerpack_cpu_offline,
	       .cgroup_init = (void *)powerpack_cgroup_init,
	       .cgroup_exit = (void *)powerpack_cgroup_exit,
	       .cgroup_set_weight = (void *)powerpack_cgroup_set_weight,
	       .cgroup_set_bandwidth = (void *)powerpack_cgroup_set_bandwidth,
	       .cgroup_move = (void *)powerpack_cgroup_move, .init = (void *)powerpack_init,
	       .exit = (void *)powerpack_exit, .dump = (void *)powerpack_dump,
	       .dump_cpu = (void *)powerpack_dump_cpu, .dump_task = (void *)powerpack_dump_task,
	       /* A task that has waited this long is lost: the kernel takes over. */
	       .timeout_ms = 20000,
	       /* Tasks that exit too: else the kernel keeps them in the local DSQ, where
		* they pass whatever waits. Nothing here looks tasks up by pid. */
	       .flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING, .name = "powerpack");
