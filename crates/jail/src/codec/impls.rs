//! The layouts of the standard library's types. A number is always eight bytes.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use super::{Codec, Reader, Writer, garbled};

/// Unsigned numbers: one that does not fit its type is refused.
macro_rules! unsigned {
    ($($type:ty)+) => {$(
        impl Codec for $type {
            fn write(&self, out: &mut Writer) {
                out.number((*self).into());
            }

            fn read(input: &mut Reader<'_>) -> io::Result<Self> {
                Self::try_from(input.number()?).map_err(|_| garbled())
            }
        }
    )+};
}
unsigned!(u8 u16 u32 u64);

impl Codec for i32 {
    fn write(&self, out: &mut Writer) {
        out.number(i64::from(*self) as u64);
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Self::try_from(input.number()? as i64).map_err(|_| garbled())
    }
}

impl Codec for f64 {
    fn write(&self, out: &mut Writer) {
        out.number(self.to_bits());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(Self::from_bits(input.number()?))
    }
}

impl Codec for bool {
    fn write(&self, out: &mut Writer) {
        out.number((*self).into());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        match input.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(garbled()),
        }
    }
}

impl Codec for String {
    fn write(&self, out: &mut Writer) {
        out.bytes(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Self::from_utf8(input.bytes()?.to_vec()).map_err(|_| garbled())
    }
}

impl Codec for Arc<str> {
    fn write(&self, out: &mut Writer) {
        out.bytes(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(String::read(input)?.into())
    }
}

impl Codec for OsString {
    fn write(&self, out: &mut Writer) {
        out.bytes(self.as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(Self::from_vec(input.bytes()?.to_vec()))
    }
}

impl Codec for PathBuf {
    fn write(&self, out: &mut Writer) {
        out.bytes(self.as_os_str().as_bytes());
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        Ok(OsString::read(input)?.into())
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        let length = input.length()?;
        (0..length).map(|_| T::read(input)).collect()
    }
}

impl<T: Codec> Codec for Option<T> {
    fn write(&self, out: &mut Writer) {
        self.is_some().write(out);
        self.iter().for_each(|value| value.write(out));
    }

    fn read(input: &mut Reader<'_>) -> io::Result<Self> {
        match bool::read(input)? {
            true => Ok(Some(T::read(input)?)),
            false => Ok(None),
        }
    }
}
