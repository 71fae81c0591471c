// SPDX-License-Identifier: GPL-2.0

//! Runs the runner on real kernels, those that the environment names; without one there is nothing
//! to run, and a test says so.

mod harness;
mod kernel_checks;
mod verdicts;
