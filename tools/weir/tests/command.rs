// SPDX-License-Identifier: GPL-2.0

//! The command as its users call it: what it prints, on which stream, and how it exits.

use libweir::{
    build::{
        PageBuilder,
        Task, //
    },
    uapi, //
};
use std::{
    fs,
    io::{
        Read,
        Write, //
    },
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        Output,
        Stdio, //
    },
};
use tempfile::TempDir;

const WORK: u64 = 0xffff_ffff_8100_0100;

fn weir(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = weir(arguments).output().unwrap();
    (
        status.code(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

/// A folder with a capture of two CPUs in it.
fn capture() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.data");
    let task = |pid, comm| Task {
        pid,
        tid: pid,
        ppid: 1,
        comm,
        start: u64::from(pid) * 1_000_000_000,
    };
    let sample = |ip, misc, time| uapi::Sample {
        header: uapi::RecordHeader {
            misc,
            ..Default::default()
        },
        id: 1,
        ip,
        pid: 7,
        tid: 7,
        time,
        period: 1,
        ..Default::default()
    };
    let mut first = PageBuilder::new(4096, 0, 0);
    first
        .task(&task(1, "init"), 10)
        .task(&task(7, "work\x1b[2J"), 10)
        .sample(sample(WORK, uapi::MISC_KERNEL, 20))
        .sample(sample(WORK + 4, uapi::MISC_KERNEL, 30))
        .sample(sample(4096, uapi::MISC_USER, 40));
    let mut second = PageBuilder::new(4096, 1, 0);
    second
        .sample(sample(4096, uapi::MISC_USER, 5_000_000_000))
        .lost([3, 0, 0, 0], 2_000_000_000, 3_000_000_000);
    fs::write(&path, [first.finish(), second.finish()].concat()).unwrap();
    (folder, path)
}

fn kallsyms(folder: &Path) -> String {
    let path = folder.join("kallsyms");
    fs::write(
        &path,
        "ffffffff81000000 T _text\nffffffff81000100 t do_work\nffffffff81000200 T _end\n",
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_capture_is_reported() {
    let (folder, path) = capture();
    let path = path.to_str().unwrap();
    let (code, stdout, stderr) = run(&["report", "--kallsyms", &kallsyms(folder.path()), path]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    let expected = "\
2 pages, 8 records, 8,192 bytes, 3 lost, in 4.999999 s

Tasks (2)
  PID  TID  PPID   START s  COMM
    1    1     1  1.000000  init
    7    7     1  7.000000  work\\u{1b}[2J

Samples of unnamed events (4)
  SAMPLES       %  PID  TID  COMM
        4  100.00    7    7  work\\u{1b}[2J

  SAMPLES      %  SYMBOL
        2  50.00  [user] work\\u{1b}[2J
        2  50.00  do_work

CPUs
  CPU  PAGES  PARTIAL  RECORDS  BYTES  USED %  LOST
    0      1        0        7  4,096    12.7     0
    1      1        0        1  4,096     3.7     3
  CPU 1 lost 3 records (full 3) from 2.000000 s to 3.000000 s
";
    assert_eq!(stdout, expected);
}

#[test]
fn names_come_from_the_notes_beside_the_capture() {
    let (folder, path) = capture();
    let notes = r#"{"format": 1, "bytes": 8192, "kernel": "7.3.4", "command": ["true"],
        "events": [{"name": "cpu-clock", "frequency": 99, "period": null, "counters": [1, 2]}],
        "symbols": [{"start": "0xffffffff81000100", "end": "0xffffffff81000104",
                     "name": "noted", "module": "m"}]}"#;
    fs::write(folder.path().join("weir.data.notes.json"), notes).unwrap();
    let path = path.to_str().unwrap();
    let (code, stdout, stderr) = run(&["report", path]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    for line in [
        "Samples of cpu-clock (4, about 99 a second on each CPU)",
        "        1  25.00  noted [m]",
        "        1  25.00  0xffffffff81000104",
    ] {
        assert!(
            stdout.lines().any(|found| found == line),
            "{line}\n{stdout}"
        );
    }
    // Of another capture, they are worse than none.
    fs::write(path, &fs::read(path).unwrap()[..4096]).unwrap();
    let (code, stdout, stderr) = run(&["report", path]);
    assert_eq!(code, Some(0));
    assert!(!stdout.contains("noted"), "{stdout}");
    assert!(
        stderr.starts_with("weir: going on without notes: "),
        "{stderr}"
    );
    assert!(stderr.contains("--kallsyms"), "{stderr}");
}

#[test]
fn json_is_one_document_with_all_lines() {
    let (folder, path) = capture();
    let list = kallsyms(folder.path());
    let path = path.to_str().unwrap();
    let (code, stdout, _) = run(&["report", "--json", "--top", "0", "--kallsyms", &list, path]);
    assert_eq!(code, Some(0));
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["pages"], 2);
    assert_eq!(report["tasks"][1]["comm"], "work\u{1b}[2J");
    assert_eq!(report["tasks"][1]["start_ns"], 7_000_000_000u64);
    assert_eq!(report["events"][0]["samples"], 4);
    assert_eq!(report["events"][0]["symbols"][1]["symbol"], "do_work");
    assert_eq!(report["events"][0]["symbols"][1]["percent"], 50.0);
    assert_eq!(report["cpus"][1]["lost_by_cause"]["full"], 3);
    assert_eq!(report["cpus"][1]["lost_end_ns"], 3_000_000_000u64);
    assert!(report["cpus"][0]["lost_begin_ns"].is_null());
}

#[test]
fn a_corrupt_capture_fails_and_names_the_place() {
    let (_folder, path) = capture();
    let good = fs::read(&path).unwrap();
    let path = path.to_str().unwrap();
    let first_record = 4096 + 96;
    let spoils: [(&str, Vec<u8>, &str); 4] = [
        (
            "magic",
            spoil(&good, 4096),
            "corrupt page at offset 4096 (0x1000)",
        ),
        ("record", spoil(&good, first_record), "offset 4192 (0x1060)"),
        (
            "cut",
            good[..5000].to_vec(),
            "within the page at offset 4096 (0x1000): 3192 bytes",
        ),
        (
            "twice",
            [&good[..4096], &good[..4096]].concat(),
            "page of CPU 0 at offset 4096",
        ),
    ];
    for (name, bytes, message) in spoils {
        fs::write(path, bytes).unwrap();
        let (code, stdout, stderr) = run(&["report", path]);
        assert_eq!((code, &stdout[..]), (Some(1), ""), "{name}");
        assert!(stderr.starts_with("weir: error: "), "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(stderr.contains("weir.data"), "{name}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{name}: {stderr}");
    }
}

fn spoil(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = 0;
    bytes
}

#[test]
fn an_empty_capture_is_reported_and_a_missing_one_is_not() {
    let (folder, path) = capture();
    fs::write(&path, b"").unwrap();
    let (code, stdout, _) = run(&["report", path.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert_eq!(
        stdout,
        "0 pages, 0 records, 0 bytes, 0 lost, in 0.000000 s\n"
    );
    let missing = folder.path().join("missing");
    let (code, stdout, stderr) = run(&["report", missing.to_str().unwrap()]);
    assert_eq!((code, &stdout[..]), (Some(1), ""));
    assert_eq!(
        stderr,
        format!(
            "weir: error: {}: cannot open it: No such file or directory (os error 2)\n",
            missing.display()
        )
    );
}

#[test]
fn a_missing_device_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("weir.data");
    fs::write(&output, "precious").unwrap();
    let output_text = output.to_str().unwrap();
    let device = folder.path().join("weir");
    let device = device.to_str().unwrap();
    for arguments in [
        &["dump", "tasks"][..],
        &["record", "-o", output_text, "--", "touch", output_text],
        &["stat", "--json", "--", "true"],
        &["stat", "-a", "-I", "10", "-e", "{cs,faults}:u"],
    ] {
        let (code, stdout, stderr) = run(&[&["--device", device], arguments].concat());
        assert_eq!((code, &stdout[..]), (Some(1), ""));
        assert_eq!(
            stderr,
            format!("weir: error: cannot open {device}: no {device}: load the module (insmod weir.ko)\n")
        );
    }
    // What was there before is still there.
    assert_eq!(fs::read(&output).unwrap(), b"precious");
}

#[test]
fn a_device_that_is_not_weirs_is_said_to_be_none() {
    let (code, stdout, stderr) = run(&["dump", "tasks", "--device", "/dev/null"]);
    assert_eq!((code, &stdout[..]), (Some(1), ""));
    assert!(stderr.contains("this is not weir's device"), "{stderr}");
}

#[test]
fn wrong_usage_exits_with_two() {
    for arguments in [
        &[][..],
        &["dump"],
        &["frobnicate"],
        &["record"],
        &["record", "-e", "nonsense", "--", "true"],
        &["record", "-F", "1", "-c", "1", "--", "true"],
        &["stat", "--duration", "0"],
        &["stat"],
        &["stat", "-e", "cs"],
        &["stat", "-e", "sched:*,frobnicate", "-a"],
        &["stat", "--per-cpu", "--", "true"],
        &["stat", "-r", "3", "-a"],
        &["stat", "-p", "1", "-C", "0"],
        &["report"],
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!((code, &stdout[..]), (Some(2), ""), "{arguments:?}");
        assert!(
            stderr.contains("Usage") || stderr.contains("error"),
            "{stderr}"
        );
    }
}

#[test]
fn a_name_that_is_none_is_answered_with_the_nearest() {
    for (events, part) in [
        ("cycels", "did you mean `cycles`?"),
        ("cs,{faults,instruction}:u", "`instructions`"),
        ("cycles:z", "`z` is no modifier"),
        ("mem:main", "mem:ADDRESS"),
    ] {
        for command in ["stat", "record"] {
            let (code, stdout, stderr) = run(&[command, "-e", events, "--duration", "1"]);
            assert_eq!((code, &stdout[..]), (Some(2), ""), "{events}");
            assert!(stderr.contains(part), "{events}: {stderr}");
        }
    }
}

#[test]
fn help_teaches_by_examples() {
    for arguments in [
        &["--help"][..],
        &["record", "--help"],
        &["report", "--help"],
        &["dump", "tasks", "--help"],
        &["stat", "--help"],
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!((code, &stderr[..]), (Some(0), ""), "{arguments:?}");
        assert!(stdout.contains("Examples:\n  weir "), "{stdout}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    // More than a pipe holds, so that the command is still writing when it is closed.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.data");
    let mut file = fs::File::create(&path).unwrap();
    for sequence in 0..200 {
        let mut page = PageBuilder::new(4096, 0, sequence);
        while page.room() > 256 {
            let tid = sequence as u32 * 100 + page.room() as u32 / 128;
            let task = Task {
                pid: tid,
                tid,
                ppid: 1,
                comm: "task",
                start: sequence,
            };
            page.task(&task, sequence);
        }
        file.write_all(&page.finish()).unwrap();
    }
    for format in [&[][..], &["--json"]] {
        let mut child = weir(&[&["report", path.to_str().unwrap()], format].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert!(output.status.success(), "{:?}", output.status);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let (_folder, path) = capture();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = weir(&["report", "--json", path.to_str().unwrap()])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("cannot write to standard output"),
        "{stderr}"
    );
}
