// SPDX-License-Identifier: GPL-2.0

//! What `/proc/PID/fdinfo/FD` shows of a channel.

use super::Channel;
use crate::abs::cpus;
use kernel::{
    seq_file::SeqFile,
    seq_print, //
};
use weir_core::{
    Mode,
    Model, //
};

impl Channel {
    /// A line for each property, and one for each CPU that ever wrote or lost something.
    pub(crate) fn show(&self, file: &SeqFile) {
        let model = match self.options.model {
            Model::PerCpu => "per-cpu",
            Model::Shared => "shared",
            Model::Paged => "paged",
        };
        let mode = match self.options.mode {
            Mode::Discard => "discard",
            Mode::Overwrite => "overwrite",
        };
        seq_print!(file, "weir-model:\t{model}\n");
        seq_print!(file, "weir-mode:\t{mode}\n");
        seq_print!(file, "weir-page-size:\t{}\n", self.options.page_size);
        seq_print!(file, "weir-pages:\t{}\n", self.options.pages);
        while self.engine.take_back() {}
        seq_print!(file, "weir-lent:\t{}\n", self.engine.lent());
        for cpu in 0..cpus::count() {
            let Some(status) = self.engine.status(cpu) else {
                continue;
            };
            let [full, nested, large, overwritten] = status.lost.lost;
            if status.pages == 0 && status.lost.discarded() == 0 {
                continue;
            }
            seq_print!(
                file,
                "weir-cpu{cpu}:\tpages {} nested {} lost-full {full} lost-nested {nested} lost-too-large {large} lost-overwritten {overwritten}\n",
                status.pages,
                status.nested
            );
        }
    }
}
