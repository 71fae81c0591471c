// SPDX-License-Identifier: GPL-2.0

#include <linux/workqueue.h>

#include "helpers.h"

void weir_helper_init_work(struct work_struct *work, void (*func)(struct work_struct *))
{
	INIT_WORK(work, func);
}

void weir_helper_queue_work(struct work_struct *work)
{
	queue_work(system_dfl_wq, work);
}
