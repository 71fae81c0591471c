// SPDX-License-Identifier: GPL-2.0

//! A module of the kernel that a test needs.

use anyhow::{
    Context,
    Result, //
};
use nix::kmod::{
    delete_module,
    finit_module,
    DeleteModuleFlags,
    ModuleInitFlags, //
};
use std::{
    ffi::CString,
    fs::File,
    path::Path, //
};

/// A module that is loaded until this is dropped.
#[derive(Debug)]
pub struct Loaded(&'static str);

impl Loaded {
    /// Loads it from a file.
    ///
    /// # Errors
    ///
    /// That of the call.
    pub fn load(path: &Path, name: &'static str) -> Result<Self> {
        Self::load_with(path, name, "")
    }

    /// Loads it from a file, with parameters: `name=value`, and a space between two.
    ///
    /// # Errors
    ///
    /// That of the call.
    pub fn load_with(path: &Path, name: &'static str, parameters: &str) -> Result<Self> {
        let parameters = CString::new(parameters)?;
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        finit_module(&file, &parameters, ModuleInitFlags::empty())
            .with_context(|| format!("loading {}", path.display()))?;
        Ok(Self(name))
    }

    /// Unloads it.
    ///
    /// # Errors
    ///
    /// That of the call.
    pub fn unload(&self) -> Result<()> {
        let name = CString::new(self.0)?;
        delete_module(&name, DeleteModuleFlags::empty())
            .with_context(|| format!("unloading {}", self.0))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // After a test that went well it has gone already.
        let _ = self.unload();
    }
}
