/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Weir: the interface between weir.ko and user space.
 *
 * One open of /dev/weir is one channel: WEIR_IOC_CHANNEL_CREATE sets it up, read() takes whole
 * pages of records out of it, poll() waits for them, and closing it ends it together with its
 * counters.
 *
 * Every structure that an ioctl takes begins with its own size in bytes, as the caller was
 * compiled. A shorter one than the first version is refused with EINVAL. Of a longer one than
 * the kernel knows, the unknown bytes must be zero; if they are not, or if it is longer than a
 * page, the answer is E2BIG. Unknown flags are refused with EINVAL, and so are unknown values;
 * EOPNOTSUPP is for those that are named here and that this kernel lacks. The kernel dispatches
 * on the ioctl's type and number alone, so a structure may grow without a new number.
 *
 * Before there is a channel, read() and the ioctls that need it give EBADFD, and poll() POLLERR.
 */
#ifndef _UAPI_LINUX_WEIR_H
#define _UAPI_LINUX_WEIR_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* --- Pages ------------------------------------------------------------------------------------ */

/* What the first word of every page is: the magic number of a CTF 1.8 packet. */
#define WEIR_PAGE_MAGIC		0xC1FC1FC1U

/* weir_page_header.flags: the page is still open; what it gets later follows in another page. */
#define WEIR_PAGE_PARTIAL	(1U << 0)
/* All CPUs wrote it: packet_seq_num counts the pages of the channel. */
#define WEIR_PAGE_SHARED	(1U << 1)
/* The channel overwrites: packet_seq_num has gaps where pages were overwritten unread. */
#define WEIR_PAGE_OVERWRITE	(1U << 2)

/* weir_page_header.cpu_id of a page that all CPUs wrote and that tells of no losses. */
#define WEIR_CPU_NONE		0xFFFFFFFFU

/* Why records are lost: the index into weir_page_header.lost and weir_status_req.lost. */
#define WEIR_LOST_FULL		0	/* no free page */
#define WEIR_LOST_NESTED	1	/* interrupts nested deeper than the channel follows */
#define WEIR_LOST_TOO_LARGE	2	/* the record is larger than a page takes */
#define WEIR_LOST_OVERWRITTEN	3	/* the page was needed again before it was read */
#define WEIR_LOST_CAUSES	4

/*
 * The head of a page: at the same time a CTF packet header and its context. Records follow,
 * each beginning with a struct perf_event_header and 8-byte aligned; a WEIR_RECORD_NOP fills
 * what is left. The pages of one CPU, in order of packet_seq_num, are in order of time. Of a
 * channel where all CPUs write to one page, all are, and so are the records in them.
 */
struct weir_page_header {
	__u32 magic;			/* WEIR_PAGE_MAGIC */
	__u32 stream_id;		/* 0 */
	__u64 timestamp_begin;		/* the channel's clock: not after the first record */
	__u64 timestamp_end;		/* not before the last record, not after the next page */
	__u64 content_size;		/* bits: this header and the records, without the NOP */
	__u64 packet_size;		/* bits: the whole page */
	__u64 packet_seq_num;		/* counts the pages of this CPU (or channel) from 0 */
	__u64 events_discarded;		/* records this CPU has lost since the channel began */
	__u32 cpu_id;			/* whose page it is, and whose losses are told here */
	__u32 flags;			/* WEIR_PAGE_* */
	__u64 lost_begin;		/* times of the first and last of the records lost */
	__u64 lost_end;			/* since the page before this one; 0 where none was */
	__u32 lost[WEIR_LOST_CAUSES];	/* events_discarded by cause, modulo 2^32 */
};

/* --- Records ---------------------------------------------------------------------------------- */

/*
 * Records are perf's (PERF_RECORD_*, see linux/perf_event.h) with the sample_type below and
 * sample_id_all; types from WEIR_RECORD_FIRST on are weir's own.
 */
