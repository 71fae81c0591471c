// SPDX-License-Identifier: GPL-2.0
/*
 * Exports for other modules. The functions are written in Rust (rust/capi.rs); their
 * declarations are in linux/weir.h, against which the Rust side is checked when it is compiled.
 */

#include <linux/export.h>
#include <linux/weir.h>

EXPORT_SYMBOL_GPL(weir_channel_create);
EXPORT_SYMBOL_GPL(weir_channel_destroy);
EXPORT_SYMBOL_GPL(weir_channel_reserve);
EXPORT_SYMBOL_GPL(weir_channel_commit);
EXPORT_SYMBOL_GPL(weir_channel_discard);
EXPORT_SYMBOL_GPL(weir_channel_get);
EXPORT_SYMBOL_GPL(weir_channel_put);
EXPORT_SYMBOL_GPL(weir_channel_write);

#ifdef CONFIG_PERF_EVENTS
EXPORT_SYMBOL_GPL(weir_tracepoint_id);
EXPORT_SYMBOL_GPL(__weir_counter_create);
EXPORT_SYMBOL_GPL(weir_counter_release);
EXPORT_SYMBOL_GPL(weir_counter_enable);
EXPORT_SYMBOL_GPL(weir_counter_disable);
EXPORT_SYMBOL_GPL(weir_counter_pause);
EXPORT_SYMBOL_GPL(weir_counter_reset);
EXPORT_SYMBOL_GPL(weir_counter_set_period);
EXPORT_SYMBOL_GPL(weir_counter_refresh);
EXPORT_SYMBOL_GPL(weir_counter_read);
EXPORT_SYMBOL_GPL(weir_counter_read_cpu);
EXPORT_SYMBOL_GPL(weir_counter_read_many);
EXPORT_SYMBOL_GPL(weir_counter_read_local);
EXPORT_SYMBOL_GPL(weir_counter_read_cached);
EXPORT_SYMBOL_GPL(weir_overflow_event);
EXPORT_SYMBOL_GPL(weir_overflow_ip);
EXPORT_SYMBOL_GPL(weir_overflow_user);
EXPORT_SYMBOL_GPL(weir_overflow_regs);
EXPORT_SYMBOL_GPL(weir_overflow_address);
EXPORT_SYMBOL_GPL(weir_overflow_period);
EXPORT_SYMBOL_GPL(weir_overflow_unthrottle);
EXPORT_SYMBOL_GPL(weir_overflow_stop);
#endif
