// SPDX-License-Identifier: GPL-2.0

//! What the guest's init and the host's runner have in common, and all of the runner that can be
//! tested without a machine.
//!
//! The host makes a [`plan`] and puts it into the [`initramfs`]; `weir-init` carries it out and sends
//! what happens over the [`report`] port. It judges nothing: the host reads results out of the
//! programs' output ([`ktap`]), complaints out of the kernel's log ([`complaint`]), and makes a
//! [`verdict`] of all that it heard, or of the silence ([`session`]).

pub mod collect;
pub mod complaint;
pub mod elf;
pub mod evidence;
pub mod initramfs;
pub mod judge;
pub mod ktap;
pub mod lines;
pub mod plan;
pub mod report;
pub mod session;
pub mod verdict;
