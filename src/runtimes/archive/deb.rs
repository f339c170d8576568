//! Debian's packages: an `ar` archive with a tarball in it. Nothing of a package
//! is ever executed; its scripts are not even unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::tree::Tree;
use super::{Stop, tar};

const MAGIC: &[u8] = b"!<arch>\n";

pub fn unpack(from: File, tree: Tree<'_>) -> Result<(), Stop> {
    let mut from = BufReader::new(from);
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic).map_err(Stop::Broken)?;
    if magic != MAGIC {
        return Err(broken("it is not a Debian package"));
    }
    loop {
        // Name 16, time 12, owner 6, group 6, mode 8, size 10, end 2.
        let mut header = [0; 60];
        from.read_exact(&mut header).map_err(Stop::Broken)?;
        let field = |range: std::ops::Range<usize>| {
            let text = std::str::from_utf8(&header[range]).unwrap_or_default();
            text.trim().trim_end_matches('/').to_owned()
        };
        let (name, size) = (field(0..16), field(48..58).parse::<u64>());
        let Ok(size) = size else {
            return Err(broken("it has an invalid header"));
        };
        if !name.starts_with("data.tar") {
            // Parts begin at even places.
            let skipped = size + size % 2;
            let passed = io::copy(&mut from.by_ref().take(skipped), &mut io::sink());
            if passed.map_err(Stop::Broken)? != skipped {
                return Err(Stop::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
            continue;
        }
        let data = from.take(size);
        return match name.as_str() {
            "data.tar" => tar(data, tree),
            "data.tar.gz" => tar(MultiGzDecoder::new(data), tree),
            "data.tar.xz" => tar(XzReader::new(data, true), tree),
            _ => Err(broken("its compression is not supported")),
        };
    }
}

fn broken(why: &str) -> Stop {
    Stop::Broken(io::Error::new(io::ErrorKind::InvalidData, why))
}
