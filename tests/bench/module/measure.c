// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel thread that calls: in batches that are measured, or at a rate.
 */
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "bench.h"

/* Calls between two looks at the clock, at most: an overdue call need not wait for the others. */
#define BENCH_BURST	64

static void bench_batches(struct bench_run *run)
{
	unsigned int batch, i;
	u64 begin;

	for (batch = 0; batch < run->batches && !kthread_should_stop(); batch++) {
		preempt_disable();
		begin = bench_now();
		for (i = 0; i < run->calls; i++)
			run->call();
		run->samples[batch] = bench_now() - begin;
		preempt_enable();
		run->made += run->calls;
		cond_resched();
	}
}

static void bench_pace(struct bench_run *run)
{
	u64 begin = ktime_get_ns(), due;
	unsigned int i;

	while (!kthread_should_stop()) {
		run->elapsed = ktime_get_ns() - begin;
		if (run->elapsed >= run->duration)
			break;
		due = mul_u64_u64_div_u64(run->elapsed, run->rate, NSEC_PER_SEC);
		for (i = 0; i < BENCH_BURST && run->made < due; i++, run->made++)
			run->call();
		if (i < BENCH_BURST)
			cpu_relax();
		cond_resched();
	}
}

static int bench_thread(void *data)
{
	struct bench_run *run = data;

	if (run->rate)
		bench_pace(run);
	else
		bench_batches(run);
	complete(&run->done);
	return 0;
}

/**
 * bench_run() - Run calls in a kernel thread of a CPU, to their end.
 * @run: What to run.
 *
 * Return: 0, -EINTR (the caller was killed), -ENOMEM.
 */
int bench_run(struct bench_run *run)
{
	struct task_struct *task;
	int error;

	init_completion(&run->done);
	task = kthread_create_on_cpu(bench_thread, run, run->cpu, "weir_bench/%u");
	if (IS_ERR(task))
		return PTR_ERR(task);
	/* It ends by itself, and is to be there when it is stopped. */
	get_task_struct(task);
	wake_up_process(task);
	error = wait_for_completion_killable(&run->done);
	kthread_stop_put(task);
	return error;
}
