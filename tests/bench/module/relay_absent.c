// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel without relay.
 */
#include <linux/kernel.h>

#include "bench.h"

static const struct bench_kind kinds[] = {
	{ .name = "direct/relay", .payload = BENCH_PAYLOAD, .open = bench_absent },
};

const struct bench_kinds bench_relay_kinds = { kinds, ARRAY_SIZE(kinds) };
