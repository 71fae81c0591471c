// SPDX-License-Identifier: GPL-2.0

//! What bindgen makes of `rust/bindings/bindings_helper.h`.

#![allow(
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unused_imports,
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks
)]

use kernel::{
    bindings::*,
    ffi, //
};

include!(concat!(
    env!("WEIR_OBJ"),
    "/rust/bindings/bindings_generated.rs"
));
