// SPDX-License-Identifier: GPL-2.0

#include <linux/tracepoint.h>

/* It is inline in C. */
void weir_sample_tracepoint_synchronize(void);
void weir_sample_tracepoint_synchronize(void)
{
	tracepoint_synchronize_unregister();
}
