// SPDX-License-Identifier: GPL-2.0
/*
 * Overflow callbacks: as many as they should be, with what they are told, and never two at a time.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/ptrace.h>
#include <linux/slab.h>

#include "counters.h"

/* What callbacks of a counter have seen. */
struct seen {
	struct weir_counters_run *run;
	struct weir_counter *counter;
	struct seen *inner;
	struct counters_pmu *pmu;
	u32 period;
	unsigned int event;
	bool unthrottle;
	bool reads;
	int __percpu *depth;
	atomic_long_t calls;
	atomic_long_t user;
	atomic_long_t nested;
	atomic_long_t wrong;
	atomic_long_t read_wrong;
};

static void seen_call(struct weir_overflow *overflow, void *data)
{
	struct pt_regs *regs = weir_overflow_regs(overflow);
	struct weir_counter_value value;
	struct seen *seen = data;
	long calls;

	if (this_cpu_inc_return(*seen->depth) != 1)
		atomic_long_inc(&seen->nested);
	calls = atomic_long_inc_return(&seen->calls);
	if (!irqs_disabled() || !regs || weir_overflow_user(overflow) != user_mode(regs) ||
	    weir_overflow_ip(overflow) != instruction_pointer(regs) ||
	    weir_overflow_event(overflow) != seen->event ||
	    (seen->period && weir_overflow_period(overflow) != seen->period))
		atomic_long_inc(&seen->wrong);
	if (weir_overflow_user(overflow))
		atomic_long_inc(&seen->user);
	/* What has just overflowed is part of what it reads. */
	if (seen->reads && (weir_counter_read_local(seen->counter, &value, 1) ||
			    value.value != calls * seen->period))
		atomic_long_inc(&seen->read_wrong);
	if (seen->unthrottle)
		weir_overflow_unthrottle(overflow);
	this_cpu_dec(*seen->depth);
}

static int seen_init(struct seen *seen, struct weir_counters_run *run)
{
	*seen = (struct seen){ .run = run };
	seen->depth = alloc_percpu(int);
	return seen->depth ? 0 : -ENOMEM;
}

static void seen_free(struct seen *seen)
{
	free_percpu(seen->depth);
}

/* After the counter was released, so that none comes any more. */
static void seen_expect(struct seen *seen, long calls)
{
	counters_expect(seen->run, atomic_long_read(&seen->calls) == calls, "%ld calls, not %ld",
			atomic_long_read(&seen->calls), calls);
	counters_expect(seen->run, !atomic_long_read(&seen->wrong), "%ld were told what is wrong",
			atomic_long_read(&seen->wrong));
	counters_expect(seen->run, !atomic_long_read(&seen->nested), "%ld inside of another",
			atomic_long_read(&seen->nested));
	counters_expect(seen->run, !atomic_long_read(&seen->read_wrong),
			"%ld have read wrong values",
			atomic_long_read(&seen->read_wrong));
}

#define OVERFLOW_HITS	500

/* Hits of each CPU overflow there. */
static int overflow_exact(struct weir_counters_run *run)
{
	static const u32 periods[] = { 1, 3, 7, 100, OVERFLOW_HITS, OVERFLOW_HITS + 1 };
	unsigned int cpu, i;
	struct seen seen;
	int error;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		error = seen_init(&seen, run);
		if (error)
			return error;
		seen.period = periods[i];
		seen.unthrottle = true;
		seen.counter = counters_create(counters_breakpoint(0, .sample_period = periods[i]),
					       .scope = WEIR_SCOPE_ALL, .overflow = seen_call,
					       .data = &seen);
		error = PTR_ERR_OR_ZERO(seen.counter);
		if (!error) {
			counters_expect_error(run, weir_counter_enable(seen.counter), 0);
			for_each_online_cpu(cpu)
				counters_hit_on(cpu, 0, OVERFLOW_HITS);
			counters_expect_error(run, counters_value(run, seen.counter),
					      OVERFLOW_HITS * num_online_cpus());
		}
		weir_counter_release(seen.counter);
		if (!error)
			seen_expect(&seen, OVERFLOW_HITS / periods[i] * num_online_cpus());
		seen_free(&seen);
		if (error)
			return error;
	}
	return 0;
}

