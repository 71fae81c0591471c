// SPDX-License-Identifier: GPL-2.0
/*
 * PMUs with too few slots, and PMUs that go away while counters are on them.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "counters.h"

#define SLOTS	2

/* More counters than slots take turns, which their times show; pinned ones do not. */
static int pmu_slots(struct weir_counters_run *run)
{
	struct counters_pmu *pmu __free(counters_pmu) =
		counters_pmu_register("weir_slots", false, SLOTS);
	struct weir_counter *counters[SLOTS + 1] = {};
	struct weir_counter_value value;
	unsigned int i, waited = 0;
	unsigned long end;

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);
	for (i = 0; i <= SLOTS; i++) {
		counters[i] = counters_create(WEIR_EVENT(counters_pmu_type(pmu), 0),
					      .scope = WEIR_SCOPE_ALL);
		if (counters_expect(run, !IS_ERR(counters[i]), "%pe", counters[i]))
			counters_expect_error(run, weir_counter_enable(counters[i]), 0);
	}
	end = jiffies + msecs_to_jiffies(200);
	while (time_before(jiffies, end))
		counters_tick(pmu, 10);
	for (i = 0; i <= SLOTS; i++) {
		counters_expect_error(run, weir_counter_read(counters[i], &value, 1), 0);
		counters_expect(run, value.running && value.value, "%u had no turn", i);
		counters_expect(run, value.running <= value.enabled, "%u ran %llu of %llu ns", i,
				value.running, value.enabled);
		counters_expect(run, !(value.flags & WEIR_VALUE_TOGETHER) ==
				(value.running != value.enabled), "%u: flags %#x", i, value.flags);
		waited += value.running < value.enabled;
	}
	counters_expect(run, waited, "all ran all the time");
	for (i = 0; i <= SLOTS; i++)
		weir_counter_release(counters[i]);

	for (i = 0; i <= SLOTS; i++) {
		counters[i] = counters_create(WEIR_EVENT(counters_pmu_type(pmu), 0, .pinned = 1),
					      .scope = WEIR_SCOPE_CPU, .cpu = 0);
		if (counters_expect(run, !IS_ERR(counters[i]), "%pe", counters[i]))
			counters_expect_error(run, weir_counter_enable(counters[i]),
					      i < SLOTS ? 0 : -EBUSY);
	}
	/* The others are not disturbed. */
	counters_tick_on(0, pmu, 33);
	for (i = 0; i <= SLOTS; i++)
		counters_expect_error(run, counters_value(run, counters[i]), i < SLOTS ? 33 : 0);
	/* There is room now. */
	weir_counter_release(counters[0]);
	counters_expect_error(run, weir_counter_enable(counters[SLOTS]), 0);
	counters_tick_on(0, pmu, 10);
	counters_expect_error(run, counters_value(run, counters[SLOTS]), 10);
	for (i = 1; i <= SLOTS; i++)
		weir_counter_release(counters[i]);
	return 0;
}

static void ignore(struct weir_overflow *overflow, void *data)
{
	atomic_long_inc(data);
}

/* Scopes in which a PMU's events are counted when it goes. */
enum revoked {
	ON_CPU,
	ON_ALL,
	IN_TASK,
	SAMPLING,
	IN_SET,
	DISABLED,
	REVOKED,
};

static struct weir_counter *create_revoked(enum revoked kind, u32 type, atomic_long_t *calls)
{
	const struct perf_event_attr set[] = {
		counters_breakpoint(0), WEIR_EVENT(type, 0), counters_breakpoint(1),
	};
	struct weir_counter_config config = {
		.events = &set[1], .nr_events = 1, .scope = WEIR_SCOPE_ALL,
	};

	switch (kind) {
	case ON_CPU:
		config.scope = WEIR_SCOPE_CPU;
		break;
	case IN_TASK:
		config.scope = WEIR_SCOPE_TASK;
		config.task = current;
		break;
	case IN_SET:
		config.events = set;
		config.nr_events = 3;
		break;
	case SAMPLING:
		return counters_create(WEIR_EVENT(type, 0, .sample_period = 3),
				       .scope = WEIR_SCOPE_ALL, .overflow = ignore,
				       .data = calls);
	default:
		break;
	}
	return weir_counter_create(&config);
}

