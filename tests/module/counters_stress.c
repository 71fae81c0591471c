// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads that create, use and release counters of every kind at once. CPUs may come and go
 * meanwhile, so the threads are bound to none.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "counters.h"

#define STRESSES	6

struct stress {
	struct task_struct *task;
	struct counters_pmu *pmus[2];
	struct rnd_state random;
	int tracepoint;
	atomic_long_t rounds;
	atomic_long_t calls;
	unsigned int fails;
	int error;
	const char *call;
};

static void stress_call(struct weir_overflow *overflow, void *data)
{
	struct stress *stress = data;

	/* Often enough to meet everything else. */
	if (atomic_long_inc_return(&stress->calls) % 64 == 0)
		weir_overflow_stop(overflow);
}

static u32 draw(struct stress *stress, u32 below)
{
	return prandom_u32_state(&stress->random) % below;
}

/* A clock that overflows more often leaves no time for anything else. */
#define STRESS_CLOCK_PERIOD	(100 * NSEC_PER_USEC)

static struct perf_event_attr draw_event(struct stress *stress, bool *samples)
{
	const u64 period = draw(stress, 2) ? 1 + draw(stress, 50) : 0;
	struct perf_event_attr attr;

	switch (draw(stress, 6)) {
	case 0:
		attr = counters_breakpoint(draw(stress, COUNTERS_TARGETS), .sample_period = period);
		break;
	case 1:
		attr = WEIR_TRACEPOINT_EVENT(stress->tracepoint, .sample_period = period);
		break;
	case 2:
		attr = WEIR_SOFTWARE_EVENT(CPU_CLOCK,
					   .sample_period = period * STRESS_CLOCK_PERIOD);
		break;
	case 3:
		attr = WEIR_SOFTWARE_EVENT(CONTEXT_SWITCHES, .sample_period = period);
		break;
	default:
		attr = WEIR_EVENT(counters_pmu_type(stress->pmus[draw(stress, 2)]), 0,
				  .sample_period = period);
	}
	*samples |= period;
	return attr;
}

/* What may go wrong while CPUs come and go and debug registers are few. */
static bool is_expected(int error)
{
	return !error || error == -ENODEV || error == -ENOSPC || error == -EBUSY;
}

static void stress_result(struct stress *stress, const char *call, int error)
{
	if (is_expected(error))
		return;
	stress->fails++;
	stress->error = error;
	stress->call = call;
}

#define stress_try(stress, what) stress_result(stress, #what, what)

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CPU_CLOCK;
}

static void stress_use(struct stress *stress, struct weir_counter *counter,
		       const struct weir_counter_config *config)
{
	const u64 unit = is_clock(config->events) ? STRESS_CLOCK_PERIOD : 1;
	unsigned int turns = draw(stress, 12), nr = config->nr_events, cpu;
	struct weir_counter_value values[3];
	int error;

	while (turns--) {
		switch (draw(stress, 10)) {
		case 0:
		case 1:
			stress_try(stress, weir_counter_enable(counter));
			break;
		case 2:
			stress_try(stress, weir_counter_disable(counter));
			break;
		case 3:
			stress_try(stress, weir_counter_read(counter, values, nr));
			break;
		case 4:
			cpu = draw(stress, nr_cpu_ids);
			stress_try(stress, weir_counter_read_cpu(counter, cpu, values, nr));
			break;
		case 5:
			error = weir_counter_read_local(counter, values, nr);
			/* It counts elsewhere. */
			stress_try(stress, error == -EINVAL || error == -EOPNOTSUPP ? 0 : error);
			break;
		case 6:
			stress_try(stress, weir_counter_reset(counter));
			break;
		case 7:
			error = weir_counter_set_period(counter, 0,
							unit * (1 + draw(stress, 1000)));
			stress_try(stress, error == -EINVAL ? 0 : error);
			break;
		case 8:
			error = weir_counter_refresh(counter, 1 + draw(stress, 5));
			stress_try(stress, error == -EINVAL ? 0 : error);
			break;
		default:
			counters_hit(draw(stress, COUNTERS_TARGETS), draw(stress, 50));
			counters_tick(stress->pmus[draw(stress, 2)], draw(stress, 50));
		}
	}
}

static void stress_once(struct stress *stress)
{
	struct perf_event_attr events[3];
	struct weir_counter_config config = {
		.events = events, .nr_events = 1 + draw(stress, 3), .data = stress,
	};
	struct weir_counter *counter;
	bool samples = false;
	unsigned int i;

	for (i = 0; i < config.nr_events; i++)
		events[i] = draw_event(stress, &samples);
	if (samples)
		config.overflow = stress_call;
	switch (draw(stress, 3)) {
	case 0:
		config.scope = WEIR_SCOPE_ALL;
		config.flags = draw(stress, 3) ? 0 : WEIR_COUNTER_CACHED;
		break;
	case 1:
		config.scope = WEIR_SCOPE_CPU;
		config.cpu = draw(stress, nr_cpu_ids);
		break;
	default:
		config.scope = WEIR_SCOPE_TASK;
		config.task = current;
		events[0].inherit = draw(stress, 4) == 0;
	}
	counter = weir_counter_create(&config);
	if (IS_ERR(counter)) {
		stress_try(stress, PTR_ERR(counter));
		return;
	}
	stress_use(stress, counter, &config);
	weir_counter_release(counter);
	atomic_long_inc(&stress->rounds);
}

static int stress_thread(void *data)
{
	struct stress *stress = data;

	while (!kthread_should_stop()) {
		stress_once(stress);
		cond_resched();
	}
	return 0;
}

static int stress(struct weir_counters_run *run)
{
	struct counters_pmu *hardware __free(counters_pmu) =
		counters_pmu_register("weir_hardware", false, 2);
	struct counters_pmu *software __free(counters_pmu) =
		counters_pmu_register("weir_software", true, 16);
	int tracepoint = weir_tracepoint_id("sched", "sched_wakeup");
	struct stress *all;
	unsigned int i;
	int error = 0;

	if (IS_ERR(hardware) || IS_ERR(software))
		return IS_ERR(hardware) ? PTR_ERR(hardware) : PTR_ERR(software);
	if (tracepoint < 0)
		return tracepoint;
	all = kcalloc(STRESSES, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	for (i = 0; i < STRESSES; i++) {
		struct task_struct *task;

		all[i].pmus[0] = hardware;
		all[i].pmus[1] = software;
		all[i].tracepoint = tracepoint;
		prandom_seed_state(&all[i].random, run->seed + i);
		task = kthread_run(stress_thread, &all[i], "weir_stress/%u", i);
		if (IS_ERR(task)) {
			error = PTR_ERR(task);
			break;
		}
		all[i].task = task;
	}
	if (!error)
		msleep(run->ms);
	for (i = 0; i < STRESSES; i++) {
		if (!all[i].task)
			continue;
		kthread_stop(all[i].task);
		run->rounds += atomic_long_read(&all[i].rounds);
		counters_expect(run, !all[i].fails, "%u times, the last: %s gave %d", all[i].fails,
				all[i].call, all[i].error);
		counters_expect(run, error || atomic_long_read(&all[i].rounds),
				"thread %u did nothing",
				i);
	}
	kfree(all);
	return error;
}

const struct counters_test counters_stress_tests[] = {
	{ "stress", stress },
	{ }
};
