// SPDX-License-Identifier: GPL-2.0
/*
 * Calls from softirq, hard interrupt and NMI, which interrupt the task that asks for them, on its
 * CPU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bottom_half.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/timekeeping.h>

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#endif

#include "counters.h"

#define COUNTERS_TIMEOUT	(2 * NSEC_PER_SEC)

struct counters_call {
	void (*call)(void *data);
	void *data;
	bool done;
	struct tasklet_struct tasklet;
	struct irq_work irq_work;
};

static void counters_call(struct counters_call *call)
{
	call->call(call->data);
	/* The last access: it is on the stack of who waits. */
	smp_store_release(&call->done, true);
}

static void counters_tasklet(struct tasklet_struct *tasklet)
{
	counters_call(container_of(tasklet, struct counters_call, tasklet));
}

static void counters_irq_work(struct irq_work *irq_work)
{
	counters_call(container_of(irq_work, struct counters_call, irq_work));
}

#ifdef CONFIG_X86_LOCAL_APIC
#define COUNTERS_NMI_NAME	"weir_counters"

/* What an NMI that was sent to this CPU is to call. */
static DEFINE_PER_CPU(struct counters_call *, counters_nmi_call);

static int counters_nmi_handler(unsigned int type, struct pt_regs *regs)
{
	struct counters_call *call = this_cpu_xchg(counters_nmi_call, NULL);

	if (!call)
		return NMI_DONE;
	counters_call(call);
	return NMI_HANDLED;
}

static int counters_nmi_send(struct counters_call *call)
{
	if (!boot_cpu_has(X86_FEATURE_APIC))
		return -EOPNOTSUPP;
	this_cpu_write(counters_nmi_call, call);
	__apic_send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
	return 0;
}

/* It did not arrive: one that still comes finds nothing. */
static void counters_nmi_forget(struct counters_call *call)
{
	pr_err("an NMI did not arrive\n");
	this_cpu_cmpxchg(counters_nmi_call, call, NULL);
}

int counters_context_init(void)
{
	return register_nmi_handler(NMI_LOCAL, counters_nmi_handler, 0, COUNTERS_NMI_NAME);
}

void counters_context_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, COUNTERS_NMI_NAME);
}
#else
static int counters_nmi_send(struct counters_call *call)
{
	return -EOPNOTSUPP;
}

static void counters_nmi_forget(struct counters_call *call)
{
}

int counters_context_init(void)
{
	return 0;
}

void counters_context_exit(void)
{
}
#endif

const char *counters_context_name(enum counters_context context)
{
	static const char *const names[COUNTERS_CONTEXTS] = {
		[COUNTERS_TASK] = "task",
		[COUNTERS_SOFTIRQ] = "softirq",
		[COUNTERS_IRQ] = "interrupt",
		[COUNTERS_NMI] = "NMI",
	};

	return names[context];
}

int counters_in(enum counters_context context, void (*function)(void *data), void *data)
{
	struct counters_call call = {
		.call = function,
		.data = data,
		.irq_work = IRQ_WORK_INIT_HARD(counters_irq_work),
	};
	int error = 0;
	u64 begin;

	tasklet_setup(&call.tasklet, counters_tasklet);
	preempt_disable();
	switch (context) {
	case COUNTERS_TASK:
		counters_call(&call);
		break;
	case COUNTERS_SOFTIRQ:
		/* It is run where softirqs are allowed again. */
		local_bh_disable();
		tasklet_schedule(&call.tasklet);
		local_bh_enable();
		break;
	case COUNTERS_IRQ:
		irq_work_queue(&call.irq_work);
		break;
	case COUNTERS_NMI:
		error = counters_nmi_send(&call);
		break;
	default:
		error = -EINVAL;
	}
	begin = ktime_get_mono_fast_ns();
	/* What the call has written is there then. */
	while (!error && !smp_load_acquire(&call.done)) {
		if (ktime_get_mono_fast_ns() - begin > COUNTERS_TIMEOUT)
			error = -ETIMEDOUT;
		cpu_relax();
	}
	/* Only then does nobody use what is on this stack. */
	if (context == COUNTERS_NMI && error == -ETIMEDOUT)
		counters_nmi_forget(&call);
	preempt_enable();
	if (context == COUNTERS_SOFTIRQ)
		tasklet_kill(&call.tasklet);
	if (context == COUNTERS_IRQ)
		irq_work_sync(&call.irq_work);
	return error;
}
