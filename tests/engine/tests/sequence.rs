// SPDX-License-Identifier: GPL-2.0

//! Words that are read while they are written, under the model checker: see `model.rs`. What is read is of one
//! write, and not older than what the reader knows to be written.
#![cfg(loom)]

use loom::{
    model::Builder,
    sync::Arc,
    thread, //
};
use weir_core::{
    Sequence,
    Word, //
};
use weir_engine::model::{
    Flaw,
    ModelWord,
    NoFence,
    NoRelease,
    Sound, //
};

struct Words<F> {
    sequence: Sequence<ModelWord<F>>,
    words: [ModelWord<F>; 2],
}

impl<F: Flaw> Words<F> {
    fn write(&self, value: u64) {
        self.sequence
            .write(|| self.words.iter().for_each(|word| word.store(value)));
    }

    fn read(&self) -> Option<[u64; 2]> {
        self.sequence
            .read(|| [self.words[0].load(), self.words[1].load()])
    }
}

fn check<F: Flaw>() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(|| {
        let words = Arc::new(Words::<F> {
            sequence: Sequence::new(),
            words: [ModelWord::new(0), ModelWord::new(0)],
        });
        let writer = thread::spawn({
            let words = words.clone();
            move || {
                words.write(1);
                words.write(2);
            }
        });
        let first = words.read();
        let second = words.read();
        for read in [first, second].into_iter().flatten() {
            assert_eq!(read[0], read[1], "of two writes");
        }
        if let (Some(first), Some(second)) = (first, second) {
            assert!(first[0] <= second[0], "older than what was read before");
        }
        writer.join().unwrap();
        assert_eq!(words.read(), Some([2, 2]));
    });
}

#[test]
fn what_is_read_is_of_one_write() {
    check::<Sound>();
}

#[test]
#[should_panic(expected = "of two writes")]
fn without_fences_it_is_not() {
    check::<NoFence>();
}

#[test]
#[should_panic]
fn without_release_it_is_not() {
    check::<NoRelease>();
}
