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
#include <linux/workqueue.h>

/* preempt.c */
unsigned int weir_helper_preempt_disable(void);
void weir_helper_preempt_enable(void);
void weir_helper_cond_resched(void);

/* cpu.c */
void weir_helper_cpus_read_lock(void);
void weir_helper_cpus_read_unlock(void);
bool weir_helper_cpu_online(unsigned int cpu);
int weir_helper_cpu_to_node(unsigned int cpu);
void weir_helper_on_each_cpu_cond(bool (*wanted)(int cpu, void *info), void (*call)(void *info),
				  void *info);

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
const char *weir_helper_anonymous_inode_name(struct file *file);

/* interrupts.c */
unsigned long weir_helper_local_irq_save(void);
void weir_helper_local_irq_restore(unsigned long flags);
bool weir_helper_in_nmi(void);

/* credentials.c */
const struct cred *weir_helper_override_with_kernel_cred(void);
void weir_helper_revert_creds(const struct cred *cred);

/* deferred.c */
void weir_helper_init_work(struct work_struct *work, void (*func)(struct work_struct *));
void weir_helper_queue_work(struct work_struct *work);

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

/* hotplug.c */
int weir_helper_hotplug_setup(const char *name,
			      int (*online)(unsigned int cpu, struct hlist_node *node));
void weir_helper_hotplug_remove(int state);
int weir_helper_hotplug_add(int state, struct hlist_node *node);
void weir_helper_hotplug_delete(int state, struct hlist_node *node);

/* switch.c */
struct weir_switch_probe {
	void (*call)(struct weir_switch_probe *probe, bool idle);
};

int weir_helper_switch_register(struct weir_switch_probe *probe);
void weir_helper_switch_unregister(struct weir_switch_probe *probe);

/* trace_event.c */
int weir_helper_trace_event_id(const char *system, const char *name);

/* perf.c */
int weir_helper_allow_cpu(void);
#ifdef CONFIG_PERF_EVENTS
unsigned long weir_helper_most_events(void);
u64 weir_helper_regs_ip(struct pt_regs *regs);
bool weir_helper_regs_user(struct pt_regs *regs);
u64 weir_helper_sample_period(struct perf_sample_data *data);
u64 weir_helper_sample_address(struct perf_sample_data *data);
void *weir_helper_event_context(struct perf_event *event);
u64 weir_helper_event_interrupts(struct perf_event *event);
void weir_helper_event_forget_interrupts(struct perf_event *event);
void weir_helper_event_stop(struct perf_event *event);
void weir_helper_event_forget_stop(struct perf_event *event);
int weir_helper_event_state(struct perf_event *event);
int weir_helper_event_oncpu(struct perf_event *event);
int weir_helper_event_cpu(struct perf_event *event);
bool weir_helper_event_of_task(struct perf_event *event);
bool weir_helper_event_of_current(struct perf_event *event);
bool weir_helper_event_attached(struct perf_event *event);
bool weir_helper_event_has_children(struct perf_event *event);
bool weir_helper_event_is_frequency(struct perf_event *event);
void weir_helper_event_update(struct perf_event *event);
u64 weir_helper_event_count(struct perf_event *event);
u64 weir_helper_event_enabled(struct perf_event *event);
u64 weir_helper_event_running(struct perf_event *event);
u64 weir_helper_event_since(struct perf_event *event);
struct task_struct *weir_helper_event_target(struct perf_event *event);

/* stack.c */
unsigned int weir_helper_kernel_stack(unsigned long *entries, unsigned int size);
struct pt_regs *weir_helper_user_regs(void);
u64 weir_helper_regs_frame(struct pt_regs *regs);
bool weir_helper_regs_native(struct pt_regs *regs);
#endif

#endif /* _WEIR_HELPERS_H */
