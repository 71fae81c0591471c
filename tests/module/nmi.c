// SPDX-License-Identifier: GPL-2.0
/*
 * The way into NMI context: inter-processor interrupts of the local APIC with the NMI vector, and a
 * handler that claims those that were sent here and no others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/iopoll.h>
#include <linux/percpu.h>
#include <linux/printk.h>
#include <linux/smp.h>

#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>

#include "torture.h"

#define TORTURE_NMI_NAME	"weir_torture"

/* How long an NMI that was sent may take to arrive, us. */
#define TORTURE_NMI_TIMEOUT	USEC_PER_SEC

/* One was sent to this CPU and not handled. A CPU holds back one at most, so one is sent. */
static DEFINE_PER_CPU(atomic_t, torture_nmi_pending);

/* The run that has the NMI. Changed only while the handler is not registered. */
static struct torture_run *torture_nmi_run;

static int torture_nmi_handler(unsigned int type, struct pt_regs *regs)
{
	atomic_t *pending = this_cpu_ptr(&torture_nmi_pending);
	struct torture_writer *w;

	if (!atomic_read(pending))
		return NMI_DONE;
	w = torture_run_writer(torture_nmi_run, smp_processor_id(), WEIR_TORTURE_NMI);
	if (!READ_ONCE(w->finished))
		torture_write(w);
	/* Only now, so that no other is sent while this one is counted. */
	atomic_set_release(pending, 0);
	return NMI_HANDLED;
}

/**
 * torture_nmi_send() - Send an NMI to a writer's CPU, unless one is on the way.
 * @w: A writer of source WEIR_TORTURE_NMI.
 *
 * Context: Any, migration disabled.
 */
void torture_nmi_send(struct torture_writer *w)
{
	if (READ_ONCE(w->finished))
		return;
	preempt_disable();
	if (atomic_cmpxchg(per_cpu_ptr(&torture_nmi_pending, w->cpu), 0, 1) == 0)
		__apic_send_IPI_mask(cpumask_of(w->cpu), NMI_VECTOR);
	preempt_enable();
}

/**
 * torture_nmi_start() - Take the NMI for a run, before any of its writers is started.
 * @run: The run.
 *
 * Return: 0, -EOPNOTSUPP (no local APIC), -EBUSY (another run has it).
 */
int torture_nmi_start(struct torture_run *run)
{
	int error;

	if (!boot_cpu_has(X86_FEATURE_APIC))
		return -EOPNOTSUPP;
	if (torture_nmi_run)
		return -EBUSY;
	torture_nmi_run = run;
	error = register_nmi_handler(NMI_LOCAL, torture_nmi_handler, 0, TORTURE_NMI_NAME);
	if (error)
		torture_nmi_run = NULL;
	return error;
}

/**
 * torture_nmi_wait() - Wait until no NMI is on the way to a CPU.
 * @cpu: The CPU, online. Nobody sends it another one.
 *
 * Context: Process context. Sleeps.
 */
void torture_nmi_wait(unsigned int cpu)
{
	atomic_t *at = per_cpu_ptr(&torture_nmi_pending, cpu);
	int pending;

	if (read_poll_timeout(atomic_read, pending, !pending, 50, TORTURE_NMI_TIMEOUT, false, at))
		pr_err("an NMI that was sent to CPU %u did not arrive\n", cpu);
}

/**
 * torture_nmi_stop() - Give the NMI back, after all that send one were stopped.
 * @run: The run that has it.
 *
 * Context: Process context. Sleeps. On return no handler runs.
 */
void torture_nmi_stop(struct torture_run *run)
{
	unsigned int cpu;

	/* One that arrives when its handler is gone would be an unknown NMI to the kernel. */
	for_each_cpu(cpu, run->cpus) {
		if (cpu_online(cpu))
			torture_nmi_wait(cpu);
		atomic_set(per_cpu_ptr(&torture_nmi_pending, cpu), 0);
	}
	unregister_nmi_handler(NMI_LOCAL, TORTURE_NMI_NAME);
	torture_nmi_run = NULL;
}
