// SPDX-License-Identifier: GPL-2.0
/*
 * Reading: from any context where the counter counts, from elsewhere, several at a time, and
 * copies.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "counters.h"

struct local {
	struct weir_counters_run *run;
	struct weir_counter *counters[2];
	struct weir_counter_value values[2];
	int errors[2];
	u64 enabled[2];
	u64 hits;
	int skipped;
};

static void read_here(void *data)
{
	struct local *local = data;
	unsigned int i;

	for (i = 0; i < 2; i++)
		local->errors[i] =
			weir_counter_read_local(local->counters[i], &local->values[i], 1);
}

/* Reads two counters from every context, between hits of both. */
static void read_in_contexts(void *data)
{
	struct local *local = data;
	enum counters_context context;
	unsigned int i, round;
	int error;

	for (round = 0; round < 20; round++) {
		for (context = 0; context < COUNTERS_CONTEXTS; context++) {
			counters_hit(0, round + 1);
			counters_hit(1, round + 1);
			local->hits += round + 1;
			error = counters_in(context, read_here, local);
			if (error == -EOPNOTSUPP) {
				local->skipped++;
				continue;
			}
			counters_expect(local->run, !error, "%s: %d",
					counters_context_name(context),
					error);
			for (i = 0; i < 2; i++) {
				struct weir_counter_value *value = &local->values[i];

				counters_expect(local->run, !local->errors[i] &&
						value->value == local->hits &&
						value->enabled == value->running,
						"%s, counter %u: %d, %llu hits, not %llu",
						counters_context_name(context), i, local->errors[i],
						value->value, local->hits);
				/* The time of an enabled counter runs. */
				counters_expect(local->run, value->enabled > local->enabled[i],
						"counter %u enabled for %llu ns after %llu", i,
						value->enabled, local->enabled[i]);
				local->enabled[i] = value->enabled;
			}
		}
	}
}

static long read_in_contexts_on_cpu(void *data)
{
	read_in_contexts(data);
	return 0;
}

static int read_local_on_cpu(struct weir_counters_run *run)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct weir_counter *all __free(counter) =
			counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_ALL);
		struct weir_counter *one __free(counter) =
			counters_create(counters_breakpoint(1), .scope = WEIR_SCOPE_CPU,
					.cpu = cpu);
		struct local local = { .run = run, .counters = { all, one } };

		if (IS_ERR(all) || IS_ERR(one))
			return IS_ERR(all) ? PTR_ERR(all) : PTR_ERR(one);
		counters_expect_error(run, weir_counter_enable(all), 0);
		counters_expect_error(run, weir_counter_enable(one), 0);
		work_on_cpu(cpu, read_in_contexts_on_cpu, &local);
		counters_expect_error(run, counters_value(run, all), local.hits);
		counters_expect_error(run, counters_value(run, one), local.hits);
		if (local.skipped)
			counters_note(run, "%d of a context that is not here", local.skipped);
	}
	return 0;
}

static int read_local_in_task(struct weir_counters_run *run)
{
	struct counters_worker worker = {};
	int error = counters_worker_start(&worker, -1);

	if (!error) {
		struct task_struct *task = worker.worker->task;
		struct weir_counter *first __free(counter) =
			counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_TASK,
					.task = task);
		struct weir_counter *second __free(counter) =
			counters_create(counters_breakpoint(1), .scope = WEIR_SCOPE_TASK,
					.task = task);
		struct local local = { .run = run, .counters = { first, second } };

		error = PTR_ERR_OR_ZERO(first) ?: PTR_ERR_OR_ZERO(second);
		if (!error) {
			counters_expect_error(run, weir_counter_enable(first), 0);
			counters_expect_error(run, weir_counter_enable(second), 0);
			counters_worker_call(&worker, read_in_contexts, &local);
			counters_expect_error(run, counters_value(run, first), local.hits);
			/* Not of this thread. */
			read_here(&local);
			counters_expect_error(run, local.errors[0], -EINVAL);
		}
	}
	counters_worker_stop(&worker);
	return error;
}

static long read_local_remote(void *data)
{
	struct weir_counter_value value;

	return weir_counter_read_local(data, &value, 1);
}

static int read_local_elsewhere(struct weir_counters_run *run)
{
	unsigned int cpu, other;
	struct weir_counter_value value;

	for_each_online_cpu(cpu) {
		struct weir_counter *counter __free(counter) =
			counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_CPU,
					.cpu = cpu);

		if (IS_ERR(counter))
			return PTR_ERR(counter);
		counters_expect_error(run, weir_counter_enable(counter), 0);
		for_each_online_cpu(other)
			counters_expect_error(run, work_on_cpu(other, read_local_remote, counter),
					      other == cpu ? 0 : -EINVAL);
		counters_expect_error(run, weir_counter_disable(counter), 0);
		/* What is disabled is read, too. */
		counters_expect_error(run, work_on_cpu(cpu, read_local_remote, counter), 0);
	}
	struct weir_counter *inherited __free(counter) =
		counters_create(counters_breakpoint(0, .inherit = 1), .scope = WEIR_SCOPE_TASK,
				.task = current);

	if (IS_ERR(inherited))
		return PTR_ERR(inherited);
	counters_expect_error(run, weir_counter_enable(inherited), 0);
	counters_expect_error(run, weir_counter_read_local(inherited, &value, 1), -EOPNOTSUPP);
	counters_hit(0, 3);
	counters_expect_error(run, counters_value(run, inherited), 3);
	return 0;
}