#define WEIR_RECORD_FIRST	0x10000U
#define WEIR_RECORD_NOP		(WEIR_RECORD_FIRST + 0)	/* nothing, to the edge or between */
#define WEIR_RECORD_RAW		(WEIR_RECORD_FIRST + 1)	/* bytes that kernel code wrote */
#define WEIR_RECORD_EVENT	(WEIR_RECORD_FIRST + 2)	/* the same, written in place */
#define WEIR_RECORD_MARK	(WEIR_RECORD_FIRST + 3)	/* the stream is complete so far */

/* PERF_SAMPLE_IDENTIFIER | _IP | _TID | _TIME | _CPU | _PERIOD */
#define WEIR_SAMPLE_TYPE	0x10187U

/* struct perf_event_header, under a name of its own so that this header stands alone. */
struct weir_record_header {
	__u32 type;
	__u16 misc;
	__u16 size;			/* bytes, this header included; a multiple of 8 */
};

/* Stands in every record but samples and events: perf's sample_id for WEIR_SAMPLE_TYPE. */
struct weir_sample_id {
	__u32 pid;			/* who wrote the record */
	__u32 tid;
	__u64 time;			/* the channel's clock */
	__u32 cpu;
	__u32 reserved;
	__u64 id;			/* of an event, 0 for none */
};

/*
 * PERF_RECORD_SAMPLE: a counter overflowed. This is one with WEIR_SAMPLE_TYPE; the id stands first
 * in every one, and tells which fields there are.
 */
struct weir_sample {
	struct weir_record_header header;
	__u64 id;			/* of the event: see weir_counter_req.id */
	__u64 ip;
	__u32 pid;
	__u32 tid;
	__u64 time;
	__u32 cpu;
	__u32 reserved;
	__u64 period;
};

/* PERF_RECORD_FORK: a task exists; `time` is when it started, in ns of CLOCK_MONOTONIC. */
struct weir_fork {
	struct weir_record_header header;
	__u32 pid;
	__u32 ppid;
	__u32 tid;
	__u32 ptid;
	__u64 time;
	struct weir_sample_id sample_id;
};

/* PERF_RECORD_COMM: its name, filled with zeros. */
struct weir_comm {
	struct weir_record_header header;
	__u32 pid;
	__u32 tid;
	__u8 comm[16];
	struct weir_sample_id sample_id;
};

/* WEIR_RECORD_RAW: `len` bytes follow, filled with zeros to a multiple of 8. */
struct weir_raw {
	struct weir_record_header header;
	__u32 len;
	__u32 reserved;
	struct weir_sample_id sample_id;
};

/* WEIR_RECORD_EVENT: words of the writer's own follow. header.misc is the CPU. */
struct weir_event {
	struct weir_record_header header;
	__u64 time;
};

/*
 * WEIR_RECORD_MARK: no page behind this one has an older record. The kernel writes none: who reads
 * a channel puts what WEIR_IOC_CHANNEL_MARK gave into the capture.
 */
struct weir_mark {
	struct weir_record_header header;
	__u64 time;
};

/* --- Channel ---------------------------------------------------------------------------------- */

/* weir_channel_req.model: whom the open page belongs to, and where a finished one goes. */
#define WEIR_MODEL_PER_CPU	0	/* its CPU; that CPU's queue */
#define WEIR_MODEL_SHARED	1	/* all CPUs; the one queue */
#define WEIR_MODEL_PAGED	2	/* its CPU; the one queue */

/* weir_channel_req.mode: what is lost when the channel is full. */
#define WEIR_MODE_DISCARD	0	/* new records */
#define WEIR_MODE_OVERWRITE	1	/* the oldest pages */

/* weir_channel_req.clock */
#define WEIR_CLOCK_MONOTONIC	0	/* CLOCK_MONOTONIC, as clock_gettime() reads it */
#define WEIR_CLOCK_MONOTONIC_RAW 1	/* CLOCK_MONOTONIC_RAW */
#define WEIR_CLOCK_BOOTTIME	2	/* CLOCK_BOOTTIME */
#define WEIR_CLOCK_PERF		3	/* what perf stamps its events with */
#define WEIR_CLOCK_TSC		4	/* the processor's counter, in cycles, where it is stable */

