// SPDX-License-Identifier: GPL-2.0

//! Every verdict on a real kernel: user-mode Linux, whose image `WEIR_UML_IMAGE` names.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{
    Command,
    Stdio, //
};
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use rustix::process::{
    kill_process,
    Pid,
    Signal, //
};

use crate::harness::{
    script,
    Kernel,
    Ran, //
};

fn uml() -> Option<Kernel> {
    Kernel::from_env("um", "WEIR_UML_IMAGE")
}

const TRUE: &str = "--program=fine=guest:/bin/true";

#[test]
fn passed() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        script(
            "ktap",
            "echo TAP version 13; echo 1..3; echo ok 1 a; echo ok 2 b; echo ok 3 c \\# SKIP no",
        ),
        script(
            "plain",
            "test $(pwd) = /weir && test -e /proc/mounts && test -c /dev/null",
        ),
        script("absent", "exit 4"),
    ]);
    ran.is(0, "3 passed, 0 failed, 2 skipped");
    assert_eq!(ran.err, "");
    assert_eq!(ran.out.lines().count(), 4, "{ran:#?}");
    ran.says("ok um ktap (");
}

#[test]
fn failed() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        script(
            "ktap",
            "echo 1..2; echo not ok 1 the reason; echo ok 2 b; exit 1",
        ),
        TRUE.into(),
    ]);
    ran.is(1, "2 passed, 1 failed");
    ran.says("not ok um ktap (");
    ran.says("\n# not ok 1 the reason\n");
    ran.says("\nok um fine (");
}

#[test]
fn a_program_out_of_time_fails_and_takes_nothing_else_along() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        "--program-timeout=1".into(),
        script("slow", "trap : TERM INT; setsid sleep 100 & sleep 100"),
        script("later", "test $(ps | grep -c [s]leep) = 0"),
        "--program=absent=guest:/nonexistent".into(),
    ]);
    ran.is(1, "1 passed, 2 failed");
    ran.says("timed out after 1 s");
    ran.says("not ok um absent (0.0 s): cannot start /nonexistent: No such file");
}

#[test]
fn complained_and_died_of_it() {
    let Some(uml) = uml() else { return };
    let module = uml.module("provoke.ko");
    for (how, class) in [
        ("warn", "WARN"),
        ("bug", "BUG"),
        ("oops", "panic"),
        ("panic", "panic"),
    ] {
        let ran = uml.run(&[format!("--module={module} how={how}"), TRUE.into()]);
        ran.is(3, "0 passed, 2 failed");
        ran.says(&format!(
            "\nnot ok um kernel complained in modules: {class}: "
        ));
        ran.says("not ok um fine: not run");
        assert!(!ran.out.contains("retried"));
    }
}

#[test]
fn complained_though_all_passed() {
    let Some(uml) = uml() else { return };
    let module = uml.module("provoke.ko");
    let ran = uml.run(&[
        format!("--file={module}:/provoke.ko"),
        TRUE.into(),
        script("culprit", "insmod /provoke.ko how=words; rmmod provoke"),
    ]);
    ran.is(3, "2 passed, 1 failed");
    ran.says("\nok um culprit (");
    ran.says("not ok um kernel complained in culprit: hung task: INFO: task provoke:1 blocked");
}

#[test]
fn what_a_program_writes_to_the_kernels_log_is_no_complaint() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[script("liar", "echo BUG: not at all >/dev/kmsg")]);
    ran.is(0, "1 passed, 0 failed");
}

#[test]
fn lost() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        TRUE.into(),
        script("off", "poweroff -f"),
        script("later", "true"),
    ]);
    ran.is(4, "1 passed, 2 failed");
    // How the program `linux` ends when the machine is off is not always the same.
    ran.says("not ok um off: the VM was lost (");
    ran.says("not ok um later: not run");
    ran.says("# reboot: Power down");
}

