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
