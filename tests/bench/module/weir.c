// SPDX-License-Identifier: GPL-2.0
/*
 * Weir, called directly: each model in both modes. Its channel has the name "weir_bench", by which
 * user space reads what was written.
 */
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/weir.h>

#include "bench.h"

static struct weir_channel *channel;

/**
 * bench_weir_open() - Create the channel of a kind.
 * @kind: The kind.
 *
 * Return: The channel, or an error pointer.
 */
struct weir_channel *bench_weir_open(const struct bench_kind *kind)
{
	struct weir_channel_req options = {
		.model = kind->model,
		.mode = kind->mode,
		.clock = kind->clock,
		.pages = kind->mode == WEIR_MODE_DISCARD ? BENCH_PAGES_MANY : BENCH_PAGES_FEW,
	};

	return weir_channel_create("weir_bench", &options);
}

static int open_channel(const struct bench_kind *kind)
{
	channel = bench_weir_open(kind);
	return PTR_ERR_OR_ZERO(channel);
}

static void close_channel(void)
{
	weir_channel_destroy(channel);
}

static __always_inline void in_place(size_t bytes)
{
	DEFINE_WEIR_RESERVATION(reservation);
	u64 *payload;

	payload = weir_channel_reserve(channel, &reservation, bytes);
	if (IS_ERR(payload)) {
		bench_failed++;
		return;
	}
	bench_fill(payload, bytes);
	weir_channel_commit(&reservation);
}

BENCH_SIZED(in_place, 8)
BENCH_SIZED(in_place, 32)
BENCH_SIZED(in_place, 256)

static noinline void write(void)
{
	u64 payload[BENCH_PAYLOAD / sizeof(u64)];

	bench_fill(payload, sizeof(payload));
	if (weir_channel_write(channel, payload, sizeof(payload)))
		bench_failed++;
}

#define KIND(_name, _model, _mode, _clock, _call, _bytes)	\
	{						\
		.name = "direct/weir, " _name,		\
		.payload = _bytes,			\
		.open = open_channel,			\
		.call = _call,				\
		.close = close_channel,			\
		.model = WEIR_MODEL_##_model,		\
		.mode = WEIR_MODE_##_mode,		\
		.clock = WEIR_CLOCK_##_clock,		\
	}

static const struct bench_kind kinds[] = {
	KIND("paged, discard, tsc", PAGED, DISCARD, TSC, in_place_32, 32),
	KIND("paged, discard, monotonic", PAGED, DISCARD, MONOTONIC, in_place_32, 32),
	KIND("paged, discard, local clock", PAGED, DISCARD, PERF, in_place_32, 32),
	KIND("paged, overwrite, tsc", PAGED, OVERWRITE, TSC, in_place_32, 32),
	KIND("paged, overwrite, monotonic", PAGED, OVERWRITE, MONOTONIC, in_place_32, 32),
	KIND("paged, overwrite, local clock", PAGED, OVERWRITE, PERF, in_place_32, 32),
	KIND("per-cpu, discard, tsc", PER_CPU, DISCARD, TSC, in_place_32, 32),
	KIND("per-cpu, discard, monotonic", PER_CPU, DISCARD, MONOTONIC, in_place_32, 32),
	KIND("per-cpu, overwrite, tsc", PER_CPU, OVERWRITE, TSC, in_place_32, 32),
	KIND("per-cpu, overwrite, monotonic", PER_CPU, OVERWRITE, MONOTONIC, in_place_32, 32),
	KIND("per-cpu, overwrite, local clock", PER_CPU, OVERWRITE, PERF, in_place_32, 32),
	KIND("shared, discard, tsc", SHARED, DISCARD, TSC, in_place_32, 32),
	KIND("shared, discard, monotonic", SHARED, DISCARD, MONOTONIC, in_place_32, 32),
	KIND("shared, overwrite, tsc", SHARED, OVERWRITE, TSC, in_place_32, 32),
	KIND("shared, overwrite, monotonic", SHARED, OVERWRITE, MONOTONIC, in_place_32, 32),
	KIND("paged, overwrite, tsc, 8 bytes", PAGED, OVERWRITE, TSC, in_place_8, 8),
	KIND("paged, overwrite, tsc, 256 bytes", PAGED, OVERWRITE, TSC, in_place_256, 256),
	KIND("paged, overwrite, local clock, 8 bytes", PAGED, OVERWRITE, PERF, in_place_8, 8),
	KIND("paged, overwrite, local clock, 256 bytes", PAGED, OVERWRITE, PERF, in_place_256, 256),
	KIND("paged, discard, monotonic, write with ids", PAGED, DISCARD, MONOTONIC, write, 32),
};

const struct bench_kinds bench_weir_kinds = { kinds, ARRAY_SIZE(kinds) };
