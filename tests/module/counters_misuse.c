// SPDX-License-Identifier: GPL-2.0
/*
 * What is refused, and that refusing it does no harm.
 */
#include <linux/cpumask.h>
#include <linux/err.h>

#include "counters.h"

static void never(struct weir_overflow *overflow, void *data)
{
}

static void expect_refused(struct weir_counters_run *run, const char *what,
			   const struct weir_counter_config *config, long wanted)
{
	struct weir_counter *counter = weir_counter_create(config);

	counters_expect(run, counter == ERR_PTR(wanted), "%s: %pe, not %pe", what, counter,
			ERR_PTR(wanted));
	weir_counter_release(counter);
}

#define expect_create(run, what, wanted, ...) do {			\
	struct weir_counter_config __config = {				\
		.events = &plain, .nr_events = 1,			\
		.scope = WEIR_SCOPE_ALL, ##__VA_ARGS__			\
	};								\
	expect_refused(run, what, &__config, wanted);			\
} while (0)

static int misuse_create(struct weir_counters_run *run)
{
	struct perf_event_attr plain = WEIR_SOFTWARE_EVENT(CPU_CLOCK);
	struct perf_event_attr sampling = WEIR_SOFTWARE_EVENT(CPU_CLOCK, .sample_period = 1000000);
	struct perf_event_attr forgotten = { .type = PERF_TYPE_SOFTWARE };
	struct perf_event_attr differing[2] = { plain, plain };
	struct perf_event_attr reserved = plain;
	struct perf_event_attr unknown = WEIR_EVENT(0x7fff, 0);
	struct weir_channel_req options = { .model = WEIR_MODEL_PAGED };
	struct weir_channel *channel = weir_channel_create("weir_misuse", &options);

	if (IS_ERR(channel))
		return PTR_ERR(channel);
	differing[1].size -= 8;
	reserved.__reserved_2 = 1;
	expect_create(run, "no events", -EINVAL, .nr_events = 0);
	expect_create(run, "null events", -EINVAL, .events = NULL);
	expect_create(run, "too many events", -E2BIG, .nr_events = WEIR_COUNTER_EVENTS + 1);
	expect_create(run, "size 0", -EINVAL, .events = &forgotten);
	expect_create(run, "two sizes", -EINVAL, .events = differing, .nr_events = 2);
	expect_create(run, "reserved field", -EINVAL, .events = &reserved);
	expect_create(run, "unknown PMU", -ENOENT, .events = &unknown);
	expect_create(run, "unknown flag", -EINVAL, .flags = 1U << 31);
	expect_create(run, "unknown scope", -EINVAL, .scope = 17);
	expect_create(run, "a CPU with all", -EINVAL, .cpu = 1);
	expect_create(run, "a task with all", -EINVAL, .task = current);
	expect_create(run, "negative CPU", -EINVAL, .scope = WEIR_SCOPE_CPU, .cpu = -1);
	expect_create(run, "no such CPU", -EINVAL, .scope = WEIR_SCOPE_CPU, .cpu = INT_MAX);
	expect_create(run, "CPU and task", -EINVAL, .scope = WEIR_SCOPE_CPU, .task = current);
	expect_create(run, "no task", -EINVAL, .scope = WEIR_SCOPE_TASK);
	expect_create(run, "task and CPU", -EINVAL, .scope = WEIR_SCOPE_TASK, .task = current,
		      .cpu = 1);
	expect_create(run, "copies of a task", -EINVAL, .scope = WEIR_SCOPE_TASK, .task = current,
		      .flags = WEIR_COUNTER_CACHED);
	expect_create(run, "sampling to nowhere", -EINVAL, .events = &sampling);
	expect_create(run, "callback and channel", -EINVAL, .events = &sampling, .overflow = never,
		      .channel = channel);
	sampling.freq = 1;
	sampling.sample_freq = 1UL << 40;
	expect_create(run, "frequency", -EINVAL, .events = &sampling, .overflow = never);
	sampling.freq = 0;
	sampling.sample_period = 1ULL << 63;
	expect_create(run, "period", -EINVAL, .events = &sampling, .overflow = never);
	weir_channel_destroy(channel);
	return 0;
}

