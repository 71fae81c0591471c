// SPDX-License-Identifier: GPL-2.0

//! A capture that is being written: the pages as they come into the file, and what they come to.

use crate::{
    notes::Notes,
    summary::Summary, //
};
use anyhow::{
    Context,
    Result, //
};
use libweir::Page;
use std::{
    fs::File,
    io::{
        BufWriter,
        Write, //
    },
    path::{
        Path,
        PathBuf, //
    },
};

/// A file of pages, and the summary of what is in it.
pub(crate) struct Capture {
    path: PathBuf,
    file: BufWriter<File>,
    /// Whether it is a file, and not a pipe or a device.
    regular: bool,
    bytes: u64,
    summary: Summary,
    /// The first page that did not hold together. It is in the file as it came.
    corrupt: Option<libweir::Error>,
}

impl Capture {
    /// Opens the file. What an earlier recording left in it stays until [`begin`](Self::begin).
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let error = || format!("cannot create {}", path.display());
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(error)?;
        let regular = file.metadata().with_context(error)?.is_file();
        Ok(Capture {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            regular,
            bytes: 0,
            summary: Summary::default(),
            corrupt: None,
        })
    }

    /// Empties the file.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.regular {
            Notes::remove(&self.path)?;
            self.file
                .get_ref()
                .set_len(0)
                .with_context(|| format!("cannot empty {}", self.path.display()))?;
        }
        Ok(())
    }

    /// Takes the next page. One that does not hold together is kept as well.
    pub(crate) fn take(&mut self, page: &[u8]) -> Result<()> {
        self.file
            .write_all(page)
            .with_context(|| self.cannot_write())?;
        if self.corrupt.is_none() {
            self.corrupt = self.summarise(page).err();
        }
        self.bytes += page.len() as u64;
        Ok(())
    }

    fn summarise(&mut self, page: &[u8]) -> Result<(), libweir::Error> {
        self.summary.add(&Page::parse_at(page, self.bytes)?)
    }

    /// Writes what is not in the file yet.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.file.flush().with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.path.display())
    }

    /// Whether it is a file, beside which notes can stand.
    pub(crate) fn is_regular(&self) -> bool {
        self.regular
    }

    /// Bytes of all pages so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the pages come to, up to the first that does not hold together.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// What was wrong with the first page that does not hold together.
    pub(crate) fn corrupt(&self) -> Option<&libweir::Error> {
        self.corrupt.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libweir::build::PageBuilder;

    fn page(sequence: u64) -> Vec<u8> {
        let mut page = PageBuilder::new(4096, 0, sequence);
        page.raw(b"x", sequence);
        page.finish()
    }

    #[test]
    fn an_earlier_capture_stays_until_the_next_begins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.data");
        let notes = folder.path().join("weir.data.notes.json");
        std::fs::write(&path, [7; 9000]).unwrap();
        std::fs::write(&notes, "{}").unwrap();
        let mut capture = Capture::open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 9000);
        assert!(notes.exists());
        capture.begin().unwrap();
        assert!(!notes.exists());
        capture.take(&page(0)).unwrap();
        capture.end().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), page(0));
        assert_eq!(capture.bytes(), 4096);
        assert!(capture.is_regular() && capture.corrupt().is_none());
    }

    #[test]
    fn a_corrupt_page_is_kept_and_told_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.data");
        let mut capture = Capture::open(&path).unwrap();
        for sequence in [0, 2, 3] {
            capture.take(&page(sequence)).unwrap();
        }
        capture.end().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 3 * 4096);
        let error = capture.corrupt().unwrap().to_string();
        assert!(error.contains("offset 4096"), "{error}");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut capture = Capture::open(Path::new("/dev/full")).unwrap();
        assert!(!capture.is_regular());
        capture.begin().unwrap();
        capture.take(&page(0)).unwrap();
        let error = format!("{:#}", capture.end().unwrap_err());
        assert!(
            error.starts_with("cannot write /dev/full: No space"),
            "{error}"
        );
    }
}
