// SPDX-License-Identifier: GPL-2.0
/*
 * What writers do: one write, counted, and the loops around it in a thread and in timers.
 */
#include <linux/errno.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include <linux/weir.h>

#include "torture.h"

/* Being late makes a timer wait for up to this, ns. */
#define TORTURE_PAUSE_LATE	NSEC_PER_MSEC

/* Its own cost does so for up to this, ns. */
#define TORTURE_PAUSE_COST	(8 * NSEC_PER_MSEC)

/* The thread sends its CPU an NMI before every so many records. */
#define TORTURE_TASK_NMI	64

/* Calls of weir_channel_write() under way on this CPU. */
static DEFINE_PER_CPU(int, torture_depth);

/* Only the writer's own context counts; STATUS looks on. */
static void torture_count(u64 *count)
{
	WRITE_ONCE(*count, *count + 1);
}

/* Writes a payload by way of a reservation, and now and then gives one up before that. */
static int torture_write_in_place(struct torture_writer *w, u32 len)
{
	struct weir_reservation reservation;
	void *at;

	if (w->attempted % 16 == 15) {
		at = weir_channel_reserve(w->run->channel, &reservation, len);
		/* The caller counts what is refused. */
		if (IS_ERR(at))
			return PTR_ERR(at);
		memset(at, 0xff, len);
		weir_channel_discard(&reservation);
		torture_count(&w->given_up);
	}
	at = weir_channel_reserve(w->run->channel, &reservation, len);
	if (IS_ERR(at))
		return PTR_ERR(at);
	memcpy(at, w->payload, len);
	weir_channel_commit(&reservation);
	return 0;
}

/**
 * torture_write() - Write the next record of a writer, and count what became of it.
 * @w: The writer.
 *
 * Context: That of the writer, on its CPU: task with migration disabled, softirq, hard interrupt or
 * NMI.
 */
void torture_write(struct torture_writer *w)
{
	u32 len = torture_record_fill(w);
	bool inside = this_cpu_read(torture_depth) > 0;
	int error;

	/* What interrupts this leaves the depth as it found it. */
	this_cpu_inc(torture_depth);
	if (w->run->request.flags & WEIR_TORTURE_IN_PLACE)
		error = torture_write_in_place(w, len);
	else
		error = weir_channel_write(w->run->channel, w->payload, len);
	this_cpu_dec(torture_depth);

	switch (error) {
	case 0:
		torture_count(&w->written);
		if (inside)
			torture_count(&w->inside);
		break;
	case -ENOSPC:
		torture_count(&w->refused[WEIR_TORTURE_ENOSPC]);
		break;
	case -EDEADLK:
		torture_count(&w->refused[WEIR_TORTURE_EDEADLK]);
		break;
	case -EMSGSIZE:
		torture_count(&w->refused[WEIR_TORTURE_EMSGSIZE]);
		break;
	default:
		torture_count(&w->refused[WEIR_TORTURE_OTHER]);
		WRITE_ONCE(w->other_errno, error);
	}
	torture_count(&w->attempted);
}

/**
 * torture_writer_finish() - Take a writer off the count of those that run.
 * @w: The writer. Only its own loop calls this, or whoever has ended that loop.
 */
void torture_writer_finish(struct torture_writer *w)
{
	if (w->finished)
		return;
	WRITE_ONCE(w->finished, true);
	atomic_dec(&w->run->running);
}

static bool torture_expired(const struct torture_writer *w)
{
	const struct torture_run *run = w->run;

	if (run->request.records && READ_ONCE(w->attempted) >= run->request.records)
		return true;
	return run->deadline && ktime_get_ns() >= run->deadline;
}

/* Sleep between two records, or until the thread is to stop. */
static void torture_task_sleep(u64 interval)
{
	ktime_t timeout = ns_to_ktime(interval);

	set_current_state(TASK_INTERRUPTIBLE);
	if (!kthread_should_stop())
		schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
}

/**
 * torture_task() - The thread of WEIR_TORTURE_TASK.
 * @data: Its writer.
 *
 * Return: 0.
 */
int torture_task(void *data)
{
	struct torture_writer *w = data;
	struct torture_writer *nmi = torture_run_writer(w->run, w->cpu, WEIR_TORTURE_NMI);
	u64 interval = w->run->request.interval_ns[WEIR_TORTURE_TASK];

	while (!kthread_should_stop() && !torture_expired(w)) {
		/*
		 * The thread is bound to its CPU, but one that goes off-line throws it out before
		 * it stops it. Preemption stays enabled: weir has to look after itself.
		 */
		migrate_disable();
		if (raw_smp_processor_id() == w->cpu) {
			if (nmi && w->attempted % TORTURE_TASK_NMI == 0)
				torture_nmi_send(nmi);
			torture_write(w);
		}
		migrate_enable();
		if (interval)
			torture_task_sleep(interval);
		else
			cond_resched();
	}
	torture_writer_finish(w);
	return 0;
}

/* xorshift32: good enough to spread interrupts, and usable anywhere. */
static u32 torture_random(struct torture_writer *w)
{
	u32 x = w->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	w->random = x;
	return x;
}

/*
 * How long a timer waits: its interval, or more where the machine cannot follow, since a CPU that
 * does nothing but interrupts gets nowhere. The work takes at most a fifth of the time. Where a
 * timer is late nonetheless, other timers and the interrupts as such take the rest: it backs off.
 */
static u32 torture_pause(struct torture_writer *w, s64 late, s64 cost)
{
	u64 interval = w->run->request.interval_ns[w->source];
	u64 pause = w->pause - w->pause / 8;

	if (late > w->pause / 2)
		pause = min_t(u64, (u64)w->pause * 2, TORTURE_PAUSE_LATE);
	w->pause = max3(pause, interval, min_t(u64, 4 * cost, TORTURE_PAUSE_COST));
	return w->pause + ((u64)torture_random(w) * (w->pause / 2) >> 32);
}

/**
 * torture_timer() - The timer of all sources but the thread.
 * @timer: In a writer.
 *
 * Context: Softirq or hard interrupt, as the timer was set up.
 * Return: Whether it goes on.
 */
enum hrtimer_restart torture_timer(struct hrtimer *timer)
{
	struct torture_writer *w = container_of(timer, struct torture_writer, timer);
	ktime_t begin = ktime_get(), end;
	s64 late = ktime_to_ns(ktime_sub(begin, hrtimer_get_expires(timer))), cost;

	if (torture_expired(w)) {
		torture_writer_finish(w);
		return HRTIMER_NORESTART;
	}
	if (w->source == WEIR_TORTURE_NMI)
		torture_nmi_send(w);
	else
		torture_write(w);
	end = ktime_get();
	cost = ktime_to_ns(ktime_sub(end, begin));
	hrtimer_set_expires(timer, ktime_add_ns(end, torture_pause(w, late, cost)));
	return HRTIMER_RESTART;
}

/**
 * torture_timer_start() - Start the timer of a writer on the present CPU.
 * @data: The writer.
 *
 * Context: An interrupt on the CPU that the timer shall run on.
 */
void torture_timer_start(void *data)
{
	struct torture_writer *w = data;

	hrtimer_start(&w->timer, ktime_add_ns(ktime_get(), w->pause),
		      w->source == WEIR_TORTURE_SOFTIRQ ? HRTIMER_MODE_ABS_PINNED_SOFT :
							  HRTIMER_MODE_ABS_PINNED_HARD);
}
