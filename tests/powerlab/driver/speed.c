// SPDX-License-Identifier: GPL-2.0-only
/*
 * A slower CPU is slower. The emulated CPU always runs at full speed; what its
 * frequency, its kind and the other threads of its core do not give it, a timer
 * takes: for what a task has run it owes time, and the timer's interrupt spins
 * that time away. The interrupt is charged to the task, as the longer run on a
 * slower clock would be (the kernel must not account for the time of interrupts
 * separately). An idle CPU has no timer. What a task owes when it stops, at most
 * one slice, is paid by whatever runs next on that CPU.
 *
 * /dev/powerlab: who reads it gets 8 bytes, the work that the calling thread has
 * done: nanoseconds of the fastest CPU at its highest frequency.
 */
#include <linux/fs.h>
#include <linux/kernel_stat.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched/cputime.h>
#include <linux/threads.h>
#include <linux/vmalloc.h>
#include <trace/events/sched.h>

#include "powerlab.h"

/* From one payment to the next, of time and at least of work. */
#define SLICE_NS (200 * NSEC_PER_USEC)
#define SLICE_WORK_NS (50 * NSEC_PER_USEC)
/* Time that an interrupt of ours takes outside its handler, in instructions. */
#define INTERRUPT_NS 1500
/* Turns of a loop, of some instructions each: about a microsecond. */
#define SPIN_TURNS_MAX 250
/* What is owed is forgiven beyond this. */
#define DEBT_MAX_NS (20 * NSEC_PER_MSEC)

/* Off while the machine boots: nobody waits for that. */
static bool slow;
module_param(slow, bool, 0644);
MODULE_PARM_DESC(slow, "let slow CPUs be slow");

/* Time that was taken from a thread, by its process id. */
static u64 *taken_ns;
#define NR_TAKEN 65536

/* Running CPUs of each core. */
static int *nr_busy;

/* The speed of @cpu while it runs something: 1..PL_FULL_SPEED. */
u32 pl_speed_of(const struct pl_cpu *cpu)
{
	const struct pl_kind *kind = cpu->kind;
	int threads = clamp(nr_busy[cpu->core], 1, PL_MAX_THREADS);
	u64 speed = PL_FULL_SPEED / 1024 * kind->capacity;
	const struct pl_opp *opp = pl_opp_of(&pl_domains[cpu->domain]);

	if (opp)
		speed = speed * opp->mhz / kind->opps[kind->nr_opps - 1].mhz;
	speed = speed * kind->speed_pct[threads - 1] / 100;
	return max_t(u64, speed, 1);
}

/* @cpu owes for what it has run until @now, at the speed that it had. */
void pl_settle_speed(struct pl_cpu *cpu, u64 now)
{
	u32 speed = pl_speed_of(cpu);
	u64 ns = now > cpu->since_ns ? now - cpu->since_ns : 0;

	cpu->since_ns = now;
	if (!cpu->busy || cpu->paying || !READ_ONCE(slow))
		return;
	cpu->debt_ns += div_u64(ns * (PL_FULL_SPEED - speed), speed);
	cpu->debt_ns = min(cpu->debt_ns, DEBT_MAX_NS);
}

static void settle_core(int core, u64 now)
{
	int i;

	for (i = 0; i < pl_nr_cpus; i++)
		if (pl_cpus[i].core == core)
			pl_settle_speed(&pl_cpus[i], now);
}

/*
 * Lets time pass until @end_ns. Reads the clock seldom: emulated, that is expensive. The CPUs of a
 * virtual machine in virtual time share one stream of instructions, and those that wait here should
 * leave it to the others: the emulator goes on with the next CPU at each cpu_relax().
 */
void pl_spin_until(u64 end_ns)
{
	u64 now;
	int i;

	while ((now = pl_now()) < end_ns) {
		int turns = min_t(u64, (end_ns - now) / 16, SPIN_TURNS_MAX);

		for (i = 0; i < turns; i++)
			barrier();
		cpu_relax();
	}
}

/* How long @cpu works from one payment to the next. */
static u64 work_ns(const struct pl_cpu *cpu)
{
	return max_t(u64, mul_u64_u32_shr(SLICE_NS, pl_speed_of(cpu), 16), SLICE_WORK_NS);
}

