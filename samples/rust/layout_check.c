// SPDX-License-Identifier: GPL-2.0
/*
 * rust/api/ declares these structures again, for modules in Rust. Whoever changes one of them
 * changes the other.
 */
#include <linux/build_bug.h>
#include <linux/weir.h>

static_assert(sizeof(struct weir_reservation) == 4 * sizeof(u64));
static_assert(sizeof(struct weir_channel_req) == 40);

static_assert(offsetof(struct weir_counter_config, nr_events) == 8);
static_assert(offsetof(struct weir_counter_config, scope) == 12);
static_assert(offsetof(struct weir_counter_config, flags) == 16);
static_assert(offsetof(struct weir_counter_config, cpu) == 20);
static_assert(offsetof(struct weir_counter_config, task) == 24);
static_assert(offsetof(struct weir_counter_config, overflow) == 32);
static_assert(offsetof(struct weir_counter_config, data) == 40);
static_assert(offsetof(struct weir_counter_config, channel) == 48);
static_assert(sizeof(struct weir_counter_config) == 56);

static_assert(offsetof(struct weir_counter_value, value) == 8);
static_assert(offsetof(struct weir_counter_value, enabled) == 16);
static_assert(offsetof(struct weir_counter_value, running) == 24);
static_assert(offsetof(struct weir_counter_value, age) == 32);
static_assert(offsetof(struct weir_counter_value, lost) == 40);
static_assert(offsetof(struct weir_counter_value, throttled) == 48);
static_assert(offsetof(struct weir_counter_value, flags) == 56);
static_assert(sizeof(struct weir_counter_value) == 64);
