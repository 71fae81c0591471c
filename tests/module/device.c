// SPDX-License-Identifier: GPL-2.0
/*
 * weir_torture.ko: writes into a weir channel from task, softirq, hard interrupt and NMI of every
 * CPU at once, with records that their reader can check. This file is the device /dev/weir_torture.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <linux/weir.h>

#include "torture.h"

/* As large as weir's largest page, so more than any page takes. */
#define TORTURE_PAYLOAD_MAX	65536

/* A shorter interval of a timer leaves a CPU no time for anything else. */
#define TORTURE_INTERVAL_MIN	(10 * NSEC_PER_USEC)
#define TORTURE_INTERVAL	(100 * NSEC_PER_USEC)

/**
 * struct torture_file - One open of the device.
 * @run: What it started last, stopped or not, or NULL.
 * @own_lock: Guards @own. Outside of it nothing of this module is locked.
 * @own: Its channel of WEIR_TORTURE_IOC_CREATE, or NULL.
 */
struct torture_file {
	struct torture_run *run;
	struct mutex own_lock;	/* guards own */
	struct weir_channel *own;
};

/*
 * Guards the runs, the list of them, and who has the NMI. It is taken inside cpus_read_lock() and
 * in the hot-plug callback, so nothing under it takes that lock.
 */
static DEFINE_MUTEX(torture_lock);
static LIST_HEAD(torture_runs);

/* Fill in the defaults, and refuse what is out of range. */
static int torture_request_check(struct weir_torture_start *request)
{
	unsigned int source;

	if (request->flags & ~(WEIR_TORTURE_IN_PLACE | WEIR_TORTURE_COME_BACK))
		return -EINVAL;
	if (!request->sources || request->sources >> WEIR_TORTURE_SOURCES)
		return -EINVAL;
	if (request->payload_min < sizeof(struct weir_torture_record) ||
	    request->payload_min > request->payload_max ||
	    request->payload_max > TORTURE_PAYLOAD_MAX)
		return -EINVAL;
	for (source = 0; source < WEIR_TORTURE_SOURCES; source++) {
		u64 *interval = &request->interval_ns[source];

		if (*interval > NSEC_PER_SEC)
			return -EINVAL;
		if (source == WEIR_TORTURE_TASK)
			continue;
		if (!*interval)
			*interval = TORTURE_INTERVAL;
		if (*interval < TORTURE_INTERVAL_MIN)
			return -EINVAL;
	}
	return 0;
}

/* Copy a structure that begins with its size. Returns that size or an error. */
static ssize_t torture_copy_in(void *to, size_t known, const void __user *from)
{
	u32 size;
	int error;

	if (get_user(size, (const u32 __user *)from))
		return -EFAULT;
	if (size < known)
		return -EINVAL;
	error = copy_struct_from_user(to, known, from, size);
	return error ? error : size;
}

/* The reference is given back outside the lock: that may sleep on locks of its own. */
static void torture_put(struct weir_channel *channel)
{
	if (channel)
		weir_channel_put(channel);
}

static long torture_stop(struct torture_file *file)
{
	struct weir_channel *channel = NULL;
	long error = -EBADFD;

	mutex_lock(&torture_lock);
	if (file->run) {
		channel = torture_run_stop(file->run);
		error = 0;
	}
	mutex_unlock(&torture_lock);
	torture_put(channel);
	return error;
}

static long torture_start(struct torture_file *file, void __user *argument)
{
	struct torture_run *run, *old = NULL;
	struct weir_torture_start request;
	struct weir_channel *channel;
	ssize_t size;
	int error;

	size = torture_copy_in(&request, sizeof(request), argument);
	if (size < 0)
		return size;
	error = torture_request_check(&request);
	if (error)
		return error;
	channel = weir_channel_get(request.channel);
	if (IS_ERR(channel))
		return PTR_ERR(channel);

	cpus_read_lock();
	mutex_lock(&torture_lock);
	error = torture_cpus_resolve(&request);
	if (error)
		run = ERR_PTR(error);
	else if (file->run && file->run->channel)
		run = ERR_PTR(-EBUSY);
	else
		run = torture_run_start(&request, channel);
	if (!IS_ERR(run)) {
		list_add(&run->list, &torture_runs);
		old = file->run;
		file->run = run;
	}
	mutex_unlock(&torture_lock);
	cpus_read_unlock();

	torture_run_free(old);
	if (IS_ERR(run)) {
		weir_channel_put(channel);
		return PTR_ERR(run);
	}
	if (copy_to_user(argument, &request, sizeof(request))) {
		torture_stop(file);
		return -EFAULT;
	}
	return 0;
}

