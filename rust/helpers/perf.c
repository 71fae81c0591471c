// SPDX-License-Identifier: GPL-2.0

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>

#include "helpers.h"

#ifdef CONFIG_PERF_EVENTS

int weir_helper_allow_cpu(void)
{
	return perf_allow_cpu();
}

unsigned long weir_helper_most_events(void)
{
	return perfmon_capable() ? ULONG_MAX : rlimit(RLIMIT_NOFILE);
}

/* --- What an overflow is told --- */

notrace u64 weir_helper_regs_ip(struct pt_regs *regs)
{
	return instruction_pointer(regs);
}

notrace bool weir_helper_regs_user(struct pt_regs *regs)
{
	return user_mode(regs);
}

notrace u64 weir_helper_sample_period(struct perf_sample_data *data)
{
	return data->period;
}

notrace u64 weir_helper_sample_address(struct perf_sample_data *data)
{
	return data->sample_flags & PERF_SAMPLE_ADDR ? data->addr : 0;
}

notrace void *weir_helper_event_context(struct perf_event *event)
{
	return event->overflow_handler_context;
}

/* ~0 once perf has stopped it for too many overflows, before it tells of this one. */
notrace u64 weir_helper_event_interrupts(struct perf_event *event)
{
	return event->hw.interrupts;
}

/* So that it never does: a CPU that hangs has no tick to start the event again. */
notrace void weir_helper_event_forget_interrupts(struct perf_event *event)
{
	event->hw.interrupts = 0;
}

notrace void weir_helper_event_stop(struct perf_event *event)
{
	event->pmu->stop(event, 0);
}

/*
 * For one that is disabled: how many overflows were left, and that it was stopped, which
 * breakpoints, tracepoints and probes do not forget by themselves when they are enabled again.
 */
void weir_helper_event_forget_stop(struct perf_event *event)
{
	atomic_set(&event->event_limit, 0);
	if (event->event_caps & PERF_EV_CAP_SOFTWARE)
		event->hw.state = 0;
}

/* --- The state of an event --- */

notrace int weir_helper_event_state(struct perf_event *event)
{
	return READ_ONCE(event->state);
}

notrace int weir_helper_event_oncpu(struct perf_event *event)
{
	return READ_ONCE(event->oncpu);
}

notrace int weir_helper_event_cpu(struct perf_event *event)
{
	return READ_ONCE(event->cpu);
}

notrace bool weir_helper_event_of_task(struct perf_event *event)
{
	return event->attach_state & PERF_ATTACH_TASK;
}

notrace bool weir_helper_event_of_current(struct perf_event *event)
{
	return event->hw.target == current;
}

/* Cleared, for ever, when its CPU or its task goes. */
bool weir_helper_event_attached(struct perf_event *event)
{
	return READ_ONCE(event->attach_state) & PERF_ATTACH_CONTEXT;
}

/* A moment later it may be otherwise. */
bool weir_helper_event_has_children(struct perf_event *event)
{
	return !list_empty(&event->child_list);
}

/* Perf makes a period of the frequency of a clock. */
bool weir_helper_event_is_frequency(struct perf_event *event)
{
	return event->attr.freq;
}

/* --- Its value, on the CPU where it counts, with interrupts off --- */

notrace void weir_helper_event_update(struct perf_event *event)
{
	event->pmu->read(event);
}

notrace u64 weir_helper_event_count(struct perf_event *event)
{
	return local64_read(&event->count);
}

notrace u64 weir_helper_event_enabled(struct perf_event *event)
{
	return event->total_time_enabled;
}

notrace u64 weir_helper_event_running(struct perf_event *event)
{
	return event->total_time_running;
}

/* Ns since the two above were brought up to date, in the time of its context, which runs. */
notrace u64 weir_helper_event_since(struct perf_event *event)
{
	return local_clock() + READ_ONCE(event->ctx->time.offset) - event->tstamp;
}

/* --- A descriptor of perf_event_open() --- */

struct task_struct *weir_helper_event_target(struct perf_event *event)
{
	return event->hw.target;
}

#else

/* Without perf there is no perf_event_paranoid; what its strictest value asks for is asked for. */
int weir_helper_allow_cpu(void)
{
	return perfmon_capable() ? 0 : -EACCES;
}

#endif
