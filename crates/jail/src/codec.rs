//! Values as bytes, and back: the one layout in which our processes tell each other things.
//!
//! All of them are one binary (or the library built with it), so the format is private and
//! simple: a version byte, then the fields of a type in the order in which [`fields!`] lists
//! them. That list is the only place where an order is written down, so writer and reader
//! cannot differ. A reader takes nothing on trust all the same: lengths are bounded by what is
//! there, numbers by their type, and a short or long message is an error, never a panic.
//! Knows nothing of what the values mean.

mod impls;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

const VERSION: u8 = 1;

/// The largest message: argv and environment together cannot be longer for exec either.
const MAX_SIZE: u64 = 4 << 20;

/// A type with one layout. Every value takes up at least one number.
pub trait Codec: Sized {
    fn write(&self, out: &mut Writer);
    fn read(input: &mut Reader<'_>) -> io::Result<Self>;
}

/// Implements [`Codec`] for a struct, field by field.
#[macro_export]
macro_rules! fields {
    ($type:ty { $($field:tt),+ $(,)? }) => {
        impl $crate::codec::Codec for $type {
            fn write(&self, out: &mut $crate::codec::Writer) {
                $($crate::codec::Codec::write(&self.$field, out);)+
            }

            fn read(input: &mut $crate::codec::Reader<'_>) -> std::io::Result<Self> {
                // Rust evaluates the fields in the order in which they are written here.
                Ok(Self { $($field: $crate::codec::Codec::read(input)?),+ })
            }
        }
    };
}
pub use fields;

pub fn to_bytes(value: &impl Codec) -> Vec<u8> {
    let mut out = Writer(vec![VERSION]);
    value.write(&mut out);
    out.0
}

pub fn from_bytes<T: Codec>(bytes: &[u8]) -> io::Result<T> {
    let [VERSION, rest @ ..] = bytes else {
        return Err(garbled());
    };
    let mut input = Reader(rest);
    let value = T::read(&mut input)?;
    match input.0 {
        [] => Ok(value),
        _ => Err(garbled()),
    }
}

/// A new memory file with `value` in it.
pub fn to_memory_file(value: &impl Codec) -> io::Result<OwnedFd> {
    let file = memory_file()?;
    write_to(&file, value)?;
    Ok(file)
}

/// An empty memory file, for [`write_to`] where a filter forbids to make one.
pub fn memory_file() -> io::Result<OwnedFd> {
    Ok(memfd_create("spec", MemfdFlags::CLOEXEC)?)
}

pub fn write_to(file: &OwnedFd, value: &impl Codec) -> io::Result<()> {
    let bytes = to_bytes(value);
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let written = rustix::io::write(file, rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

pub fn from_memory_file<T: Codec>(file: &OwnedFd) -> io::Result<T> {
    from_bytes(&read_memory_file(file)?)
}

/// All bytes of a memory file that is not larger than any of ours.
pub fn read_memory_file(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let size = rustix::fs::fstat(file)?.st_size as u64;
    if size > MAX_SIZE {
        return Err(garbled());
    }
    let mut bytes = vec![0; size as usize];
    let mut read = 0;
    while read < bytes.len() {
        match rustix::io::pread(file, &mut bytes[read..], read as u64)? {
            0 => return Err(garbled()),
            n => read += n,
        }
    }
    Ok(bytes)
}

pub fn garbled() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

pub struct Writer(Vec<u8>);

impl Writer {
    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn number(&mut self) -> io::Result<u64> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(garbled)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| garbled())?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(garbled)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// How many values a list has. Each takes up at least one number, so a length beyond
    /// what is there is a lie, and nothing is allocated for it.
    fn length(&mut self) -> io::Result<u64> {
        let length = self.number()?;
        match length > self.0.len() as u64 / 8 {
            true => Err(garbled()),
            false => Ok(length),
        }
    }
}
