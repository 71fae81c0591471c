// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the kernel complain when loaded, in the way that the parameter says, so that it can be
 * tested that complaints are heard. Never load it on a machine that is to live.
 */
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *how = "nothing";
module_param(how, charp, 0);
MODULE_PARM_DESC(how, "what to provoke");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spinning);

static char *sink;

static void provoke_warn(void)
{
	WARN(1, "provoked\n");
}

static void provoke_bug(void)
{
	BUG();
}

static void provoke_oops(void)
{
	WRITE_ONCE(sink, NULL);
	/* The compiler must not see where this goes. */
	WRITE_ONCE(*READ_ONCE(sink), 1);
}

static void provoke_panic(void)
{
	panic("provoked");
}

/* A complaint that no kernel goes down with. */
static void provoke_words(void)
{
	pr_err("INFO: task provoke:1 blocked for more than 1 seconds.\n");
}

/* Needs kmemleak. */
static void provoke_leak(void)
{
	int i;

	for (i = 0; i < 3; i++)
		WRITE_ONCE(sink, kmalloc(200, GFP_KERNEL));
	WRITE_ONCE(sink, NULL);
}

/* Needs KASAN. */
static void provoke_use_after_free(void)
{
	WRITE_ONCE(sink, kmalloc(64, GFP_KERNEL));
	if (!sink)
		return;
	kfree(sink);
	WRITE_ONCE(READ_ONCE(sink)[8], 1);
}

/* Needs lockdep: the two orders never meet, but they could. */
static void provoke_lock_order(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

/* Needs DEBUG_ATOMIC_SLEEP. */
static void provoke_sleep_in_atomic(void)
{
	spin_lock(&spinning);
	might_sleep();
	spin_unlock(&spinning);
}

/* The loading never ends. */
static void provoke_stuck(void)
{
	for (;;)
		msleep(1000);
}

/* Everything ends, without a word. */
static void provoke_hang(void)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
}

/* The module cannot be unloaded any more. */
static void provoke_busy(void)
{
	__module_get(THIS_MODULE);
}

static void provoke_nothing(void)
{
}

static const struct {
	const char *name;
	void (*provoke)(void);
} ways[] = {
	{ "nothing", provoke_nothing },
	{ "warn", provoke_warn },
	{ "bug", provoke_bug },
	{ "oops", provoke_oops },
	{ "panic", provoke_panic },
	{ "words", provoke_words },
	{ "leak", provoke_leak },
	{ "use_after_free", provoke_use_after_free },
	{ "lock_order", provoke_lock_order },
	{ "sleep_in_atomic", provoke_sleep_in_atomic },
	{ "stuck", provoke_stuck },
	{ "hang", provoke_hang },
	{ "busy", provoke_busy },
};

static int __init provoke_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		if (!strcmp(how, ways[i].name)) {
			ways[i].provoke();
			return 0;
		}
	}
	pr_err("there is no way '%s'\n", how);
	return -EINVAL;
}
module_init(provoke_init);

static void __exit provoke_exit(void)
{
}
module_exit(provoke_exit);

MODULE_DESCRIPTION("Makes the kernel complain");
MODULE_LICENSE("GPL");
