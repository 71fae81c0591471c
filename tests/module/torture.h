/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of weir_torture.ko know of each other: device.c takes the ioctls, run.c starts and
 * stops the writers of one run, writer.c is what they do, nmi.c the way into NMI context, and
 * record.c what they write.
 */
#ifndef _TORTURE_H
#define _TORTURE_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/types.h>

#include "weir_torture.h"

struct task_struct;
struct torture_run;
struct weir_channel;

/**
 * struct torture_writer - One source on one CPU.
 * @run: The run it belongs to, NULL for a source that the run does not have.
 * @cpu: The CPU it writes on.
 * @source: WEIR_TORTURE_TASK and so on.
 * @timer_cpu: The CPU its timer runs on: @cpu, but for an NMI another one, where there is one, so
 *	that the NMI meets @cpu at any instruction.
 * @finished: It has left run->running.
 * @random: State of the timer's random numbers.
 * @pause: Nanoseconds that the timer waits now.
 * @other_errno: The last error that weir_channel_write() is not documented to give.
 * @attempted: Calls of weir_channel_write().
 * @written: Those that gave 0.
 * @refused: The others, by WEIR_TORTURE_ENOSPC and so on.
 * @inside: Those written while another write was under way on the CPU.
 * @given_up: Reservations that were discarded; no attempts.
 * @timer: The timer, for all but WEIR_TORTURE_TASK.
 * @task: The thread, for WEIR_TORTURE_TASK.
 * @payload: Room for the largest payload.
 *
 * The counts have one writer, in one context that does not nest in itself, so they need no atomic
 * operation. STATUS reads them at any time.
 */
struct torture_writer {
	struct torture_run *run;
	u32 cpu;
	u32 source;
	u32 timer_cpu;
	bool finished;
	u32 random;
	u32 pause;
	int other_errno;
	u64 attempted;
	u64 written;
	u64 refused[WEIR_TORTURE_ERRORS];
	u64 inside;
	u64 given_up;
	struct hrtimer timer;
	struct task_struct *task;
	void *payload;
};

/* The writers of one CPU, by source. */
struct torture_cpu {
	struct torture_writer writers[WEIR_TORTURE_SOURCES];
};

/**
 * struct torture_run - What one START began.
 * @list: On the list of runs that are not stopped.
 * @channel: Where to write; a reference, NULL once the run was stopped.
 * @request: What START was given, its defaults filled in.
 * @cpus: The CPUs it runs on.
 * @running: Writers that have not ended.
 * @deadline: CLOCK_MONOTONIC, ns: when each writer ends; 0 for never.
 * @nmi: It holds the NMI.
 * @nr: Number of entries of @per_cpu.
 * @per_cpu: The writers, NULL for CPUs that are not in @cpus.
 */
struct torture_run {
	struct list_head list;
	struct weir_channel *channel;
	struct weir_torture_start request;
	cpumask_var_t cpus;
	atomic_t running;
	u64 deadline;
	bool nmi;
	unsigned int nr;
	struct torture_cpu *per_cpu[] __counted_by(nr);
};

/* record.c */
u32 torture_record_fill(struct torture_writer *w);

/* writer.c */
int torture_task(void *data);
enum hrtimer_restart torture_timer(struct hrtimer *timer);
void torture_timer_start(void *data);
void torture_write(struct torture_writer *w);
void torture_writer_finish(struct torture_writer *w);

/* run.c: under torture_lock; what comes before a start under cpus_read_lock(), too. */
int torture_cpus_resolve(struct weir_torture_start *request);
struct torture_run *torture_run_start(const struct weir_torture_start *request,
				      struct weir_channel *channel);
struct weir_channel *torture_run_stop(struct torture_run *run);
void torture_run_stop_cpu(struct torture_run *run, unsigned int cpu);
int torture_run_resume_cpu(struct torture_run *run, unsigned int cpu);
void torture_run_free(struct torture_run *run);
struct torture_writer *torture_run_writer(struct torture_run *run, u32 cpu, u32 source);

/* own.c */
int torture_own_create(struct weir_channel **own, struct weir_torture_create *request);
void torture_own_destroy(struct weir_channel **own);

/* nmi.c */
#ifdef CONFIG_X86_LOCAL_APIC
int torture_nmi_start(struct torture_run *run);
void torture_nmi_stop(struct torture_run *run);
void torture_nmi_send(struct torture_writer *w);
void torture_nmi_wait(unsigned int cpu);
#else
static inline int torture_nmi_start(struct torture_run *run)
{
	return -EOPNOTSUPP;
}

static inline void torture_nmi_stop(struct torture_run *run) { }
static inline void torture_nmi_send(struct torture_writer *w) { }
static inline void torture_nmi_wait(unsigned int cpu) { }
#endif

#endif /* _TORTURE_H */
