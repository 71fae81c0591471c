/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads: all that weir needs and the kernel crate's own bindings lack. Types that
 * those have come from there (see rust/bindings/bindgen_parameters), so that both sides share
 * them.
 */
#include <linux/anon_inodes.h>
#include <linux/errno.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/pipe_fs_i.h>
#include <linux/splice.h>
#include <linux/timekeeping.h>
#include <linux/weir.h>
#include <uapi/linux/weir.h>

#include "../helpers/helpers.h"

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
/* An int before 7.3. */
enum { WEIR_PREEMPT_COUNT_SIZE = sizeof(__preempt_count) };
#endif
