// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs on the tracepoint of weir_bench.ko that write its four words into a ring buffer, in
 * the ways there are. Helpers and the map are declared as they were before BTF, since the kernel
 * that is measured has none.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))

struct bpf_map_def {
	unsigned int type;
	unsigned int key_size;
	unsigned int value_size;
	unsigned int max_entries;
	unsigned int map_flags;
};

/* More than is ever written between two reads. */
struct bpf_map_def SEC("maps") ring = {
	.type = BPF_MAP_TYPE_RINGBUF,
	.max_entries = 16 << 20,
};

struct payload {
	__u64 words[4];
};

struct timed {
	__u64 time;
	struct payload payload;
};

static __u64 (*const ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*const ringbuf_output)(void *map, void *data, __u64 size, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_output;
static void *(*const ringbuf_reserve)(void *map, __u64 size, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_reserve;
static void (*const ringbuf_submit)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;

static __always_inline void fill(struct payload *payload,
				 const struct bpf_raw_tracepoint_args *args)
{
	payload->words[0] = args->args[0];
	payload->words[1] = args->args[1];
	payload->words[2] = args->args[2];
	payload->words[3] = args->args[3];
}

static __always_inline int submit(const struct bpf_raw_tracepoint_args *args, __u64 flags)
{
	struct payload *payload = ringbuf_reserve(&ring, sizeof(*payload), 0);

	if (payload) {
		fill(payload, args);
		ringbuf_submit(payload, flags);
	}
	return 0;
}

static __always_inline int submit_timed(const struct bpf_raw_tracepoint_args *args, __u64 flags)
{
	struct timed *timed = ringbuf_reserve(&ring, sizeof(*timed), 0);

	if (timed) {
		timed->time = ktime_get_ns();
		fill(&timed->payload, args);
		ringbuf_submit(timed, flags);
	}
	return 0;
}

SEC("raw_tracepoint/submit_quiet")
int submit_quiet(struct bpf_raw_tracepoint_args *args)
{
	return submit(args, BPF_RB_NO_WAKEUP);
}

SEC("raw_tracepoint/submit_quiet_timed")
int submit_quiet_timed(struct bpf_raw_tracepoint_args *args)
{
	return submit_timed(args, BPF_RB_NO_WAKEUP);
}

SEC("raw_tracepoint/submit_default_timed")
int submit_default_timed(struct bpf_raw_tracepoint_args *args)
{
	return submit_timed(args, 0);
}

SEC("raw_tracepoint/submit_wake_timed")
int submit_wake_timed(struct bpf_raw_tracepoint_args *args)
{
	return submit_timed(args, BPF_RB_FORCE_WAKEUP);
}

SEC("raw_tracepoint/output_quiet")
int output_quiet(struct bpf_raw_tracepoint_args *args)
{
	struct payload payload;

	fill(&payload, args);
	ringbuf_output(&ring, &payload, sizeof(payload), BPF_RB_NO_WAKEUP);
	return 0;
}

char _license[] SEC("license") = "GPL";
