// SPDX-License-Identifier: GPL-2.0
/*
 * weir_bench.ko: what one record costs, of weir and of others, with the same payload, in one run.
 * User space says what to measure, by a folder in debugfs:
 *
 * kinds
 *	The ways to write a record, a line each: bytes of the payload, and the KIND. Those that this
 *	kernel does not have cannot be opened (EOPNOTSUPP).
 * command
 *	open KIND
 *		Makes what that kind writes to; another that was open is closed.
 *	fire BATCHES CALLS CPU
 *		A kernel thread of that CPU writes BATCHES times CALLS records, and measures
 *		each batch.
 *	pace RATE MILLISECONDS CPU
 *		It writes RATE records a second, for so long; as many as it can where RATE
 *		is 0.
 *	count
 *		Takes what was written out of the buffer, where only the kernel can.
 *	close
 * result
 *	Of the last command: a word and numbers a line.
 */
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "bench.h"

#define BATCHES_MAX	1000
#define CALLS_MAX	10000000
#define COMMAND_MAX	128

u64 bench_failed;
u64 bench_number;

/* Guards all below, and whatever the kind that is open uses. */
static DEFINE_MUTEX(bench_lock);
static const struct bench_kind *opened;
static struct bench_run last;
static struct bench_count counted;
static u64 samples[BATCHES_MAX];

static const struct bench_kinds *const parts[] = {
	&bench_clock_kinds,
	&bench_weir_kinds,
	&bench_ftrace_kinds,
	&bench_relay_kinds,
	&bench_tracepoint_kinds,
};

int bench_absent(const struct bench_kind *kind)
{
	return -EOPNOTSUPP;
}

static void close_kind(void)
{
	if (opened && opened->close)
		opened->close();
	opened = NULL;
}

static const struct bench_kind *find_kind(const char *name)
{
	size_t part, i;

	for (part = 0; part < ARRAY_SIZE(parts); part++)
		for (i = 0; i < parts[part]->nr; i++)
			if (!strcmp(parts[part]->kinds[i].name, name))
				return &parts[part]->kinds[i];
	return NULL;
}

static int open_kind(const char *name)
{
	const struct bench_kind *kind = find_kind(name);
	int error = 0;

	if (!kind)
		return -ENOENT;
	close_kind();
	bench_failed = 0;
	bench_number = 1;
	memset(&last, 0, sizeof(last));
	memset(&counted, 0, sizeof(counted));
	if (kind->open)
		error = kind->open(kind);
	if (!error)
		opened = kind;
	return error;
}

static int run_calls(struct bench_run *run)
{
	int error;

	if (!opened)
		return -EBADFD;
	cpus_read_lock();
	if (run->cpu >= nr_cpu_ids || !cpu_online(run->cpu)) {
		cpus_read_unlock();
		return -EINVAL;
	}
	run->call = opened->call;
	run->samples = samples;
	error = bench_run(run);
	cpus_read_unlock();
	last = *run;
	return error;
}

static int fire(const char *arguments)
{
	struct bench_run run = {};

	if (sscanf(arguments, "%u %u %u", &run.batches, &run.calls, &run.cpu) != 3)
		return -EINVAL;
	if (!run.batches || run.batches > BATCHES_MAX || !run.calls || run.calls > CALLS_MAX)
		return -EINVAL;
	return run_calls(&run);
}

static int pace(const char *arguments)
{
	unsigned int milliseconds;
	struct bench_run run = {};

	if (sscanf(arguments, "%llu %u %u", &run.rate, &milliseconds, &run.cpu) != 3)
		return -EINVAL;
	if (milliseconds > 60 * MSEC_PER_SEC)
		return -EINVAL;
	/* More than any machine makes, and no overflow in a minute. */
	run.rate = run.rate ? min(run.rate, NSEC_PER_SEC) : NSEC_PER_SEC;
	run.duration = milliseconds * (u64)NSEC_PER_MSEC;
	return run_calls(&run);
}

static int count(void)
{
	if (!opened)
		return -EBADFD;
	memset(&counted, 0, sizeof(counted));
	if (!opened->count)
		return -EOPNOTSUPP;
	opened->count(opened, &counted);
	return 0;
}

static int carry_out(char *command)
{
	char *arguments = command;
	char *verb = strsep(&arguments, " ");

	if (!arguments)
		arguments = "";
	if (!strcmp(verb, "open"))
		return open_kind(arguments);
	if (!strcmp(verb, "fire"))
		return fire(arguments);
	if (!strcmp(verb, "pace"))
		return pace(arguments);
	if (!strcmp(verb, "count"))
		return count();
	if (!strcmp(verb, "close")) {
		close_kind();
		return 0;
	}
	return -EINVAL;
}

static ssize_t command_write(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	char command[COMMAND_MAX];
	int error;

	if (len >= sizeof(command))
		return -EINVAL;
	if (copy_from_user(command, from, len))
		return -EFAULT;
	command[len] = '\0';
	error = mutex_lock_interruptible(&bench_lock);
	if (error)
		return error;
	error = carry_out(strim(command));
	mutex_unlock(&bench_lock);
	return error ? error : len;
}

static const struct file_operations command_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = command_write,
};

static int kinds_show(struct seq_file *seq, void *unused)
{
	const struct bench_kind *kind;
	size_t part, i;

	for (part = 0; part < ARRAY_SIZE(parts); part++)
		for (i = 0; i < parts[part]->nr; i++) {
			kind = &parts[part]->kinds[i];
			seq_printf(seq, "%u %s\n", kind->payload, kind->name);
		}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kinds);

static int result_show(struct seq_file *seq, void *unused)
{
	unsigned int batch;

	mutex_lock(&bench_lock);
	seq_printf(seq, "made %llu\nfailed %llu\nelapsed %llu\n", last.made, bench_failed,
		   last.elapsed);
	seq_printf(seq, "records %llu\noverwritten %llu\nbytes %llu\n", counted.records,
		   counted.overwritten, counted.bytes);
	seq_puts(seq, "samples");
	for (batch = 0; batch < last.batches; batch++)
		seq_printf(seq, " %llu", samples[batch]);
	seq_putc(seq, '\n');
	mutex_unlock(&bench_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static struct dentry *folder;

static int __init weir_bench_init(void)
{
	folder = debugfs_create_dir("weir_bench", NULL);
	debugfs_create_file("kinds", 0400, folder, NULL, &kinds_fops);
	debugfs_create_file("command", 0200, folder, NULL, &command_fops);
	debugfs_create_file("result", 0400, folder, NULL, &result_fops);
	return 0;
}

static void __exit weir_bench_exit(void)
{
	debugfs_remove(folder);
	close_kind();
}

module_init(weir_bench_init);
module_exit(weir_bench_exit);
MODULE_DESCRIPTION("Measures what a record costs, of weir and of others");
MODULE_LICENSE("GPL");
