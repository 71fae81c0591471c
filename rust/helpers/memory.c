// SPDX-License-Identifier: GPL-2.0

#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "helpers.h"

/* Counts pages as locked by the current process; a kernel thread has no limit, and no process. */
int weir_helper_lock_pages(unsigned long pages, struct mm_struct **mm)
{
	int ret;

	*mm = current->mm;
	if (!*mm)
		return 0;
	ret = account_locked_vm(*mm, pages, true);
	if (!ret)
		mmgrab(*mm);
	return ret;
}

void weir_helper_unlock_pages(unsigned long pages, struct mm_struct *mm)
{
	account_locked_vm(mm, pages, false);
	mmdrop(mm);
}
