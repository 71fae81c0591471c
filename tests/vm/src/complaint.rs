// SPDX-License-Identifier: GPL-2.0

//! What in a kernel's log is a complaint: the one list of patterns.
//!
//! A line counts only if it opens a complaint. The lines that follow it (registers, call traces) are
//! its excerpt, and are not looked at again.

/// Something that the kernel found wrong with itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// What kind it is, for people.
    pub class: &'static str,
    /// The line, without its time stamp.
    pub line: String,
}

/// Where in a line a pattern must stand.
#[derive(Clone, Copy)]
enum At {
    /// At the beginning, after the time stamp.
    Start,
    /// Anywhere.
    Anywhere,
}
use At::{
    Anywhere,
    Start, //
};

/// The first that fits gives the class, so the more precise ones stand first.
#[rustfmt::skip]
const PATTERNS: &[(&str, At, &str)] = &[
    ("KASAN", Start, "BUG: KASAN: "),
    ("KCSAN", Start, "BUG: KCSAN: "),
    ("KFENCE", Start, "BUG: KFENCE: "),
    ("UBSAN", Start, "UBSAN: "),
    ("kmemleak", Anywhere, " new suspected memory leaks"),
    ("kmemleak", Start, "kmemleak: Kernel memory leak detector disabled"),
    ("kmemleak", Start, "kmemleak: Memory pool empty"),
    ("lockdep", Start, "WARNING: possible "),
    ("lockdep", Start, "WARNING: inconsistent lock state"),
    ("lockdep", Start, "WARNING: Nested lock was not taken"),
    ("lockdep", Start, "WARNING: bad unlock balance detected"),
    ("lockdep", Start, "WARNING: bad contention detected"),
    ("lockdep", Start, "WARNING: held lock freed"),
    ("lockdep", Start, "WARNING: lock held when returning to user space"),
    ("lockdep", Start, "WARNING: invalid wait context"),
    ("lockdep", Start, "[ BUG: Invalid wait context ]"),
    ("lockdep", Start, "INFO: trying to register non-static key"),
    ("lockdep", Start, "BUG: MAX_LOCK"),
    ("lockdep", Start, "BUG: MAX_STACK_TRACE_ENTRIES too low"),
    ("lockdep", Start, "turning off the locking correctness validator"),
    ("lockdep", Start, "Disabling lock debugging due to kernel taint"),
    ("RCU usage", Start, "WARNING: suspicious RCU usage"),
    ("RCU stall", Anywhere, "detected stalls on CPUs/tasks"),
    ("RCU stall", Anywhere, "detected stalls on tasks"),
    ("RCU stall", Anywhere, "self-detected stall on CPU"),
    ("RCU stall", Anywhere, "detected expedited stalls on CPUs/tasks"),
    ("RCU stall", Anywhere, "kthread starved for"),
    ("soft lockup", Anywhere, "BUG: soft lockup"),
    ("hard lockup", Anywhere, "detected hard LOCKUP"),
    ("workqueue lockup", Anywhere, "BUG: workqueue lockup"),
    ("hung task", Anywhere, "blocked for more than"),
    ("sleep in atomic context", Start, "BUG: sleeping function called from invalid context"),
    ("sleep in atomic context", Start, "BUG: scheduling while atomic"),
    ("preemption", Start, "BUG: using __this_cpu_"),
    ("preemption", Start, "BUG: using smp_processor_id() in preemptible"),
    ("oops", Anywhere, "BUG: unable to handle "),
    ("oops", Anywhere, "BUG: kernel NULL pointer dereference"),
    ("oops", Start, "Oops: "),
    ("oops", Start, "Oops["),
    ("oops", Start, "Internal error: "),
    ("oops", Start, "Unable to handle kernel "),
    ("oops", Start, "general protection fault, "),
    ("oops", Start, "PANIC: "),
    ("oops", Start, "Kernel mode fault at addr "),
    ("BUG", Start, "kernel BUG at "),
    ("BUG", Start, "BUG: "),
    ("BUG", Start, "BUG "),
    ("WARN", Start, "WARNING: "),
    ("WARN", Start, "WARNING at "),
    ("Rust panic", Start, "rust_kernel: panicked at "),
    ("list corruption", Start, "list_add corruption"),
    ("list corruption", Start, "list_del corruption"),
    ("interrupt", Anywhere, ": nobody cared (try booting with "),
    ("panic", Start, "Kernel panic - not syncing: "),
];

