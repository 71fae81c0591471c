// SPDX-License-Identifier: GPL-2.0
/*
 * Known work is counted exactly: on a CPU, on all, in a thread; writes of a variable, faults and
 * switches.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "counters.h"

static void expect_counting(struct weir_counters_run *run, const struct weir_counter_value *value,
			    u64 wanted, int cpu)
{
	counters_expect(run, value->value == wanted, "CPU %d: %llu, not %llu", cpu, value->value,
			wanted);
	counters_expect(run, value->enabled && value->enabled == value->running,
			"CPU %d: ran %llu of %llu ns", cpu, value->running, value->enabled);
	counters_expect(run, value->flags == WEIR_VALUE_TOGETHER, "CPU %d: flags %#x", cpu,
			value->flags);
	counters_expect(run, value->cpu == cpu && !value->id, "value %u of CPU %d, not %d",
			value->id,
			value->cpu, cpu);
	counters_expect(run, !value->lost && !value->throttled && !value->age, "CPU %d: accidents",
			cpu);
}

static int count_on_cpu(struct weir_counters_run *run)
{
	unsigned int cpu, other;

	for_each_online_cpu(cpu) {
		struct weir_counter *counter __free(counter) =
			counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_CPU,
					.cpu = cpu);
		struct weir_counter_value value;

		if (IS_ERR(counter))
			return PTR_ERR(counter);
		/* It is not enabled yet. */
		counters_hit_on(cpu, 0, 5);
		counters_expect_error(run, counters_value(run, counter), 0);
		counters_expect_error(run, weir_counter_enable(counter), 0);
		for_each_online_cpu(other)
			counters_hit_on(other, 0, 100 + other);
		counters_expect_error(run, weir_counter_read(counter, &value, 1), 0);
		expect_counting(run, &value, 100 + cpu, -1);
		counters_expect_error(run, weir_counter_read_cpu(counter, cpu, &value, 1), 0);
		expect_counting(run, &value, 100 + cpu, cpu);
		counters_expect_error(run, weir_counter_read_cpu(counter, cpu + 1, &value, 1),
				      -ENODEV);
		/* It keeps what it has while it is disabled, and goes on from there. */
		counters_expect_error(run, weir_counter_disable(counter), 0);
		counters_hit_on(cpu, 0, 7);
		counters_expect_error(run, counters_value(run, counter), 100 + cpu);
		counters_expect_error(run, weir_counter_enable(counter), 0);
		counters_expect_error(run, weir_counter_enable(counter), 0);
		counters_hit_on(cpu, 0, 11);
		counters_expect_error(run, counters_value(run, counter), 111 + cpu);
		counters_expect_error(run, weir_counter_reset(counter), 0);
		counters_expect_error(run, counters_value(run, counter), 0);
		counters_hit_on(cpu, 0, 13);
		counters_expect_error(run, counters_value(run, counter), 13);
		counters_expect_error(run, weir_counter_disable(counter), 0);
		counters_expect_error(run, weir_counter_disable(counter), 0);
		counters_expect_error(run, counters_value(run, counter), 13);
	}
	return 0;
}

static int count_on_all(struct weir_counters_run *run)
{
	struct weir_counter *counter __free(counter) =
		counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_ALL);
	struct weir_counter_value value;
	unsigned int cpu;
	u64 sum = 0;

	if (IS_ERR(counter))
		return PTR_ERR(counter);
	counters_expect_error(run, weir_counter_enable(counter), 0);
	for_each_online_cpu(cpu) {
		counters_hit_on(cpu, 0, 1000 + cpu);
		sum += 1000 + cpu;
	}
	counters_expect_error(run, weir_counter_read(counter, &value, 1), 0);
	expect_counting(run, &value, sum, -1);
	for_each_online_cpu(cpu) {
		counters_expect_error(run, weir_counter_read_cpu(counter, cpu, &value, 1), 0);
		expect_counting(run, &value, 1000 + cpu, cpu);
	}
	counters_expect_error(run, weir_counter_reset(counter), 0);
	counters_expect_error(run, counters_value(run, counter), 0);
	return 0;
}

static int count_in_task(struct weir_counters_run *run)
{
	struct counters_worker counted = {}, other = {};
	int error;

	error = counters_worker_start(&counted, -1) ?: counters_worker_start(&other, -1);
	if (!error) {
		struct weir_counter *counter __free(counter) =
			counters_create(counters_breakpoint(0), .scope = WEIR_SCOPE_TASK,
					.task = counted.worker->task);
		struct weir_counter_value value;
		unsigned int i;

		error = PTR_ERR_OR_ZERO(counter);
		for (i = 0; !error && i < 10; i++) {
			counters_expect_error(run, weir_counter_enable(counter), 0);
			counters_worker_hit(&counted, 0, 50);
			counters_worker_hit(&other, 0, 30);
			counters_hit(0, 10);
			counters_expect_error(run, weir_counter_read(counter, &value, 1), 0);
			expect_counting(run, &value, 50 * (i + 1), -1);
			counters_expect_error(run, weir_counter_disable(counter), 0);
			counters_worker_hit(&counted, 0, 20);
		}
		counters_worker_stop(&counted);
		/* Its thread has gone: what it counted stays. */
		if (!error) {
			counters_expect_error(run, counters_value(run, counter), 500);
			counters_expect_error(run, weir_counter_enable(counter), -ESRCH);
			counters_expect_error(run, weir_counter_disable(counter), 0);
			counters_expect_error(run, counters_value(run, counter), 500);
		}
	}
	counters_worker_stop(&other);
	counters_worker_stop(&counted);
	return error;
}