/* Spins away what @cpu, the one that executes this, owes. */
static void pay(struct pl_cpu *cpu)
{
	u64 begin = pl_now(), end;

	raw_spin_lock(&pl_lock);
	pl_settle_speed(cpu, begin);
	end = begin + cpu->debt_ns;
	end -= min(cpu->debt_ns, (u64)INTERRUPT_NS);
	cpu->paying = true;
	raw_spin_unlock(&pl_lock);

	pl_spin_until(end);

	raw_spin_lock(&pl_lock);
	end = pl_now();
	if (cpu->debt_ns) {
		taken_ns[current->pid % NR_TAKEN] += end - begin + INTERRUPT_NS;
		cpu->debt_ns -= min(cpu->debt_ns, end - begin + INTERRUPT_NS);
	}
	cpu->paying = false;
	/* The interrupt's own time is no work; how much of it is counted as such was measured. */
	cpu->since_ns = end + INTERRUPT_NS / 2;
	raw_spin_unlock(&pl_lock);
}

static enum hrtimer_restart timer_fires(struct hrtimer *timer)
{
	struct pl_cpu *cpu = container_of(timer, struct pl_cpu, timer);

	/* Of a CPU that was offlined the timer has moved. */
	if (cpu->cpu != smp_processor_id() || !cpu->busy || cpu->offline)
		return HRTIMER_NORESTART;
	if (READ_ONCE(slow))
		pay(cpu);
	hrtimer_forward_now(timer, READ_ONCE(slow) ? work_ns(cpu) : NSEC_PER_MSEC);
	return HRTIMER_RESTART;
}

/* Whether @cpu is ever slower than the fastest. */
static bool may_be_slow(const struct pl_cpu *cpu)
{
	return cpu->kind->capacity < 1024 || cpu->kind->nr_opps > 1 || cpu->kind->threads > 1;
}

/* @cpu begins or ends to run tasks; interrupts are off. */
static void set_busy(struct pl_cpu *cpu, bool busy)
{
	u64 now, debt, speed, left;

	if (cpu->offline || cpu->busy == busy || !may_be_slow(cpu))
		return;
	raw_spin_lock(&pl_lock);
	now = pl_now();
	settle_core(cpu->core, now);
	cpu->busy = busy;
	nr_busy[cpu->core] += busy ? 1 : -1;
	debt = cpu->debt_ns;
	speed = pl_speed_of(cpu);
	left = work_ns(cpu);
	raw_spin_unlock(&pl_lock);
	if (!busy) {
		hrtimer_try_to_cancel(&cpu->timer);
		return;
	}
	/* Sooner by what it owes already. */
	if (speed < PL_FULL_SPEED)
		left -= min(left, div_u64(debt * speed, PL_FULL_SPEED - speed));
	hrtimer_start(&cpu->timer, max_t(u64, left, 5 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static void sched_switched(void *data, bool preempt, struct task_struct *prev,
			   struct task_struct *next, unsigned int prev_state)
{
	int cpu = smp_processor_id();

	if (cpu < pl_nr_cpus)
		set_busy(&pl_cpus[cpu], !is_idle_task(next));
}

/* Process ids are used again. */
static void process_forked(void *data, struct task_struct *parent, struct task_struct *child)
{
	taken_ns[child->pid % NR_TAKEN] = 0;
}

/* In the context of a task of @cpu. */
void pl_speed_offline(struct pl_cpu *cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	set_busy(cpu, false);
	cpu->offline = true;
	local_irq_restore(flags);
	hrtimer_cancel(&cpu->timer);
}

void pl_speed_online(struct pl_cpu *cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	cpu->offline = false;
	cpu->debt_ns = 0;
	set_busy(cpu, true);
	local_irq_restore(flags);
}

static ssize_t read_work(struct file *file, char __user *buffer, size_t size, loff_t *at)
{
	u64 work;

	if (size < sizeof(work))
		return -EINVAL;
	local_irq_disable();
	work = task_sched_runtime(current);
	work -= min(work, taken_ns[current->pid % NR_TAKEN]);
	local_irq_enable();
	return copy_to_user(buffer, &work, sizeof(work)) ? -EFAULT : sizeof(work);
}

static const struct file_operations work_fops = {
	.owner = THIS_MODULE,
	.read = read_work,
	.llseek = noop_llseek,
};

static struct miscdevice work_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "powerlab",
	.fops = &work_fops,
	.mode = 0444,
};

struct device *pl_device;

int pl_speed_init(void)
{
	int i, err;

	taken_ns = vzalloc(array_size(NR_TAKEN, sizeof(*taken_ns)));
	nr_busy = kcalloc(PL_MAX_CPUS, sizeof(*nr_busy), GFP_KERNEL);
	if (!taken_ns || !nr_busy)
		return -ENOMEM;
	for (i = 0; i < pl_nr_cpus; i++) {
		hrtimer_init(&pl_cpus[i].timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		pl_cpus[i].timer.function = timer_fires;
	}
	err = register_trace_sched_switch(sched_switched, NULL) ?:
	      register_trace_sched_process_fork(process_forked, NULL) ?:
	      misc_register(&work_device);
	pl_device = work_device.this_device;
	return err;
}
