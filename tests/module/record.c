// SPDX-License-Identifier: GPL-2.0
/*
 * What a writer writes: payloads of changing length that a reader can check alone, without knowing
 * any other. weir_torture.h says how.
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "torture.h"

static u64 torture_sum(u64 sum, u64 word)
{
	return rol64((sum ^ word) * WEIR_TORTURE_PRIME, 29);
}

/* The lengths of a writer's records go through the whole range, in no obvious order. */
static u32 torture_record_len(const struct torture_writer *w)
{
	const struct weir_torture_start *request = &w->run->request;
	u64 which = w->attempted ^ (u64)w->cpu << 32 ^ w->source;
	u64 mixed = (which ^ request->seed) * WEIR_TORTURE_PRIME;
	u32 span = request->payload_max - request->payload_min + 1;

	return request->payload_min + mul_u64_u32_shr(mixed >> 32, span, 32);
}

/**
 * torture_record_fill() - Make the next record of a writer in its payload buffer.
 * @w: The writer, in its own context.
 *
 * Context: Any. The buffer belongs to this writer alone, so no other can tear it.
 * Return: Bytes of the payload.
 */
u32 torture_record_fill(struct torture_writer *w)
{
	struct weir_torture_record *record = w->payload;
	u64 base = w->written ^ (u64)w->cpu << 48 ^ (u64)w->source << 40;
	u32 len = torture_record_len(w);
	u8 *at = w->payload;
	u64 word, sum = 0;
	u32 offset, i;

	record->cpu = w->cpu;
	record->source = w->source;
	record->sequence = w->written;
	record->refused = w->attempted - w->written;
	record->len = len;
	record->checksum = 0;
	for (offset = 0; offset < sizeof(*record); offset += sizeof(word)) {
		memcpy(&word, at + offset, sizeof(word));
		sum = torture_sum(sum, word);
	}
	for (i = 0; offset < len; i++, offset += sizeof(word)) {
		u32 left = min_t(u32, len - offset, sizeof(word));
		u64 cut = 0;

		word = (base + i) * WEIR_TORTURE_PRIME;
		memcpy(at + offset, &word, left);
		memcpy(&cut, at + offset, left);
		sum = torture_sum(sum, cut);
	}
	record->checksum = sum ^ sum >> 32;
	return len;
}
