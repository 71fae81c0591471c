// SPDX-License-Identifier: GPL-2.0

#include <linux/cpumask.h>
#include <linux/percpu.h>

#include "helpers.h"

/* A pointer for each CPU, which is NULL. */
void *weir_helper_alloc_per_cpu_pointers(void)
{
	void * __percpu *table = alloc_percpu_gfp(void *, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);

	return (__force void *)table;
}

void weir_helper_set_per_cpu_pointer(void *table, unsigned int cpu, void *pointer)
{
	void * __percpu *pointers = (__force void * __percpu *)table;

	if (cpu_possible(cpu))
		*per_cpu_ptr(pointers, cpu) = pointer;
}

void weir_helper_free_per_cpu(void *table)
{
	free_percpu((__force void __percpu *)table);
}
