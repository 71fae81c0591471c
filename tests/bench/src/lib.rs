// SPDX-License-Identifier: GPL-2.0

//! What `weir-bench`, which measures in the machine whose kernel is measured, and `weir-bench-report`, which
//! makes tables and a picture of the results, share: the results.

pub mod measurement;