/* Read from elsewhere while it counts: never less than before, and exact in the end. */
static int read_while_counting(struct weir_counters_run *run)
{
	struct counters_hitters hitters = {};
	struct weir_counter_value value;
	u64 last = 0, last_enabled = 0;
	unsigned long end;
	int error;

	struct weir_counter *counter __free(counter) =
		counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_ALL);
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	counters_expect_error(run, weir_counter_enable(counter), 0);
	error = counters_hitters_start(&hitters);
	if (error)
		return error;
	end = jiffies + msecs_to_jiffies(run->ms);
	while (time_before(jiffies, end)) {
		counters_expect_error(run, weir_counter_read(counter, &value, 1), 0);
		counters_expect(run, value.value >= last && value.enabled >= last_enabled,
				"%llu after %llu, %llu ns after %llu", value.value, last,
				value.enabled, last_enabled);
		last = value.value;
		last_enabled = value.enabled;
		run->rounds++;
	}
	counters_hitters_stop(&hitters);
	counters_expect_error(run, counters_value(run, counter), atomic_long_read(&hitters.hits));
	return 0;
}

static int read_many(struct weir_counters_run *run)
{
	const struct perf_event_attr pair[] = { counters_breakpoint(0), counters_breakpoint(1) };
	struct weir_counter_config config = {
		.events = pair, .nr_events = 2, .scope = WEIR_SCOPE_ALL,
	};
	struct weir_counter *set __free(counter) = weir_counter_create(&config);
	struct weir_counter *task __free(counter) =
		counters_create(counters_breakpoint(2), .scope = WEIR_SCOPE_TASK, .task = current);
	struct weir_counter *cpu __free(counter) =
		counters_create(WEIR_SOFTWARE_EVENT(CONTEXT_SWITCHES), .scope = WEIR_SCOPE_CPU,
				.cpu = 0);
	struct weir_counter *counters[] = { task, set, cpu };
	struct weir_counter_value values[4], singles[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (IS_ERR(counters[i]))
			return PTR_ERR(counters[i]);
		counters_expect_error(run, weir_counter_enable(counters[i]), 0);
	}
	counters_hit(2, 13);
	counters_hit(0, 17);
	counters_hit_on(0, 1, 19);
	counters_expect_error(run, weir_counter_read_many(counters, 3, values, 4), 0);
	counters_expect(run, values[0].value == 13 && values[1].value == 17 &&
			values[2].value == 19 && values[3].value, "%llu %llu %llu %llu",
			values[0].value, values[1].value, values[2].value, values[3].value);
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		counters_expect_error(run, weir_counter_disable(counters[i]), 0);
	/* Their times do not run now, so everything is the same. */
	memset(values, 0xff, sizeof(values));
	counters_expect_error(run, weir_counter_read_many(counters, 3, values, 4), 0);
	counters_expect_error(run, weir_counter_read(task, &singles[0], 1), 0);
	counters_expect_error(run, weir_counter_read(set, &singles[1], 2), 0);
	counters_expect_error(run, weir_counter_read(cpu, &singles[3], 1), 0);
	counters_expect(run, !memcmp(values, singles, sizeof(values)), "not what each says alone");
	counters_expect_error(run, weir_counter_read_many(counters, 3, values, 3), -EINVAL);
	counters_expect_error(run, weir_counter_read_many(counters, 3, values, 5), -EINVAL);
	counters_expect_error(run, weir_counter_read_many(counters, 1, values, 1), 0);
	return 0;
}

#define CACHED_PATIENCE	(2 * HZ)

static int read_cached(struct weir_counters_run *run)
{
	struct weir_counter *counter __free(counter) =
		counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_ALL,
				.flags = WEIR_COUNTER_CACHED);
	struct weir_counter *plain __free(counter) =
		counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_ALL);
	struct weir_counter_value value;
	unsigned int cpu;

	if (IS_ERR(counter) || IS_ERR(plain))
		return IS_ERR(counter) ? PTR_ERR(counter) : PTR_ERR(plain);
	counters_expect_error(run, weir_counter_read_cached(plain, 0, &value, 1), -EINVAL);
	counters_expect_error(run, weir_counter_enable(counter), 0);
	for_each_online_cpu(cpu) {
		unsigned long end = jiffies + CACHED_PATIENCE;

		counters_hit_on(cpu, 0, 100 + cpu);
		/* It says so itself, when it has time. */
		do {
			usleep_range(500, 1000);
			counters_expect_error(run,
					      weir_counter_read_cached(counter, cpu, &value, 1),
					      0);
		} while (value.value != 100 + cpu && time_before(jiffies, end));
		counters_expect(run, value.value == 100 + cpu && value.cpu == cpu,
				"CPU %u: %llu after two seconds", cpu, value.value);
		counters_expect(run, value.age < 2 * NSEC_PER_SEC, "an age of %llu ns", value.age);
	}
	counters_expect_error(run, weir_counter_read_cached(counter, nr_cpu_ids, &value, 1),
			      -ENODEV);
	counters_expect_error(run, weir_counter_read_cached(counter, 0, &value, 2), -EINVAL);
	return 0;
}

const struct counters_test counters_read_tests[] = {
	{ "read_local_on_cpu", read_local_on_cpu },
	{ "read_local_in_task", read_local_in_task },
	{ "read_local_elsewhere", read_local_elsewhere },
	{ "read_while_counting", read_while_counting },
	{ "read_many", read_many },
	{ "read_cached", read_cached },
	{ }
};
