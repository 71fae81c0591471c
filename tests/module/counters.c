// SPDX-License-Identifier: GPL-2.0
/*
 * weir_counters.ko: tests of weir's counters as kernel code uses them. This file is the device
 * /dev/weir_counters, which runs them by name.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "counters.h"

static const struct counters_test *const counters_tests[] = {
	counters_count_tests, counters_read_tests, counters_overflow_tests, counters_stop_tests,
	counters_inherit_tests, counters_revoke_tests, counters_misuse_tests, counters_stress_tests,
};

/* One test runs at a time: they share variables and the debug registers. */
static DEFINE_MUTEX(counters_lock);

static __printf(2, 0) void counters_report(struct weir_counters_run *run, const char *format,
					   va_list arguments)
{
	size_t len = strnlen(run->report, sizeof(run->report));

	if (len + 1 >= sizeof(run->report))
		return;
	len += vscnprintf(run->report + len, sizeof(run->report) - len, format, arguments);
	scnprintf(run->report + len, sizeof(run->report) - len, "\n");
}

/**
 * counters_note() - Put a line into the report.
 * @run: The run.
 * @format: As for printf().
 */
void counters_note(struct weir_counters_run *run, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	counters_report(run, format, arguments);
	va_end(arguments);
}

/**
 * counters_fail() - Say that an expectation is not met.
 * @run: The run.
 * @format: As for printf().
 */
void counters_fail(struct weir_counters_run *run, const char *format, ...)
{
	va_list arguments;

	run->failures++;
	va_start(arguments, format);
	counters_report(run, format, arguments);
	va_end(arguments);
}

static const struct counters_test *counters_find(const char *name)
{
	const struct counters_test *test;
	unsigned int group;

	for (group = 0; group < ARRAY_SIZE(counters_tests); group++)
		for (test = counters_tests[group]; test->name; test++)
			if (!strcmp(test->name, name))
				return test;
	return NULL;
}

static long counters_run(struct weir_counters_run *run)
{
	const struct counters_test *test;
	long error;

	if (strnlen(run->name, sizeof(run->name)) == sizeof(run->name))
		return -ENOENT;
	test = counters_find(run->name);
	if (!test)
		return -ENOENT;
	run->failures = 0;
	run->rounds = 0;
	memset(run->report, 0, sizeof(run->report));
	if (mutex_lock_interruptible(&counters_lock))
		return -EINTR;
	error = test->run(run);
	mutex_unlock(&counters_lock);
	return error;
}

static long counters_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct weir_counters_run *run;
	long error;

	if (command != WEIR_COUNTERS_IOC_RUN)
		return -ENOTTY;
	run = memdup_user(user, sizeof(*run));
	if (IS_ERR(run))
		return PTR_ERR(run);
	if (run->size != sizeof(*run))
		error = -EINVAL;
	else
		error = counters_run(run);
	if (copy_to_user(user, run, sizeof(*run)))
		error = -EFAULT;
	kfree(run);
	return error;
}

static const struct file_operations counters_operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = counters_ioctl,
};

static struct miscdevice counters_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "weir_counters",
	.mode = 0600,
	.fops = &counters_operations,
};

static int __init counters_init(void)
{
	int error;

	error = counters_context_init();
	if (error)
		return error;
	error = misc_register(&counters_device);
	if (error)
		counters_context_exit();
	return error;
}

static void __exit counters_exit(void)
{
	misc_deregister(&counters_device);
	counters_context_exit();
}

module_init(counters_init);
module_exit(counters_exit);
MODULE_DESCRIPTION("Tests weir's counters as kernel code uses them");
MODULE_LICENSE("GPL");
