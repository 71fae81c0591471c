// SPDX-License-Identifier: GPL-2.0

//! What `weir_torture.ko` writes into a record, and whether it came through whole.
//!
//! The layout is described in `tests/module/weir_torture.h`.

use anyhow::{
    ensure,
    Context,
    Result, //
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a payload begins with: `struct weir_torture_record`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Payload {
    /// The CPU that wrote it.
    pub cpu: u32,
    /// [`crate::torture::Source`] as a number.
    pub source: u32,
    /// Records that this writer had written before.
    pub sequence: u64,
    /// Records of this writer that had been refused before.
    pub refused: u64,
    /// Bytes of the payload.
    pub len: u32,
    /// Over the whole payload, with this field zero.
    pub checksum: u32,
}

#[cfg(test)]
const HEAD: usize = size_of::<Payload>();

/// Takes the head out of a payload and checks every byte behind it.
///
/// # Errors
///
/// What is wrong, in words: the length, the checksum, or a byte of the pattern.
pub fn check(data: &[u8]) -> Result<Payload> {
    let (head, pattern) = Payload::read_from_prefix(data)
        .ok()
        .with_context(|| format!("a payload of {} bytes has no head", data.len()))?;
    ensure!(
        head.len as usize == data.len(),
        "a payload of {} bytes says that it has {}: {head:?}",
        data.len(),
        head.len
    );
    let sum = checksum(&head, pattern);
    ensure!(
        sum == head.checksum,
        "the checksum of a payload is {sum:#x} instead of {:#x}: {head:?}",
        head.checksum
    );
    for (index, bytes) in pattern.chunks(8).enumerate() {
        let wanted = &word(&head, index).to_ne_bytes()[..bytes.len()];
        ensure!(
            bytes == wanted,
            "word {index} of a payload is {bytes:x?} instead of {wanted:x?}: {head:?}"
        );
    }
    Ok(head)
}

/// Takes the payload out of words that it was rounded up to.
///
/// # Errors
///
/// It has no head, or what is behind it are not less than eight zeros.
pub fn without_filling(words: &[u8]) -> Result<&[u8]> {
    let (head, _) = Payload::read_from_prefix(words)
        .ok()
        .with_context(|| format!("a payload of {} bytes has no head", words.len()))?;
    let len = head.len as usize;
    ensure!(
        len.next_multiple_of(8) == words.len() && words[len..].iter().all(|byte| *byte == 0),
        "{} bytes hold a payload of {len}",
        words.len()
    );
    Ok(&words[..len])
}

fn word(head: &Payload, index: usize) -> u64 {
    let base = head.sequence ^ u64::from(head.cpu) << 48 ^ u64::from(head.source) << 40;
    base.wrapping_add(index as u64).wrapping_mul(PRIME)
}

fn checksum(head: &Payload, pattern: &[u8]) -> u32 {
    let head = Payload {
        checksum: 0,
        ..*head
    };
    let sum = head
        .as_bytes()
        .chunks(8)
        .chain(pattern.chunks(8))
        .fold(0u64, |sum, bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            (sum ^ u64::from_ne_bytes(word))
                .wrapping_mul(PRIME)
                .rotate_left(29)
        });
    (sum ^ sum >> 32) as u32
}

/// Makes a payload as the module does, for tests of what checks them.
#[cfg(test)]
pub(crate) fn make(cpu: u32, source: u32, sequence: u64, refused: u64, len: usize) -> Vec<u8> {
    let mut head = Payload {
        cpu,
        source,
        sequence,
        refused,
        len: len as u32,
        checksum: 0,
    };
    let pattern: Vec<u8> = (0..)
        .flat_map(|index| word(&head, index).to_ne_bytes())
        .take(len - HEAD)
        .collect();
    head.checksum = checksum(&head, &pattern);
    [head.as_bytes(), &pattern].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_payloads_of_every_length_pass() {
        for len in HEAD..HEAD + 64 {
            let data = make(1, 2, 3, 4, len);
            let head = check(&data).unwrap();
            assert_eq!(
                (head.cpu, head.source, head.sequence, head.refused),
                (1, 2, 3, 4)
            );
        }
    }

    #[test]
    fn every_bit_counts() {
        for len in [HEAD, HEAD + 1, HEAD + 8, HEAD + 37] {
            let data = make(1, 3, 0x1234_5678_9abc, 9, len);
            for bit in 0..len * 8 {
                let mut torn = data.clone();
                torn[bit / 8] ^= 1 << (bit % 8);
                assert!(check(&torn).is_err(), "bit {bit} of {len} bytes");
            }
        }
    }

    #[test]
    fn a_mixture_of_two_payloads_fails() {
        let (one, two) = (make(0, 0, 10, 0, 256), make(0, 0, 11, 0, 256));
        for cut in 1..256 {
            let mixed = [&one[..cut], &two[cut..]].concat();
            assert!(
                check(&mixed).is_err() || mixed == one || mixed == two,
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_payload_cut_off_fails() {
        let data = make(0, 1, 5, 0, 100);
        for len in 0..100 {
            assert!(check(&data[..len]).is_err());
        }
    }
}