/*
 * WEIR_IOC_CHANNEL_CREATE. Zero takes the default; what was taken is written back.
 * Errors: EBUSY (this descriptor has a channel), EINVAL, ENOMEM, EACCES (perf_event_paranoid;
 * CAP_PERFMON allows it), EPERM (RLIMIT_MEMLOCK; CAP_IPC_LOCK allows it), EOPNOTSUPP (no TSC
 * that can be compared between CPUs).
 */
struct weir_channel_req {
	__u32 size;
	__u32 flags;			/* 0 */
	__u32 model;			/* WEIR_MODEL_* */
	__u32 mode;			/* WEIR_MODE_* */
	__u32 clock;			/* WEIR_CLOCK_* */
	__u32 page_size;		/* bytes; default: the kernel's page */
	__u32 pages;			/* default: 64 a CPU; at least 4 a CPU; see below */
	__u32 watermark;		/* pages of a queue that make poll() return; default 1 */
	__u64 max_latency_ns;		/* readable after this on a quiet CPU; default 100 ms */
};

/*
 * pages: only PAGED with DISCARD has one pool for all CPUs, of which each keeps a few for
 * itself. In the other kinds every CPU (or, SHARED, the channel) has as many as any other, and
 * that is a power of two, so fewer may be granted than were asked for.
 *
 * PAGED with OVERWRITE gives the oldest finished page of all CPUs next.
 */

/*
 * WEIR_IOC_CHANNEL_MARK: how far the stream is complete. Every record older than `time` was read
 * or is in a finished page when the call returns: who then reads until there is nothing has them
 * all. No CPU is asked for anything; records in an open page hold `time` back until read() gives
 * them after max_latency_ns, or a flush finishes the page.
 * Errors: EAGAIN (a write has been under way for a millisecond, as on a virtual CPU that does not
 * run: try again later), EINVAL (flags), EBADFD, ERESTARTSYS (a signal).
 */
struct weir_mark_req {
	__u32 size;
	__u32 flags;			/* 0 */
	__u64 time;			/* out: the channel's clock */
};

#define WEIR_NAME_LEN		32

/*
 * WEIR_IOC_CHANNEL_ATTACH: makes the channel that a kernel module has created under a name this
 * descriptor's. It can be attached to one descriptor at a time. When the module destroys it,
 * read() gives what is left and then 0, and poll() POLLHUP.
 * Errors: ENOENT (no such channel), EBUSY (it has a reader; this descriptor has a channel),
 * EINVAL (no zero in the name; flags), EACCES (perf_event_paranoid; CAP_PERFMON allows it).
 */
struct weir_attach_req {
	__u32 size;
	__u32 flags;			/* 0 */
	__u8 name[WEIR_NAME_LEN];	/* filled with zeros, of which there is one at least */
};

/*
 * WEIR_IOC_CHANNEL_CLOCK: a time t of a channel with WEIR_CLOCK_TSC is
 * ns + ((t - base) * mult >> shift) of CLOCK_MONOTONIC_RAW, with a product of 128 bits; t may be
 * less than base. Other clocks count ns, and mult is 0. Errors: EBADFD.
 */
struct weir_clock_req {
	__u32 size;
	__u32 clock;			/* all fields from here on: out */
	__u32 mult;
	__u32 shift;
	__u64 base;
	__u64 ns;
};

/*
 * A channel that discards can be mapped (MAP_SHARED), each of these as a whole: the positions to
 * read and write, the rest only to read. Whoever maps the positions is the channel's reader
 * until it is closed: read() gives EBUSY then.
 *
 * positions[q] is the number of pages of queue q that the reader has had; it stores the number
 * (release) when it is done with a page, and the kernel writes into pages before that again. The
 * next one, at position p = positions[q], is finished when its slot says so (acquire):
 *
 *   share == 0: slots[p & (slots - 1)] == ((p + 1) << 24 | page), which tells the page
 *   else:       slots[page] == (p & (2^35 - 1)) + 1, where page = q * share + (p & (share - 1))
 *
 * Page n is at n * page_size. poll() says POLLIN as for read(), and POLLPRI when a CPU has had
 * records in an open page for max_latency_ns: WEIR_IOC_CHANNEL_FLUSH finishes it. It also takes
 * back pages at once; writers do so when they need some. What the reader stores is not believed
 * beyond pages that are finished.
 */
