// SPDX-License-Identifier: GPL-2.0
/*
 * One tracepoint, and the probes of this module on it: none (then it is whatever user space has
 * attached), an empty one, and weir's.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/weir.h>

#include "bench.h"

#define CREATE_TRACE_POINTS
#include "weir_bench_trace.h"

static struct weir_channel *channel;

static noinline void fire(void)
{
	u64 number = bench_number++;

	trace_weir_bench(number, number, number, number);
}

static void empty(void *data, u64 one, u64 two, u64 three, u64 four)
{
}

static void record(void *data, u64 one, u64 two, u64 three, u64 four)
{
	DEFINE_WEIR_RESERVATION(reservation);
	u64 *payload;

	payload = weir_channel_reserve(data, &reservation, BENCH_PAYLOAD);
	if (IS_ERR(payload)) {
		bench_failed++;
		return;
	}
	payload[0] = one;
	payload[1] = two;
	payload[2] = three;
	payload[3] = four;
	weir_channel_commit(&reservation);
}

/* What ftrace and perf say of every event, too: who it was, and what kind of event. */
struct attributed {
	u32 type;
	s32 pid;
	u64 payload[BENCH_PAYLOAD / sizeof(u64)];
};

static void record_attributed(void *data, u64 one, u64 two, u64 three, u64 four)
{
	DEFINE_WEIR_RESERVATION(reservation);
	struct attributed *attributed;

	attributed = weir_channel_reserve(data, &reservation, sizeof(*attributed));
	if (IS_ERR(attributed)) {
		bench_failed++;
		return;
	}
	attributed->type = 1;
	attributed->pid = current->pid;
	attributed->payload[0] = one;
	attributed->payload[1] = two;
	attributed->payload[2] = three;
	attributed->payload[3] = four;
	weir_channel_commit(&reservation);
}

static int open_empty(const struct bench_kind *kind)
{
	return register_trace_weir_bench(empty, NULL);
}

static void close_empty(void)
{
	unregister_trace_weir_bench(empty, NULL);
	tracepoint_synchronize_unregister();
}

static int attach(const struct bench_kind *kind,
		  void (*probe)(void *data, u64 one, u64 two, u64 three, u64 four))
{
	int error;

	channel = bench_weir_open(kind);
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	error = register_trace_weir_bench(probe, channel);
	if (error)
		weir_channel_destroy(channel);
	return error;
}

static int open_weir(const struct bench_kind *kind)
{
	return attach(kind, record);
}

static void close_weir(void)
{
	unregister_trace_weir_bench(record, channel);
	tracepoint_synchronize_unregister();
	weir_channel_destroy(channel);
}

static int open_attributed(const struct bench_kind *kind)
{
	return attach(kind, record_attributed);
}

static void close_attributed(void)
{
	unregister_trace_weir_bench(record_attributed, channel);
	tracepoint_synchronize_unregister();
	weir_channel_destroy(channel);
}

#define KIND(_name, _model, _mode, _clock, _probe)	\
	{						\
		.name = "tracepoint/weir, " _name,	\
		.payload = BENCH_PAYLOAD,		\
		.open = open_##_probe,			\
		.call = fire,				\
		.close = close_##_probe,		\
		.model = WEIR_MODEL_##_model,		\
		.mode = WEIR_MODE_##_mode,		\
		.clock = WEIR_CLOCK_##_clock,		\
	}

static const struct bench_kind kinds[] = {
	{ .name = "tracepoint/no probe", .call = fire },
	{ .name = "tracepoint/empty probe", .open = open_empty, .call = fire,
	  .close = close_empty },
	KIND("paged, discard, tsc", PAGED, DISCARD, TSC, weir),
	KIND("paged, discard, monotonic", PAGED, DISCARD, MONOTONIC, weir),
	KIND("paged, overwrite, tsc", PAGED, OVERWRITE, TSC, weir),
	KIND("paged, overwrite, monotonic", PAGED, OVERWRITE, MONOTONIC, weir),
	KIND("paged, overwrite, local clock", PAGED, OVERWRITE, PERF, weir),
	KIND("per-cpu, overwrite, tsc", PER_CPU, OVERWRITE, TSC, weir),
	KIND("per-cpu, overwrite, monotonic", PER_CPU, OVERWRITE, MONOTONIC, weir),
	KIND("shared, overwrite, tsc", SHARED, OVERWRITE, TSC, weir),
	KIND("shared, overwrite, monotonic", SHARED, OVERWRITE, MONOTONIC, weir),
	KIND("paged, overwrite, local clock, with pid", PAGED, OVERWRITE, PERF, attributed),
};

const struct bench_kinds bench_tracepoint_kinds = { kinds, ARRAY_SIZE(kinds) };
