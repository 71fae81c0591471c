// SPDX-License-Identifier: GPL-2.0
/*
 * What is in every other number: the call itself, and the clocks.
 */
#include <linux/kernel.h>
#include <linux/sched/clock.h>
#include <linux/trace_clock.h>

#include "bench.h"

static u64 sink;

static noinline void bench_nothing(void)
{
	barrier();
}

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
static noinline void bench_clock_tsc(void)
{
	sink += rdtsc();
}
#endif

static noinline void bench_clock_monotonic(void)
{
	sink += ktime_get_mono_fast_ns();
}

static noinline void bench_clock_local(void)
{
	sink += trace_clock_local();
}

static const struct bench_kind kinds[] = {
	{ .name = "direct/empty call", .call = bench_nothing },
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	{ .name = "direct/clock: rdtsc", .call = bench_clock_tsc },
#else
	{ .name = "direct/clock: rdtsc", .open = bench_absent },
#endif
	{ .name = "direct/clock: ktime_get_mono_fast_ns", .call = bench_clock_monotonic },
	{ .name = "direct/clock: trace_clock_local", .call = bench_clock_local },
};

const struct bench_kinds bench_clock_kinds = { kinds, ARRAY_SIZE(kinds) };
