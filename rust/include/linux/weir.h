/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Weir: the interface for other kernel modules. The functions are exported for GPL modules; a
 * module that calls them is built with KBUILD_EXTRA_SYMBOLS pointing at weir's Module.symvers.
 */
#ifndef _LINUX_WEIR_H
#define _LINUX_WEIR_H

#include <linux/module.h>
#include <linux/types.h>
#include <uapi/linux/weir.h>

struct pt_regs;
struct task_struct;
struct weir_channel;
struct weir_counter;
struct weir_overflow;

/**
 * weir_channel_create() - Create a channel of the kernel's own.
 * @name: What user space calls it in WEIR_IOC_CHANNEL_ATTACH: 1 to WEIR_NAME_LEN - 1 bytes.
 * @options: As for WEIR_IOC_CHANNEL_CREATE; what was taken is written back. NULL takes the default
 *           of everything, which is the model paged, the mode discard and CLOCK_MONOTONIC.
 *
 * It can be written to until weir_channel_destroy(), whether anybody reads or not. Its memory
 * counts for nobody's limit.
 *
 * Context: Process context. Sleeps.
 * Return: The channel, or an error pointer: -EINVAL (name, options), -EEXIST (there is one of this
 * name), -EOPNOTSUPP (no stable TSC), -ENOMEM, -EINTR.
 */
struct weir_channel *weir_channel_create(const char *name, struct weir_channel_req *options);

/**
 * weir_channel_destroy() - Give up a channel of weir_channel_create().
 * @channel: The channel. No call with it may be running or follow.
 *
 * What was written stays for whoever has attached it, who finds the end behind it.
 *
 * Context: Process context. Sleeps.
 */
void weir_channel_destroy(struct weir_channel *channel);

/**
 * struct weir_reservation - Room for one record.
 * @opaque: Weir's own.
 *
 * It belongs to the context that reserved, and must end there by weir_channel_commit() or
 * weir_channel_discard(): preemption is off in between.
 */
struct weir_reservation {
	u64 opaque[4];
};

/**
 * DEFINE_WEIR_RESERVATION() - Declare a reservation on the stack.
 * @name: Its name.
 *
 * weir_channel_reserve() fills it, so it is not initialised, as other variables may be by the
 * compiler: that would add a tenth to what a record costs.
 */
#define DEFINE_WEIR_RESERVATION(name) struct weir_reservation name __uninitialized

/**
 * weir_channel_reserve() - Reserve room for one WEIR_RECORD_EVENT.
 * @channel: The channel.
 * @reservation: Where to remember it, usually on the stack.
 * @len: Bytes that the caller will write. They are rounded up to a multiple of 8.
 *
 * Context: Any, NMI included. Takes no lock and allocates nothing. On success preemption is off
 * until the reservation is committed or discarded, which must be soon, and must not sleep in
 * between.
 * Return: Where to write, 8-byte aligned, or an error pointer, with the record counted as lost:
 * -ENOSPC (no free page), -EDEADLK (nested too deep), -EMSGSIZE (larger than a page takes).
 */
void *weir_channel_reserve(struct weir_channel *channel, struct weir_reservation *reservation,
			   size_t len);

/**
 * weir_channel_commit() - End a record as it was written.
 * @reservation: From weir_channel_reserve(), in the same context. It is used up.
 *
 * Context: That of the reservation.
 */
void weir_channel_commit(struct weir_reservation *reservation);

/**
 * weir_channel_discard() - End a record that is not wanted any more.
 * @reservation: From weir_channel_reserve(), in the same context. It is used up.
 *
 * Its room stays empty; it does not count as lost.
 *
 * Context: That of the reservation.
 */
void weir_channel_discard(struct weir_reservation *reservation);

