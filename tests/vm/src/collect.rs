// SPDX-License-Identifier: GPL-2.0

//! Files that come from the guest. A file appears under its name only once all of it is there.

use std::fs;
use std::io::{
    self,
    Write, //
};
use std::path::{
    Path,
    PathBuf, //
};

use tempfile::NamedTempFile;

/// A file on its way.
#[derive(Debug)]
pub struct Incoming {
    target: PathBuf,
    file: NamedTempFile,
}

impl Incoming {
    /// Begins a file; makes the folder where there is none.
    ///
    /// # Errors
    ///
    /// Where the folder cannot be made or written to.
    pub fn new(target: &Path) -> io::Result<Self> {
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::create_dir_all(folder)?;
        Ok(Self {
            target: target.to_owned(),
            file: NamedTempFile::new_in(folder)?,
        })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Puts the file in its place, readable as any file that a user makes. Without this call
    /// nothing is left of it.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn finish(self) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let readable = fs::Permissions::from_mode(0o644);
        self.file.as_file().set_permissions(readable)?;
        self.file.persist(&self.target)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out/weir.data");
        let mut incoming = Incoming::new(&target).unwrap();
        incoming.write(b"half").unwrap();
        drop(incoming);
        assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 0);

        let mut incoming = Incoming::new(&target).unwrap();
        incoming.write(b"who").unwrap();
        incoming.write(b"le").unwrap();
        incoming.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 1);
    }
}
