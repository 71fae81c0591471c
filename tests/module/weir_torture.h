/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of weir_torture.ko: a test module that writes into a weir channel from every
 * context of a CPU at once. It is for tests alone and may change with them.
 *
 * One open of /dev/weir_torture runs one set of writers at a time. Closing it stops them.
 */
#ifndef _WEIR_TORTURE_H
#define _WEIR_TORTURE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Where a writer runs. Each CPU has at most one writer of each source. */
#define WEIR_TORTURE_TASK	0	/* a kernel thread bound to the CPU */
#define WEIR_TORTURE_SOFTIRQ	1	/* a timer in softirq context */
#define WEIR_TORTURE_IRQ	2	/* a timer in hard interrupt context */
#define WEIR_TORTURE_NMI	3	/* an NMI that a timer or the thread sends */
#define WEIR_TORTURE_SOURCES	4

/* Number of 64-bit words of weir_torture_start.cpus. */
#define WEIR_TORTURE_CPU_WORDS	4

/*
 * What a payload begins with, in the byte order of the machine. Words of a pattern follow, the
 * last one cut off where `len` is not a multiple of 8:
 *
 *	word[i] = ((sequence ^ cpu << 48 ^ source << 40) + i) * WEIR_TORTURE_PRIME
 *
 * The checksum is over the whole payload, with the field itself zero and with zeros behind its end
 * up to a multiple of 8, taken in 64-bit words:
 *
 *	sum = 0; for each word: sum = rotate_left((sum ^ word) * WEIR_TORTURE_PRIME, 29)
 *	checksum = sum ^ sum >> 32
 */
struct weir_torture_record {
	__u32 cpu;
	__u32 source;			/* WEIR_TORTURE_TASK and so on */
	__u64 sequence;			/* records this writer has written before */
	__u64 refused;			/* records of this writer that were refused before */
	__u32 len;			/* bytes of the payload, this structure included */
	__u32 checksum;
};

#define WEIR_TORTURE_PRIME	0x9E3779B97F4A7C15ULL

/* weir_torture_start.flags: reserve and commit, and now and then discard, instead of writing */
#define WEIR_TORTURE_IN_PLACE	(1U << 0)
/* weir_torture_start.flags: writers that end because a CPU goes go on when it is back */
#define WEIR_TORTURE_COME_BACK	(1U << 1)

/*
 * WEIR_TORTURE_IOC_START.
 * Errors: EINVAL (a field is out of range, or a CPU is not online), EBUSY (this descriptor's
 * writers run, or another's use the NMI), EOPNOTSUPP (this machine has no NMI to send), ENOMEM, and
 * what weir_channel_get() gives for `channel`.
 */
struct weir_torture_start {
	__u32 size;			/* bytes of this structure, as the caller was compiled */
	__u32 flags;			/* WEIR_TORTURE_IN_PLACE and so on */
	__s32 channel;			/* descriptor of the weir channel to write into */
	__u32 sources;			/* bit 1 << WEIR_TORTURE_TASK and so on */
	__u32 payload_min;		/* bytes of a payload, from and to; every record has */
	__u32 payload_max;		/* another length; up to 65536 */
	__u64 records;			/* each writer ends after so many attempts; 0: no limit */
	__u64 duration_ns;		/* each writer ends after; 0 for no limit */
	/*
	 * Nanoseconds between two records of a source, up to a second. 0 is full speed for the
	 * thread and 100 us for the others, which take at least 10 us. A timer slows down by itself
	 * where the machine cannot follow, and varies its interval, to hit the others anywhere.
	 */
	__u64 interval_ns[WEIR_TORTURE_SOURCES];
	/* In: CPU numbers as bits, none for all that are online. Out: those that are used. */
	__u64 cpus[WEIR_TORTURE_CPU_WORDS];
	__u64 seed;			/* of payloads' lengths and timers' intervals */
};

/* Index into weir_torture_status.refused: what weir_channel_write() gave. */
#define WEIR_TORTURE_ENOSPC	0
#define WEIR_TORTURE_EDEADLK	1
#define WEIR_TORTURE_EMSGSIZE	2
#define WEIR_TORTURE_OTHER	3	/* anything else: a fault in weir */
#define WEIR_TORTURE_ERRORS	4

/*
 * WEIR_TORTURE_IOC_STATUS: the counts of one writer. They fit each other (attempted is the sum of
 * written and refused) once the run was stopped.
 * Errors: EBADFD (nothing was started), EINVAL (the run has no such writer).
 */
struct weir_torture_status {
	__u32 size;			/* bytes of this structure, as the caller was compiled */
	__u32 cpu;			/* in */
	__u32 source;			/* in */
	__u32 running;			/* writers of the whole run that have not ended */
	__u64 attempted;
	__u64 written;
	__u64 refused[WEIR_TORTURE_ERRORS];
	__u64 inside;			/* those written while another write was under way */
	__u64 given_up;			/* reservations that were discarded, besides those */
	__s32 other_errno;		/* the last of refused[WEIR_TORTURE_OTHER], negative */
	__u32 reserved;
};

/*
 * WEIR_TORTURE_IOC_CREATE: a channel of the module's own, until WEIR_TORTURE_IOC_DESTROY or the
 * descriptor is closed. Errors: EBUSY (this descriptor has one), and those of
 * weir_channel_create().
 */
struct weir_torture_create {
	__u32 size;
	__u32 model;
	__u32 mode;
	__u32 pages;			/* in and out */
	char name[32];
	__u32 page_size;		/* these are as in struct weir_channel_req */
	__u32 watermark;
	__u64 max_latency_ns;
	__u32 clock;
	__u32 reserved;			/* 0 */
};

#define WEIR_TORTURE_IOC_MAGIC	0xBC
#define WEIR_TORTURE_IOC_START	_IOWR(WEIR_TORTURE_IOC_MAGIC, 0, struct weir_torture_start)
/* Returns when no writer runs any more. Stopping twice does no harm. Errors: EBADFD. */
#define WEIR_TORTURE_IOC_STOP	_IO(WEIR_TORTURE_IOC_MAGIC, 1)
#define WEIR_TORTURE_IOC_STATUS	_IOWR(WEIR_TORTURE_IOC_MAGIC, 2, struct weir_torture_status)
#define WEIR_TORTURE_IOC_CREATE	_IOWR(WEIR_TORTURE_IOC_MAGIC, 3, struct weir_torture_create)
#define WEIR_TORTURE_IOC_DESTROY _IO(WEIR_TORTURE_IOC_MAGIC, 4)

#endif /* _WEIR_TORTURE_H */
