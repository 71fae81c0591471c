// SPDX-License-Identifier: GPL-2.0

#include <linux/cpuhotplug.h>

#include "helpers.h"

int weir_helper_hotplug_setup(const char *name,
			      int (*online)(unsigned int cpu, struct hlist_node *node))
{
	return cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, name, online, NULL);
}

void weir_helper_hotplug_remove(int state)
{
	cpuhp_remove_multi_state(state);
}

int weir_helper_hotplug_add(int state, struct hlist_node *node)
{
	return cpuhp_state_add_instance_nocalls(state, node);
}

void weir_helper_hotplug_delete(int state, struct hlist_node *node)
{
	cpuhp_state_remove_instance_nocalls(state, node);
}
