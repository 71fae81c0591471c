// SPDX-License-Identifier: GPL-2.0

#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>

#include "helpers.h"

#ifdef CONFIG_PERF_EVENTS

notrace unsigned int weir_helper_kernel_stack(unsigned long *entries, unsigned int size)
{
	return stack_trace_save(entries, size, 0);
}

/* The registers with which the current task entered the kernel, if it has a user side. */
notrace struct pt_regs *weir_helper_user_regs(void)
{
	return current->flags & (PF_KTHREAD | PF_USER_WORKER) ? NULL : task_pt_regs(current);
}

notrace u64 weir_helper_regs_frame(struct pt_regs *regs)
{
	return frame_pointer(regs);
}

/* 32-bit programs have frames of their own kind. */
notrace bool weir_helper_regs_native(struct pt_regs *regs)
{
#if defined(CONFIG_X86_64)
	return user_64bit_mode(regs);
#elif defined(CONFIG_ARM64)
	return !compat_user_mode(regs);
#else
	return true;
#endif
}

#endif
