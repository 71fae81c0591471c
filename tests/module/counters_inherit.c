// SPDX-License-Identifier: GPL-2.0
/*
 * A counter of kernel code in a task of user space whose children do all that is counted.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "counters.h"

/**
 * struct inherit - Data of a callback that stops its counter.
 * @stop_after: Calls after which it does.
 * @calls: Calls since the counter was enabled.
 * @late: Calls after that number, of the task that has stopped it.
 * @pid: Who has stopped it.
 */
struct inherit {
	int stop_after;
	atomic_t calls;
	atomic_t late;
	int pid;
};

static void inherit_call(struct weir_overflow *overflow, void *data)
{
	struct inherit *inherit = data;
	int calls = atomic_inc_return(&inherit->calls);

	if (calls == inherit->stop_after) {
		WRITE_ONCE(inherit->pid, current->pid);
		weir_overflow_stop(overflow);
	} else if (calls > inherit->stop_after && READ_ONCE(inherit->pid) == current->pid) {
		atomic_inc(&inherit->late);
	}
	weir_overflow_unthrottle(overflow);
}

static bool inherit_wait(struct inherit *inherit)
{
	unsigned long end = jiffies + 10 * HZ;

	while (atomic_read(&inherit->calls) < inherit->stop_after) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(10, 30);
	}
	return true;
}

/* The value stays what it is, once the work item that disables the counter has come. */
static bool inherit_rests(struct weir_counters_run *run, struct weir_counter *counter)
{
	u64 value = counters_value(run, counter);
	int tries;

	for (tries = 0; tries < 100; tries++) {
		u64 before = value;

		msleep(20);
		value = counters_value(run, counter);
		if (value == before)
			return true;
	}
	return false;
}

/*
 * A child that overflows stops the counter, of all children; and when it is enabled again, it
 * counts in the children that are there, and in those to come.
 */
static int stop_inherited(struct weir_counters_run *run)
{
	struct inherit inherit = { .stop_after = 5 };
	struct task_struct *task = get_pid_task(find_vpid(run->pid), PIDTYPE_PID);
	struct weir_counter *counter;
	int error, same = 0, other = 0, pid = 0;

	if (!task)
		return -ESRCH;
	counter = counters_create(WEIR_SOFTWARE_EVENT(PAGE_FAULTS, .sample_period = 1,
						      .inherit = 1),
				  .scope = WEIR_SCOPE_TASK, .task = task,
				  .overflow = inherit_call, .data = &inherit);
	error = PTR_ERR_OR_ZERO(counter);
	if (error)
		goto put;
	for (run->rounds = 0; run->rounds < 20 && !run->failures; run->rounds++) {
		counters_expect_error(run, weir_counter_enable(counter), 0);
		counters_expect(run, inherit_wait(&inherit), "%d calls, not %d",
				atomic_read(&inherit.calls), inherit.stop_after);
		counters_expect(run, inherit_rests(run, counter), "it counts on");
		counters_expect(run, !atomic_read(&inherit.late), "%d calls after the last",
				atomic_read(&inherit.late));
		counters_expect(run, inherit.pid != task->pid, "it was not a child");
		if (inherit.pid == pid)
			same++;
		else
			other++;
		pid = inherit.pid;
		inherit.pid = 0;
		/* Every other time it is the same as a stop, and changes nothing. */
		if (run->rounds % 2)
			counters_expect_error(run, weir_counter_disable(counter), 0);
		atomic_set(&inherit.calls, 0);
	}
	/* Otherwise the one that was stopped was not seen to go on. */
	counters_expect(run, same > 0, "never the same child twice");
	counters_note(run, "the same child %d times, another %d times", same, other);
	weir_counter_release(counter);
put:
	put_task_struct(task);
	return error;
}

const struct counters_test counters_inherit_tests[] = {
	{ "stop_inherited", stop_inherited },
	{ }
};