/**
 * weir_channel_get() - Take a reference on the channel of a file descriptor.
 * @fd: A descriptor of the calling process, on which WEIR_IOC_CHANNEL_CREATE succeeded.
 *
 * The channel can be written to until weir_channel_put(), also after the descriptor is closed; what
 * is written then is read by nobody.
 *
 * Context: Process context. Does not sleep.
 * Return: The channel, or an error pointer: -EBADF (no such descriptor), -EINVAL (not weir's),
 * -EBADFD (it has no channel yet).
 */
struct weir_channel *weir_channel_get(int fd);

/**
 * weir_channel_put() - Give a reference back.
 * @channel: From weir_channel_get(). No call with it may be running or follow.
 *
 * Context: Process context. May sleep.
 */
void weir_channel_put(struct weir_channel *channel);

/**
 * weir_channel_write() - Write bytes as one WEIR_RECORD_RAW.
 * @channel: The channel.
 * @data: What to write.
 * @len: Number of bytes.
 *
 * Context: Any, NMI included. Takes no lock and allocates nothing.
 * Return: 0, or, with the record counted as lost, -ENOSPC (no free page), -EDEADLK (nested too
 * deep), -EMSGSIZE (larger than a page takes).
 */
int weir_channel_write(struct weir_channel *channel, const void *data, size_t len);

/* --- Counters, of kernels with CONFIG_PERF_EVENTS --------------------------------------------- */

#ifdef CONFIG_PERF_EVENTS

#include <linux/perf_event.h>

/**
 * WEIR_EVENT() - What to count, as a struct perf_event_attr.
 * @_type: PERF_TYPE_*, or the number of a PMU, as in /sys/bus/event_source/devices/PMU/type.
 * @_config: What of it.
 *
 * More fields may follow: WEIR_EVENT(PERF_TYPE_RAW, 0x1c2, .pinned = 1). What is not named is 0.
 */
#define WEIR_EVENT(_type, _config, ...)				\
	((struct perf_event_attr) {				\
		.type = (_type),				\
		.size = sizeof(struct perf_event_attr),		\
		.config = (_config),				\
		__VA_ARGS__					\
	})

