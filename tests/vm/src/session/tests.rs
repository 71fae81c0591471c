// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::plan::{
    Module,
    Port,
    Program, //
};

const WARN: &str = "<4>WARNING: at weir_read+0x1/0x2 [weir], CPU#0: weir/40\n";

fn plan() -> Plan {
    let program = |name: &str| Program {
        name: name.into(),
        argv: vec![name.into()],
        timeout_s: 5,
    };
    Plan {
        protocol: PROTOCOL,
        kernel: "um".into(),
        icount: false,
        port: Port::HostFile("/report".into()),
        modules: vec![Module {
            path: "/weir/weir.ko".into(),
            parameters: String::new(),
        }],
        module_timeout_s: 5,
        shell: false,
        programs: vec![program("first"), program("second")],
        leaks: true,
        keep_modules: false,
        collect: vec!["/tmp/weir.data".into()],
    }
}

enum Said<'a> {
    Event(Event),
    Output(&'a str),
    Log(&'a str),
    Console(&'a str),
}
use Said::{
    Console,
    Log,
    Output, //
};

fn hello<'a>() -> Said<'a> {
    Said::Event(Event::Hello {
        protocol: PROTOCOL,
        release: "7.3".into(),
        processors: 2,
    })
}

fn begin<'a>(step: Step) -> Said<'a> {
    Said::Event(Event::Begin { step })
}

fn end<'a>(step: Step, outcome: Outcome) -> Said<'a> {
    Said::Event(Event::End {
        step,
        outcome,
        milliseconds: 1234,
    })
}

const DONE: Said<'static> = Said::Event(Event::Done);

fn gone() -> Ending {
    Ending::Gone(true, "exit status 0".into())
}

fn run_styled(said: &[Said<'_>], ending: &Ending, style: Style) -> (Summary, String, String) {
    let plan = plan();
    let expectations = Expectations {
        kunit: Vec::new(),
        targets: vec!["/nonexistent/never/written".into()],
    };
    let (mut out, mut raw) = (Vec::new(), Vec::new());
    let mut session = Session::new(&plan, &expectations, style, &mut out, &mut raw);
    for said in said {
        match said {
            Said::Event(event) => session.event(event.clone(), b"").unwrap(),
            Output(text) => session.event(Event::Output, text.as_bytes()).unwrap(),
            Log(text) => session
                .event(Event::Log { gap: false }, text.as_bytes())
                .unwrap(),
            Console(text) => session.console(text.as_bytes()),
        }
    }
    let summary = session.finish(ending).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (summary, text(out), text(raw))
}

fn run(said: &[Said<'_>], ending: &Ending) -> (Verdict, String, String) {
    let (summary, out, _) = run_styled(said, ending, Style::default());
    (summary.verdict, summary.tally.to_string(), out)
}

fn whole_run<'a>(second: impl IntoIterator<Item = Said<'a>>) -> Vec<Said<'a>> {
    let mut said = vec![
        hello(),
        begin(Step::Load),
        Log("<6>weir: loaded\n<6>    1..2\n<6>    ok 1 a\n<6>    ok 2 b\n<6>ok 1 weir_core\n"),
        end(Step::Load, Outcome::Well),
        begin(Step::Program(0)),
        Output("hello\n"),
        end(Step::Program(0), Outcome::Exit(0)),
        begin(Step::Program(1)),
    ];
    said.extend(second);
    said.extend([begin(Step::Unload), end(Step::Unload, Outcome::Well), DONE]);
    said
}

#[test]
fn all_is_well() {
    let said = whole_run([
        Output("1..2\nok 1 x\nok 2"),
        Output(" y # SKIP no PMU\n"),
        end(Step::Program(1), Outcome::Exit(0)),
    ]);
    assert_eq!(
        run(&said, &gone()),
        (
            Verdict::Passed,
            "4 passed, 0 failed, 1 skipped".into(),
            "ok um kunit (1.2 s) # 2 passed, 0 failed\n\
             ok um first (1.2 s)\n\
             ok um second (1.2 s) # 1 passed, 0 failed, 1 skipped\n"
                .into()
        )
    );
}

#[test]
fn a_failed_program_shows_what_it_wrote_and_the_kernels_log() {
    let said = whole_run([
        Output("1..2\nok 1 x\nnot ok 2 y\n"),
        Log("<6>weir: channel 3\n"),
        end(Step::Program(1), Outcome::Exit(1)),
    ]);
    let (verdict, tally, out) = run(&said, &gone());
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Failed, "4 passed, 1 failed")
    );
    let shown = "not ok um second (1.2 s): exit status 1 # 1 passed, 1 failed\n\
                 # 1..2\n# ok 1 x\n# not ok 2 y\n# kernel log:\n# weir: channel 3\n";
    assert!(out.ends_with(shown), "{out}");
}

#[test]
fn a_complaint_is_told_where_it_happened_even_if_all_passed() {
    let said = whole_run([Log(WARN), end(Step::Program(1), Outcome::Exit(0))]);
    let (verdict, tally, out) = run(&said, &gone());
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Complained, "4 passed, 1 failed")
    );
    assert!(out.contains(
        "ok um second (1.2 s)\nnot ok um kernel complained in second: WARN: WARNING: at weir_read"
    ));
}

