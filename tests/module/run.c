// SPDX-License-Identifier: GPL-2.0
/*
 * A run: the writers that one START began, from their memory to their end.
 *
 * The order of a start is memory, threads that sleep, the NMI handler, and only then what makes
 * anything run; the order of a stop is the reverse of it. So nothing that a writer uses comes after
 * it or goes before it.
 */
#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "torture.h"

/**
 * torture_cpus_resolve() - Make the CPUs of a request those that the run will have.
 * @request: No CPU in it stands for all that are online.
 *
 * Context: Under cpus_read_lock(), so that they stay what they are.
 * Return: 0, -EINVAL (one is not online).
 */
int torture_cpus_resolve(struct weir_torture_start *request)
{
	unsigned int cpu, any = 0;
	unsigned int nr = WEIR_TORTURE_CPU_WORDS * BITS_PER_TYPE(request->cpus[0]);

	for (cpu = 0; cpu < nr; cpu++) {
		if (!(request->cpus[cpu / 64] & BIT_ULL(cpu % 64)))
			continue;
		if (cpu >= nr_cpu_ids || !cpu_online(cpu))
			return -EINVAL;
		any++;
	}
	if (any)
		return 0;
	for_each_online_cpu(cpu)
		if (cpu < nr)
			request->cpus[cpu / 64] |= BIT_ULL(cpu % 64);
	return 0;
}

/**
 * torture_run_writer() - Look a writer up.
 * @run: The run.
 * @cpu: Any number.
 * @source: Any number.
 *
 * Return: The writer, or NULL where the run has no such one.
 */
struct torture_writer *torture_run_writer(struct torture_run *run, u32 cpu, u32 source)
{
	struct torture_writer *w;

	if (cpu >= run->nr || source >= WEIR_TORTURE_SOURCES || !run->per_cpu[cpu])
		return NULL;
	w = &run->per_cpu[cpu]->writers[source];
	return w->run ? w : NULL;
}

/**
 * torture_run_free() - Give back the memory of a run.
 * @run: A run that was stopped, or was not started.
 */
void torture_run_free(struct torture_run *run)
{
	unsigned int cpu, source;

	if (!run)
		return;
	for (cpu = 0; cpu < run->nr; cpu++) {
		if (!run->per_cpu[cpu])
			continue;
		for (source = 0; source < WEIR_TORTURE_SOURCES; source++)
			kfree(run->per_cpu[cpu]->writers[source].payload);
		kfree(run->per_cpu[cpu]);
	}
	free_cpumask_var(run->cpus);
	kfree(run);
}

/* Make the thread of a writer, which sleeps until the writer goes. */
static int torture_writer_thread(struct torture_writer *w)
{
	struct task_struct *task;

	task = kthread_create_on_cpu(torture_task, w, w->cpu, "weir_torture/%u");
	if (IS_ERR(task))
		return PTR_ERR(task);
	/* It may end by itself, and is to be there when it is stopped. */
	w->task = get_task_struct(task);
	return 0;
}

/* Make a writer ready to start; all that can fail is here. */
static int torture_writer_prepare(struct torture_run *run, u32 cpu, u32 source)
{
	struct torture_writer *w = &run->per_cpu[cpu]->writers[source];
	enum hrtimer_mode mode = HRTIMER_MODE_ABS_PINNED_HARD;
	u64 seed = run->request.seed;
	int error;

	w->payload = kzalloc_node(ALIGN(run->request.payload_max, sizeof(u64)), GFP_KERNEL,
				  cpu_to_node(cpu));
	if (!w->payload)
		return -ENOMEM;
	w->cpu = cpu;
	w->source = source;
	w->timer_cpu = cpu;
	w->random = 0x9E3779B9 ^ cpu << 8 ^ source ^ (u32)(seed ^ seed >> 32);
	/* Zero would stay zero. */
	w->random = w->random ?: 1;
	w->pause = run->request.interval_ns[source];
	if (source == WEIR_TORTURE_TASK) {
		error = torture_writer_thread(w);
		if (error)
			return error;
	} else {
		if (source == WEIR_TORTURE_SOFTIRQ)
			mode = HRTIMER_MODE_ABS_PINNED_SOFT;
		if (source == WEIR_TORTURE_NMI)
			w->timer_cpu = cpumask_next_wrap(cpu, run->cpus);
		hrtimer_setup(&w->timer, torture_timer, CLOCK_MONOTONIC, mode);
	}
	w->run = run;
	atomic_inc(&run->running);
	return 0;
}

/* End the writers that write on a CPU or whose timer runs there. */
static void torture_run_end_writers(struct torture_run *run, unsigned int cpu)
{
	struct torture_writer *w;
	unsigned int at, source;

	for_each_cpu(at, run->cpus) {
		for (source = 0; source < WEIR_TORTURE_SOURCES; source++) {
			w = torture_run_writer(run, at, source);
			if (!w || (w->cpu != cpu && w->timer_cpu != cpu))
				continue;
			if (w->task) {
				kthread_stop_put(w->task);
				w->task = NULL;
			} else if (source != WEIR_TORTURE_TASK) {
				hrtimer_cancel(&w->timer);
			}
			if (source == WEIR_TORTURE_NMI && !w->finished) {
				torture_writer_finish(w);
				torture_nmi_wait(w->cpu);
			}
			torture_writer_finish(w);
		}
	}
}

/**
 * torture_run_stop() - End all writers of a run.
 * @run: The run. Its counts stay.
 *
 * Return: The channel, of which the caller gives the reference back; NULL if that was done before.
 */
