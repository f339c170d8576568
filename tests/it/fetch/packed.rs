//! Archives as registries have them, honest and hostile.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// One entry of a tarball, with any name at all.
pub struct Entry {
    pub name: &'static str,
    pub kind: EntryType,
    pub link: &'static str,
    pub bytes: Vec<u8>,
}

pub fn file(name: &'static str, bytes: impl Into<Vec<u8>>) -> Entry {
    Entry {
        name,
        kind: EntryType::Regular,
        link: "",
        bytes: bytes.into(),
    }
}

pub fn link(name: &'static str, link: &'static str) -> Entry {
    Entry {
        name,
        kind: EntryType::Symlink,
        link,
        bytes: Vec::new(),
    }
}

pub fn other(name: &'static str, kind: EntryType, link: &'static str) -> Entry {
    Entry {
        name,
        kind,
        link,
        bytes: Vec::new(),
    }
}

pub fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for entry in entries {
        let mut header = Header::new_gnu();
        // The library would not write what the hostile ones say.
        let write = |to: &mut [u8], text: &str| to[..text.len()].copy_from_slice(text.as_bytes());
        write(&mut header.as_old_mut().name, entry.name);
        write(&mut header.as_old_mut().linkname, entry.link);
        header.set_entry_type(entry.kind);
        // Set-user-id and writable by all: what is unpacked must be neither.
        header.set_mode(0o6777);
        header.set_size(entry.bytes.len() as u64);
        header.set_cksum();
        builder
            .append(&header, entry.bytes.as_slice())
            .expect("in memory");
    }
    builder.into_inner().expect("in memory")
}

pub fn tgz(entries: &[Entry]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(&tar(entries)).expect("in memory");
    gz.finish().expect("in memory")
}

/// A Debian package: what it says about itself, then its files.
pub fn deb(entries: &[Entry]) -> Vec<u8> {
    let mut deb = b"!<arch>\n".to_vec();
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tgz(&[file("postinst", "exit 1")])),
        ("data.tar.gz", tgz(entries)),
    ];
    for (name, bytes) in parts {
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            0,
            0,
            0,
            100_644,
            bytes.len()
        );
        deb.extend(header.as_bytes());
        deb.extend(&bytes);
        if bytes.len() % 2 == 1 {
            deb.push(b'\n');
        }
    }
    deb
}

/// A wheel. Its files are not marked as programs, as in some real ones.
pub fn wheel(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .unix_permissions(0o644);
    for (name, bytes) in entries {
        zip.start_file(*name, options).expect("in memory");
        zip.write_all(bytes).expect("in memory");
    }
    zip.finish().expect("in memory").into_inner()
}

pub fn sha256(bytes: &[u8]) -> String {
    let sum = Sha256::digest(bytes);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}
