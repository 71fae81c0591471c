// SPDX-License-Identifier: GPL-2.0

#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "helpers.h"

void weir_helper_init_waitqueue_head(struct wait_queue_head *head)
{
	init_waitqueue_head(head);
}

void weir_helper_wake_up(struct wait_queue_head *head)
{
	wake_up(head);
}

bool weir_helper_waitqueue_active(struct wait_queue_head *head)
{
	/* A guess: the caller is a timer that comes again if it says no too early. */
	return waitqueue_active(head);
}

void weir_helper_poll_wait(struct file *file, struct wait_queue_head *head,
			   poll_table *table)
{
	poll_wait(file, head, table);
}

long weir_helper_wait_event(struct wait_queue_head *head,
			    bool (*condition)(void *), void *arg, u64 timeout_ns)
{
	return wait_event_interruptible_hrtimeout(*head, condition(arg),
						  ns_to_ktime(timeout_ns));
}

void weir_helper_init_irq_work(struct irq_work *work,
			       void (*func)(struct irq_work *))
{
	init_irq_work(work, func);
}
