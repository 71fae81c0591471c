// SPDX-License-Identifier: GPL-2.0
/*
 * Work of which it is known what it counts: writes of a variable that a breakpoint looks at.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "counters.h"

unsigned long counters_target[COUNTERS_TARGETS];

/* More bytes than the function below has, with every kind of instrumentation. */
#define COUNTERS_HIT_BYTES	512

noinline void counters_hit(unsigned int target, unsigned int times)
{
	unsigned int i;

	for (i = 0; i < times; i++)
		WRITE_ONCE(counters_target[target], i);
}

bool counters_is_hit(u64 ip)
{
	return ip - (unsigned long)counters_hit < COUNTERS_HIT_BYTES;
}

struct counters_remote {
	unsigned int target;
	unsigned int times;
};

static long counters_hit_remote(void *data)
{
	struct counters_remote *remote = data;

	counters_hit(remote->target, remote->times);
	return 0;
}

int counters_hit_on(unsigned int cpu, unsigned int target, unsigned int times)
{
	struct counters_remote remote = { target, times };

	return work_on_cpu(cpu, counters_hit_remote, &remote);
}

/* --- Threads that do what they are told --- */

static void counters_worker_work(struct kthread_work *work)
{
	struct counters_worker *w = container_of(work, struct counters_worker, work);

	if (w->call)
		w->call(w->data);
	else
		counters_hit(w->target, w->times);
}

int counters_worker_start(struct counters_worker *w, int cpu)
{
	if (cpu >= 0)
		w->worker = kthread_run_worker_on_cpu(cpu, 0, "weir_counters/%u");
	else
		w->worker = kthread_run_worker(0, "weir_counters");
	kthread_init_work(&w->work, counters_worker_work);
	return PTR_ERR_OR_ZERO(w->worker);
}

void counters_worker_stop(struct counters_worker *w)
{
	if (!IS_ERR_OR_NULL(w->worker))
		kthread_destroy_worker(w->worker);
	w->worker = NULL;
}

static void counters_worker_do(struct counters_worker *w)
{
	kthread_queue_work(w->worker, &w->work);
	kthread_flush_work(&w->work);
}

void counters_worker_hit(struct counters_worker *w, unsigned int target, unsigned int times)
{
	w->call = NULL;
	w->target = target;
	w->times = times;
	counters_worker_do(w);
}

void counters_worker_call(struct counters_worker *w, void (*call)(void *data), void *data)
{
	w->call = call;
	w->data = data;
	counters_worker_do(w);
}

/* --- Threads that hit without a pause --- */

static int counters_hitter(void *data)
{
	struct counters_hitters *h = data;

	while (!kthread_should_stop()) {
		if (READ_ONCE(h->paused)) {
			atomic_inc(&h->idle);
			while (READ_ONCE(h->paused) && !kthread_should_stop())
				usleep_range(50, 100);
			atomic_dec(&h->idle);
			continue;
		}
		if (h->call)
			h->call(h->data);
		else
			counters_hit(0, 1);
		atomic_long_inc(&h->hits);
		cond_resched();
	}
	return 0;
}

int counters_hitters_start(struct counters_hitters *h)
{
	unsigned int cpu;
	int error = 0;

	h->nr = 0;
	atomic_set(&h->idle, 0);
	atomic_long_set(&h->hits, 0);
	h->tasks = kcalloc(nr_cpu_ids, sizeof(*h->tasks), GFP_KERNEL);
	if (!h->tasks)
		return -ENOMEM;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct task_struct *task;

		task = kthread_create_on_cpu(counters_hitter, h, cpu, "weir_hitter/%u");
		if (IS_ERR(task)) {
			error = PTR_ERR(task);
			break;
		}
		h->tasks[h->nr++] = task;
		wake_up_process(task);
	}
	cpus_read_unlock();
	if (error)
		counters_hitters_stop(h);
	return error;
}

void counters_hitters_stop(struct counters_hitters *h)
{
	while (h->nr)
		kthread_stop(h->tasks[--h->nr]);
	kfree(h->tasks);
	h->tasks = NULL;
}

void counters_hitters_pause(struct counters_hitters *h)
{
	WRITE_ONCE(h->paused, true);
	while (atomic_read(&h->idle) != h->nr)
		usleep_range(50, 100);
}

void counters_hitters_resume(struct counters_hitters *h)
{
	WRITE_ONCE(h->paused, false);
	while (atomic_read(&h->idle))
		usleep_range(50, 100);
}

bool counters_hitters_wait(struct counters_hitters *h, unsigned int times)
{
	long begin = atomic_long_read(&h->hits);
	unsigned long end = jiffies + HZ;

	while (atomic_long_read(&h->hits) - begin < times) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(20, 50);
	}
	return true;
}

u64 counters_value(struct weir_counters_run *run, struct weir_counter *counter)
{
	struct weir_counter_value value = {};

	counters_expect_error(run, weir_counter_read(counter, &value, 1), 0);
	return value.value;
}