/* WEIR_HARDWARE_EVENT(CPU_CYCLES): one of PERF_COUNT_HW_*. */
#define WEIR_HARDWARE_EVENT(name, ...)	\
	WEIR_EVENT(PERF_TYPE_HARDWARE, PERF_COUNT_HW_##name, ##__VA_ARGS__)

/* WEIR_SOFTWARE_EVENT(PAGE_FAULTS): one of PERF_COUNT_SW_*. */
#define WEIR_SOFTWARE_EVENT(name, ...)	\
	WEIR_EVENT(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##name, ##__VA_ARGS__)

/* WEIR_CACHE_EVENT(L1D, READ, MISS): of PERF_COUNT_HW_CACHE_*, _OP_* and _RESULT_*. */
#define WEIR_CACHE_EVENT(cache, op, result, ...)			\
	WEIR_EVENT(PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_##cache |	\
		   PERF_COUNT_HW_CACHE_OP_##op << 8 |			\
		   PERF_COUNT_HW_CACHE_RESULT_##result << 16, ##__VA_ARGS__)

/* WEIR_RAW_EVENT(0x1c2): a number of the processor's manual. */
#define WEIR_RAW_EVENT(number, ...)	WEIR_EVENT(PERF_TYPE_RAW, number, ##__VA_ARGS__)

/*
 * WEIR_BREAKPOINT_EVENT(&jiffies, 8, W): accesses to so many bytes, of HW_BREAKPOINT_R, _W, _RW,
 * or X with a length of sizeof(long). Include linux/hw_breakpoint.h.
 */
#define WEIR_BREAKPOINT_EVENT(address, bytes, access, ...)		\
	WEIR_EVENT(PERF_TYPE_BREAKPOINT, 0, .bp_type = HW_BREAKPOINT_##access,	\
		   .bp_addr = (unsigned long)(address), .bp_len = (bytes), ##__VA_ARGS__)

/* WEIR_TRACEPOINT_EVENT(id): how often a tracepoint is passed; see weir_tracepoint_id(). */
#define WEIR_TRACEPOINT_EVENT(id, ...)	WEIR_EVENT(PERF_TYPE_TRACEPOINT, id, ##__VA_ARGS__)

/**
 * weir_tracepoint_id() - The number of a tracepoint, for WEIR_TRACEPOINT_EVENT().
 * @system: Its first name: "sched".
 * @name: Its second: "sched_switch".
 *
 * Context: Process context. Sleeps.
 * Return: The number, or -ENOENT (no such tracepoint), -EBUSY (its module is going away),
 * -EOPNOTSUPP (the kernel has no trace events).
 */
int weir_tracepoint_id(const char *system, const char *name);

/**
 * typedef weir_overflow_fn - Called when an event overflows.
 * @overflow: What happened. It is valid during the call.
 * @data: &weir_counter_config.data.
 *
 * Context: Interrupts are off. For events of hardware it may be an NMI: no lock, no allocation,
 * nothing that sleeps or prints at length. Of one event on one CPU, one call runs at a time.
 */
typedef void (*weir_overflow_fn)(struct weir_overflow *overflow, void *data);

/**
 * struct weir_counter_config - What a counter shall be.
 * @events: What to count: made with WEIR_EVENT() and its like. All have the same &size.
 * @nr_events: How many; more than one are a set, which is read at one instant on each CPU.
 * @scope: WEIR_SCOPE_ALL, WEIR_SCOPE_CPU or WEIR_SCOPE_TASK.
 * @flags: WEIR_COUNTER_*.
 * @cpu: For WEIR_SCOPE_CPU: which. Otherwise 0.
 * @task: For WEIR_SCOPE_TASK: which. Weir takes a reference of its own. Otherwise NULL.
 * @overflow: Called when an event with a &sample_period or a &sample_freq overflows. May be NULL.
 * @data: For @overflow.
 * @channel: Where overflows of such events go as PERF_RECORD_SAMPLE, with the fields of
 *           &sample_type, if @overflow is NULL. Weir takes a reference. May be NULL.
 */
struct weir_counter_config {
	const struct perf_event_attr *events;
	unsigned int nr_events;
	u32 scope;
	u32 flags;
	int cpu;
	struct task_struct *task;
	weir_overflow_fn overflow;
	void *data;
	struct weir_channel *channel;
};

/**
 * weir_counter_create() - Create a counter, disabled.
 * @config: What it shall be: a &struct weir_counter_config. It is copied.
 *
 * All events are created, or none. Kernel code may count whatever it likes, whoever calls it.
 *
 * A counter must be released before its module goes. If it is not, weir says so in the kernel's log
 * and releases it.
 *
 * Context: Process context, without cpus_read_lock(). Sleeps.
 * Return: The counter, or an error pointer: those of perf_event_open(), as -EINVAL, -ENOENT (no PMU
 * counts this), -ENODEV (CPU offline), -ESRCH (the task has gone), -EBUSY, -ENOSPC; and -EINVAL for
 * a sampling event without @overflow and @channel; -EOPNOTSUPP
 * (what weir does not do); -ENOMEM.
 */
#define weir_counter_create(config)	__weir_counter_create(config, THIS_MODULE)

struct weir_counter *__weir_counter_create(const struct weir_counter_config *config,
					   struct module *owner);

/**
 * weir_counter_release() - Release a counter.
 * @counter: From weir_counter_create(), or NULL or an error pointer, which do nothing. No call with
 *           it may be running or follow.
 *
 * When it returns, no overflow callback runs or will.
 *
 * Context: Process context, without cpus_read_lock(). Sleeps.
 */
void weir_counter_release(struct weir_counter *counter);

/**
 * weir_counter_enable() - Count from now on.
 * @counter: The counter.
 *
 * Context: Process context. Sleeps.
 * Return: 0; or, and nothing is enabled, -EBUSY: an event is pinned and its PMU has no room;
 * -ENODEV: its PMU or its CPU has gone; -ESRCH: its task has; -ENOMEM.
 */
int __must_check weir_counter_enable(struct weir_counter *counter);

/**
 * weir_counter_disable() - Count no more.
 * @counter: The counter. It keeps what it has.
 *
 * Context: Process context. Sleeps.
 * Return: 0, or -ENOMEM, and it goes on counting.
 */
int weir_counter_disable(struct weir_counter *counter);

/**
 * weir_counter_pause() - Count no more, and say what was counted.
 * @counter: The counter.
 * @values: As in weir_counter_read().
 * @nr_values: As in weir_counter_read().
 * @reset: Whether to begin at zero when it is enabled again.
 *
 * Context: Process context. Sleeps.
 * Return: 0; -EINVAL: @nr_values, and it goes on counting; -ENOMEM.
 */
int __must_check weir_counter_pause(struct weir_counter *counter,
				    struct weir_counter_value *values, unsigned int nr_values,
				    bool reset);

/**
 * weir_counter_reset() - Begin at zero again, at one instant on each CPU.
 * @counter: The counter; it goes on counting if it does.
 *
 * Context: Process context. Sleeps.
 * Return: 0, or -ENOMEM, and nothing was reset.
 */
int __must_check weir_counter_reset(struct weir_counter *counter);

/**
 * weir_counter_set_period() - Change when an event overflows.
 * @counter: The counter.
 * @event: Which of its events, from 0.
 * @period: The new period, or frequency for one with &freq.
 *
 * Context: Process context. Sleeps.
 * Return: 0; -EINVAL: no such event, it has no period, or not this one; -ENODEV: its PMU has gone.
 */
int __must_check weir_counter_set_period(struct weir_counter *counter, unsigned int event,
					 u64 period);

/**
 * weir_counter_refresh() - Count until a number of overflows, then stop.
 * @counter: The counter: every event has a period, and none is inherited.
 * @overflows: How many, for each event and CPU.
 *
 * Context: Process context. Sleeps.
 * Return: 0, or as weir_counter_enable(), and -EINVAL.
 */
int __must_check weir_counter_refresh(struct weir_counter *counter, unsigned int overflows);

/**
 * weir_counter_read() - Read every event, of all CPUs together.
 * @counter: The counter.
 * @values: Where to write what each event counted.
 * @nr_values: Number of events, as in &weir_counter_config.nr_events.
 *
 * Each CPU that counts just now is interrupted once.
 *
 * Context: Process context. Sleeps.
 * Return: 0; -EINVAL: @nr_values is not the number of events; -ENOMEM.
 */
int __must_check weir_counter_read(struct weir_counter *counter,
				   struct weir_counter_value *values, unsigned int nr_values);

/**
 * weir_counter_read_cpu() - Read what one CPU counted.
 * @counter: The counter.
 * @cpu: The CPU.
 * @values: As in weir_counter_read().
 * @nr_values: As in weir_counter_read().
 *
 * Context: Process context. Sleeps.
 * Return: 0; -EINVAL: @nr_values; -ENODEV: it never counted on this CPU; -ENOMEM.
 */
int __must_check weir_counter_read_cpu(struct weir_counter *counter, unsigned int cpu,
				       struct weir_counter_value *values, unsigned int nr_values);

/**
 * weir_counter_read_many() - Read several counters with one interrupt to each CPU.
 * @counters: The counters.
 * @nr_counters: How many.
 * @values: Where to write what each event of each counter counted.
 * @nr_values: Number of all events.
 *
 * Context: Process context. Sleeps.
 * Return: 0, or -EINVAL: @nr_values; -ENOMEM.
 */
int __must_check weir_counter_read_many(struct weir_counter *const *counters,
					unsigned int nr_counters,
					struct weir_counter_value *values, unsigned int nr_values);

/**
 * weir_counter_read_local() - Read what this CPU, or the current task, counted.
 * @counter: The counter.
 * @values: As in weir_counter_read().
 * @nr_values: As in weir_counter_read().
 *
 * No CPU is interrupted and nothing waits. Two reads on one CPU with interrupts off bracket a
 * section of code.
 *
 * Context: Any, NMI included.
 * Return: 0; -EINVAL: @nr_values, or it counts on another CPU or in another task; -EOPNOTSUPP: with
 * inheritance, what children count is not here; -EBUSY: it is just being changed on this CPU, or is
 * pinned and not on its PMU; -ENODEV: its PMU has gone.
 */
int __must_check weir_counter_read_local(struct weir_counter *counter,
					 struct weir_counter_value *values, unsigned int nr_values);

/**
 * weir_counter_read_cached() - Read what a CPU counted when it last had time to say so.
 * @counter: A counter with WEIR_COUNTER_CACHED.
 * @cpu: The CPU.
 * @values: As in weir_counter_read(); &age tells how old they are.
 * @nr_values: As in weir_counter_read().
 *
 * No CPU is interrupted or woken: each keeps a copy when it becomes idle, and when it switches
 * tasks a millisecond or more after the last copy.
 *
 * Context: Process context. Sleeps, but waits for no CPU.
 * Return: 0; -EINVAL: @nr_values, or no copies; -ENODEV: it never counted on this CPU; -ENOMEM.
 */
int __must_check weir_counter_read_cached(struct weir_counter *counter, unsigned int cpu,
					  struct weir_counter_value *values,
					  unsigned int nr_values);

/* For a weir_overflow_fn only, with what it was given. */

/**
 * weir_overflow_event() - Which event overflowed.
 * @overflow: The overflow.
 *
 * Return: Its place in &weir_counter_config.events.
 */
unsigned int weir_overflow_event(const struct weir_overflow *overflow);

/**
 * weir_overflow_ip() - Where the CPU was.
 * @overflow: The overflow.
 *
 * Return: The address of the instruction.
 */
u64 weir_overflow_ip(const struct weir_overflow *overflow);

/**
 * weir_overflow_user() - Whether the CPU was in user space.
 * @overflow: The overflow.
 *
 * Return: Whether it was.
 */
bool weir_overflow_user(const struct weir_overflow *overflow);

/**
 * weir_overflow_regs() - The state of the CPU.
 * @overflow: The overflow.
 *
 * Return: The registers.
 */
struct pt_regs *weir_overflow_regs(const struct weir_overflow *overflow);

/**
 * weir_overflow_address() - What was accessed.
 * @overflow: The overflow.
 *
 * Return: The address of data that the event tells, or 0.
 */
u64 weir_overflow_address(const struct weir_overflow *overflow);

/**
 * weir_overflow_period() - How many events passed since the overflow before.
 * @overflow: The overflow.
 *
 * Return: The number.
 */
u64 weir_overflow_period(const struct weir_overflow *overflow);

/**
 * weir_overflow_unthrottle() - Let perf forget that there were overflows before.
 * @overflow: The overflow.
 *
 * Perf stops an event that overflows too often until the next tick. One that watches whether the
 * CPU still has ticks calls this each time.
 */
void weir_overflow_unthrottle(const struct weir_overflow *overflow);

/**
 * weir_overflow_stop() - Stop the event.
 * @overflow: The overflow.
 *
 * It counts no more on this CPU (or in this task), and no callback follows, until
 * weir_counter_enable() or weir_counter_refresh(). With inheritance no callback follows in any of
 * the tasks, but what they do is counted until a work item has disabled the event.
 */
void weir_overflow_stop(const struct weir_overflow *overflow);

#endif /* CONFIG_PERF_EVENTS */

#endif /* _LINUX_WEIR_H */