#define WEIR_MMAP_POSITIONS	0x100000000ULL
#define WEIR_MMAP_SLOTS		0x200000000ULL
#define WEIR_MMAP_PAGES		0x400000000ULL

/* WEIR_IOC_CHANNEL_LAYOUT: how a channel is mapped. Errors: EBADFD. */
struct weir_layout_req {
	__u32 size;
	__u32 queues;			/* all fields from here on: out */
	__u32 share;			/* pages of each queue; 0: one queue, of one pool */
	__u32 slots;
	__u32 page_size;
	__u32 reserved;
	__u64 positions_size;		/* bytes to map */
	__u64 slots_size;
	__u64 pages_size;
};

/*
 * WEIR_IOC_CHANNEL_FREEZE: keeps what a channel that overwrites has. From then on every unread
 * page stays until it is read, and new records are lost where there is no other page for them;
 * until it is called with 0. Errors: EINVAL (the channel does not overwrite), EBADFD.
 */
struct weir_freeze_req {
	__u32 size;
	__u32 frozen;			/* 1 or 0 */
};

/*
 * WEIR_IOC_CHANNEL_STATUS: what one CPU wrote and lost so far, reported in a page or not yet.
 * Errors: EINVAL (no such CPU), EBADFD (no channel on this descriptor).
 */
struct weir_status_req {
	__u32 size;
	__u32 cpu;			/* in */
	__u64 pages;			/* pages published */
	__u64 nested;			/* records written inside another's write */
	__u64 lost[WEIR_LOST_CAUSES];
	__u64 lost_begin;		/* times of losses no page has reported yet, 0 for none */
	__u64 lost_end;
};

/* --- Injection -------------------------------------------------------------------------------- */

#define WEIR_COLLECTION_TASK	0	/* PERF_RECORD_FORK and _COMM of every thread */

/* weir_inject_req.flags */
#define WEIR_INJECT_PROCESS	(1U << 0)	/* thread group leaders only */

/* weir_inject_req.stop: why the call came back. */
#define WEIR_STOP_END		0	/* nothing is left */
#define WEIR_STOP_LEN		1	/* `len` objects were written */
#define WEIR_STOP_FULL		2	/* the channel is filled to injection's mark: read it */
#define WEIR_STOP_INTERRUPTED	3	/* a signal came */

/* Where an injection goes on. Opaque: zero begins, anything else is from `next`. */
struct weir_cursor {
	__u64 major;
	__u64 minor;
};

/*
 * WEIR_IOC_INJECT: writes objects that exist now as records, a few at a time. Call it with
 * start = 0, then with start = next until stop is WEIR_STOP_END. An object that lives
 * throughout comes exactly once. Errors: EINVAL (collection, cursor), EBADFD, EACCES.
 */
struct weir_inject_req {
	__u32 size;
	__u32 collection;		/* in: WEIR_COLLECTION_* */
	__u32 flags;			/* in: WEIR_INJECT_* */
	__u32 stop;			/* out: WEIR_STOP_* */
	struct weir_cursor start;	/* in */
	__u64 len;			/* in: at most so many objects; 0 for no limit */
	__u64 read;			/* out: objects written by this call */
	struct weir_cursor next;	/* out */
	__u64 skipped;			/* out: objects left out for lack of rights */
};

/* --- Counters --------------------------------------------------------------------------------- */

/* weir_counter_req.scope: where events are counted. */
#define WEIR_SCOPE_ALL		0	/* on every CPU, and on those that come online later */
#define WEIR_SCOPE_CPU		1	/* on one CPU, until it goes offline */
#define WEIR_SCOPE_TASK		2	/* in one task, and its children with attr.inherit */

