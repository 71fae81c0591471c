// SPDX-License-Identifier: GPL-2.0
/*
 * Ends of callbacks, while hits go on at full speed: stopping from inside, a number of overflows,
 * another period, and release.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "counters.h"

#define STOPPER_MAGIC	0x5709beefUL

/**
 * struct stopper - Data of a callback that stops its event.
 * @magic: STOPPER_MAGIC as long as callbacks may come.
 * @stops: It stops its event itself.
 * @stop_after: Calls on one CPU after which it stops, or is stopped; 0 for never.
 * @calls: How many there were, on each CPU, since the counter was enabled.
 * @late: Calls after the one that has stopped it.
 */
struct stopper {
	unsigned long magic;
	bool stops;
	int stop_after;
	int __percpu *calls;
	atomic_long_t *late;
};

static void stopper_call(struct weir_overflow *overflow, void *data)
{
	struct stopper *stopper = data;
	int calls = this_cpu_inc_return(*stopper->calls);

	if (READ_ONCE(stopper->magic) != STOPPER_MAGIC ||
	    (stopper->stop_after && calls > stopper->stop_after))
		atomic_long_inc(stopper->late);
	if (stopper->stops && calls == stopper->stop_after)
		weir_overflow_stop(overflow);
	weir_overflow_unthrottle(overflow);
}

static int stopper_calls(struct stopper *stopper)
{
	unsigned int cpu;
	int calls = 0;

	for_each_possible_cpu(cpu)
		calls += READ_ONCE(*per_cpu_ptr(stopper->calls, cpu));
	return calls;
}

static void stopper_restart(struct stopper *stopper)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		WRITE_ONCE(*per_cpu_ptr(stopper->calls, cpu), 0);
}

static bool stopper_wait(struct stopper *stopper, int calls)
{
	unsigned long end = jiffies + 2 * HZ;

	while (stopper_calls(stopper) < calls) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(10, 30);
	}
	return true;
}

/* What is hit: a target, or a PMU's events in a context of choice. */
struct stop_work {
	struct counters_pmu *pmu;
	enum counters_context context;
};

static void stop_tick(void *data)
{
	struct stop_work *work = data;

	counters_tick(work->pmu, 1);
}

static void stop_hit(void *data)
{
	struct stop_work *work = data;

	counters_in(work->context, stop_tick, work);
}

/*
 * Each CPU's event stops after so many calls, and goes on when it is enabled again: at once, when
 * the stop may still be under way, or later.
 */
static void stop_rounds(struct weir_counters_run *run, struct counters_hitters *hitters,
			struct weir_counter *counter, struct stopper *stopper, bool refresh)
{
	unsigned long end = jiffies + msecs_to_jiffies(run->ms);
	int calls, wanted, after;

	while (time_before(jiffies, end) && !run->failures) {
		after = 1 + run->rounds % 7;
		wanted = after * hitters->nr;
		stopper->stop_after = after;
		counters_expect(run, !stopper_calls(stopper),
				"round %llu: %d calls before it began",
				run->rounds, stopper_calls(stopper));
		if (refresh)
			counters_expect_error(run, weir_counter_refresh(counter, after), 0);
		else
			counters_expect_error(run, weir_counter_enable(counter), 0);
		counters_expect(run, stopper_wait(stopper, wanted), "round %llu: %d calls, not %d",
				run->rounds, stopper_calls(stopper), wanted);
		if (run->rounds % 4 == 0) {
			/* Hits go on, and are not counted. */
			counters_expect(run, counters_hitters_wait(hitters, 50 * hitters->nr),
					"nobody hits");
			calls = stopper_calls(stopper);
			counters_expect(run, calls == wanted, "round %llu: %d calls after %d",
					run->rounds, calls, wanted);
		}
		if (run->rounds % 2)
			counters_expect_error(run, weir_counter_disable(counter), 0);
		run->rounds++;
		stopper_restart(stopper);
	}
}

static int stop_event(struct weir_counters_run *run, struct stop_work *work,
		      struct perf_event_attr attr, bool refresh)
{
	struct counters_hitters hitters = {
		.call = work->pmu ? stop_hit : NULL, .data = work,
	};
	atomic_long_t late = ATOMIC_LONG_INIT(0);
	struct stopper stopper = { .magic = STOPPER_MAGIC, .stops = !refresh, .late = &late };
	struct weir_counter *counter;
	int error;

	stopper.calls = alloc_percpu(int);
	if (!stopper.calls)
		return -ENOMEM;
	counter = counters_create(attr, .scope = WEIR_SCOPE_ALL, .overflow = stopper_call,
				  .data = &stopper);
	error = PTR_ERR_OR_ZERO(counter) ?: counters_hitters_start(&hitters);
	if (!error) {
		stop_rounds(run, &hitters, counter, &stopper, refresh);
		counters_hitters_stop(&hitters);
		counters_expect(run, !atomic_long_read(&late), "%ld calls after the last one",
				atomic_long_read(&late));
	}
	weir_counter_release(counter);
	free_percpu(stopper.calls);
	return error;
}

