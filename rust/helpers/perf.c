// SPDX-License-Identifier: GPL-2.0

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>

#include "helpers.h"

#ifdef CONFIG_PERF_EVENTS

int weir_helper_allow_cpu(void)
{
	return perf_allow_cpu();
}

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

int weir_helper_event_state(struct perf_event *event)
{
	return READ_ONCE(event->state);
}

notrace void *weir_helper_event_context(struct perf_event *event)
{
	return event->overflow_handler_context;
}

#else

/* Without perf there is no perf_event_paranoid; what its strictest value asks for is asked for. */
int weir_helper_allow_cpu(void)
{
	return perfmon_capable() ? 0 : -EACCES;
}

#endif