/* weir_counter_req.flags: keep a copy of the values on each CPU, for WEIR_READ_CACHED. */
#define WEIR_COUNTER_CACHED	(1U << 0)

/* Most events of one counter. */
#define WEIR_COUNTER_EVENTS	64

/*
 * WEIR_IOC_COUNTER_CREATE: a counter of one event, or of several that are read together: a set.
 * All of them are created, disabled, or none is. With a sample period, overflows go into the
 * channel as PERF_RECORD_SAMPLE with the fields of perf_event_attr.sample_type, to which
 * PERF_SAMPLE_IDENTIFIER is added.
 *
 * Each attr is checked as perf_event_open() does, with the same errors, and the calling user needs
 * the same rights. What a task is observed with is proven by a descriptor of perf_event_open() for
 * that task, of any event; it may be closed afterwards.
 *
 * Errors: those of perf_event_open(); E2BIG (an attr of unknown parts; its size is set to what is
 * known; more than WEIR_COUNTER_EVENTS events); EBADF (no such descriptor), EINVAL (it is not
 * perf's, or of no task); ESRCH (the task has gone); EOPNOTSUPP (perf has this and weir has not:
 * records beside samples, samples with other fields than IP, TID, TIME, ADDR, ID, STREAM_ID, CPU,
 * PERIOD, CALLCHAIN and IDENTIFIER, signals, a clock of its own; or the kernel has no perf events);
 * EMFILE (more events than RLIMIT_NOFILE allows, which does not bind CAP_PERFMON, or than 65536).
 */
struct weir_counter_req {
	__u32 size;
	__u32 flags;			/* WEIR_COUNTER_* */
	__u32 scope;			/* WEIR_SCOPE_* */
	__s32 target;			/* ALL: 0; CPU: its number; TASK: the descriptor */
	__u64 attrs;			/* address of `count` addresses of struct perf_event_attr */
	__u32 count;
	__u32 id;			/* out: of the counter, and its first event; then id + 1 */
};

/*
 * WEIR_IOC_COUNTER_ENABLE, _DISABLE, _RESET, _RELEASE: `id` is of the counter, `value` is 0.
 * RESET makes zero what the next read gives, of one instant on each CPU.
 *
 * WEIR_IOC_COUNTER_PERIOD: `id` is of an event, `value` its new period, or its frequency.
 * WEIR_IOC_COUNTER_REFRESH: `value` overflows more, then the counter stops; it is enabled.
 *
 * Errors: ENOENT (no such counter), EINVAL (value; the event has no period), ENODEV (its PMU has
 * gone); for ENABLE and REFRESH also EBUSY: it is pinned and its PMU has no room, so nothing of
 * it counts; it may be tried again. One that is not pinned waits for its turn, which its
 * `running` shows.
 */
struct weir_counter_ctl {
	__u32 size;
	__u32 id;
	__u64 value;
};

/* weir_counter_read.flags */
#define WEIR_READ_PER_CPU	(1U << 0)	/* a value for each CPU instead of their sum */
#define WEIR_READ_CACHED	(1U << 1)	/* see weir_counter_value.age */

/* weir_counter_value.flags */
#define WEIR_VALUE_TOGETHER	(1U << 0)	/* all events of the counter ran, all the time */
#define WEIR_VALUE_REVOKED	(1U << 1)	/* its PMU has gone; this was before */
#define WEIR_VALUE_MISSING	(1U << 2)	/* a CPU is online and not counted */

/* What an event counted since it was enabled first or reset. */
struct weir_counter_value {
	__u32 id;			/* of the event */
	__s32 cpu;			/* -1: of a task, or the sum */
	__u64 value;
	__u64 enabled;			/* ns enabled, ns that it really counted */
	__u64 running;
	__u64 age;			/* ns since the oldest of these was read from its CPU */
	__u64 lost;			/* samples that the channel had no room for */
	__u64 throttled;		/* times that perf stopped it for too many samples */
	__u32 flags;			/* WEIR_VALUE_* */
	__u32 reserved;			/* 0 */
};

