//! Pictures among what a program prints: told by their first bytes, measured by their own structure, never decoded.

use std::ops::Range;

use crate::media_type::picture_kind;

/// A picture among other bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub kind: &'static str,
    pub at: Range<usize>,
    /// Whether its end is there too.
    pub is_whole: bool,
}

/// The pictures in what was printed, in order.
pub fn find_pictures(bytes: &[u8]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    // Every picture has bytes that are no text, and most output is text.
    if std::str::from_utf8(bytes).is_ok() {
        return found;
    }
    let mut from = 0;
    while let Some(start) = bytes[from..]
        .iter()
        .position(|byte| matches!(byte, 0x89 | 0xff | b'G' | b'R'))
    {
        let start = from + start;
        let rest = &bytes[start..];
        let kind = picture_kind(rest).filter(|_| std::str::from_utf8(first(rest, 64)).is_err());
        let Some(kind) = kind else {
            from = start + 1;
            continue;
        };
        let length = length(kind, rest);
        from = start + length.unwrap_or(rest.len());
        found.push(Found {
            kind,
            at: start..from,
            is_whole: length.is_some(),
        });
    }
    found
}

/// The bytes as text, with a word in the place of each picture; what is no text otherwise becomes the replacement character.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut from = 0;
    for picture in find_pictures(bytes) {
        text += &String::from_utf8_lossy(&bytes[from..picture.at.start]);
        text += &format!("[{}, {} bytes]", picture.kind, picture.at.len());
        from = picture.at.end;
    }
    text + &String::from_utf8_lossy(&bytes[from..])
}

/// Where a picture ends that began before these bytes did; 0 if that cannot be told.
pub fn end_of_rest(kind: &str, bytes: &[u8]) -> usize {
    let last: &[u8] = match kind {
        "image/png" => b"IEND\xaeB`\x82",
        "image/jpeg" => b"\xff\xd9",
        _ => return 0,
    };
    let at = bytes.windows(last.len()).position(|it| it == last);
    at.map_or(bytes.len(), |at| at + last.len())
}

fn first(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[..bytes.len().min(count)]
}

/// How long the picture is that these bytes begin with; none if they end before it does.
fn length(kind: &str, bytes: &[u8]) -> Option<usize> {
    match kind {
        "image/png" => png_length(bytes),
        "image/jpeg" => jpeg_length(bytes),
        "image/gif" => gif_length(bytes),
        _ => {
            let size = bytes.get(4..8)?.try_into().ok()?;
            let size = u32::from_le_bytes(size) as usize;
            let length = size.checked_add(8 + size % 2)?;
            (length <= bytes.len()).then_some(length)
        }
    }
}

/// Chunks of length, name, data and check sum, the last of them `IEND`.
fn png_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 8;
    loop {
        let size = bytes.get(at..at + 4)?.try_into().ok()?;
        let name = bytes.get(at + 4..at + 8)?;
        at = at.checked_add(12 + u32::from_be_bytes(size) as usize)?;
        if at > bytes.len() {
            return None;
        }
        if name == b"IEND" {
            return Some(at);
        }
    }
}

/// Segments with a length each, and data between two markers after a scan's.
fn jpeg_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1).filter(|_| bytes[at] == 0xff)?;
        at += match marker {
            0xd9 => return Some(at + 2),
            0x01 | 0xd0..=0xd7 => 2,
            0xff => 1,
            _ => {
                let size = bytes.get(at + 2..at + 4)?.try_into().ok()?;
                2 + usize::from(u16::from_be_bytes(size))
            }
        };
        if marker == 0xda {
            let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0 | 0xd0..=0xd7);
            at += bytes.get(at..)?.windows(2).position(is_marker)?;
        }
    }
}

/// A head, then pictures and notes, each in blocks of at most 255 bytes.
fn gif_length(bytes: &[u8]) -> Option<usize> {
    let colours = |packed: u8| match packed & 0x80 {
        0 => 0,
        _ => 3 << ((packed & 7) + 1),
    };
    let mut at = 13 + colours(*bytes.get(10)?);
    loop {
        at += match *bytes.get(at)? {
            0x3b => return Some(at + 1),
            0x2c => 11 + colours(*bytes.get(at + 9)?),
            0x21 => 2,
            _ => return None,
        };
        loop {
            let size = usize::from(*bytes.get(at)?);
            at += 1 + size;
            if size == 0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pixel of each kind.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";
    const GIF: &[u8] =
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    const WEBP: &[u8] =
        b"RIFF\x1a\0\0\0WEBPVP8L\r\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04JF\xff\xda\0\x02ab\xff\0c\xff\xd0d\xff\xd9";

    #[test]
    fn a_picture_among_text_is_named_and_the_text_is_left_alone() {
        for (picture, kind) in [
            (PNG, "image/png"),
            (GIF, "image/gif"),
            (WEBP, "image/webp"),
            (JPEG, "image/jpeg"),
        ] {
            let printed = [b"before\n", picture, "\nafter é\n".as_bytes()].concat();
            let expected = format!("before\n[{kind}, {} bytes]\nafter é\n", picture.len());
            assert_eq!(readable(&printed), expected);
            let twice = [picture, picture].concat();
            let found = find_pictures(&twice);
            assert_eq!(found.len(), 2, "{kind}");
            assert!(found.iter().all(|it| it.is_whole), "{kind}");
            let cut = &printed[..7 + picture.len() - 1];
            assert!(!find_pictures(cut)[0].is_whole, "{kind}");
        }
    }

    #[test]
    fn what_only_speaks_of_pictures_is_text() {
        for text in ["GIF89a is a format", "RIFF....WEBP", "PNG"] {
            assert_eq!(readable(text.as_bytes()), text);
            let odd = [text.as_bytes(), &[b' '; 80], b"\xff"].concat();
            assert!(find_pictures(&odd).is_empty(), "{text}");
        }
        assert_eq!(readable(b"a\xff\x00b"), "a\u{fffd}\0b");
    }

    #[test]
    fn no_bytes_are_too_broken_to_be_looked_at() {
        let mut seed = 7_u32;
        for kind in [PNG, GIF, WEBP, JPEG] {
            for length in 0..300 {
                let mut bytes = kind.to_vec();
                for _ in 0..length {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let at = (seed >> 8) as usize % (bytes.len() + 1);
                    bytes.insert(at, (seed >> 24) as u8);
                }
                for found in find_pictures(&bytes) {
                    assert!(found.at.end <= bytes.len());
                }
                readable(&bytes);
            }
        }
    }

    #[test]
    fn the_rest_of_a_picture_ends_where_it_says() {
        assert_eq!(end_of_rest("image/png", &PNG[20..]), PNG.len() - 20);
        assert_eq!(end_of_rest("image/jpeg", b"abc"), 3);
        assert_eq!(end_of_rest("image/gif", b"abc"), 0);
    }
}
