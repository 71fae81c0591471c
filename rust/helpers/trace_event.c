// SPDX-License-Identifier: GPL-2.0

#include <linux/trace_events.h>

#include "helpers.h"

#ifdef CONFIG_EVENT_TRACING

int weir_helper_trace_event_id(const char *system, const char *name)
{
	struct trace_event_file *file = trace_get_event_file(NULL, system, name);
	int id;

	if (IS_ERR(file))
		return PTR_ERR(file);
	id = file->event_call->event.type;
	trace_put_event_file(file);
	return id;
}

#else

int weir_helper_trace_event_id(const char *system, const char *name)
{
	return -EOPNOTSUPP;
}

#endif
