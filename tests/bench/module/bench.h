/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of weir_bench.ko share: the payload of records, the ways to write one, and how
 * they are run.
 */
#ifndef _WEIR_BENCH_H
#define _WEIR_BENCH_H

#include <linux/completion.h>
#include <linux/timekeeping.h>
#include <linux/types.h>
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#include <asm/msr.h>
#endif

/* What overwrites must be full all the time; what discards must never be. */
#define BENCH_PAGES_FEW		64
#define BENCH_PAGES_MANY	2048

/* Bytes of payload, where a kind does not say otherwise. */
#define BENCH_PAYLOAD		32

/**
 * struct bench_count - What became of the records, where this module itself can tell.
 * @records: Those that were found, whole and one after the other.
 * @overwritten: Older ones that were overwritten.
 * @bytes: Those of a record, with what its buffer puts before it.
 */
struct bench_count {
	u64 records;
	u64 overwritten;
	u64 bytes;
};

/**
 * struct bench_kind - A way to write a record.
 * @name: Names it to user space: what is called, a slash, and how.
 * @payload: Bytes of the payload of a record; none for what is no record.
 * @open: Makes what is written to. Optional.
 * @call: Writes one.
 * @count: Reads what was written. Optional: user space may do that.
 * @close: Gives up what @open made. Optional.
 * @model: Of weir.
 * @mode: Of weir, and whether others overwrite.
 * @clock: Of weir.
 */
struct bench_kind {
	const char *name;
	u32 payload;
	int (*open)(const struct bench_kind *kind);
	void (*call)(void);
	void (*count)(const struct bench_kind *kind, struct bench_count *count);
	void (*close)(void);
	u32 model;
	u32 mode;
	u32 clock;
};

/**
 * struct bench_kinds - The ways of one part of this module.
 * @kinds: The ways.
 * @nr: Their number.
 */
struct bench_kinds {
	const struct bench_kind *kinds;
	size_t nr;
};

extern const struct bench_kinds bench_clock_kinds;
extern const struct bench_kinds bench_weir_kinds;
extern const struct bench_kinds bench_ftrace_kinds;
extern const struct bench_kinds bench_relay_kinds;
extern const struct bench_kinds bench_tracepoint_kinds;

/**
 * struct bench_run - Calls of one kernel thread, in batches.
 * @call: What is called.
 * @cpu: Where.
 * @batches: Number of batches; each has a sample.
 * @calls: Calls of a batch.
 * @samples: What each batch took.
 * @rate: Calls a second, instead of batches; ~0 for as many as it can.
 * @duration: For so many ns.
 * @made: Calls that were made.
 * @elapsed: ns that they took, of a run with a rate.
 * @done: The thread is through.
 */
struct bench_run {
	void (*call)(void);
	unsigned int cpu;
	unsigned int batches;
	unsigned int calls;
	u64 *samples;
	u64 rate;
	u64 duration;
	u64 made;
	u64 elapsed;
	struct completion done;
};

int bench_run(struct bench_run *run);

/* Opens a kind that this kernel does not have. */
int bench_absent(const struct bench_kind *kind);

/* The channel of a weir kind that is open. */
struct weir_channel *bench_weir_open(const struct bench_kind *kind);
void bench_weir_close(struct weir_channel *channel);

/* Calls that failed since a kind was opened: then a result means nothing. */
extern u64 bench_failed;
/* The number of the next record. */
extern u64 bench_number;

/*
 * Makes a payload: the record's number, time and again, so that its reader can tell that it is
 * whole. The number of bytes is a constant wherever this is measured.
 */
static __always_inline void bench_fill(u64 *payload, size_t bytes)
{
	u64 number = bench_number++;
	size_t word;

	for (word = 0; word < bytes / sizeof(*payload); word++)
		payload[word] = number;
}

/* Whether a payload is whole. */
static inline bool bench_whole(const u64 *payload, size_t bytes)
{
	size_t word;

	for (word = 1; word < bytes / sizeof(*payload); word++)
		if (payload[word] != payload[0])
			return false;
	return true;
}

/* Calls with a number of bytes that is a constant in each. */
#define BENCH_SIZED(_call, _bytes)			\
	static noinline void _call##_##_bytes(void)	\
	{						\
		_call(_bytes);				\
	}

/*
 * What is measured by: the processor's counter, which counts instructions where QEMU is told so
 * (-icount shift=0), and ns where there is none.
 */
static inline u64 bench_now(void)
{
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	return rdtsc_ordered();
#else
	return ktime_get_raw_fast_ns();
#endif
}

#endif /* _WEIR_BENCH_H */
