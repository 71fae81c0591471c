// SPDX-License-Identifier: GPL-2.0

//! Makes the guest's first file system, a cpio archive: init, busybox, modules, programs, files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{
    self,
    Write, //
};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{
    bail,
    Context,
    Result, //
};
use cpio::newc::{
    trailer,
    Builder,
    ModeFileType, //
};

use crate::elf;
use crate::plan;

/// What lies under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File { content: Vec<u8>, mode: u32 },
    Console,
}

/// A file system in the making. Names are absolute; the folders above each are made.
#[derive(Debug)]
pub struct Initramfs {
    /// Sorted, so that a folder stands before what is in it.
    nodes: BTreeMap<String, Node>,
}

impl Default for Initramfs {
    fn default() -> Self {
        let mut new = Self {
            nodes: BTreeMap::new(),
        };
        // Where the guest's init mounts something, and where it works.
        let folders = ["/dev", "/proc", "/sys", "/tmp", "/run", "/mnt", "/root"];
        for folder in folders.into_iter().chain([plan::FOLDER]) {
            new.nodes.insert(folder.into(), Node::Folder);
        }
        // The kernel opens it for init before init can mount anything.
        new.nodes.insert("/dev/console".into(), Node::Console);
        new
    }
}

impl Initramfs {
    /// Adds a file with the mode bits of `chmod`.
    ///
    /// # Errors
    ///
    /// Where the name is not absolute or means something else already.
    pub fn file(&mut self, name: &str, content: Vec<u8>, mode: u32) -> Result<()> {
        self.add(name, Node::File { content, mode })
    }

    /// Adds a file of the host, or a folder with all that is in it.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or is a program that needs a dynamic loader; and as
    /// [`Initramfs::file`].
    pub fn copy(&mut self, name: &str, source: &Path) -> Result<()> {
        let cannot = || format!("cannot read {}", source.display());
        let metadata = fs::metadata(source).with_context(cannot)?;
        if metadata.is_dir() {
            self.add(name, Node::Folder)?;
            for entry in fs::read_dir(source).with_context(cannot)? {
                let entry = entry.with_context(cannot)?;
                let Ok(file) = entry.file_name().into_string() else {
                    bail!("{} is not UTF-8", entry.path().display());
                };
                self.copy(&format!("{name}/{file}"), &entry.path())?;
            }
            return Ok(());
        }
        let content = fs::read(source).with_context(cannot)?;
        if let Some(loader) = elf::interpreter(&content) {
            bail!(
                "{} asks for the dynamic loader {loader}, which the guest does not have: link it \
                 statically (for cargo: RUSTFLAGS='-C target-feature=+crt-static' and --target)",
                source.display()
            );
        }
        self.file(name, content, metadata.permissions().mode() & 0o7777)
    }

    fn add(&mut self, name: &str, node: Node) -> Result<()> {
        if !name.starts_with('/') || name.ends_with('/') {
            bail!("'{name}' is not an absolute name for something in the guest");
        }
        match self.nodes.get(name) {
            Some(before) if *before != node => bail!("two different things are to be {name}"),
            _ => (),
        }
        for (slash, _) in name.match_indices('/').skip(1) {
            let folder = self.nodes.entry(name[..slash].into());
            if *folder.or_insert(Node::Folder) != Node::Folder {
                bail!("{} is to be a file and a folder", &name[..slash]);
            }
        }
        self.nodes.insert(name.into(), node);
        Ok(())
    }

    /// Writes the archive.
    ///
    /// # Errors
    ///
    /// Those of the writer, and where something is larger than the format allows (4 GiB).
    pub fn write(&self, mut archive: impl Write) -> io::Result<()> {
        for (number, (name, node)) in (1..).zip(&self.nodes) {
            let builder = Builder::new(name.trim_start_matches('/')).ino(number);
            let (builder, content) = match node {
                Node::Folder => (
                    builder
                        .mode(0o755)
                        .set_mode_file_type(ModeFileType::Directory),
                    &[][..],
                ),
                Node::File { content, mode } => (
                    builder
                        .mode(*mode)
                        .set_mode_file_type(ModeFileType::Regular),
                    &content[..],
                ),
                Node::Console => (
                    builder
                        .mode(0o600)
                        .set_mode_file_type(ModeFileType::Char)
                        .rdev_major(5)
                        .rdev_minor(1),
                    &[][..],
                ),
            };
            let size = u32::try_from(content.len()).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is too large"))
            })?;
            let mut entry = builder.write(&mut archive, size);
            entry.write_all(content)?;
            entry.finish()?;
        }
        trailer(&mut archive)?;
        archive.flush()
    }
}

