// SPDX-License-Identifier: GPL-2.0

#include <linux/sched/clock.h>

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/tsc.h>
#endif

#include "helpers.h"

u64 weir_helper_local_clock(void)
{
	return local_clock();
}

/* Zero if the processors have none that can be compared between them. */
unsigned int weir_helper_tsc_khz(void)
{
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	return check_tsc_unstable() ? 0 : tsc_khz;
#else
	return 0;
#endif
}
