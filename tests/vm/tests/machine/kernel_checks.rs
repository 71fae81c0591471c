// SPDX-License-Identifier: GPL-2.0

//! Whether what the debug kernel is built to find is found and told: in QEMU, with the image that
//! `WEIR_DEBUG_IMAGE` names. And whether a panic and a hang of the release kernel are, with
//! `WEIR_RELEASE_IMAGE`.

use crate::harness::{
    script,
    Kernel, //
};

const TRUE: &str = "--program=fine=guest:/bin/true";

#[test]
fn the_debug_kernel_finds_what_it_is_for() {
    let Some(debug) = Kernel::from_env("debug", "WEIR_DEBUG_IMAGE") else {
        return;
    };
    let module = debug.module("provoke.ko");
    let ran = debug.run(&[format!("--module={module} how=use_after_free"), TRUE.into()]);
    ran.is(3, "0 passed, 2 failed");
    ran.says("not ok debug kernel complained in modules: KASAN: BUG: KASAN: slab-use-after-free in provoke_use_after_free");

    // These leave the kernel alive: each is told where it happened, and nowhere else.
    let program = |how: &str| script(how, &format!("insmod /provoke.ko how={how}; rmmod provoke"));
    let ran = debug.run(&[
        format!("--file={module}:/provoke.ko"),
        program("nothing"),
        program("lock_order"),
        program("sleep_in_atomic"),
        program("leak"),
    ]);
    ran.is(3, "4 passed, 3 failed");
    for complaint in [
        "in lock_order: lockdep: WARNING: possible circular locking dependency",
        "in sleep_in_atomic: sleep in atomic context: BUG: sleeping function called",
        "in leaks: kmemleak: 3 new suspected memory leaks",
    ] {
        ran.says(&format!("not ok debug kernel complained {complaint}"));
    }
}

#[test]
fn the_release_kernel_says_where_it_panics_and_hangs() {
    let Some(release) = Kernel::from_env("release", "WEIR_RELEASE_IMAGE") else {
        return;
    };
    let module = release.module("provoke.ko");
    let ran = release.run(&[format!("--module={module} how=oops"), TRUE.into()]);
    ran.is(3, "0 passed, 2 failed");
    ran.says("kernel complained in modules: oops: BUG: kernel NULL pointer dereference");

    let ran = release.run(&["--timeout=20".into(), format!("--module={module} how=hang")]);
    ran.is(5, "0 passed, 1 failed");
    ran.says("#  init_module+");
}
