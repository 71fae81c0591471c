// SPDX-License-Identifier: GPL-2.0

//! The Rust structures and constants against the C header, field by field.
//!
//! A C program prints what the C compiler makes of every structure, field and constant that the header
//! declares; it is compiled as C and as C++, with every warning an error. What the header has and the
//! table lacks, or the other way round, fails by name.

mod parse;
mod table;

use std::{
    collections::{
        BTreeMap,
        BTreeSet, //
    },
    env,
    fmt::Write,
    path::{
        Path,
        PathBuf, //
    },
    process::Command,
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn header() -> parse::Header {
    let header = parse::header(&read("rust/include/uapi/linux/weir.h"));
    // The parser must have seen the header, and not some empty file.
    assert!(header.structs.contains_key("page_header"));
    assert!(header.macros.iter().any(|name| name == "WEIR_PAGE_MAGIC"));
    header
}

#[test]
fn rust_has_every_structure_and_field_of_the_header() {
    let c = header().structs;
    let rust: BTreeMap<String, Vec<String>> = table::structs()
        .into_iter()
        .map(|structure| {
            let fields = structure.fields.iter().map(|(name, ..)| (*name).to_owned());
            (structure.c.to_owned(), fields.collect())
        })
        .collect();
    assert_eq!(rust, c);
}

#[test]
fn rust_has_every_constant_of_the_header() {
    let rust: BTreeSet<String> = table::constants()
        .into_iter()
        .map(|constant| constant.c)
        .filter(|name| name.starts_with("WEIR_"))
        .collect();
    let c: BTreeSet<String> = header().macros.into_iter().collect();
    assert_eq!(rust, c);
}

#[test]
fn the_table_has_every_item_of_the_rust_twin() {
    let text = read("rust/core/uapi.rs");
    let structs: BTreeSet<String> = table::structs()
        .iter()
        .map(|structure| structure.rust.to_owned())
        .collect();
    let found: BTreeSet<String> = parse::rust_items(&text, "struct").into_iter().collect();
    assert_eq!(structs, found);
    let constants: BTreeSet<String> = table::constants()
        .iter()
        .filter_map(|constant| constant.rust.map(str::to_owned))
        .collect();
    let found: BTreeSet<String> = parse::rust_items(&text, "const").into_iter().collect();
    assert_eq!(constants, found);
}

#[test]
fn structures_have_no_holes() {
    for structure in table::structs() {
        let mut end = 0;
        for (name, offset, size) in &structure.fields {
            assert_eq!(*offset, end, "before {}.{name}", structure.c);
            end = offset + size;
        }
        assert_eq!(end, structure.size, "at the end of {}", structure.c);
    }
}

/// A program that prints the names that [`expected`] has, with the C compiler's values.
fn program() -> String {
    let mut text = String::from(
        "/* First and alone: it must need no other header. */\n\
         #include <linux/weir.h>\n\
         #include <linux/perf_event.h>\n\
         #include <stddef.h>\n\
         #include <stdio.h>\n\
         static void show(const char *name, unsigned long long value)\n\
         {\n\tprintf(\"%s=%llu\\n\", name, value);\n}\n\
         int main(void)\n{\n",
    );
    let mut show = |name: &str, value: &str| {
        writeln!(text, "\tshow(\"{name}\", (unsigned long long)({value}));").unwrap();
    };
    for structure in table::structs() {
        let c = structure.c;
        show(&format!("sizeof {c}"), &format!("sizeof(struct weir_{c})"));
        for (field, ..) in &structure.fields {
            show(
                &format!("offset {c}.{field}"),
                &format!("offsetof(struct weir_{c}, {field})"),
            );
            show(
                &format!("sizeof {c}.{field}"),
                &format!("sizeof(((struct weir_{c} *)0)->{field})"),
            );
        }
    }
    for constant in table::constants() {
        show(&constant.c, &constant.c);
    }
    text.push_str("\treturn 0;\n}\n");
    text
}

/// The same names with Rust's values.
fn expected() -> String {
    let mut text = String::new();
    let mut show = |name: String, value: u64| writeln!(text, "{name}={value}").unwrap();
    for structure in table::structs() {
        let c = structure.c;
        show(format!("sizeof {c}"), structure.size as u64);
        for (field, offset, size) in &structure.fields {
            show(format!("offset {c}.{field}"), *offset as u64);
            show(format!("sizeof {c}.{field}"), *size as u64);
        }
    }
    for constant in table::constants() {
        show(constant.c, constant.value);
    }
    text
}

/// Compiles `source` with the header in reach; the compiler's messages where it refuses.
fn compile(compiler: &str, language: &str, source: &str, output: &Path) -> Result<(), String> {
    let file = output.with_extension("source");
    std::fs::write(&file, source).unwrap();
    let result = Command::new(compiler)
        .args(["-x", language, "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .arg("-I")
        .arg(repository().join("rust/include/uapi"))
        .arg("-o")
        .arg(output)
        .arg(&file)
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot run `{compiler}`: {error}; install a compiler for {language}")
        });
    if result.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&result.stderr).into_owned())
    }
}

/// The compilers that `make` would take, each with its language.
fn compilers() -> [(String, &'static str); 2] {
    [("CC", "cc", "c"), ("CXX", "c++", "c++")].map(|(variable, default, language)| {
        let compiler = env::var(variable).unwrap_or_else(|_| default.to_owned());
        (compiler, language)
    })
}

#[test]
fn both_compilers_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, language) in compilers() {
        let binary = folder.path().join("print");
        if let Err(messages) = compile(&compiler, language, &program(), &binary) {
            panic!("{compiler} as {language} says:\n{messages}");
        }
        let output = Command::new(&binary).output().unwrap();
        assert!(output.status.success());
        let found = String::from_utf8(output.stdout).unwrap();
        for (found, expected) in found.lines().zip(expected().lines()) {
            assert_eq!(found, expected, "{compiler} on the left, Rust on the right");
        }
        assert_eq!(found.lines().count(), expected().lines().count());
    }
}

#[test]
fn the_header_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("alone");
    let source = "#include <linux/weir.h>\nint main(void)\n{\n\treturn 0;\n}\n";
    for (compiler, language) in compilers() {
        if let Err(messages) = compile(&compiler, language, source, &binary) {
            panic!("{compiler} as {language} says:\n{messages}");
        }
    }
}

#[test]
fn a_warning_would_be_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("warns");
    let source = "#include <linux/weir.h>\nint main(void)\n{\n\tint unused;\n\treturn 0;\n}\n";
    for (compiler, language) in compilers() {
        let messages = compile(&compiler, language, source, &binary).unwrap_err();
        assert!(messages.contains("unused"), "{messages}");
    }
}