/* From inside its callback, a counter is read as anywhere else. */
static int overflow_reads(struct weir_counters_run *run)
{
	struct seen seen;
	int error = seen_init(&seen, run);

	if (error)
		return error;
	seen.period = 5;
	seen.reads = true;
	seen.unthrottle = true;
	seen.counter = counters_create(counters_breakpoint(0, .sample_period = 5),
				       .scope = WEIR_SCOPE_TASK, .task = current,
				       .overflow = seen_call, .data = &seen);
	error = PTR_ERR_OR_ZERO(seen.counter);
	if (!error) {
		counters_expect_error(run, weir_counter_enable(seen.counter), 0);
		counters_hit(0, 400);
	}
	weir_counter_release(seen.counter);
	if (!error)
		seen_expect(&seen, 80);
	seen_free(&seen);
	return error;
}

struct places {
	atomic_long_t calls[COUNTERS_TARGETS];
	atomic_long_t wrong;
};

static void places_call(struct weir_overflow *overflow, void *data)
{
	unsigned int event = weir_overflow_event(overflow);
	struct places *places = data;

	if (event >= COUNTERS_TARGETS || weir_overflow_user(overflow) ||
	    !counters_is_hit(weir_overflow_ip(overflow)) ||
	    weir_overflow_address(overflow) != (unsigned long)&counters_target[event])
		atomic_long_inc(&places->wrong);
	else
		atomic_long_inc(&places->calls[event]);
}

/* A callback is told which event of the set it was, where, and what was accessed. */
static int overflow_places(struct weir_counters_run *run)
{
	const struct perf_event_attr pair[] = {
		counters_breakpoint(0, .sample_period = 10, .sample_type = PERF_SAMPLE_ADDR),
		counters_breakpoint(1, .sample_period = 4, .sample_type = PERF_SAMPLE_ADDR),
	};
	struct places places = {};
	struct weir_counter_config config = {
		.events = pair, .nr_events = 2, .scope = WEIR_SCOPE_CPU, .cpu = 0,
		.overflow = places_call, .data = &places,
	};
	struct weir_counter *counter __free(counter) = weir_counter_create(&config);

	if (IS_ERR(counter))
		return PTR_ERR(counter);
	counters_expect_error(run, weir_counter_enable(counter), 0);
	counters_hit_on(0, 0, 100);
	counters_hit_on(0, 1, 100);
	counters_expect_error(run, weir_counter_disable(counter), 0);
	counters_expect_error(run, atomic_long_read(&places.calls[0]), 10);
	counters_expect_error(run, atomic_long_read(&places.calls[1]), 25);
	counters_expect_error(run, atomic_long_read(&places.wrong), 0);
	return 0;
}

/* With something that computes in user space, some are of user space. */
static int overflow_user(struct weir_counters_run *run)
{
	struct seen seen;
	int error = seen_init(&seen, run);

	if (error)
		return error;
	seen.counter = counters_create(WEIR_SOFTWARE_EVENT(CPU_CLOCK,
							   .sample_period = NSEC_PER_MSEC),
				       .scope = WEIR_SCOPE_ALL, .overflow = seen_call,
				       .data = &seen);
	error = PTR_ERR_OR_ZERO(seen.counter);
	if (!error) {
		counters_expect_error(run, weir_counter_enable(seen.counter), 0);
		msleep(run->ms);
	}
	weir_counter_release(seen.counter);
	if (!error) {
		run->rounds = atomic_long_read(&seen.calls);
		counters_expect(run, atomic_long_read(&seen.user),
				"no overflow in user space of %llu",
				run->rounds);
		seen_expect(&seen, atomic_long_read(&seen.calls));
	}
	seen_free(&seen);
	return error;
}

static void tick_inner(void *data)
{
	struct seen *seen = data;

	counters_tick(seen->pmu, 1);
}

/* An NMI comes in the middle of this callback, with the other counter's event. */
static void outer_call(struct weir_overflow *overflow, void *data)
{
	struct seen *seen = data;

	seen_call(overflow, seen);
	if (counters_in(COUNTERS_NMI, tick_inner, seen->inner))
		atomic_long_inc(&seen->wrong);
}

struct ticks {
	struct counters_pmu *pmu;
	unsigned int times;
};

static void tick_once(void *data)
{
	struct ticks *ticks = data;

	counters_tick(ticks->pmu, ticks->times);
}

#define OVERFLOW_TICKS	300

