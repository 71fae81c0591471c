// SPDX-License-Identifier: GPL-2.0
/*
 * The ring buffer of ftrace, called directly. Its clock is trace_clock_local(); another cannot be
 * set from a module.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ring_buffer.h>
#include <linux/weir.h>

#include "bench.h"

static struct trace_buffer *buffer;

static int open_buffer(const struct bench_kind *kind)
{
	unsigned int flags = kind->mode == WEIR_MODE_OVERWRITE ? RB_FL_OVERWRITE : 0;
	unsigned long pages = flags ? BENCH_PAGES_FEW : BENCH_PAGES_MANY;

	buffer = ring_buffer_alloc(pages << PAGE_SHIFT, flags);
	return buffer ? 0 : -ENOMEM;
}

static void close_buffer(void)
{
	ring_buffer_free(buffer);
}

static __always_inline void in_place(size_t bytes)
{
	struct ring_buffer_event *event;

	event = ring_buffer_lock_reserve(buffer, bytes);
	if (!event) {
		bench_failed++;
		return;
	}
	bench_fill(ring_buffer_event_data(event), bytes);
	ring_buffer_unlock_commit(buffer);
}

BENCH_SIZED(in_place, 8)
BENCH_SIZED(in_place, 32)
BENCH_SIZED(in_place, 256)

static void count_buffer(const struct bench_kind *kind, struct bench_count *count)
{
	const u64 *payload;
	struct ring_buffer_event *event;
	unsigned int cpu;
	u64 number = 0;

	count->overwritten = ring_buffer_overruns(buffer);
	for_each_online_cpu(cpu) {
		for (;;) {
			event = ring_buffer_consume(buffer, cpu, NULL, NULL);
			if (!event)
				break;
			payload = ring_buffer_event_data(event);
			count->bytes = (void *)payload - (void *)event +
				       ring_buffer_event_length(event);
			if (bench_whole(payload, kind->payload) && (!number || *payload == number))
				count->records++;
			number = *payload + 1;
		}
	}
}

#define KIND(_name, _mode, _bytes)		\
	{					\
		.name = "direct/ftrace ring buffer, " _name,	\
		.payload = _bytes,		\
		.open = open_buffer,		\
		.call = in_place_##_bytes,	\
		.count = count_buffer,		\
		.close = close_buffer,		\
		.mode = WEIR_MODE_##_mode,	\
	}

static const struct bench_kind kinds[] = {
	KIND("discard, local clock", DISCARD, 32),
	KIND("overwrite, local clock", OVERWRITE, 32),
	KIND("overwrite, local clock, 8 bytes", OVERWRITE, 8),
	KIND("overwrite, local clock, 256 bytes", OVERWRITE, 256),
};

const struct bench_kinds bench_ftrace_kinds = { kinds, ARRAY_SIZE(kinds) };
