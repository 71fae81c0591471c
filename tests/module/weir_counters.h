/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of weir_counters.ko: tests of weir's counters as kernel code uses them. It is for
 * tests alone and may change with them.
 */
#ifndef _WEIR_COUNTERS_H
#define _WEIR_COUNTERS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * WEIR_COUNTERS_IOC_RUN: runs one test, and returns when it has ended. One runs at a time.
 * Errors: ENOENT (no such test), EOPNOTSUPP (it cannot run here; `report` says why), EINTR,
 * ESRCH (no such task), and what the test itself gives.
 */
struct weir_counters_run {
	__u32 size;			/* bytes of this structure, as the caller was compiled */
	__u32 ms;			/* how long a test runs that ends when it is told */
	__u32 failures;			/* out: expectations that were not met */
	__s32 pid;			/* of the task that a test is to count in, or 0 */
	__u64 seed;			/* of what is drawn by chance */
	__u64 rounds;			/* out: how often it did what it does again and again */
	char name[32];			/* of the test */
	char report[448];		/* out: what was not met, and notes, in lines */
};

#define WEIR_COUNTERS_IOC_MAGIC	0xBD
#define WEIR_COUNTERS_IOC_RUN	_IOWR(WEIR_COUNTERS_IOC_MAGIC, 0, struct weir_counters_run)

#endif /* _WEIR_COUNTERS_H */
