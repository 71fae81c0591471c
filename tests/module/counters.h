/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of weir_counters.ko know of each other: counters.c is the device and the list of
 * tests, counters_work.c makes what is counted, counters_context.c calls from softirqs, interrupts
 * and NMIs, counters_pmu.c is a PMU of this module, and the others are the tests.
 */
#ifndef _COUNTERS_H
#define _COUNTERS_H

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/hw_breakpoint.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <linux/weir.h>

#include "weir_counters.h"

struct counters_pmu;

/* Released when its scope ends, whatever the test has found. */
DEFINE_FREE(counter, struct weir_counter *, weir_counter_release(_T))

/* counters.c */
__printf(2, 3) void counters_note(struct weir_counters_run *run, const char *format, ...);
__printf(2, 3) void counters_fail(struct weir_counters_run *run, const char *format, ...);

/* Gives whether @condition holds; if it does not, the report says so, with what follows. */
#define counters_expect(run, condition, format, ...) ({				\
	bool __met = !!(condition);						\
	if (!__met)								\
		counters_fail(run, "%s:%d: " format, __func__, __LINE__, ##__VA_ARGS__); \
	__met;									\
})

/* A call that is expected to give @wanted. */
#define counters_expect_error(run, call, wanted) ({				\
	long __got = (call), __wanted = (wanted);				\
	counters_expect(run, __got == __wanted, "%s: %ld, not %ld", #call, __got, __wanted); \
})

/* --- counters_work.c --- */

/*
 * Variables that breakpoints look at; nobody else writes them. On one CPU each has one breakpoint
 * at a time: QEMU tells of one of several.
 */
#define COUNTERS_TARGETS	3
extern unsigned long counters_target[COUNTERS_TARGETS];

/* How often a test's events happen: writes of a target, on this CPU. */
void counters_hit(unsigned int target, unsigned int times);
/* The same on another CPU. */
int counters_hit_on(unsigned int cpu, unsigned int target, unsigned int times);
bool counters_is_hit(u64 ip);

/**
 * struct counters_worker - A thread that does what it is told.
 * @worker: Its thread and queue.
 * @work: What it is told.
 * @call: A function, or NULL to hit @target so many @times.
 * @data: For @call.
 * @target: Which target.
 * @times: How often.
 */
struct counters_worker {
	struct kthread_worker *worker;
	struct kthread_work work;
	void (*call)(void *data);
	void *data;
	unsigned int target;
	unsigned int times;
};

/* On a CPU, or with a negative number on any. */
int counters_worker_start(struct counters_worker *w, int cpu);
void counters_worker_stop(struct counters_worker *w);
void counters_worker_hit(struct counters_worker *w, unsigned int target, unsigned int times);
void counters_worker_call(struct counters_worker *w, void (*call)(void *data), void *data);

/* Threads that hit without a pause, one on each online CPU, until they are stopped. */
struct counters_hitters {
	unsigned int nr;
	bool paused;
	atomic_t idle;
	struct task_struct **tasks;
	/* Called instead of hitting target 0. */
	void (*call)(void *data);
	void *data;
	atomic_long_t hits;
};

int counters_hitters_start(struct counters_hitters *h);
void counters_hitters_stop(struct counters_hitters *h);
/* When it returns, nobody hits until the next counters_hitters_resume(). */
void counters_hitters_pause(struct counters_hitters *h);
void counters_hitters_resume(struct counters_hitters *h);
/* Waits until they have hit so often from now on; false if they have not after a second. */
bool counters_hitters_wait(struct counters_hitters *h, unsigned int times);

/* Breakpoint on a target, and what more is named. */
#define counters_breakpoint(target, ...)						\
	WEIR_BREAKPOINT_EVENT(&counters_target[target], sizeof(unsigned long), W,	\
			      ##__VA_ARGS__)

/* A counter of one event, the rest of its configuration as named. */
#define counters_create(event, ...) ({					\
	struct perf_event_attr __attr = (event);			\
	struct weir_counter_config __config = {				\
		.events = &__attr, .nr_events = 1, ##__VA_ARGS__	\
	};								\
	weir_counter_create(&__config);					\
})

/* Reads a counter of one event; the report says if that fails. */
u64 counters_value(struct weir_counters_run *run, struct weir_counter *counter);

/* --- counters_context.c --- */

enum counters_context {
	COUNTERS_TASK,
	COUNTERS_SOFTIRQ,
	COUNTERS_IRQ,
	COUNTERS_NMI,
	COUNTERS_CONTEXTS,
};

const char *counters_context_name(enum counters_context context);
/*
 * Calls a function on this CPU in a context that interrupts this task. Returns -EOPNOTSUPP where
 * there is no way to do that, or -ETIMEDOUT.
 */
int counters_in(enum counters_context context, void (*call)(void *data), void *data);
int counters_context_init(void);
void counters_context_exit(void);

/* --- counters_pmu.c --- */

/* Registers a PMU which counts what counters_tick() is told. */
struct counters_pmu *counters_pmu_register(const char *name, bool software, unsigned int slots);
/* Takes it away, whoever has events on it, and gives back its memory; an error pointer is none. */
void counters_pmu_unregister(struct counters_pmu *pmu);
u32 counters_pmu_type(const struct counters_pmu *pmu);
/* So many events happen on this CPU. Any context. */
void counters_tick(struct counters_pmu *pmu, unsigned int times);
int counters_tick_on(unsigned int cpu, struct counters_pmu *pmu, unsigned int times);

DEFINE_FREE(counters_pmu, struct counters_pmu *, counters_pmu_unregister(_T))

/* --- The tests --- */

struct counters_test {
	const char *name;
	int (*run)(struct weir_counters_run *run);
};

extern const struct counters_test counters_count_tests[];
extern const struct counters_test counters_read_tests[];
extern const struct counters_test counters_overflow_tests[];
extern const struct counters_test counters_stop_tests[];
extern const struct counters_test counters_inherit_tests[];
extern const struct counters_test counters_revoke_tests[];
extern const struct counters_test counters_misuse_tests[];
extern const struct counters_test counters_stress_tests[];

#endif /* _COUNTERS_H */
