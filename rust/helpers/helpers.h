/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What Rust cannot call by itself: macros and inline functions of the kernel. One line each;
 * anything with a decision in it is written in Rust.
 */
#ifndef _WEIR_HELPERS_H
#define _WEIR_HELPERS_H

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/pipe_fs_i.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/topology.h>
#include <linux/wait.h>

/* preempt.c */
unsigned int weir_helper_preempt_disable(void);
void weir_helper_preempt_enable(void);
void weir_helper_cond_resched(void);

/* cpu.c */
void weir_helper_cpus_read_lock(void);
void weir_helper_cpus_read_unlock(void);
bool weir_helper_cpu_online(unsigned int cpu);
int weir_helper_cpu_to_node(unsigned int cpu);

/* per_cpu.c */
void *weir_helper_alloc_per_cpu_pointers(void);
void weir_helper_set_per_cpu_pointer(void *table, unsigned int cpu, void *pointer);
void weir_helper_free_per_cpu(void *table);

/* page.c */
struct page *weir_helper_alloc_pages(int node, unsigned int order);
void *weir_helper_page_address(struct page *page);
void weir_helper_free_pages(struct page *page, unsigned int order);
void weir_helper_get_page(struct page *page);
bool weir_helper_try_get_page(struct page *page);
void weir_helper_put_page(struct page *page);
bool weir_helper_page_is_held(struct page *page);

/* pipe.c */
unsigned int weir_helper_pipe_capacity(struct pipe_inode_info *pipe);
unsigned int weir_helper_pipe_room(struct pipe_inode_info *pipe);
void weir_helper_pipe_add(struct pipe_inode_info *pipe, struct page *page,
			  const struct pipe_buf_operations *ops, unsigned long private);
void weir_helper_get_file(struct file *file);

/* memory.c */
int weir_helper_lock_pages(unsigned long pages, struct mm_struct **mm);
void weir_helper_unlock_pages(unsigned long pages, struct mm_struct *mm);

/* clock.c */
u64 weir_helper_local_clock(void);
unsigned int weir_helper_tsc_khz(void);

/* file.c */
bool weir_helper_kiocb_nonblocking(struct kiocb *kiocb);

/* wait.c */
void weir_helper_init_waitqueue_head(struct wait_queue_head *head);
void weir_helper_wake_up(struct wait_queue_head *head);
bool weir_helper_waitqueue_active(struct wait_queue_head *head);
void weir_helper_poll_wait(struct file *file, struct wait_queue_head *head,
			   poll_table *table);
long weir_helper_wait_event(struct wait_queue_head *head,
			    bool (*condition)(void *), void *arg, u64 timeout_ns);
void weir_helper_init_irq_work(struct irq_work *work,
			       void (*func)(struct irq_work *));

/* perf.c */
int weir_helper_allow_cpu(void);
#ifdef CONFIG_PERF_EVENTS
u64 weir_helper_regs_ip(struct pt_regs *regs);
bool weir_helper_regs_user(struct pt_regs *regs);
u64 weir_helper_sample_period(struct perf_sample_data *data);
int weir_helper_event_state(struct perf_event *event);
void *weir_helper_event_context(struct perf_event *event);
#endif

#endif /* _WEIR_HELPERS_H */
