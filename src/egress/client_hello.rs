//! The host that a TLS client wants: the server name (SNI) of its client hello.
//!
//! Only enough of TLS to find it. All of it is untrusted: every length is checked
//! against what is there.

/// More than any client's first message.
const MOST: usize = 32 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientHello {
    /// More bytes are needed to tell.
    Unfinished,
    /// It is no TLS, or none that we can read.
    NotTls,
    /// The name in it, if there is one.
    Name(Option<String>),
}

/// Reads the beginning of what a client sends.
pub fn read(bytes: &[u8]) -> ClientHello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        // Records: type 22, version 3.x, length; a message may fill several.
        let whole = match rest {
            [] => None,
            [22] | [22, 3] => None,
            [22, 3, _] | [22, 3, _, _] => None,
            [22, 3, _, high, low, body @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 || length > 1 << 14 {
                    return ClientHello::NotTls;
                }
                body.split_at_checked(length)
            }
            _ => return ClientHello::NotTls,
        };
        let Some((body, after)) = whole else {
            return match bytes.len() < MOST {
                true => ClientHello::Unfinished,
                false => ClientHello::NotTls,
            };
        };
        message.extend_from_slice(body);
        rest = after;
        let [kind, length @ ..] = &message[..] else {
            return ClientHello::NotTls;
        };
        if *kind != 1 {
            return ClientHello::NotTls;
        }
        if let [a, b, c, hello @ ..] = length {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > MOST {
                return ClientHello::NotTls;
            }
            if hello.len() >= length {
                return match server_name(&hello[..length]) {
                    Some(name) => ClientHello::Name(name),
                    None => ClientHello::NotTls,
                };
            }
        }
    }
}

/// `None` if this is no client hello.
fn server_name(hello: &[u8]) -> Option<Option<String>> {
    let mut hello = Bytes(hello);
    hello.take(2 + 32)?;
    hello.list8()?;
    hello.list16()?;
    hello.list8()?;
    if hello.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Bytes(hello.list16()?);
    let mut name = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number16()?;
        let mut body = Bytes(extensions.list16()?);
        if kind != 0 {
            continue;
        }
        // SECURITY: two names would be read differently by different servers.
        if name.is_some() {
            return None;
        }
        let mut entries = Bytes(body.list16()?);
        let is_host = entries.take(1)? == [0];
        let host = entries.list16()?;
        if !is_host || !entries.0.is_empty() || !body.0.is_empty() {
            return None;
        }
        name = Some(String::from_utf8(host.to_vec()).ok()?);
    }
    Some(name)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn list8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(length.into())
    }

    fn list16(&mut self) -> Option<&'a [u8]> {
        let length = self.number16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client hello with these extensions, in records of at most `size` bytes.
    fn hello(extensions: &[(u16, Vec<u8>)], size: usize) -> Vec<u8> {
        let mut all = Vec::new();
        for (kind, body) in extensions {
            all.extend(kind.to_be_bytes());
            all.extend((body.len() as u16).to_be_bytes());
            all.extend(body);
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((all.len() as u16).to_be_bytes());
        body.extend(all);
        let mut message = vec![1, 0];
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
        let record = |piece: &[u8]| {
            let mut record = vec![22, 3, 1];
            record.extend((piece.len() as u16).to_be_bytes());
            record.extend(piece);
            record
        };
        message.chunks(size).flat_map(record).collect()
    }

    fn name(host: &[u8]) -> (u16, Vec<u8>) {
        let mut body = ((host.len() + 3) as u16).to_be_bytes().to_vec();
        body.push(0);
        body.extend((host.len() as u16).to_be_bytes());
        body.extend(host);
        (0, body)
    }

    #[test]
    fn the_name_is_found_in_one_record_or_many_and_never_before_it_is_whole() {
        let other = (43, vec![2, 3, 4]);
        for size in [1, 5, 16384] {
            let bytes = hello(&[other.clone(), name(b"a.test")], size);
            assert_eq!(read(&bytes), ClientHello::Name(Some("a.test".to_owned())));
            for cut in 0..bytes.len() {
                assert_eq!(read(&bytes[..cut]), ClientHello::Unfinished, "{cut}");
            }
        }
        assert_eq!(read(&hello(&[other], 99)), ClientHello::Name(None));
    }

    #[test]
    fn what_is_not_exactly_one_name_is_not_read() {
        let two = hello(&[name(b"a.test"), name(b"b.test")], 999);
        assert_eq!(read(&two), ClientHello::NotTls);
        let (_, mut longer) = name(b"a.test");
        longer.push(0);
        assert_eq!(read(&hello(&[(0, longer)], 999)), ClientHello::NotTls);
        assert_eq!(read(&hello(&[name(b"\xff")], 999)), ClientHello::NotTls);
        for text in ["GET / HTTP/1.1\r\n", "\x16\x02", "SSH-2.0-x", "\0"] {
            assert_eq!(read(text.as_bytes()), ClientHello::NotTls, "{text:?}");
        }
        assert_eq!(read(&[22, 3, 1, 0, 0]), ClientHello::NotTls);
        assert_eq!(read(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), ClientHello::NotTls);
    }

    #[test]
    fn no_change_of_one_byte_makes_it_panic() {
        let bytes = hello(&[name(b"a.test")], 40);
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = read(&changed);
            }
        }
    }
}
