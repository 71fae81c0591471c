// SPDX-License-Identifier: GPL-2.0
/* The tracepoint of task switches, by its name, as it is not exported. */

#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "helpers.h"

#ifdef CONFIG_TRACEPOINTS

static notrace void switched(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	struct weir_switch_probe *probe = data;

	probe->call(probe, is_idle_task(next));
}

static void match(struct tracepoint *tracepoint, void *found)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		*(struct tracepoint **)found = tracepoint;
}

static struct tracepoint *sched_switch(void)
{
	struct tracepoint *found = NULL;

	for_each_kernel_tracepoint(match, &found);
	return found;
}

int weir_helper_switch_register(struct weir_switch_probe *probe)
{
	struct tracepoint *tracepoint = sched_switch();

	return tracepoint ? tracepoint_probe_register(tracepoint, switched, probe) : -EOPNOTSUPP;
}

void weir_helper_switch_unregister(struct weir_switch_probe *probe)
{
	tracepoint_probe_unregister(sched_switch(), switched, probe);
	tracepoint_synchronize_unregister();
}

#else

int weir_helper_switch_register(struct weir_switch_probe *probe)
{
	return -EOPNOTSUPP;
}

void weir_helper_switch_unregister(struct weir_switch_probe *probe)
{
}

#endif