/*
 * WEIR_IOC_COUNTER_READ: every event of a counter, or of all counters of this descriptor, in the
 * order of their ids, with one interrupt to each CPU. With WEIR_READ_PER_CPU there is one value
 * for each CPU on which the event ever counted.
 *
 * CACHED reads other CPUs from the copy that each keeps: it is made when the CPU becomes idle, and
 * when it switches tasks a millisecond or more after the last. Only counters created with
 * WEIR_COUNTER_CACHED have it; others give EINVAL.
 *
 * Errors: ENOENT (no such counter), ENOSPC (more values than there is room for).
 */
struct weir_counter_read {
	__u32 size;
	__u32 flags;			/* WEIR_READ_* */
	__u32 id;			/* 0: all */
	__u32 count;			/* in: room at `values`; out: how many there are */
	__u64 values;			/* address of struct weir_counter_value */
};

/* PERF_RECORD_THROTTLE, _UNTHROTTLE: perf stopped an event for too many samples, or started it. */
struct weir_throttle {
	struct weir_record_header header;
	__u64 time;
	__u64 id;			/* of the event */
	__u64 stream_id;		/* the same */
	struct weir_sample_id sample_id;
};

#define WEIR_IOC_MAGIC		0xBB
#define WEIR_IOC_CHANNEL_CREATE	_IOWR(WEIR_IOC_MAGIC, 0, struct weir_channel_req)
#define WEIR_IOC_CHANNEL_STATUS	_IOWR(WEIR_IOC_MAGIC, 1, struct weir_status_req)
/* Closes every open page: all that was committed before the call is readable when it returns. */
#define WEIR_IOC_CHANNEL_FLUSH	_IO(WEIR_IOC_MAGIC, 2)
#define WEIR_IOC_INJECT		_IOWR(WEIR_IOC_MAGIC, 3, struct weir_inject_req)
#define WEIR_IOC_COUNTER_CREATE	_IOWR(WEIR_IOC_MAGIC, 4, struct weir_counter_req)
#define WEIR_IOC_COUNTER_ENABLE	_IOW(WEIR_IOC_MAGIC, 5, struct weir_counter_ctl)
#define WEIR_IOC_COUNTER_DISABLE _IOW(WEIR_IOC_MAGIC, 6, struct weir_counter_ctl)
#define WEIR_IOC_COUNTER_RELEASE _IOW(WEIR_IOC_MAGIC, 7, struct weir_counter_ctl)
#define WEIR_IOC_COUNTER_READ	_IOWR(WEIR_IOC_MAGIC, 8, struct weir_counter_read)
#define WEIR_IOC_CHANNEL_FREEZE	_IOW(WEIR_IOC_MAGIC, 9, struct weir_freeze_req)
#define WEIR_IOC_CHANNEL_CLOCK	_IOWR(WEIR_IOC_MAGIC, 11, struct weir_clock_req)
#define WEIR_IOC_CHANNEL_ATTACH	_IOW(WEIR_IOC_MAGIC, 12, struct weir_attach_req)
#define WEIR_IOC_CHANNEL_MARK	_IOWR(WEIR_IOC_MAGIC, 13, struct weir_mark_req)
#define WEIR_IOC_CHANNEL_LAYOUT	_IOWR(WEIR_IOC_MAGIC, 10, struct weir_layout_req)
#define WEIR_IOC_COUNTER_PERIOD	_IOW(WEIR_IOC_MAGIC, 14, struct weir_counter_ctl)
#define WEIR_IOC_COUNTER_REFRESH _IOW(WEIR_IOC_MAGIC, 15, struct weir_counter_ctl)
#define WEIR_IOC_COUNTER_RESET	_IOW(WEIR_IOC_MAGIC, 16, struct weir_counter_ctl)

#endif /* _UAPI_LINUX_WEIR_H */