/// Lines that a pattern would take, but which blame the user side: nobody is left to run, or the
/// kernel was given nothing to run. The machine is lost then, and its kernel is not at fault.
const USER_SIDE: &[&str] = &[
    "Kernel panic - not syncing: Attempted to kill init!",
    "Kernel panic - not syncing: No working init found",
    "Kernel panic - not syncing: Requested init ",
    "Kernel panic - not syncing: VFS: Unable to mount root fs",
];

/// The complaint that a line of the kernel's log opens, if it does.
///
/// The line may have a console's time stamp and caller in front.
pub fn find(line: &str) -> Option<Complaint> {
    let text = strip_stamp(line);
    if USER_SIDE.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let fits = |at: &At, pattern: &str| match at {
        Start => text.starts_with(pattern),
        Anywhere => text.contains(pattern),
    };
    let (class, ..) = PATTERNS.iter().find(|(_, at, pattern)| fits(at, pattern))?;
    Some(Complaint {
        class,
        line: text.to_owned(),
    })
}

/// Takes the time stamp (`[    1.234567]`) and the caller (`[    T1]`, `[   C0]`) off a line.
pub fn strip_stamp(line: &str) -> &str {
    let mut text = line.trim_end();
    for is_stamp in [is_time, is_caller] {
        let inside = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((stamp, rest)) = inside {
            if is_stamp(stamp.trim()) {
                text = rest.strip_prefix(' ').unwrap_or(rest);
            }
        }
    }
    text
}

fn is_time(stamp: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    stamp
        .split_once('.')
        .is_some_and(|(seconds, fraction)| digits(seconds) && digits(fraction))
}