#[cfg(test)]
mod tests {
    use cpio::NewcReader;

    use super::*;

    struct Read {
        name: String,
        mode: u32,
        device: (u32, u32),
        content: Vec<u8>,
    }

    fn read_back(archive: &[u8]) -> Vec<Read> {
        let mut entries = Vec::new();
        let mut rest = archive;
        loop {
            let reader = NewcReader::new(rest).unwrap();
            let entry = reader.entry().clone();
            if entry.is_trailer() {
                return entries;
            }
            let mut content = Vec::new();
            rest = reader.to_writer(&mut content).unwrap();
            entries.push(Read {
                name: entry.name().to_owned(),
                mode: entry.mode(),
                device: (entry.rdev_major(), entry.rdev_minor()),
                content,
            });
        }
    }

    #[test]
    fn folders_stand_before_what_is_in_them() {
        let mut initramfs = Initramfs::default();
        initramfs
            .file("/weir/deep/a", b"text".to_vec(), 0o755)
            .unwrap();
        let mut archive = Vec::new();
        initramfs.write(&mut archive).unwrap();
        let entries = read_back(&archive);
        let at = |name: &str| {
            let position = entries.iter().position(|entry| entry.name == name);
            position.unwrap_or_else(|| panic!("{name} is missing"))
        };
        assert!(at("weir") < at("weir/deep") && at("weir/deep") < at("weir/deep/a"));
        assert_eq!(entries[at("weir/deep")].mode, 0o040755);
        assert_eq!(entries[at("weir/deep/a")].mode, 0o100755);
        assert_eq!(entries[at("weir/deep/a")].content, b"text");
        assert_eq!(entries[at("dev/console")].mode, 0o020600);
        assert_eq!(entries[at("dev/console")].device, (5, 1));
    }

    #[test]
    fn a_name_means_one_thing() {
        let mut initramfs = Initramfs::default();
        initramfs.file("/a", b"1".to_vec(), 0o644).unwrap();
        initramfs.file("/a", b"1".to_vec(), 0o644).unwrap();
        assert!(initramfs.file("/a", b"2".to_vec(), 0o644).is_err());
        assert!(initramfs.file("/a/b", b"2".to_vec(), 0o644).is_err());
        assert!(initramfs.file("b", b"2".to_vec(), 0o644).is_err());
        assert!(initramfs.file("/b/", b"2".to_vec(), 0o644).is_err());
    }

    #[test]
    fn a_folder_of_the_host_is_copied_with_its_modes() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("sub/run");
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        let mut initramfs = Initramfs::default();
        initramfs.copy("/weir/tests", folder.path()).unwrap();
        assert_eq!(
            initramfs.nodes["/weir/tests/sub/run"],
            Node::File {
                content: b"#!/bin/sh\n".to_vec(),
                mode: 0o750
            }
        );
    }

    #[test]
    fn a_dynamic_program_is_refused() {
        let mut initramfs = Initramfs::default();
        let this_test = std::env::current_exe().unwrap();
        let dynamic = elf::interpreter(&fs::read(&this_test).unwrap()).is_some();
        let result = initramfs.copy("/weir/test", &this_test);
        // This test itself may be built statically.
        assert_eq!(result.is_err(), dynamic);
    }

    #[test]
    fn a_missing_file_is_named() {
        let mut initramfs = Initramfs::default();
        let error = initramfs
            .copy("/a", Path::new("/nonexistent/b"))
            .unwrap_err();
        assert!(error.to_string().contains("/nonexistent/b"));
    }
}