static long read_remote(void *data)
{
	struct weir_counter_value values[3];

	return weir_counter_read_local(data, values, 1);
}

static void expect_revoked(struct weir_counters_run *run, struct weir_counter *counter,
			   enum revoked kind, u64 counted)
{
	struct weir_counter_value values[3];
	unsigned int nr = kind == IN_SET ? 3 : 1, own = kind == IN_SET;
	unsigned int round;

	for (round = 0; round < 2; round++) {
		counters_expect_error(run, weir_counter_read(counter, values, nr), 0);
		counters_expect(run, values[own].value == counted, "kind %u: %llu, not %llu", kind,
				values[own].value, counted);
		counters_expect(run, values[own].flags & WEIR_VALUE_REVOKED, "kind %u: flags %#x",
				kind, values[own].flags);
		if (kind == IN_SET) {
			counters_expect(run, !(values[0].flags & WEIR_VALUE_REVOKED), "flags %#x",
					values[0].flags);
			/* The others go on. */
			counters_expect_error(run, values[0].value, 5 + (round ? 6 : 0));
			counters_expect_error(run, weir_counter_read_local(counter, values, 3),
					      -ENODEV);
			counters_hit(0, 6);
		} else if (kind != IN_TASK) {
			counters_expect_error(run, work_on_cpu(0, read_remote, counter), -ENODEV);
		} else {
			counters_expect_error(run, weir_counter_read_local(counter, values, 1),
					      -ENODEV);
		}
	}
	counters_expect_error(run, weir_counter_disable(counter), 0);
	counters_expect_error(run, weir_counter_enable(counter), -ENODEV);
	/* The first of a set is there, and has no period. */
	counters_expect_error(run, weir_counter_refresh(counter, 2),
			      kind == IN_SET ? -EINVAL : -ENODEV);
	counters_expect_error(run, weir_counter_set_period(counter, 0, 5),
			      kind == SAMPLING ? -ENODEV : -EINVAL);
	if (kind == IN_SET) {
		/* Nothing of it counts. */
		counters_hit(0, 8);
		counters_expect_error(run, weir_counter_read(counter, values, 3), 0);
		counters_expect_error(run, values[0].value, 17);
	}
	counters_expect_error(run, weir_counter_reset(counter), 0);
	counters_expect_error(run, weir_counter_read(counter, values, nr), 0);
	counters_expect_error(run, values[own].value, 0);
}

static int revoke(struct weir_counters_run *run, bool software)
{
	struct counters_pmu *pmu = counters_pmu_register("weir_revoked", software, REVOKED);
	struct weir_counter *counters[REVOKED];
	atomic_long_t calls = ATOMIC_LONG_INIT(0);
	enum revoked kind;
	unsigned int cpu;
	u32 type;

	if (IS_ERR(pmu))
		return PTR_ERR(pmu);
	type = counters_pmu_type(pmu);
	for (kind = 0; kind < REVOKED; kind++) {
		counters[kind] = create_revoked(kind, type, &calls);
		if (counters_expect(run, !IS_ERR(counters[kind]), "kind %u: %pe", kind,
				    counters[kind]) && kind != DISABLED)
			counters_expect_error(run, weir_counter_enable(counters[kind]), 0);
	}
	if (run->failures)
		goto release;
	for_each_online_cpu(cpu)
		counters_tick_on(cpu, pmu, 30);
	counters_tick(pmu, 0);
	counters_hit(0, 5);
	counters_expect_error(run, atomic_long_read(&calls), 10 * num_online_cpus());
	counters_pmu_unregister(pmu);
	pmu = NULL;
	for (kind = 0; kind < REVOKED; kind++)
		expect_revoked(run, counters[kind], kind,
			       kind == ON_CPU ? 30 : kind == IN_TASK || kind == DISABLED ? 0 :
			       30 * num_online_cpus());
	/* Nothing is created on it. */
	struct weir_counter *none = counters_create(WEIR_EVENT(type, 0), .scope = WEIR_SCOPE_ALL);

	counters_expect(run, none == ERR_PTR(-ENOENT), "%pe", none);
	weir_counter_release(none);
release:
	for (kind = 0; kind < REVOKED; kind++)
		weir_counter_release(counters[kind]);
	if (pmu)
		counters_pmu_unregister(pmu);
	return 0;
}

