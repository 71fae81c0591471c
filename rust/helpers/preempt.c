// SPDX-License-Identifier: GPL-2.0

#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "helpers.h"

/* Says on which CPU that is. */
notrace unsigned int weir_helper_preempt_disable(void)
{
	preempt_disable_notrace();
	return raw_smp_processor_id();
}

notrace void weir_helper_preempt_enable(void)
{
	preempt_enable_notrace();
}

void weir_helper_cond_resched(void)
{
	cond_resched();
}
