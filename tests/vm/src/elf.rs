// SPDX-License-Identifier: GPL-2.0

//! Tells whether a program can run in the guest, which has no dynamic loader and no libraries.

const MAGIC: &[u8] = b"\x7fELF";
/// `ELFCLASS64`, at byte 4.
const CLASS_64: u8 = 2;
const PT_INTERP: u32 = 3;

/// The dynamic loader that an ELF file asks for; `None` for a static one, or for no ELF file.
///
/// Only what the machines here run is looked at: 64-bit little-endian.
pub fn interpreter(file: &[u8]) -> Option<String> {
    if !file.starts_with(MAGIC) || file.get(4) != Some(&CLASS_64) {
        return None;
    }
    let headers = number(file, 32, 8)?;
    let header_size = number(file, 54, 2)?;
    let header_count = number(file, 56, 2)?;
    (0..header_count).find_map(|index| {
        let header = headers.checked_add(index.checked_mul(header_size)?)?;
        if number(file, header, 4)? != PT_INTERP as usize {
            return None;
        }
        let offset = number(file, header.checked_add(8)?, 8)?;
        let size = number(file, header.checked_add(32)?, 8)?;
        let path = file.get(offset..offset.checked_add(size)?)?;
        let path = path.strip_suffix(b"\0").unwrap_or(path);
        Some(String::from_utf8_lossy(path).into_owned())
    })
}

/// The little-endian number of `size` bytes, at most 8, at `offset`.
fn number(file: &[u8], offset: usize, size: usize) -> Option<usize> {
    let bytes = file.get(offset..offset.checked_add(size)?)?;
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(word)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An ELF file with one program header of the type, over the path.
    fn file(kind: u32, path: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        file[..4].copy_from_slice(MAGIC);
        file[4] = CLASS_64;
        file[32] = 64;
        file[54] = 56;
        file[56] = 1;
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file[72] = 120;
        file[96] = path.len() as u8;
        file.extend(path);
        file
    }

    #[test]
    fn a_dynamic_program_names_its_loader() {
        assert_eq!(
            interpreter(&file(PT_INTERP, b"/lib64/ld.so\0")).as_deref(),
            Some("/lib64/ld.so")
        );
    }

    #[test]
    fn static_programs_and_scripts_name_none() {
        assert_eq!(interpreter(&file(1, b"/lib64/ld.so\0")), None);
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_after_the_magic_are_read_without_panic(
            rest in prop::collection::vec(any::<u8>(), 0..200)
        ) {
            let mut file = [MAGIC, &[CLASS_64]].concat();
            file.extend(rest);
            interpreter(&file);
        }
    }
}