#[test]
fn lost_before_the_first_word_is_tried_once_more() {
    let Some(uml) = uml() else { return };
    let folder = tempfile::tempdir().unwrap();
    let init = folder.path().join("init");
    fs::write(&init, "#!/bin/busybox sh\nexit 3\n").unwrap();
    make_executable(&init);
    let ran = uml.run(&[format!("--init={}", init.display()), TRUE.into()]);
    ran.is(4, "0 passed, 1 failed");
    ran.says("\nretried: 1\n");
    assert_eq!(
        ran.out
            .matches("# Kernel panic - not syncing: Attempted to kill init!")
            .count(),
        2
    );
}

#[test]
fn hung() {
    let Some(uml) = uml() else { return };
    let start = Instant::now();
    let ran = uml.run(&[
        "--timeout=2".into(),
        script("sleep", "sleep 100"),
        TRUE.into(),
    ]);
    ran.is(5, "0 passed, 2 failed");
    ran.says("not ok um sleep: the VM hung, and was stopped after 2 s");
    assert!(start.elapsed() < Duration::from_secs(15));
}

#[test]
fn hung_after_the_last_word() {
    let Some(uml) = uml() else { return };
    let module = uml.module("provoke.ko");
    // One processor stands still with its interrupts off, which nothing survives to the end.
    let ran = uml.run(&[
        "--timeout=6".into(),
        "--program-timeout=1".into(),
        format!("--module={module} how=hang"),
    ]);
    ran.is(5, "0 passed, 1 failed");
    ran.says("not ok um modules (1.0 s): timed out after 1 s");
}

#[test]
fn cannot_be_set_up() {
    let Some(uml) = uml() else { return };
    for (arguments, reason) in [
        (
            vec!["--image=/nonexistent/linux".to_owned(), TRUE.into()],
            "there is no /nonexistent/linux",
        ),
        (
            vec!["--program=a=/bin/sh".to_owned()],
            "asks for the dynamic loader",
        ),
        (
            vec!["--modules=/nonexistent/weir.ko".to_owned()],
            "/nonexistent/weir.ko",
        ),
        (
            vec!["--init=/nonexistent/init".to_owned(), TRUE.into()],
            "/nonexistent/init",
        ),
        (vec!["--nmi=10".to_owned(), TRUE.into()], "leave out --nmi"),
        (vec![], "nothing to run"),
    ] {
        let ran = uml.run(&arguments);
        assert_eq!(ran.status, 2, "{ran:#?}");
        assert!(ran.err.contains(reason), "{ran:#?}");
        assert_eq!(ran.out, "");
    }
}

#[test]
fn kunit_results_count_when_modules_are_loaded() {
    let Some(uml) = uml() else { return };
    let module = uml.module("provoke_kunit.ko");
    let ran = uml.run(&[
        format!("--modules={module}"),
        "--expect-kunit=provoke".into(),
    ]);
    ran.is(0, "5 passed, 0 failed, 1 skipped");
    ran.says("ok um kunit (");

    let ran = uml.run(&[
        format!("--module={module} fail=1"),
        "--expect-kunit=provoke".into(),
    ]);
    ran.is(1, "4 passed, 1 failed, 1 skipped");
    ran.says("#     not ok 4 provoke_may_fail");

    let ran = uml.run(&[
        format!("--modules={module}"),
        "--expect-kunit=provoke,other".into(),
    ]);
    ran.is(1, "5 passed, 1 failed, 1 skipped");
    ran.says("no result of the KUnit suite other");
}

#[test]
fn modules_must_load_and_unload() {
    let Some(uml) = uml() else { return };
    let module = uml.module("provoke.ko");
    let ran = uml.run(&[format!("--module={module} how=wrong"), TRUE.into()]);
    ran.is(1, "0 passed, 2 failed");
    ran.says("# there is no way 'wrong'");
    ran.says("not ok um fine: not run");

    let busy = format!("--module={module} how=busy");
    let ran = uml.run(&[busy.as_str(), TRUE]);
    ran.is(1, "2 passed, 1 failed");
    ran.says("not ok um unload (0.0 s): provoke: something holds the module");
    uml.run(&[busy.as_str(), TRUE, "--keep-modules"])
        .is(0, "2 passed, 0 failed");

    let ran = uml.run(&[
        format!("--module={module} how=stuck"),
        "--program-timeout=1".into(),
    ]);
    ran.is(1, "0 passed, 1 failed");
    ran.says("not ok um modules (1.0 s): timed out after 1 s");
}

