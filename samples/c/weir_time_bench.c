// SPDX-License-Identifier: GPL-2.0
/*
 * What a section of code costs: two reads of a counter on this CPU bracket it. They interrupt
 * nobody and take no lock, so the section may be as short as one likes, and interrupts can be off.
 *
 * Compare tools/testing/selftests/net/bench/page_pool/time_bench.c of the kernel. Reading
 * /sys/kernel/debug/weir_time_bench measures a loop of several lengths, in cycles and instructions
 * where the machine counts them, and otherwise in ns.
 */
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/weir.h>

#define MOST_EVENTS	2

/* From the best that a machine may have to what all of them have. */
static const struct kind {
	unsigned int nr_events;
	struct perf_event_attr events[MOST_EVENTS];
	const char *units[MOST_EVENTS];
} kinds[] = {
	{
		2, {
			WEIR_HARDWARE_EVENT(CPU_CYCLES, .pinned = 1, .exclude_user = 1),
			WEIR_HARDWARE_EVENT(INSTRUCTIONS, .pinned = 1, .exclude_user = 1),
		}, { "cycles", "instructions" }
	},
	{ 1, { WEIR_HARDWARE_EVENT(CPU_CYCLES, .pinned = 1, .exclude_user = 1) }, { "cycles" } },
	{ 1, { WEIR_SOFTWARE_EVENT(CPU_CLOCK) }, { "ns" } },
};

static const struct kind *kind;
static struct weir_counter *counter;
static struct dentry *file;

static noinline void section(unsigned long loops)
{
	while (loops--)
		barrier();
}

static int measure(unsigned long loops, u64 *counts)
{
	struct weir_counter_value begin[MOST_EVENTS], end[MOST_EVENTS];
	unsigned long flags;
	unsigned int i;
	int error;

	local_irq_save(flags);
	error = weir_counter_read_local(counter, begin, kind->nr_events);
	section(loops);
	error = error ?: weir_counter_read_local(counter, end, kind->nr_events);
	local_irq_restore(flags);
	if (error)
		return error;
	for (i = 0; i < kind->nr_events; i++)
		counts[i] = end[i].value - begin[i].value;
	return 0;
}

static int weir_time_bench_show(struct seq_file *seq, void *unused)
{
	u64 counts[MOST_EVENTS];
	unsigned long loops;
	unsigned int i;
	int error;

	for (loops = 1; loops <= 100000; loops *= 10) {
		/* The first time is for the caches. */
		error = measure(loops, counts);
		error = error ?: measure(loops, counts);
		if (error)
			return error;
		seq_printf(seq, "loops %lu", loops);
		for (i = 0; i < kind->nr_events; i++)
			seq_printf(seq, " %s %llu", kind->units[i], counts[i]);
		seq_putc(seq, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(weir_time_bench);

static int __init weir_time_bench_init(void)
{
	struct weir_counter_config config = { .scope = WEIR_SCOPE_ALL };
	int error;

	for (kind = kinds; kind < kinds + ARRAY_SIZE(kinds); kind++) {
		config.events = kind->events;
		config.nr_events = kind->nr_events;
		counter = weir_counter_create(&config);
		if (!IS_ERR(counter))
			break;
	}
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	error = weir_counter_enable(counter);
	if (error) {
		weir_counter_release(counter);
		return error;
	}
	file = debugfs_create_file("weir_time_bench", 0400, NULL, NULL, &weir_time_bench_fops);
	return 0;
}

static void __exit weir_time_bench_exit(void)
{
	debugfs_remove(file);
	weir_counter_release(counter);
}

module_init(weir_time_bench_init);
module_exit(weir_time_bench_exit);
MODULE_DESCRIPTION("Sample of weir in C: what a section of code costs");
MODULE_LICENSE("GPL");