/* Overflows in softirqs, interrupts and NMIs, and those of one event inside those of another. */
static int overflow_contexts(struct weir_counters_run *run)
{
	struct counters_pmu *outer_pmu __free(counters_pmu) =
		counters_pmu_register("weir_outer", false, 2);
	struct counters_pmu *inner_pmu __free(counters_pmu) =
		counters_pmu_register("weir_inner", false, 2);
	struct ticks ticks = { outer_pmu, 1 };
	enum counters_context context;
	struct seen outer, inner;
	unsigned int i;
	long calls = 0;
	int error;

	if (IS_ERR(outer_pmu) || IS_ERR(inner_pmu))
		return IS_ERR(outer_pmu) ? PTR_ERR(outer_pmu) : PTR_ERR(inner_pmu);
	error = seen_init(&outer, run);
	if (error)
		return error;
	error = seen_init(&inner, run);
	if (error)
		goto free_outer;
	outer.inner = &inner;
	outer.period = 1;
	inner.period = 1;
	outer.unthrottle = true;
	inner.unthrottle = true;
	inner.pmu = inner_pmu;
	outer.counter = counters_create(WEIR_EVENT(counters_pmu_type(outer_pmu), 0,
						   .sample_period = 1),
					.scope = WEIR_SCOPE_ALL, .overflow = outer_call,
					.data = &outer);
	inner.counter = counters_create(WEIR_EVENT(counters_pmu_type(inner_pmu), 0,
						   .sample_period = 1),
					.scope = WEIR_SCOPE_ALL, .overflow = seen_call,
					.data = &inner);
	error = PTR_ERR_OR_ZERO(outer.counter) ?: PTR_ERR_OR_ZERO(inner.counter);
	if (error)
		goto release;
	counters_expect_error(run, weir_counter_enable(outer.counter), 0);
	counters_expect_error(run, weir_counter_enable(inner.counter), 0);
	/* An NMI does not come inside of an NMI, so the outer ones are no NMIs. */
	for (context = COUNTERS_TASK; context < COUNTERS_NMI; context++) {
		for (i = 0; i < OVERFLOW_TICKS; i++, calls++)
			counters_expect_error(run, counters_in(context, tick_once, &ticks), 0);
	}
	counters_expect_error(run, counters_value(run, outer.counter), calls);
	counters_expect_error(run, counters_value(run, inner.counter), calls);
release:
	weir_counter_release(outer.counter);
	weir_counter_release(inner.counter);
	if (!error) {
		seen_expect(&outer, calls);
		seen_expect(&inner, calls);
	}
	seen_free(&inner);
free_outer:
	seen_free(&outer);
	return error;
}

/* Perf stops an event that overflows too often, which is counted; unthrottle keeps it from that. */
static int overflow_throttled(struct weir_counters_run *run)
{
	struct counters_pmu *pmu __free(counters_pmu) =
		counters_pmu_register("weir_rate", false, 1);
	struct weir_counter_value value;
	struct seen seen;
	unsigned long end;
	int error, unthrottle;
	u64 ticks;

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);
	for (unthrottle = 0; unthrottle < 2; unthrottle++) {
		error = seen_init(&seen, run);
		if (error)
			return error;
		seen.unthrottle = unthrottle;
		seen.period = 1;
		seen.counter = counters_create(WEIR_EVENT(counters_pmu_type(pmu), 0,
							  .sample_period = 1),
					       .scope = WEIR_SCOPE_TASK, .task = current,
					       .overflow = seen_call, .data = &seen);
		error = PTR_ERR_OR_ZERO(seen.counter);
		if (!error) {
			counters_expect_error(run, weir_counter_enable(seen.counter), 0);
			end = jiffies + msecs_to_jiffies(run->ms) + 2;
			/* More than perf lets pass between two ticks of the clock, at a go. */
			for (ticks = 0; time_before(jiffies, end); ticks += 2000) {
				local_irq_disable();
				counters_tick(pmu, 2000);
				local_irq_enable();
			}
			counters_expect_error(run, weir_counter_read(seen.counter, &value, 1), 0);
			if (unthrottle)
				counters_expect(run, !value.throttled && value.value == ticks,
						"%llu of %llu, stopped %llu times", value.value,
						ticks, value.throttled);
			else
				counters_expect(run, value.throttled && value.value < ticks,
						"%llu of %llu, stopped %llu times", value.value,
						ticks, value.throttled);
		}
		weir_counter_release(seen.counter);
		if (!error)
			seen_expect(&seen, value.value);
		seen_free(&seen);
		if (error)
			return error;
	}
	return 0;
}

const struct counters_test counters_overflow_tests[] = {
	{ "overflow_exact", overflow_exact },
	{ "overflow_reads", overflow_reads },
	{ "overflow_places", overflow_places },
	{ "overflow_user", overflow_user },
	{ "overflow_contexts", overflow_contexts },
	{ "overflow_throttled", overflow_throttled },
	{ }
};
