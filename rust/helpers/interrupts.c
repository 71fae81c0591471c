// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/preempt.h>

#include "helpers.h"

notrace unsigned long weir_helper_local_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

notrace void weir_helper_local_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

notrace bool weir_helper_in_nmi(void)
{
	return in_nmi();
}
