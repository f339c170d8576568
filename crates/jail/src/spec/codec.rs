//! Numbers, texts and lists as bytes, and back.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{MemfdFlags, memfd_create};

const VERSION: u8 = 1;

/// The largest spec: argv and environment together cannot be longer for exec either.
const MAX_SPEC: u64 = 4 << 20;

pub fn garbled() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

pub fn read_memory_file(file: OwnedFd) -> io::Result<Vec<u8>> {
    let size = rustix::fs::fstat(&file)?.st_size as u64;
    if size > MAX_SPEC {
        return Err(garbled());
    }
    let mut bytes = vec![0; size as usize];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[read..], read as u64)? {
            0 => return Err(garbled()),
            n => read += n,
        }
    }
    Ok(bytes)
}

pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn new() -> Self {
        Self(vec![VERSION])
    }

    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn texts(&mut self, list: &[OsString]) {
        self.number(list.len() as u64);
        for text in list {
            self.bytes(text.as_bytes());
        }
    }

    pub fn into_memory_file(self) -> io::Result<OwnedFd> {
        if self.0.len() as u64 > MAX_SPEC {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let file = memfd_create("spec", MemfdFlags::CLOEXEC)?;
        let mut rest = &self.0[..];
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest)?;
            rest = &rest[written..];
        }
        Ok(file)
    }
}

pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> io::Result<Self> {
        match bytes {
            [VERSION, rest @ ..] => Ok(Self(rest)),
            _ => Err(garbled()),
        }
    }

    pub fn number(&mut self) -> io::Result<u64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(garbled)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    pub fn text(&mut self) -> io::Result<OsString> {
        let length = usize::try_from(self.number()?).map_err(|_| garbled())?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(garbled)?;
        self.0 = rest;
        Ok(OsString::from_vec(text.to_vec()))
    }

    pub fn string(&mut self) -> io::Result<String> {
        self.text()?.into_string().map_err(|_| garbled())
    }

    pub fn list<T>(&mut self, item: impl Fn(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let length = self.number()?;
        // Each item takes at least one number, so a length beyond that is a lie.
        if length > self.0.len() as u64 / 8 {
            return Err(garbled());
        }
        (0..length).map(|_| item(self)).collect()
    }

    pub fn end(self) -> io::Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(garbled())
        }
    }
}
