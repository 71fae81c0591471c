// SPDX-License-Identifier: GPL-2.0
/*
 * weir_abandon.ko: goes without releasing its counters, whose callbacks are called all the time.
 */
#include <linux/err.h>
#include <linux/module.h>

#include <linux/weir.h>

static atomic_long_t abandon_calls;

static void abandon_call(struct weir_overflow *overflow, void *data)
{
	atomic_long_inc(&abandon_calls);
}

static int __init abandon_init(void)
{
	int id = weir_tracepoint_id("sched", "sched_switch");
	const struct perf_event_attr events[] = {
		WEIR_SOFTWARE_EVENT(CPU_CLOCK, .sample_period = 50 * NSEC_PER_USEC),
		WEIR_TRACEPOINT_EVENT(id, .sample_period = 1),
	};
	struct weir_counter_config config = {
		.events = events, .nr_events = ARRAY_SIZE(events), .scope = WEIR_SCOPE_ALL,
		.overflow = abandon_call,
	};
	unsigned int i;

	if (id < 0)
		return id;
	for (i = 0; i < 3; i++) {
		struct weir_counter *counter = weir_counter_create(&config);
		int error = PTR_ERR_OR_ZERO(counter) ?: weir_counter_enable(counter);

		/* What was made before is left behind here, too. */
		if (error)
			return error;
	}
	return 0;
}

static void __exit abandon_exit(void)
{
	pr_info("leaves its counters after %ld calls\n", atomic_long_read(&abandon_calls));
}

module_init(abandon_init);
module_exit(abandon_exit);
MODULE_DESCRIPTION("Goes without releasing its counters, for tests");
MODULE_LICENSE("GPL");