static void torture_status_fill(struct weir_torture_status *status, struct torture_writer *w)
{
	unsigned int i;

	status->running = atomic_read(&w->run->running);
	status->attempted = READ_ONCE(w->attempted);
	status->written = READ_ONCE(w->written);
	for (i = 0; i < WEIR_TORTURE_ERRORS; i++)
		status->refused[i] = READ_ONCE(w->refused[i]);
	status->inside = READ_ONCE(w->inside);
	status->given_up = READ_ONCE(w->given_up);
	status->other_errno = READ_ONCE(w->other_errno);
	status->reserved = 0;
}

static long torture_status(struct torture_file *file, void __user *argument)
{
	struct weir_torture_status status;
	struct torture_writer *w;
	long error = 0;
	ssize_t size;

	size = torture_copy_in(&status, sizeof(status), argument);
	if (size < 0)
		return size;
	mutex_lock(&torture_lock);
	if (!file->run) {
		error = -EBADFD;
	} else {
		w = torture_run_writer(file->run, status.cpu, status.source);
		if (w)
			torture_status_fill(&status, w);
		else
			error = -EINVAL;
	}
	mutex_unlock(&torture_lock);
	if (!error && copy_to_user(argument, &status, sizeof(status)))
		error = -EFAULT;
	return error;
}

static long torture_create(struct torture_file *file, void __user *argument)
{
	struct weir_torture_create request;
	ssize_t size;
	long error;

	size = torture_copy_in(&request, sizeof(request), argument);
	if (size < 0)
		return size;
	mutex_lock(&file->own_lock);
	error = torture_own_create(&file->own, &request);
	mutex_unlock(&file->own_lock);
	if (!error && copy_to_user(argument, &request, sizeof(request)))
		error = -EFAULT;
	return error;
}

static long torture_destroy(struct torture_file *file)
{
	mutex_lock(&file->own_lock);
	torture_own_destroy(&file->own);
	mutex_unlock(&file->own_lock);
	return 0;
}

static long torture_ioctl(struct file *filp, unsigned int command, unsigned long argument)
{
	struct torture_file *file = filp->private_data;

	switch (command) {
	case WEIR_TORTURE_IOC_START:
		return torture_start(file, (void __user *)argument);
	case WEIR_TORTURE_IOC_STOP:
		return torture_stop(file);
	case WEIR_TORTURE_IOC_STATUS:
		return torture_status(file, (void __user *)argument);
	case WEIR_TORTURE_IOC_CREATE:
		return torture_create(file, (void __user *)argument);
	case WEIR_TORTURE_IOC_DESTROY:
		return torture_destroy(file);
	default:
		return -ENOTTY;
	}
}

static int torture_open(struct inode *inode, struct file *filp)
{
	struct torture_file *file = kzalloc_obj(*file);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->own_lock);
	filp->private_data = file;
	return 0;
}

static int torture_release(struct inode *inode, struct file *filp)
{
	struct torture_file *file = filp->private_data;

	torture_stop(file);
	torture_run_free(file->run);
	torture_destroy(file);
	kfree(file);
	return 0;
}

static const struct file_operations torture_fops = {
	.owner = THIS_MODULE,
	.open = torture_open,
	.release = torture_release,
	.unlocked_ioctl = torture_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice torture_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "weir_torture",
	.fops = &torture_fops,
	.mode = 0600,
};

/* A CPU that comes back gets its writers again, where their run wants that. */
static int torture_cpu_online(unsigned int cpu)
{
	struct torture_run *run;
	int error = 0;

	mutex_lock(&torture_lock);
	list_for_each_entry(run, &torture_runs, list) {
		error = torture_run_resume_cpu(run, cpu);
		if (error)
			break;
	}
	/* A CPU that does not come keeps no writers. */
	if (error)
		list_for_each_entry(run, &torture_runs, list)
			torture_run_stop_cpu(run, cpu);
	mutex_unlock(&torture_lock);
	return error;
}

/* A CPU that goes off-line takes its writers with it. */
static int torture_cpu_offline(unsigned int cpu)
{
	struct torture_run *run;

	mutex_lock(&torture_lock);
	list_for_each_entry(run, &torture_runs, list)
		torture_run_stop_cpu(run, cpu);
	mutex_unlock(&torture_lock);
	return 0;
}

static int torture_hotplug_state;

static int __init torture_init(void)
{
	int state, error;

	state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "weir/torture:online",
					  torture_cpu_online, torture_cpu_offline);
	if (state < 0)
		return state;
	torture_hotplug_state = state;
	error = misc_register(&torture_device);
	if (error)
		cpuhp_remove_state_nocalls(state);
	return error;
}

static void __exit torture_exit(void)
{
	/* No file is open, so no run is left. */
	misc_deregister(&torture_device);
	cpuhp_remove_state_nocalls(torture_hotplug_state);
}

module_init(torture_init);
module_exit(torture_exit);
MODULE_DESCRIPTION("Writes into weir channels from every context, for tests");
MODULE_LICENSE("GPL");
