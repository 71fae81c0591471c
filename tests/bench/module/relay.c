// SPDX-License-Identifier: GPL-2.0
/*
 * Relay, called directly: a buffer of each CPU that overwrites. It knows no time and no records, so
 * one kind writes a time with the payload. What reserves is the only kind here that interrupts must
 * not enter.
 */
#include <linux/debugfs.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/relay.h>
#include <linux/trace_clock.h>

#include "bench.h"

struct stamped {
	u64 time;
	u64 payload[BENCH_PAYLOAD / sizeof(u64)];
};

static struct rchan *channel;

static int overwrite(struct rchan_buf *buf, void *subbuf, void *prev_subbuf)
{
	return 1;
}

static struct dentry *create_file(const char *name, struct dentry *parent, umode_t mode,
				  struct rchan_buf *buf, int *is_global)
{
	return debugfs_create_file(name, mode, parent, buf, &relay_file_operations);
}

static int remove_file(struct dentry *dentry)
{
	debugfs_remove(dentry);
	return 0;
}

static const struct rchan_callbacks callbacks = {
	.subbuf_start = overwrite,
	.create_buf_file = create_file,
	.remove_buf_file = remove_file,
};

/* No larger than it must be: the compiler may have to fill it with zeroes first. */
#define WRITE_PLAIN(_bytes)				\
	static noinline void write_plain_##_bytes(void)	\
	{						\
		u64 payload[(_bytes) / sizeof(u64)];	\
							\
		bench_fill(payload, sizeof(payload));	\
		relay_write(channel, payload, sizeof(payload));	\
	}

WRITE_PLAIN(8)
WRITE_PLAIN(32)
WRITE_PLAIN(256)

static noinline void write_stamped(void)
{
	struct stamped stamped;

	stamped.time = trace_clock_local();
	bench_fill(stamped.payload, sizeof(stamped.payload));
	relay_write(channel, &stamped, sizeof(stamped));
}

static noinline void reserve(void)
{
	u64 *payload;

	preempt_disable();
	payload = relay_reserve(channel, BENCH_PAYLOAD);
	if (payload)
		bench_fill(payload, BENCH_PAYLOAD);
	else
		bench_failed++;
	preempt_enable();
}

static int open_channel(const struct bench_kind *kind)
{
	channel = relay_open("weir_bench_relay", NULL, PAGE_SIZE, BENCH_PAGES_FEW, &callbacks,
			     NULL);
	return channel ? 0 : -ENOMEM;
}

static void close_channel(void)
{
	relay_close(channel);
}

/* The sub-buffers from the oldest on; records lie side by side from the beginning of each. */
static void count_buffer(const struct bench_kind *kind, struct bench_count *count,
			 const struct rchan_buf *buf)
{
	size_t size = count->bytes, per = channel->subbuf_size / size;
	size_t first = 0, subbuf, record, records;
	const void *start;
	const u64 *payload;
	u64 number = 0;

	if (buf->subbufs_produced >= channel->n_subbufs)
		first = buf->subbufs_produced - channel->n_subbufs + 1;
	count->overwritten += first * per;
	for (subbuf = first; subbuf <= buf->subbufs_produced; subbuf++) {
		start = buf->start + subbuf % channel->n_subbufs * channel->subbuf_size;
		records = subbuf == buf->subbufs_produced ? buf->offset / size : per;
		for (record = 0; record < records; record++) {
			payload = start + (record + 1) * size - kind->payload;
			if (bench_whole(payload, kind->payload) && (!number || *payload == number))
				count->records++;
			number = *payload + 1;
		}
	}
}

static void count_channel(const struct bench_kind *kind, struct bench_count *count)
{
	unsigned int cpu;

	count->bytes = kind->payload + (kind->call == write_stamped ? sizeof(u64) : 0);
	for_each_online_cpu(cpu)
		count_buffer(kind, count, *per_cpu_ptr(channel->buf, cpu));
}

#define KIND(_name, _call, _bytes)			\
	{						\
		.name = "direct/relay, overwrite, " _name,	\
		.payload = _bytes,			\
		.open = open_channel,			\
		.call = _call,				\
		.count = count_channel,			\
		.close = close_channel,			\
	}

static const struct bench_kind kinds[] = {
	KIND("no time, reserve (not for interrupts)", reserve, BENCH_PAYLOAD),
	KIND("no time, write", write_plain_32, 32),
	KIND("no time, write, 8 bytes", write_plain_8, 8),
	KIND("no time, write, 256 bytes", write_plain_256, 256),
	KIND("local clock, write", write_stamped, BENCH_PAYLOAD),
};

const struct bench_kinds bench_relay_kinds = { kinds, ARRAY_SIZE(kinds) };