fn is_caller(stamp: &str) -> bool {
    let number = stamp.strip_prefix(['T', 'C']).unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the line closes the block of lines that belong to a complaint.
pub fn is_end(line: &str) -> bool {
    let text = strip_stamp(line);
    text.starts_with("---[ end ") || text.starts_with("==================")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(line: &str) -> Option<&'static str> {
        find(line).map(|complaint| complaint.class)
    }

    /// Lines as kernels print them.
    #[test]
    fn complaints_are_found() {
        for (expected, line) in [
            ("WARN", "[    2.013370] WARNING: kernel/events/core.c:12 at perf_event_read+0x1a/0x40, CPU#1: weir/71"),
            ("WARN", "WARNING: CPU: 0 PID: 70 at net/core/dev.c:100 dev_get+0x10/0x20 [weir]"),
            ("WARN", "WARNING: at provoke_init+0x3f/0x50 [provoke], CPU#0: insmod/40"),
            ("BUG", "[    3.1] kernel BUG at rust/helpers/bug.c:7!"),
            ("BUG", "BUG: Bad page state in process weir  pfn:12345"),
            ("BUG", "BUG kmalloc-64 (Tainted: G    B      O      ): Poison overwritten"),
            ("BUG", "BUG: spinlock bad magic on CPU#0, swapper/0/1"),
            ("KASAN", "[    5.551722] BUG: KASAN: slab-use-after-free in weir_read+0x52/0xd0 [weir]"),
            ("KASAN", "BUG: KASAN: vmalloc-out-of-bounds in page_header+0x10/0x20"),
            ("UBSAN", "UBSAN: array-index-out-of-bounds in kernel/trace/ring_buffer.c:102:9"),
            ("lockdep", "[   12.000001][  T231] WARNING: possible circular locking dependency detected"),
            ("lockdep", "WARNING: possible recursive locking detected"),
            ("lockdep", "WARNING: possible irq lock inversion dependency detected"),
            ("lockdep", "WARNING: inconsistent lock state"),
            ("lockdep", "[ BUG: Invalid wait context ]"),
            ("lockdep", "INFO: trying to register non-static key."),
            ("lockdep", "BUG: MAX_LOCKDEP_ENTRIES too low!"),
            ("RCU usage", "WARNING: suspicious RCU usage"),
            ("RCU stall", "[   60.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"),
            ("RCU stall", "rcu: INFO: rcu_preempt self-detected stall on CPU"),
            ("RCU stall", "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-.... } 21 jiffies s: 93"),
            ("RCU stall", "INFO: rcu_tasks detected stalls on tasks:"),
            ("RCU stall", "rcu: rcu_preempt kthread starved for 2103 jiffies! g5 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0"),
            ("soft lockup", "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [weir:72]"),
            ("hard lockup", "watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 0"),
            ("workqueue lockup", "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!"),
            ("hung task", "INFO: task rmmod:99 blocked for more than 120 seconds."),
            ("sleep in atomic context", "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:591"),
            ("sleep in atomic context", "BUG: scheduling while atomic: weir/72/0x00000002"),
            ("preemption", "BUG: using smp_processor_id() in preemptible [00000000] code: weir/72"),
            ("preemption", "BUG: using __this_cpu_add() in preemptible [00000000] code: weir/72"),
            ("oops", "BUG: kernel NULL pointer dereference, address: 0000000000000000"),
            ("oops", "BUG: unable to handle page fault for address: ffffc90000a00000"),
            ("oops", "Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP"),
            ("oops", "Oops: 0002 [#1] SMP KASAN NOPTI"),
            ("oops", "PANIC: double fault, error_code: 0x0"),
            ("kmemleak", "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)"),
            ("kmemleak", "kmemleak: Kernel memory leak detector disabled"),
            ("Rust panic", "rust_kernel: panicked at rust/core/page.rs:10:5:"),
            ("list corruption", "list_del corruption. prev->next should be ffff888100000000, but was 0000000000000000."),
            ("interrupt", "irq 9: nobody cared (try booting with the \"irqpoll\" option)"),
            ("panic", "[    1.0] Kernel panic - not syncing: kernel: panic_on_warn set ..."),
            ("panic", "Kernel panic - not syncing: Fatal exception"),
        ] {
            assert_eq!(class(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_healthy_kernels_say_is_no_complaint() {
        for line in [
            "",
            "debug: unregistered",
            "Linux version 7.3.4-weir (root@host) (clang 19) #1 SMP PREEMPT_DYNAMIC",
            "Command line: console=ttyS0 panic=-1 oops=panic panic_on_warn=1",
            "kasan: KernelAddressSanitizer initialized",
            "kmemleak: Kernel memory leak detector initialized (mem pool available: 15855)",
            "kmemleak: Automatic memory scanning thread started",
            "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
            "... MAX_LOCKDEP_ENTRIES:     32768",
            "Running RCU self tests",
            "rcu: \tRCU lockdep checking is enabled.",
            "rcu: \tRCU CPU stall warnings timeout set to 21 (rcu_cpu_stall_timeout).",
            "NMI watchdog: Perf NMI watchdog permanently disabled",
            "weir: loading out-of-tree module taints kernel.",
            "weir: module verification failed: signature and/or required key missing - tainting kernel",
            "clocksource: Marking clocksource 'tsc' as unstable because the skew is too large",
            "traps: weir[71] general protection fault ip:401000 sp:7ffc0000 error:0 in weir[401000+1000]",
            "weir[71]: segfault at 0 ip 0000000000401000 sp 00007ffc00000000 error 4 in weir[401000+1000]",
            "FAULT_INJECTION: forcing a failure.",
            "weir: page allocation failure: order:0, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
            "    # kasan: BUG: KASAN: expected by the test",
            "# Totals: pass:3 fail:0 skip:0 total:3",
            "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible",
            "**   NOTICE NOTICE NOTICE NOTICE NOTICE NOTICE NOTICE   **",
            "perf: interrupt took too long (2510 > 2500), lowering kernel.perf_event_max_sample_rate to 79000",
            "---[ end trace 0000000000000000 ]---",
            "---[ end Kernel panic - not syncing: Fatal exception ]---",
            "reboot: Power down",
        ] {
            assert_eq!(class(line), None, "{line}");
        }
    }

    #[test]
    fn a_dead_init_is_not_the_kernels_fault() {
        for line in [
            "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
            "[    0.2] Kernel panic - not syncing: Requested init /init failed (error -2).",
            "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        ] {
            assert_eq!(class(line), None, "{line}");
        }
    }

    #[test]
    fn stamps_are_taken_off() {
        assert_eq!(strip_stamp("[    1.234567] text\r"), "text");
        assert_eq!(strip_stamp("[    1.234567][  T71] text"), "text");
        assert_eq!(strip_stamp("[1.2][   C0]   indented"), "  indented");
        assert_eq!(strip_stamp("[ BUG: x ]"), "[ BUG: x ]");
        assert_eq!(strip_stamp("[weir] text"), "[weir] text");
    }

    #[test]
    fn a_trace_has_an_end() {
        assert!(is_end("[    2.0] ---[ end trace 0000000000000000 ]---"));
        assert!(!is_end("RIP: 0010:provoke_init+0x3f/0x50 [provoke]"));
    }
}
