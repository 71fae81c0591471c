// SPDX-License-Identifier: GPL-2.0

//! Whether what the debug kernel is built to find is found and told: in QEMU, with the image that
//! `WEIR_DEBUG_IMAGE` names. And whether a panic and a hang of the release kernel are, with
//! `WEIR_RELEASE_IMAGE`.

use crate::harness::Kernel;

const TRUE: &str = "--program=fine=guest:/bin/true";

#[test]
fn the_debug_kernel_finds_what_it_is_for() {
    let Some(debug) = Kernel::from_env("debug", "WEIR_DEBUG_IMAGE") else {
        return;
    };
    let module = debug.module("provoke.ko");
    for (how, class) in [
        (
            "use_after_free",
            "in modules: KASAN: BUG: KASAN: slab-use-after-free in provoke_use_after_free",
        ),
        (
            "lock_order",
            "in modules: lockdep: WARNING: possible circular locking dependency",
        ),
        (
            "sleep_in_atomic",
            "in modules: sleep in atomic context: BUG: sleeping function called",
        ),
        ("leak", "in kmemleak: kmemleak: "),
    ] {
        let ran = debug.run(&[format!("--module={module} how={how}"), TRUE.into()]);
        assert_eq!(ran.status, 3, "{how}: {ran:#?}");
        ran.says(&format!("not ok debug kernel complained {class}"));
    }
    let ran = debug.run(&[format!("--module={module}"), TRUE.into()]);
    ran.is(0, "2 passed, 0 failed");
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