static int stop_breakpoint(struct weir_counters_run *run)
{
	struct stop_work work = {};

	return stop_event(run, &work, counters_breakpoint(0, .sample_period = 1), false);
}

static int stop_in_nmi(struct weir_counters_run *run)
{
	struct counters_pmu *pmu __free(counters_pmu) =
		counters_pmu_register("weir_stop", false, 1);
	struct stop_work work = { pmu, COUNTERS_NMI };

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);
	return stop_event(run, &work, WEIR_EVENT(counters_pmu_type(pmu), 0, .sample_period = 1),
			  false);
}

static int refresh_breakpoint(struct weir_counters_run *run)
{
	struct stop_work work = {};

	return stop_event(run, &work, counters_breakpoint(0, .sample_period = 1), true);
}

/* Another period while hits go on; once they pause, it is the last one that counts. */
static int change_period(struct weir_counters_run *run)
{
	unsigned long end = jiffies + msecs_to_jiffies(run->ms);
	atomic_long_t late = ATOMIC_LONG_INIT(0);
	struct stopper stopper = { .magic = STOPPER_MAGIC, .late = &late };
	struct counters_hitters hitters = {};
	struct weir_counter *counter;
	int error, calls;
	u64 value;

	stopper.calls = alloc_percpu(int);
	if (!stopper.calls)
		return -ENOMEM;
	counter = counters_create(counters_breakpoint(0, .sample_period = 1),
				  .scope = WEIR_SCOPE_ALL, .overflow = stopper_call,
				  .data = &stopper);
	error = PTR_ERR_OR_ZERO(counter) ?: weir_counter_enable(counter) ?:
		counters_hitters_start(&hitters);
	if (error)
		goto release;
	while (time_before(jiffies, end) && !run->failures) {
		counters_expect_error(run, weir_counter_set_period(counter, 0,
								   1 + run->rounds++ % 50), 0);
		if (run->rounds % 16)
			continue;
		counters_expect_error(run, weir_counter_set_period(counter, 0, 10), 0);
		counters_hitters_pause(&hitters);
		calls = stopper_calls(&stopper);
		value = counters_value(run, counter);
		counters_hit(0, 1000);
		counters_expect_error(run, counters_value(run, counter) - value, 1000);
		calls = stopper_calls(&stopper) - calls;
		/* One more of the old periods, of 50 at most, may come first. */
		counters_expect(run, calls >= 94 && calls <= 102, "%d calls for 1000, period 10",
				calls);
		counters_hitters_resume(&hitters);
	}
	counters_hitters_stop(&hitters);
	/* Nothing was missed or counted twice. */
	counters_expect_error(run, counters_value(run, counter),
			      atomic_long_read(&hitters.hits) + run->rounds / 16 * 1000);
release:
	weir_counter_release(counter);
	free_percpu(stopper.calls);
	return error;
}

/*
 * Once a counter is released, no callback comes, so its data can go at once. Where one came all the
 * same, it finds poison (or KASAN finds it).
 */
static int release_while_hit(struct weir_counters_run *run)
{
	unsigned long end = jiffies + msecs_to_jiffies(run->ms);
	atomic_long_t late = ATOMIC_LONG_INIT(0);
	struct counters_hitters hitters = {};
	int __percpu *calls = alloc_percpu(int);
	u64 seed = run->seed | 1;
	int error;

	if (!calls)
		return -ENOMEM;
	error = counters_hitters_start(&hitters);
	if (error)
		goto free;
	while (time_before(jiffies, end) && !run->failures) {
		struct stopper *stopper = kzalloc_obj(*stopper);
		struct weir_counter *counter;

		if (!stopper) {
			error = -ENOMEM;
			break;
		}
		*stopper = (struct stopper){
			.magic = STOPPER_MAGIC, .stops = true, .calls = calls, .late = &late,
		};
		stopper_restart(stopper);
		/* In every fourth round it stops just when it is released. */
		if (run->rounds % 4 == 0)
			stopper->stop_after = 1;
		counter = counters_create(counters_breakpoint(0, .sample_period = 1),
					  .scope = WEIR_SCOPE_ALL, .overflow = stopper_call,
					  .data = stopper);
		error = PTR_ERR_OR_ZERO(counter);
		if (!error) {
			counters_expect_error(run, weir_counter_enable(counter), 0);
			counters_expect(run, stopper_wait(stopper, 1), "no call");
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			udelay(seed >> 57);
			weir_counter_release(counter);
		}
		memset(stopper, 0x6b, sizeof(*stopper));
		kfree(stopper);
		if (error)
			break;
		run->rounds++;
	}
	counters_hitters_stop(&hitters);
	counters_expect(run, !atomic_long_read(&late), "%ld calls after the release or the stop",
			atomic_long_read(&late));
free:
	free_percpu(calls);
	return error;
}

const struct counters_test counters_stop_tests[] = {
	{ "stop_breakpoint", stop_breakpoint },
	{ "stop_in_nmi", stop_in_nmi },
	{ "refresh_breakpoint", refresh_breakpoint },
	{ "change_period", change_period },
	{ "release_while_hit", release_while_hit },
	{ }
};
