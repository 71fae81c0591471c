/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the sample writes into each WEIR_RECORD_EVENT, for itself and for who reads it.
 */
#ifndef _WEIR_SWITCHES_H
#define _WEIR_SWITCHES_H

#include <linux/types.h>

struct weir_switch {
	__s32 prev_pid;
	__s32 next_pid;
	__u32 prev_state;		/* as the scheduler has it */
	__u32 preempt;			/* 1 if the task could have gone on */
	char next_comm[16];
};

#endif /* _WEIR_SWITCHES_H */
