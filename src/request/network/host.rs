//! One host, read strictly: a name of plain labels, or an address in its one usual form.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host by name or by address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Name(Name),
    /// Never an IPv4 address in the clothes of an IPv6 one.
    Address(IpAddr),
}

/// A host's name: 1 to 253 bytes of lower-case labels of `a-z 0-9 -`, no `-` at a
/// label's end, no dot at its own, and nothing that any reader takes for an address.
///
/// The only way to get one is [`Host::parse`], so it can stand in a query, in a
/// header and in a message as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// A host and a port: what is checked, and what is dialled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    pub host: Host,
    pub port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    #[error("the host is missing")]
    Empty,
    #[error("it is longer than 253 bytes")]
    TooLong,
    #[error("a name may only contain letters, digits, `-` and `.`")]
    Letter,
    #[error("a part of it is empty, longer than 63 bytes, or has `-` at an end")]
    Label,
    #[error("it is an address in an unusual form")]
    Number,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("write an IPv6 address in brackets, and nothing else")]
    Brackets,
    #[error("`*.` cannot be used with an address")]
    Wildcard,
}

impl Host {
    /// Reads a host; an IPv6 address has its brackets.
    ///
    /// One dot at the end of a name is dropped, since it changes nothing but how the
    /// name is searched, which we never do.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(BadHost::Brackets)?;
            let address: Ipv6Addr = inside.parse().map_err(|_| BadHost::Brackets)?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(BadHost::Empty);
        }
        if name.len() > 253 {
            return Err(BadHost::TooLong);
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if !name.bytes().all(plain) {
            return Err(BadHost::Letter);
        }
        let good = |label: &str| {
            (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
        };
        if !name.split('.').all(good) {
            return Err(BadHost::Label);
        }
        // SECURITY: `0x7f.1`, `017700000001` and `127.1` are 127.0.0.1 to some readers. What
        // ends like a number is the four-part decimal form, or nothing.
        let last = name.rsplit('.').next().unwrap_or_default();
        let hexadecimal = last.strip_prefix("0x").or(last.strip_prefix("0X"));
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_number {
            // The dot at the end belongs to names.
            let address: Ipv4Addr = text.parse().map_err(|_| BadHost::Number)?;
            return Ok(Self::Address(address.into()));
        }
        Ok(Self::Name(Name(name.to_ascii_lowercase())))
    }
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `name` with at least one label before it.
    pub fn is_below(&self, name: &Self) -> bool {
        let before = self.0.strip_suffix(&name.0);
        before.is_some_and(|before| before.len() > 1 && before.ends_with('.'))
    }
}

impl Target {
    /// Reads `HOST:PORT`, or `HOST` where there is a usual port. Knows no user names.
    pub fn parse(authority: &str, usual: Option<u16>) -> Result<Self, BadHost> {
        let (host, port) = split(authority)?;
        Ok(Self {
            host: Host::parse(host)?,
            port: port.or(usual).ok_or(BadHost::Port)?,
        })
    }

    /// As in a `Host` header: without a port that goes without saying.
    pub fn authority(&self, usual: u16) -> String {
        match self.port == usual {
            true => self.host.to_string(),
            false => self.to_string(),
        }
    }
}

/// What a URL names to be reached: its host and port, and whether there is more that is no part of that.
///
/// SECURITY: only where somebody grants hosts. What is left of it is read as strictly as ever, so a user name, a backslash
/// or a space in it is refused.
pub(super) fn of_url(text: &str) -> (&str, bool) {
    let schemes = ["https://", "http://", "wss://", "ws://"];
    let named = schemes.iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(scheme.len())
    });
    let Some(rest) = named.and_then(|length| text.get(length..)) else {
        return (text, false);
    };
    match rest.find(['/', '?', '#']) {
        None => (rest, false),
        Some(end) => (&rest[..end], !matches!(&rest[end..], "/" | "")),
    }
}

/// Takes a port off the end.
pub(super) fn split(text: &str) -> Result<(&str, Option<u16>), BadHost> {
    let after_host = match text.strip_prefix('[') {
        Some(inside) => 2 + inside.find(']').ok_or(BadHost::Brackets)?,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(after_host);
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        None => return Err(BadHost::Brackets),
        // `parse` would take a sign; one way to write a port is enough.
        Some(digits) if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) => {
            return Err(BadHost::Port);
        }
        Some(digits) => Some(digits.parse().map_err(|_| BadHost::Port)?),
    };
    Ok((host, port))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
