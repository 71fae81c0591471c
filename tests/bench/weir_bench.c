// SPDX-License-Identifier: GPL-2.0
/*
 * What one record costs, called directly: weir in its models, modes and clocks beside the ring
 * buffer of ftrace, with the same payload, in one run. The module measures when it is loaded, and
 * shows the results as its parameter `result`: a line each, with the median of the batches.
 *
 * The unit is what the processor's counter counts. Where QEMU counts instructions by it (-icount
 * shift=0), that is instructions.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/ring_buffer.h>
#include <linux/sched/clock.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>
#include <linux/trace_clock.h>
#include <linux/weir.h>

#define BATCHES		41
#define CALLS		1000

struct payload {
	u64 words[4];
};

static char result[4096];
module_param_string(result, result, sizeof(result), 0444);
MODULE_PARM_DESC(result, "what was measured: a line each");

static size_t used;
static u64 samples[BATCHES];
static u64 number;
/* Calls that failed: then a result means nothing. */
static unsigned long failed;
static u64 sink;

static struct weir_channel *channel;
static struct trace_buffer *buffer;

static u64 now(void)
{
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	return rdtsc_ordered();
#else
	return ktime_get_raw_fast_ns();
#endif
}

static int compare(const void *a, const void *b)
{
	const u64 *one = a, *other = b;

	return *one < *other ? -1 : *one > *other;
}

static noinline void nothing(void)
{
	barrier();
}

static noinline void clock_tsc(void)
{
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	sink += rdtsc();
#endif
}

static noinline void clock_monotonic(void)
{
	sink += ktime_get_mono_fast_ns();
}

static noinline void clock_local(void)
{
	sink += trace_clock_local();
}

static __always_inline void fill(struct payload *payload)
{
	u64 value = number++;

	payload->words[0] = value;
	payload->words[1] = value;
	payload->words[2] = value;
	payload->words[3] = value;
}

static noinline void weir_in_place(void)
{
	DEFINE_WEIR_RESERVATION(reservation);
	struct payload *payload;

	payload = weir_channel_reserve(channel, &reservation, sizeof(*payload));
	if (IS_ERR(payload)) {
		failed++;
		return;
	}
	fill(payload);
	weir_channel_commit(&reservation);
}

static noinline void weir_write(void)
{
	struct payload payload;

	fill(&payload);
	if (weir_channel_write(channel, &payload, sizeof(payload)))
		failed++;
}

static noinline void ftrace_in_place(void)
{
	struct ring_buffer_event *event;

	event = ring_buffer_lock_reserve(buffer, sizeof(struct payload));
	if (!event) {
		failed++;
		return;
	}
	fill(ring_buffer_event_data(event));
	ring_buffer_unlock_commit(buffer);
}

static void measure(const char *name, void (*call)(void))
{
	unsigned long before = failed;
	unsigned int batch, i;
	u64 begin;

	for (batch = 0; batch < BATCHES; batch++) {
		preempt_disable();
		begin = now();
		for (i = 0; i < CALLS; i++)
			call();
		samples[batch] = now() - begin;
		preempt_enable();
		cond_resched();
	}
	sort(samples, BATCHES, sizeof(samples[0]), compare, NULL);
	used += scnprintf(result + used, sizeof(result) - used, "%s\t%llu\t%llu\t%llu\t%lu\n", name,
			  samples[BATCHES / 2], samples[0], samples[BATCHES - 1],
			  failed - before);
}

static int measure_weir(const char *name, u32 model, u32 mode, u32 clock, void (*call)(void))
{
	struct weir_channel_req options = {
		.model = model,
		.mode = mode,
		.clock = clock,
		/* What discards must never be full; what overwrites must be all the time. */
		.pages = mode == WEIR_MODE_DISCARD ? 2048 : 64,
	};

	channel = weir_channel_create("weir_bench", &options);
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	measure(name, call);
	weir_channel_destroy(channel);
	return 0;
}

/* Its clock is trace_clock_local(); another cannot be set from a module. */
static int measure_ftrace(const char *name, unsigned int flags)
{
	buffer = ring_buffer_alloc(flags ? 64 << 12 : 2048 << 12, flags);
	if (!buffer)
		return -ENOMEM;
	measure(name, ftrace_in_place);
	ring_buffer_free(buffer);
	return 0;
}

static const struct {
	const char *name;
	u32 model;
	u32 mode;
	u32 clock;
	void (*call)(void);
} kinds[] = {
	{ "weir paged discard monotonic", WEIR_MODEL_PAGED, WEIR_MODE_DISCARD,
	  WEIR_CLOCK_MONOTONIC, weir_in_place },
	{ "weir paged discard tsc", WEIR_MODEL_PAGED, WEIR_MODE_DISCARD,
	  WEIR_CLOCK_TSC, weir_in_place },
	{ "weir per-cpu discard tsc", WEIR_MODEL_PER_CPU, WEIR_MODE_DISCARD,
	  WEIR_CLOCK_TSC, weir_in_place },
	{ "weir per-cpu overwrite tsc", WEIR_MODEL_PER_CPU, WEIR_MODE_OVERWRITE,
	  WEIR_CLOCK_TSC, weir_in_place },
	{ "weir shared discard tsc", WEIR_MODEL_SHARED, WEIR_MODE_DISCARD,
	  WEIR_CLOCK_TSC, weir_in_place },
	{ "weir paged discard monotonic, write", WEIR_MODEL_PAGED, WEIR_MODE_DISCARD,
	  WEIR_CLOCK_MONOTONIC, weir_write },
};

static int __init weir_bench_init(void)
{
	unsigned int i;
	int error;

	measure("empty call", nothing);
	measure("clock tsc", clock_tsc);
	measure("clock monotonic", clock_monotonic);
	measure("clock trace_clock_local", clock_local);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		error = measure_weir(kinds[i].name, kinds[i].model, kinds[i].mode, kinds[i].clock,
				     kinds[i].call);
		if (error && kinds[i].clock != WEIR_CLOCK_TSC)
			return error;
	}
	error = measure_ftrace("ftrace discard trace_clock_local", 0);
	if (!error)
		error = measure_ftrace("ftrace overwrite trace_clock_local", RB_FL_OVERWRITE);
	return error;
}

static void __exit weir_bench_exit(void)
{
}

module_init(weir_bench_init);
module_exit(weir_bench_exit);
MODULE_DESCRIPTION("Measures what a record costs, of weir and of others");
MODULE_LICENSE("GPL");
