// SPDX-License-Identifier: GPL-2.0
/*
 * Tells of a CPU that has been in one task for too long. A counter on every CPU looks, a few times
 * a second, whether the CPU has switched tasks since. Where the machine counts cycles the look is
 * an NMI, so that a CPU with interrupts off is found too; elsewhere it is a timer.
 *
 * It is what kernel/watchdog_perf.c does, without care for CPUs that come and go.
 * /sys/kernel/debug/weir_watchdog has a line for each CPU that was ever watched.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/weir.h>

static unsigned int frequency = 10;
module_param(frequency, uint, 0444);
MODULE_PARM_DESC(frequency, "Looks a second");
static unsigned int patience = 50;
module_param(patience, uint, 0444);
MODULE_PARM_DESC(patience, "Looks without a switch of tasks after which a CPU is stuck");

enum { CLOCK, SWITCHES, NR_EVENTS };

struct watch {
	u64 switches;
	unsigned int looks;
	unsigned int quiet;
	unsigned int stuck;
};

static DEFINE_PER_CPU(struct watch, watches);
static struct weir_counter *counter;
static struct dentry *file;

static void look(struct weir_overflow *overflow, void *data)
{
	struct watch *watch = this_cpu_ptr(&watches);
	struct weir_counter_value values[NR_EVENTS];

	watch->looks++;
	/* A CPU that hangs has no ticks, without which perf would stop this after a while. */
	weir_overflow_unthrottle(overflow);
	if (weir_counter_read_local(counter, values, NR_EVENTS))
		return;
	if (values[SWITCHES].value != watch->switches || is_idle_task(current)) {
		watch->switches = values[SWITCHES].value;
		watch->quiet = 0;
	} else if (++watch->quiet == patience) {
		watch->stuck++;
		pr_warn("CPU %u does not get out of %s (%d), now at %pS\n", smp_processor_id(),
			current->comm, current->pid,
			(void *)weir_overflow_ip(overflow));
	}
}

static int weir_watchdog_show(struct seq_file *seq, void *unused)
{
	struct weir_counter_value values[NR_EVENTS];
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		const struct watch *watch = per_cpu_ptr(&watches, cpu);

		/* It never counted on a CPU that was never online. */
		if (weir_counter_read_cpu(counter, cpu, values, NR_EVENTS))
			continue;
		seq_printf(seq, "cpu %u looks %u switches %llu stuck %u\n", cpu, watch->looks,
			   values[SWITCHES].value, watch->stuck);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(weir_watchdog);

static int __init weir_watchdog_init(void)
{
	struct perf_event_attr events[NR_EVENTS] = {
		[CLOCK] = WEIR_HARDWARE_EVENT(CPU_CYCLES, .pinned = 1, .freq = 1,
					      .sample_freq = frequency),
		[SWITCHES] = WEIR_SOFTWARE_EVENT(CONTEXT_SWITCHES),
	};
	const struct weir_counter_config config = {
		.events = events,
		.nr_events = NR_EVENTS,
		.scope = WEIR_SCOPE_ALL,
		.overflow = look,
	};
	int error;

	counter = weir_counter_create(&config);
	if (IS_ERR(counter)) {
		events[CLOCK] = WEIR_SOFTWARE_EVENT(CPU_CLOCK, .pinned = 1, .freq = 1,
						    .sample_freq = frequency);
		counter = weir_counter_create(&config);
	}
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	error = weir_counter_enable(counter);
	if (error) {
		weir_counter_release(counter);
		return error;
	}
	file = debugfs_create_file("weir_watchdog", 0444, NULL, NULL, &weir_watchdog_fops);
	return 0;
}

static void __exit weir_watchdog_exit(void)
{
	debugfs_remove(file);
	/* Nobody looks any more when this returns. */
	weir_counter_release(counter);
}

module_init(weir_watchdog_init);
module_exit(weir_watchdog_exit);
MODULE_DESCRIPTION("Sample of weir in C: a CPU that stays in one task for too long");
MODULE_LICENSE("GPL");