struct weir_channel *torture_run_stop(struct torture_run *run)
{
	struct weir_channel *channel = run->channel;
	unsigned int cpu;

	if (!channel)
		return NULL;
	list_del(&run->list);
	for_each_cpu(cpu, run->cpus)
		torture_run_end_writers(run, cpu);
	if (run->nmi)
		torture_nmi_stop(run);
	run->nmi = false;
	run->channel = NULL;
	return channel;
}

/**
 * torture_run_stop_cpu() - End the writers of a CPU that goes off-line.
 * @run: The run. Its other CPUs go on.
 * @cpu: The CPU. Its counts stay.
 */
void torture_run_stop_cpu(struct torture_run *run, unsigned int cpu)
{
	if (cpumask_test_cpu(cpu, run->cpus))
		torture_run_end_writers(run, cpu);
}

static struct torture_run *torture_run_alloc(const struct weir_torture_start *request)
{
	struct torture_run *run;
	unsigned int cpu;

	run = kzalloc_flex(*run, per_cpu, nr_cpu_ids);
	if (!run)
		return NULL;
	run->nr = nr_cpu_ids;
	run->request = *request;
	INIT_LIST_HEAD(&run->list);
	if (!zalloc_cpumask_var(&run->cpus, GFP_KERNEL)) {
		kfree(run);
		return NULL;
	}
	for (cpu = 0; cpu < nr_cpu_ids && cpu / 64 < WEIR_TORTURE_CPU_WORDS; cpu++) {
		if (!(request->cpus[cpu / 64] & BIT_ULL(cpu % 64)))
			continue;
		cpumask_set_cpu(cpu, run->cpus);
		run->per_cpu[cpu] = kzalloc_node(sizeof(*run->per_cpu[cpu]), GFP_KERNEL,
						 cpu_to_node(cpu));
		if (!run->per_cpu[cpu]) {
			torture_run_free(run);
			return NULL;
		}
	}
	return run;
}

static int torture_run_prepare(struct torture_run *run)
{
	unsigned int cpu, source;
	int error;

	for_each_cpu(cpu, run->cpus) {
		for (source = 0; source < WEIR_TORTURE_SOURCES; source++) {
			if (!(run->request.sources & BIT(source)))
				continue;
			error = torture_writer_prepare(run, cpu, source);
			if (error)
				return error;
		}
	}
	if (run->request.sources & BIT(WEIR_TORTURE_NMI)) {
		error = torture_nmi_start(run);
		if (error)
			return error;
		run->nmi = true;
	}
	return 0;
}

/* Let a writer go. With its CPUs held online nothing of it fails. */
static int torture_writer_go(struct torture_writer *w)
{
	if (w->task) {
		wake_up_process(w->task);
		return 0;
	}
	return smp_call_function_single(w->timer_cpu, torture_timer_start, w, 1);
}

/**
 * torture_run_resume_cpu() - Let writers go on that a CPU has ended by going off-line.
 * @run: The run.
 * @cpu: The CPU, which is back.
 *
 * Their counts go on where they were. A writer that another CPU is still missing for waits for
 * that.
 *
 * Context: Process context, the CPU hot-plug lock held.
 * Return: 0, or -ENOMEM.
 */
int torture_run_resume_cpu(struct torture_run *run, unsigned int cpu)
{
	struct torture_writer *w;
	unsigned int at, source;
	int error;

	if (!(run->request.flags & WEIR_TORTURE_COME_BACK) || !cpumask_test_cpu(cpu, run->cpus))
		return 0;
	for_each_cpu(at, run->cpus) {
		for (source = 0; source < WEIR_TORTURE_SOURCES; source++) {
			w = torture_run_writer(run, at, source);
			if (!w || !w->finished || (w->cpu != cpu && w->timer_cpu != cpu))
				continue;
			if (!cpu_online(w->cpu) || !cpu_online(w->timer_cpu))
				continue;
			if (source == WEIR_TORTURE_TASK) {
				/* One that has ended by itself has had what it was to have. */
				if (w->task)
					continue;
				error = torture_writer_thread(w);
				if (error)
					return error;
			}
			WRITE_ONCE(w->finished, false);
			atomic_inc(&run->running);
			error = torture_writer_go(w);
			if (error)
				return error;
		}
	}
	return 0;
}

static int torture_run_go(struct torture_run *run)
{
	struct torture_writer *w;
	unsigned int cpu, source;
	int error;

	if (run->request.duration_ns)
		run->deadline = ktime_get_ns() + run->request.duration_ns;
	for_each_cpu(cpu, run->cpus) {
		for (source = 0; source < WEIR_TORTURE_SOURCES; source++) {
			w = torture_run_writer(run, cpu, source);
			if (!w)
				continue;
			error = torture_writer_go(w);
			if (error)
				return error;
		}
	}
	return 0;
}

/**
 * torture_run_start() - Start the writers of a request.
 * @request: A valid one, its defaults filled in and its CPUs resolved.
 * @channel: Where to write; the reference is the run's only where this succeeds.
 *
 * Return: The run, or an error pointer: -EBUSY and -EOPNOTSUPP (NMI), -ENOMEM.
 */
struct torture_run *torture_run_start(const struct weir_torture_start *request,
				      struct weir_channel *channel)
{
	struct torture_run *run = torture_run_alloc(request);
	int error;

	if (!run)
		return ERR_PTR(-ENOMEM);
	run->channel = channel;
	error = torture_run_prepare(run);
	if (!error)
		error = torture_run_go(run);
	if (error) {
		torture_run_stop(run);
		torture_run_free(run);
		return ERR_PTR(error);
	}
	return run;
}
