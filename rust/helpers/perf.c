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

/* Bit-fields, which only C lays out. */
void weir_helper_attr_flags(struct perf_event_attr *attr, bool freq,
			    bool exclude_user, bool exclude_kernel, bool pinned)
{
	attr->disabled = 1;
	attr->freq = freq;
	attr->exclude_user = exclude_user;
	attr->exclude_kernel = exclude_kernel;
	attr->pinned = pinned;
}

#else

/* Without perf there is no perf_event_paranoid; what its strictest value asks for is asked for. */
int weir_helper_allow_cpu(void)
{
	return perfmon_capable() ? 0 : -EACCES;
}

#endif