#[test]
fn files_are_collected() {
    let Some(uml) = uml() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (here, nowhere) = (
        folder.path().join("new/data"),
        folder.path().join("nowhere"),
    );
    let ran = uml.run(&[
        script("write", "seq 1 500000 >/tmp/data"),
        format!("--collect=/tmp/data:{}", here.display()),
        format!("--collect=/nonexistent:{}", nowhere.display()),
    ]);
    ran.is(1, "1 passed, 1 failed");
    ran.says("not ok um collect /nonexistent (0.0 s): No such file");
    let expected: String = (1..=500_000).map(|number| format!("{number}\n")).collect();
    assert!(fs::read_to_string(here).unwrap() == expected);
    assert!(!nowhere.exists());
}

#[test]
fn output_passes_through() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        "--passthrough".into(),
        script("table", "echo one; echo two >&2"),
    ]);
    assert_eq!(
        (ran.status, ran.out.as_str(), ran.err.as_str()),
        (0, "one\ntwo\n", "")
    );
    let ran = uml.run(&["--passthrough".into(), script("table", "echo one; exit 7")]);
    assert_eq!((ran.status, ran.out.as_str()), (1, "one\n"));
    assert!(ran.err.starts_with("not ok um table ("), "{ran:#?}");
}

#[test]
fn verbose_shows_the_output_of_what_passed() {
    let Some(uml) = uml() else { return };
    let ran = uml.run(&[
        "--verbose".into(),
        script("table", "echo one; echo two >&2"),
    ]);
    ran.is(0, "1 passed, 0 failed");
    assert!(
        ran.out.starts_with("# one\n# two\nok um table ("),
        "{ran:#?}"
    );
}

#[test]
fn runs_add_up() {
    let Some(uml) = uml() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("summary");
    let summary = format!("--summary={}", file.display());
    let total = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-vm"));
        Ran::new(command.arg("total").arg(&file).output().unwrap())
    };
    uml.run(&[summary.as_str(), TRUE]);
    uml.run(&[summary.as_str(), TRUE, &script("absent", "exit 4")]);
    total().is(0, "2 passed, 0 failed, 1 skipped");
    uml.run(&[summary.as_str(), "--program=bad=guest:/bin/false"]);
    total().is(1, "2 passed, 1 failed, 1 skipped");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "1 0 0 0 passed um\n1 0 1 0 passed um\n0 1 0 0 failed um\n"
    );
}

#[test]
fn the_machine_dies_with_its_runner() {
    let Some(uml) = uml() else { return };
    for signal in [Signal::KILL, Signal::TERM] {
        let mark = format!("weir_test={}.{}", std::process::id(), signal.as_raw());
        let mut runner = uml
            .command()
            .args(["--program=sleep=guest:/bin/sleep 50", "--append", &mark])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let machines = || processes_with(&mark, "uml_dir=");
        // Asked once: a process has no command line while it becomes another program.
        let folder = RefCell::<String>::default();
        wait_until(|| {
            *folder.borrow_mut() = machines().pop().unwrap_or_default();
            !folder.borrow().is_empty()
        });
        let folder = folder.into_inner();
        wait_until(|| Path::new(&folder).exists());
        kill_process(Pid::from_child(&runner), signal).unwrap();
        let status = runner.wait().unwrap();
        wait_until(|| machines().is_empty());
        if signal == Signal::TERM {
            assert_eq!(status.code(), Some(128 + 15));
            assert!(!Path::new(&folder).exists());
        } else {
            // Nothing can be done on SIGKILL but to die with it.
            fs::remove_dir_all(Path::new(&folder).parent().unwrap()).unwrap();
        }
    }
}

/// Of the machines that have `mark` on their command line, what follows `prefix` there.
fn processes_with(mark: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        // A process may go at any time.
        let Ok(line) = fs::read(entry.unwrap().path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<_> = line.split('\0').collect();
        if words.contains(&mark) {
            found.extend(
                words
                    .iter()
                    .filter_map(|word| word.strip_prefix(prefix))
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "waited in vain");
        thread::sleep(Duration::from_millis(10));
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