#[test]
fn a_panic_that_only_the_console_shows_is_a_complaint() {
    let said = [
        hello(),
        begin(Step::Program(0)),
        Console("[    1.0] WARNING: at weir_read+0x1/0x2 [weir], CPU#0: weir/40\r\n[    1.1] Kernel panic"),
        Console(" - not syncing: kernel: panic_on_warn set ...\r\n"),
    ];
    let (verdict, tally, out) = run(&said, &Ending::Gone(true, "exit status 0".into()));
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Complained, "0 passed, 2 failed")
    );
    assert!(out.contains("not ok um first: the VM was lost"), "{out}");
    assert!(out.contains("not ok um second: not run"), "{out}");
    assert!(out.contains("kernel complained in first: WARN"), "{out}");
}

#[test]
fn a_machine_that_goes_without_its_last_word_is_lost() {
    let said = [
        hello(),
        begin(Step::Program(0)),
        Output("half a line"),
        Console("Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"),
    ];
    let (verdict, tally, out) = run(&said, &Ending::Gone(false, "signal 6".into()));
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Lost, "0 passed, 2 failed")
    );
    assert!(out.contains("# half a line"), "{out}");
    assert!(out.ends_with(
        "# console:\n# Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"
    ));
}

#[test]
fn a_machine_that_does_not_power_off_hangs() {
    let said = whole_run([end(Step::Program(1), Outcome::Exit(0))]);
    let (verdict, tally, _) = run(&said, &Ending::OutOfTime(60));
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Hung, "4 passed, 1 failed")
    );
}

#[test]
fn what_the_host_does_to_a_hung_kernel_is_no_complaint() {
    let plan = plan();
    let expectations = Expectations::default();
    let (mut out, mut raw) = (Vec::new(), Vec::new());
    let mut session = Session::new(&plan, &expectations, Style::default(), &mut out, &mut raw);
    session.console(b"[    1.0] Linux version\n");
    session.out_of_time();
    session.console(b"[    9.0] Kernel panic - not syncing: NMI: Not continuing\n");
    session
        .event(
            Event::Log { gap: false },
            b"<0>Kernel panic - not syncing: NMI: Not continuing\n",
        )
        .unwrap();
    let summary = session.finish(&Ending::OutOfTime(9)).unwrap();
    assert_eq!(summary.verdict, Verdict::Hung);
    assert!(String::from_utf8(out)
        .unwrap()
        .contains("# [    9.0] Kernel panic"));
}

#[test]
fn a_program_that_is_stopped_fails_and_nothing_else() {
    let said = whole_run([end(Step::Program(1), Outcome::TimedOut(5))]);
    let (verdict, tally, out) = run(&said, &gone());
    assert_eq!(
        (verdict, tally.as_str()),
        (Verdict::Failed, "3 passed, 1 failed")
    );
    assert!(out.contains("not ok um second (1.2 s): timed out after 5 s"));
}

#[test]
fn a_module_that_cannot_be_unloaded_fails() {
    let mut said = whole_run([end(Step::Program(1), Outcome::Exit(0))]);
    said.insert(
        said.len() - 2,
        end(Step::Unload, Outcome::Error("weir is in use".into())),
    );
    let (verdict, _, out) = run(&said, &gone());
    assert_eq!(verdict, Verdict::Failed);
    assert!(out.contains("not ok um unload (1.2 s): weir is in use"));
}

#[test]
fn leaks_are_complaints() {
    let mut said = whole_run([end(Step::Program(1), Outcome::Exit(0))]);
    said.extend([
        begin(Step::Leaks),
        Output("unreferenced object 0xffff888104a0b2c0 (size 64):\n"),
        end(Step::Leaks, Outcome::Error("1 leaked object".into())),
    ]);
    let (verdict, _, out) = run(&said, &gone());
    assert_eq!(verdict, Verdict::Complained);
    assert!(out
        .contains("kernel complained in leaks: kmemleak: 1 leaked object\n# unreferenced object"));
}

#[test]
fn only_a_silent_machine_may_be_replaced() {
    let plan = plan();
    let expectations = Expectations::default();
    let (mut out, mut raw) = (Vec::new(), Vec::new());
    let mut session = Session::new(&plan, &expectations, Style::default(), &mut out, &mut raw);
    assert!(session.console_is_empty());
    session.console(b"[    0.0] Linux version\n[    1.2] Oops: int3: 0000 [#1] SMP\n");
    assert!(session.is_replaceable());
    assert!(!session.console_is_empty());
    session.tell_replaced(&Ending::OutOfTime(60)).unwrap();
    let hello = Event::Hello {
        protocol: PROTOCOL,
        release: "7.3".into(),
        processors: 2,
    };
    session.event(hello, b"").unwrap();
    assert!(!session.is_replaceable());
    // Where there is no other machine, what the kernel said counts.
    let summary = session.finish(&gone()).unwrap();
    assert_eq!(summary.verdict, Verdict::Complained);
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("# the VM hung, and was stopped after 60 s, before its init said anything; trying once more\n# console:\n"));
}

#[test]
fn another_version_is_refused() {
    let plan = plan();
    let expectations = Expectations::default();
    let (mut out, mut raw) = (Vec::new(), Vec::new());
    let mut session = Session::new(&plan, &expectations, Style::default(), &mut out, &mut raw);
    let hello = Event::Hello {
        protocol: PROTOCOL + 1,
        release: String::new(),
        processors: 1,
    };
    assert!(session.event(hello, b"").is_err());
}

#[test]
fn passing_through_gives_the_programs_output_and_nothing_else() {
    let style = Style {
        passthrough: true,
        ..Style::default()
    };
    let said = whole_run([Output("a table\n"), end(Step::Program(1), Outcome::Exit(0))]);
    let (summary, out, raw) = run_styled(&said, &gone(), style);
    assert_eq!(summary.verdict, Verdict::Passed);
    assert_eq!((out.as_str(), raw.as_str()), ("", "hello\na table\n"));
}
