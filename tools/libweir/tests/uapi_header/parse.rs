// SPDX-License-Identifier: GPL-2.0

//! Finds the names in the C header and in its Rust twin.

use std::collections::BTreeMap;

/// What the header declares.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// Structures, without the prefix `weir_`, with their fields in order.
    pub(crate) structs: BTreeMap<String, Vec<String>>,
    /// Macros without parameters that have a value.
    pub(crate) macros: Vec<String>,
}

/// Finds all structures and macros of the header.
pub(crate) fn header(text: &str) -> Header {
    let text = without_comments(text);
    let mut header = Header::default();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#define ") {
            let mut words = rest.split_whitespace();
            let name = words.next().expect("a macro has a name");
            // The include guard has no value.
            if words.next().is_some() {
                assert!(!name.contains('('), "a macro with parameters: {name}");
                header.macros.push(name.to_owned());
            }
        } else if let Some((name, fields)) = &mut open {
            if line.starts_with('}') {
                assert!(header
                    .structs
                    .insert(name.clone(), fields.clone())
                    .is_none());
                open = None;
            } else if !line.is_empty() {
                fields.push(field(line));
            }
        } else if line.starts_with("struct ") || line.starts_with("union ") {
            let name = line
                .strip_prefix("struct weir_")
                .and_then(|rest| rest.strip_suffix(" {"))
                .unwrap_or_else(|| panic!("not the beginning of a structure: {line}"));
            open = Some((name.to_owned(), Vec::new()));
        } else {
            assert!(
                line.is_empty() || line.starts_with('#'),
                "this test does not understand: {line}"
            );
        }
    }
    assert!(open.is_none(), "a structure does not end");
    header
}

/// The name that a line like `__u32 lost[4];` declares.
fn field(line: &str) -> String {
    let declaration = line
        .strip_suffix(';')
        .unwrap_or_else(|| panic!("not one field: {line}"));
    let name = declaration
        .split_whitespace()
        .last()
        .expect("a field has a name");
    let name = name.split('[').next().expect("a split gives something");
    assert!(
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "not one field: {line}"
    );
    name.to_owned()
}

fn without_comments(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        result.push_str(before);
        let (inside, after) = comment.split_once("*/").expect("a comment ends");
        // Lines stay lines.
        result.extend(inside.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    result.push_str(rest);
    result
}

/// Names of all public items of one kind in Rust source, such as `pub const NAME:`.
pub(crate) fn rust_items(text: &str, kind: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("pub ")?.strip_prefix(kind))
        .map(|rest| {
            rest.trim_start()
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .expect("a split gives something")
                .to_owned()
        })
        .collect()
}

#[test]
fn comments_and_arrays_are_understood() {
    let header = header(
        "/* a\n * b */\n#ifndef X\n#define X\n#define WEIR_A 1 /* c */\nstruct weir_s {\n\t__u32 a; /* d\n\t e */\n\t__u8 b[WEIR_A];\n\tstruct weir_t c;\n};\n#endif\n",
    );
    assert_eq!(header.macros, ["WEIR_A"]);
    assert_eq!(header.structs["s"], ["a", "b", "c"]);
}

#[test]
#[should_panic(expected = "not one field")]
fn what_is_not_understood_is_not_passed_over() {
    header("struct weir_s {\n\t__u32 a, b\n};\n");
}