/* A set: its parts count each their own, at one instant. */
static int count_set(struct weir_counters_run *run)
{
	const struct perf_event_attr events[] = {
		counters_breakpoint(0), counters_breakpoint(1),
		WEIR_SOFTWARE_EVENT(CPU_CLOCK),
	};
	const struct weir_counter_config config = {
		.events = events, .nr_events = ARRAY_SIZE(events), .scope = WEIR_SCOPE_ALL,
	};
	struct weir_counter *counter __free(counter) = weir_counter_create(&config);
	struct weir_counter_value values[ARRAY_SIZE(events)];
	unsigned int i;

	if (IS_ERR(counter))
		return PTR_ERR(counter);
	counters_expect_error(run, weir_counter_enable(counter), 0);
	counters_hit(0, 21);
	counters_hit(1, 42);
	counters_expect_error(run, weir_counter_read(counter, values, ARRAY_SIZE(values)), 0);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		counters_expect(run, values[i].id == i && values[i].flags == WEIR_VALUE_TOGETHER,
				"%u: id %u, flags %#x", i, values[i].id, values[i].flags);
		counters_expect(run, values[i].enabled == values[i].running, "%u: did not run", i);
	}
	counters_expect_error(run, values[0].value, 21);
	counters_expect_error(run, values[1].value, 42);
	counters_expect(run, values[2].value, "the clock stood");
	return 0;
}

/* --- Page faults, in the process that runs the test --- */

#define COUNTED_PAGES	64

static int count_faults(struct weir_counters_run *run)
{
	struct weir_counter *counter __free(counter) =
		counters_create(WEIR_SOFTWARE_EVENT(PAGE_FAULTS), .scope = WEIR_SCOPE_TASK,
				.task = current);
	const unsigned long len = COUNTED_PAGES * PAGE_SIZE;
	unsigned long at, start;
	u64 count;

	if (IS_ERR(counter))
		return PTR_ERR(counter);
	start = vm_mmap(NULL, 0, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(start))
		return start;
	counters_expect_error(run, weir_counter_enable(counter), 0);
	for (at = start; at < start + len; at += PAGE_SIZE)
		counters_expect_error(run, put_user(1, (u8 __user *)at), 0);
	/* A second time is none. */
	for (at = start; at < start + len; at += PAGE_SIZE)
		counters_expect_error(run, put_user(2, (u8 __user *)at), 0);
	count = counters_value(run, counter);
	counters_expect(run, count == COUNTED_PAGES, "%llu faults of %u pages", count,
			COUNTED_PAGES);
	vm_munmap(start, len);
	return 0;
}

/* --- Switches of two threads that take turns --- */

#define COUNTED_TURNS	200

struct turns {
	struct weir_counters_run *run;
	struct completion *mine;
	struct completion *other;
	struct weir_counter *counter;
	bool first;
};

/* What the counter and the scheduler say of this thread, at one moment. */
static u64 switches(struct turns *turns, u64 *counted)
{
	struct weir_counter_value value = {};
	u64 switches;

	preempt_disable();
	counters_expect_error(turns->run, weir_counter_read_local(turns->counter, &value, 1), 0);
	switches = current->nvcsw + current->nivcsw;
	preempt_enable();
	*counted = value.value;
	return switches;
}

static void take_turns(void *data)
{
	struct turns *turns = data;
	u64 counted, counted_before, switched, switched_before;
	unsigned int i;

	switched_before = switches(turns, &counted_before);
	for (i = 0; i < COUNTED_TURNS; i++) {
		if (turns->first)
			complete(turns->other);
		wait_for_completion(turns->mine);
		if (!turns->first)
			complete(turns->other);
	}
	switched = switches(turns, &counted) - switched_before;
	counted -= counted_before;
	counters_expect(turns->run, counted == switched, "%llu switches counted as %llu", switched,
			counted);
}

static int count_switches(struct weir_counters_run *run)
{
	DECLARE_COMPLETION_ONSTACK(first);
	DECLARE_COMPLETION_ONSTACK(second);
	struct turns turns[2] = {
		{ run, &first, &second, ERR_PTR(-ENOENT), true },
		{ run, &second, &first, ERR_PTR(-ENOENT), false },
	};
	struct counters_worker workers[2] = {};
	unsigned int i;
	int error = 0;

	/* Both on one CPU, so that each turn is a switch. */
	for (i = 0; !error && i < 2; i++) {
		error = counters_worker_start(&workers[i], 0);
		if (error)
			break;
		turns[i].counter = counters_create(WEIR_SOFTWARE_EVENT(CONTEXT_SWITCHES),
						   .scope = WEIR_SCOPE_TASK,
						   .task = workers[i].worker->task);
		error = PTR_ERR_OR_ZERO(turns[i].counter) ?: weir_counter_enable(turns[i].counter);
	}
	if (!error) {
		workers[0].call = take_turns;
		workers[0].data = &turns[0];
		kthread_queue_work(workers[0].worker, &workers[0].work);
		counters_worker_call(&workers[1], take_turns, &turns[1]);
		kthread_flush_work(&workers[0].work);
		for (i = 0; i < 2; i++)
			counters_expect(run,
					counters_value(run, turns[i].counter) >= COUNTED_TURNS - 1,
					"fewer switches than turns");
	}
	for (i = 0; i < 2; i++) {
		weir_counter_release(turns[i].counter);
		counters_worker_stop(&workers[i]);
	}
	return error;
}

const struct counters_test counters_count_tests[] = {
	{ "count_on_cpu", count_on_cpu },
	{ "count_on_all", count_on_all },
	{ "count_in_task", count_in_task },
	{ "count_set", count_set },
	{ "count_faults", count_faults },
	{ "count_switches", count_switches },
	{ }
};