static int misuse_call(struct weir_counters_run *run)
{
	struct weir_counter *plain __free(counter) =
		counters_create(WEIR_SOFTWARE_EVENT(CPU_CLOCK), .scope = WEIR_SCOPE_ALL);
	struct weir_counter *sampling __free(counter) =
		counters_create(WEIR_SOFTWARE_EVENT(CPU_CLOCK, .sample_period = NSEC_PER_SEC),
				.scope = WEIR_SCOPE_ALL, .overflow = never);
	struct weir_counter *inherited __free(counter) =
		counters_create(WEIR_SOFTWARE_EVENT(CPU_CLOCK, .sample_period = NSEC_PER_SEC,
						    .inherit = 1),
				.scope = WEIR_SCOPE_TASK, .task = current, .overflow = never);
	struct weir_counter_value values[2];

	if (IS_ERR(plain) || IS_ERR(sampling) || IS_ERR(inherited))
		return -EINVAL;
	counters_expect_error(run, weir_counter_read(plain, values, 0), -EINVAL);
	counters_expect_error(run, weir_counter_read(plain, values, 2), -EINVAL);
	counters_expect_error(run, weir_counter_read(plain, NULL, 1), -EINVAL);
	counters_expect_error(run, weir_counter_read_local(plain, values, 2), -EINVAL);
	counters_expect_error(run, weir_counter_read_cpu(plain, 0, values, 2), -EINVAL);
	counters_expect_error(run, weir_counter_read_cpu(plain, nr_cpu_ids, values, 1), -ENODEV);
	counters_expect_error(run, weir_counter_read_cpu(plain, UINT_MAX, values, 1), -ENODEV);
	counters_expect_error(run, weir_counter_read_cached(plain, 0, values, 1), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(plain, 0, 5), -EINVAL);
	counters_expect_error(run, weir_counter_refresh(plain, 5), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(sampling, 1, 5), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(sampling, UINT_MAX, 5), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(sampling, 0, 0), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(sampling, 0, 1ULL << 63), -EINVAL);
	counters_expect_error(run, weir_counter_set_period(sampling, 0, 2 * NSEC_PER_SEC), 0);
	counters_expect_error(run, weir_counter_refresh(sampling, 0), -EINVAL);
	counters_expect_error(run, weir_counter_refresh(sampling, UINT_MAX), -EINVAL);
	counters_expect_error(run, weir_counter_refresh(inherited, 1), -EINVAL);
	counters_expect_error(run, weir_tracepoint_id("sched", "no_such_thing"), -ENOENT);
	counters_expect_error(run, weir_tracepoint_id("no_such_thing", "sched_switch"), -ENOENT);
	counters_expect(run, weir_tracepoint_id("sched", "sched_switch") > 0, "no sched_switch");
	return 0;
}

static int misuse_release(struct weir_counters_run *run)
{
	struct weir_counter *counter =
		counters_create(WEIR_SOFTWARE_EVENT(CPU_CLOCK), .scope = WEIR_SCOPE_ALL);

	if (IS_ERR(counter))
		return PTR_ERR(counter);
	weir_counter_release(NULL);
	weir_counter_release(ERR_PTR(-EINVAL));
	weir_counter_release(counter);
	/* The log tells of it. */
	weir_counter_release(counter);
	return 0;
}

/* --- For fault injection: creates and reads, and gives the error of that --- */

static int create_and_read(struct weir_counters_run *run, u32 scope)
{
	int id = weir_tracepoint_id("sched", "sched_switch");
	const struct perf_event_attr set[] = {
		WEIR_TRACEPOINT_EVENT(id), counters_breakpoint(0, .sample_period = 100),
		WEIR_SOFTWARE_EVENT(CPU_CLOCK, .sample_period = NSEC_PER_MSEC),
	};
	const struct weir_counter_config config = {
		.events = set, .nr_events = ARRAY_SIZE(set), .scope = scope,
		.task = scope == WEIR_SCOPE_TASK ? current : NULL, .overflow = never,
		.flags = scope == WEIR_SCOPE_ALL ? WEIR_COUNTER_CACHED : 0,
	};
	struct weir_counter_value values[ARRAY_SIZE(set)];
	struct weir_counter *counter __free(counter) = NULL;

	if (id < 0)
		return id;
	counter = weir_counter_create(&config);
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	return weir_counter_enable(counter) ?:
	       weir_counter_read(counter, values, ARRAY_SIZE(set)) ?:
	       weir_counter_read_many(&counter, 1, values, ARRAY_SIZE(set)) ?:
	       weir_counter_reset(counter) ?: weir_counter_disable(counter);
}

static int create_on_cpu(struct weir_counters_run *run)
{
	return create_and_read(run, WEIR_SCOPE_CPU);
}

static int create_on_all(struct weir_counters_run *run)
{
	return create_and_read(run, WEIR_SCOPE_ALL);
}

static int create_in_task(struct weir_counters_run *run)
{
	return create_and_read(run, WEIR_SCOPE_TASK);
}

const struct counters_test counters_misuse_tests[] = {
	{ "misuse_create", misuse_create },
	{ "misuse_call", misuse_call },
	{ "misuse_release", misuse_release },
	{ "create_on_cpu", create_on_cpu },
	{ "create_on_all", create_on_all },
	{ "create_in_task", create_in_task },
	{ }
};
