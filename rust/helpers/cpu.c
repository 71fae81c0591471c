// SPDX-License-Identifier: GPL-2.0

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/smp.h>

#include "helpers.h"

void weir_helper_cpus_read_lock(void)
{
	cpus_read_lock();
}

void weir_helper_cpus_read_unlock(void)
{
	cpus_read_unlock();
}

bool weir_helper_cpu_online(unsigned int cpu)
{
	return cpu_online(cpu);
}

/* The node whose memory is nearest to a CPU, which need not be there. */
int weir_helper_cpu_to_node(unsigned int cpu)
{
	return cpu_possible(cpu) ? cpu_to_node(cpu) : NUMA_NO_NODE;
}

void weir_helper_on_each_cpu_cond(bool (*wanted)(int cpu, void *info), void (*call)(void *info),
				  void *info)
{
	on_each_cpu_cond(wanted, call, info, true);
}
