// SPDX-License-Identifier: GPL-2.0
/*
 * A PMU of this module. What it counts is what counters_tick() is told, on each CPU, in any
 * context, so that its overflows come from where the test wants. It has a number of slots on each
 * CPU, as hardware has, or is of the kind that always has room.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <asm/irq_regs.h>

#include "counters.h"

#define COUNTERS_SLOTS	16

struct counters_slots {
	struct perf_event *events[COUNTERS_SLOTS];
	u64 ticks;
};

/**
 * struct counters_pmu - The PMU.
 * @pmu: What perf knows.
 * @slots: Events that it can have on a CPU at a time.
 * @cpus: What is on each CPU.
 */
struct counters_pmu {
	struct pmu pmu;
	unsigned int slots;
	struct counters_slots __percpu *cpus;
};

/*
 * Perf's own function for overflows is for PMUs that are part of the kernel. A probe of it tells
 * where it is.
 */
static int (*counters_overflow)(struct perf_event *event, struct perf_sample_data *data,
				struct pt_regs *regs);

static int counters_find_overflow(void)
{
	struct kprobe probe = { .symbol_name = "perf_event_overflow" };
	int error;

	if (counters_overflow)
		return 0;
	error = register_kprobe(&probe);
	if (error)
		return error;
	counters_overflow = (void *)probe.addr;
	unregister_kprobe(&probe);
	return 0;
}

static struct counters_pmu *to_counters(struct pmu *pmu)
{
	return container_of(pmu, struct counters_pmu, pmu);
}

static int counters_event_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	/* There is one thing to count. */
	if (event->attr.config)
		return -EINVAL;
	return 0;
}

static void counters_event_read(struct perf_event *event)
{
	u64 now = this_cpu_ptr(to_counters(event->pmu)->cpus)->ticks;
	u64 before = local64_xchg(&event->hw.prev_count, now);

	if (!(event->hw.state & PERF_HES_STOPPED))
		local64_add(now - before, &event->count);
}

static void counters_event_start(struct perf_event *event, int flags)
{
	struct hw_perf_event *hw = &event->hw;

	/* A new period has no rest. */
	if (local64_read(&hw->period_left) <= 0)
		local64_set(&hw->period_left, hw->sample_period);
	local64_set(&hw->prev_count, this_cpu_ptr(to_counters(event->pmu)->cpus)->ticks);
	hw->state = 0;
}

static void counters_event_stop(struct perf_event *event, int flags)
{
	counters_event_read(event);
	event->hw.state |= PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int counters_event_add(struct perf_event *event, int flags)
{
	struct counters_pmu *pmu = to_counters(event->pmu);
	struct counters_slots *here = this_cpu_ptr(pmu->cpus);
	unsigned int i;

	for (i = 0; i < pmu->slots; i++) {
		if (here->events[i])
			continue;
		event->hw.idx = i;
		event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
		if (flags & PERF_EF_START)
			counters_event_start(event, flags);
		WRITE_ONCE(here->events[i], event);
		return 0;
	}
	return -EAGAIN;
}

static void counters_event_del(struct perf_event *event, int flags)
{
	struct counters_slots *here = this_cpu_ptr(to_counters(event->pmu)->cpus);

	counters_event_stop(event, PERF_EF_UPDATE);
	WRITE_ONCE(here->events[event->hw.idx], NULL);
}

static void counters_event_tick(struct perf_event *event, struct pt_regs *regs)
{
	struct perf_sample_data data;

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	counters_event_read(event);
	if (!event->attr.sample_period || local64_sub_return(1, &event->hw.period_left) > 0)
		return;
	perf_sample_data_init(&data, 0, event->hw.last_period);
	event->hw.last_period = event->hw.sample_period;
	local64_set(&event->hw.period_left, event->hw.sample_period);
	/* Perf stops the event by itself if that were too many. */
	counters_overflow(event, &data, regs);
}

void counters_tick(struct counters_pmu *pmu, unsigned int times)
{
	struct pt_regs *regs, here;
	unsigned long flags;
	unsigned int i;

	while (times--) {
		struct counters_slots *slots;

		local_irq_save(flags);
		regs = get_irq_regs();
		if (!regs) {
			perf_fetch_caller_regs(&here);
			regs = &here;
		}
		slots = this_cpu_ptr(pmu->cpus);
		slots->ticks++;
		for (i = 0; i < pmu->slots; i++) {
			struct perf_event *event = READ_ONCE(slots->events[i]);

			if (event)
				counters_event_tick(event, regs);
		}
		local_irq_restore(flags);
	}
}

struct counters_remote_tick {
	struct counters_pmu *pmu;
	unsigned int times;
};

static long counters_tick_remote(void *data)
{
	struct counters_remote_tick *remote = data;

	counters_tick(remote->pmu, remote->times);
	return 0;
}

int counters_tick_on(unsigned int cpu, struct counters_pmu *pmu, unsigned int times)
{
	struct counters_remote_tick remote = { pmu, times };

	return work_on_cpu(cpu, counters_tick_remote, &remote);
}

struct counters_pmu *counters_pmu_register(const char *name, bool software, unsigned int slots)
{
	struct counters_pmu *pmu;
	int error = counters_find_overflow();

	if (error)
		return ERR_PTR(error);
	pmu = kzalloc_obj(*pmu);
	if (!pmu)
		return ERR_PTR(-ENOMEM);
	pmu->cpus = alloc_percpu(struct counters_slots);
	if (!pmu->cpus) {
		kfree(pmu);
		return ERR_PTR(-ENOMEM);
	}
	pmu->slots = min(slots, COUNTERS_SLOTS);
	pmu->pmu = (struct pmu) {
		.module = THIS_MODULE,
		.task_ctx_nr = software ? perf_sw_context : perf_hw_context,
		.event_init = counters_event_init,
		.add = counters_event_add,
		.del = counters_event_del,
		.start = counters_event_start,
		.stop = counters_event_stop,
		.read = counters_event_read,
	};
	error = perf_pmu_register(&pmu->pmu, name, -1);
	if (error) {
		free_percpu(pmu->cpus);
		kfree(pmu);
		return ERR_PTR(error);
	}
	return pmu;
}

void counters_pmu_unregister(struct counters_pmu *pmu)
{
	if (IS_ERR(pmu))
		return;
	perf_pmu_unregister(&pmu->pmu);
	free_percpu(pmu->cpus);
	kfree(pmu);
}

u32 counters_pmu_type(const struct counters_pmu *pmu)
{
	return pmu->pmu.type;
}
