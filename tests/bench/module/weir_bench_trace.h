/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoint that every tracer gets: four words.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM weir_bench

#if !defined(_WEIR_BENCH_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _WEIR_BENCH_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(weir_bench,
	TP_PROTO(u64 one, u64 two, u64 three, u64 four),
	TP_ARGS(one, two, three, four),
	TP_STRUCT__entry(
		__field(u64, one)
		__field(u64, two)
		__field(u64, three)
		__field(u64, four)
	),
	TP_fast_assign(
		__entry->one = one;
		__entry->two = two;
		__entry->three = three;
		__entry->four = four;
	),
	TP_printk("%llu %llu %llu %llu", __entry->one, __entry->two, __entry->three,
		  __entry->four)
);

#endif /* _WEIR_BENCH_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE weir_bench_trace
#include <trace/define_trace.h>