static int revoke_hardware(struct weir_counters_run *run)
{
	return revoke(run, false);
}

static int revoke_software(struct weir_counters_run *run)
{
	return revoke(run, true);
}

/* --- A PMU that comes and goes, while others create, read and release --- */

struct comings {
	struct counters_hitters hitters;
	u32 type;
	atomic_long_t created;
	atomic_long_t wrong;
	int error;
};

static void use_type(void *data)
{
	struct comings *comings = data;
	struct weir_counter_value values[3];
	struct weir_counter *counter;
	static atomic_t draw;
	enum revoked kind = (unsigned int)atomic_inc_return(&draw) % REVOKED;
	unsigned int nr = kind == IN_SET ? 3 : 1;
	atomic_long_t calls;
	int error;

	counter = create_revoked(kind, READ_ONCE(comings->type), &calls);
	if (IS_ERR(counter)) {
		error = PTR_ERR(counter);
		/* Breakpoints are few. */
		if (error != -ENOENT && error != -ENOSPC && error != -ENODEV)
			goto wrong;
		return;
	}
	atomic_long_inc(&comings->created);
	error = weir_counter_enable(counter);
	if (error && error != -ENODEV)
		goto release_wrong;
	error = weir_counter_read_local(counter, values, nr);
	if (error && error != -ENODEV && error != -EINVAL && error != -EBUSY)
		goto release_wrong;
	error = weir_counter_read(counter, values, nr);
	if (error)
		goto release_wrong;
	error = kind == SAMPLING ? weir_counter_set_period(counter, 0, 7) : 0;
	if (error && error != -ENODEV)
		goto release_wrong;
	weir_counter_release(counter);
	return;
release_wrong:
	weir_counter_release(counter);
wrong:
	atomic_long_inc(&comings->wrong);
	WRITE_ONCE(comings->error, error);
}

static int revoke_while_used(struct weir_counters_run *run)
{
	unsigned long end = jiffies + msecs_to_jiffies(run->ms);
	struct comings comings = {};
	unsigned long patience;
	long created;
	int error;

	comings.type = U32_MAX;
	comings.hitters.call = use_type;
	comings.hitters.data = &comings;
	error = counters_hitters_start(&comings.hitters);
	if (error)
		return error;
	while (time_before(jiffies, end)) {
		struct counters_pmu *pmu =
			counters_pmu_register("weir_coming", run->rounds++ % 2, REVOKED);

		if (!counters_expect(run, !IS_ERR(pmu), "%pe", pmu))
			break;
		WRITE_ONCE(comings.type, counters_pmu_type(pmu));
		/* It goes in the middle of what they do with it. */
		created = atomic_long_read(&comings.created);
		patience = jiffies + HZ;
		while (atomic_long_read(&comings.created) - created < 3 &&
		       time_before(jiffies, patience))
			usleep_range(100, 1000);
		counters_tick(pmu, 10);
		counters_pmu_unregister(pmu);
	}
	counters_hitters_stop(&comings.hitters);
	counters_expect(run, atomic_long_read(&comings.created), "nothing was created");
	counters_expect(run, !atomic_long_read(&comings.wrong), "%ld wrong, the last gave %d",
			atomic_long_read(&comings.wrong), comings.error);
	return 0;
}

const struct counters_test counters_revoke_tests[] = {
	{ "pmu_slots", pmu_slots },
	{ "revoke_hardware", revoke_hardware },
	{ "revoke_software", revoke_software },
	{ "revoke_while_used", revoke_while_used },
	{ }
};
