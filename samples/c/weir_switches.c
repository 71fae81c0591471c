// SPDX-License-Identifier: GPL-2.0
/*
 * Every switch of a CPU from one task to another, into a channel called "weir_switches". A probe
 * of the scheduler's tracepoint, which is found by its name, writes each in place.
 *
 * samples/user/print_switches.c prints them.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/weir.h>

#include "weir_switches.h"

static struct weir_channel *channel;
static struct tracepoint *sched_switch;

/* The arguments are those of TRACE_EVENT(sched_switch), behind the data of the probe. */
static void probe(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		  unsigned int prev_state)
{
	DEFINE_WEIR_RESERVATION(reservation);
	struct weir_switch *record;

	record = weir_channel_reserve(channel, &reservation, sizeof(*record));
	/* The channel counts what it has no room for. */
	if (IS_ERR(record))
		return;
	record->prev_pid = prev->pid;
	record->next_pid = next->pid;
	record->prev_state = prev_state;
	record->preempt = preempt;
	memcpy(record->next_comm, next->comm, sizeof(record->next_comm));
	weir_channel_commit(&reservation);
}

static void find(struct tracepoint *tracepoint, void *data)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		sched_switch = tracepoint;
}

static int __init weir_switches_init(void)
{
	int error;

	for_each_kernel_tracepoint(find, NULL);
	if (!sched_switch)
		return -ENOENT;
	channel = weir_channel_create("weir_switches", NULL);
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	error = tracepoint_probe_register(sched_switch, probe, NULL);
	if (error)
		weir_channel_destroy(channel);
	return error;
}

static void __exit weir_switches_exit(void)
{
	tracepoint_probe_unregister(sched_switch, probe, NULL);
	/* No probe runs any more when this returns. */
	tracepoint_synchronize_unregister();
	weir_channel_destroy(channel);
}

module_init(weir_switches_init);
module_exit(weir_switches_exit);
MODULE_DESCRIPTION("Sample of weir in C: every switch between tasks");
MODULE_LICENSE("GPL");
