// SPDX-License-Identifier: GPL-2.0

//! The tables in a document that people write.

use anyhow::{
    Context,
    Result, //
};

/// What stands before and after the tables.
const BEGIN: &str = ".. tables begin\n";
const END: &str = ".. tables end\n";

/// The document with other tables.
///
/// # Errors
///
/// Where it has no place for them.
pub fn replace(document: &str, tables: &str) -> Result<String> {
    let (before, rest) = document
        .split_once(BEGIN)
        .context("the document does not say where the tables begin")?;
    let (_, after) = rest
        .split_once(END)
        .context("the document does not say where the tables end")?;
    Ok(format!("{before}{BEGIN}\n{tables}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tables_are_replaced() {
        let document = "a\n.. tables begin\n\nold\n\n.. tables end\nb\n";
        let new = replace(document, "new\n\n").unwrap();
        assert_eq!(new, "a\n.. tables begin\n\nnew\n\n.. tables end\nb\n");
        assert_eq!(replace(&new, "new\n\n").unwrap(), new);
        assert!(replace("a\n.. tables begin\n", "new").is_err());
    }
}
