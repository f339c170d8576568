//! Which hosts a run may reach, in the words of whoever grants them.
//!
//! A host is read once, into a [`Target`] that is checked, resolved, dialled and
//! reported as that one value. SECURITY: allowlists fall where two parsers read one
//! text; nothing behind this module looks at a host's text again.

mod host;

use std::fmt;

pub use host::{BadHost, Host, Name, Target};

/// The ports of a host that is granted without one.
pub const USUAL_PORTS: [u16; 2] = [80, 443];
/// More grants than anybody writes.
const MOST: usize = 256;

/// What a run may reach beyond its own loopback.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    #[default]
    None,
    /// Never empty.
    Hosts(Vec<Pattern>),
    /// Every public address, at the usual ports.
    All,
}

/// Hosts and a port: `api.example.com`, `*.example.com:443`, `203.0.113.9:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    hosts: Hosts,
    /// `None` stands for the usual ports.
    port: Option<u16>,
    /// Whether it was granted by a URL with a path, which bounds nothing.
    with_path: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// All names below this one, at any depth; not itself.
    Below(Name),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGrant {
    #[error("`{}` is not a host that can be granted: {reason}", text.escape_debug())]
    Host { text: String, reason: BadHost },
    #[error("a path bounds nothing: all of `{0}` can be reached, or none of it")]
    Path(String),
    #[error("`none` was granted together with hosts")]
    NoneAndMore,
    #[error("more than {MOST} hosts were granted")]
    TooMany,
}

impl BadGrant {
    pub const HINT: &str = "Name hosts as in `api.example.com`, `*.example.com`, `example.com:8443` or `https://example.com`, or use `none` or `all`; \
         a name that is not ASCII is written in its `xn--` form.";
}

impl Network {
    /// Reads `none`, `all`, or hosts between commas.
    pub fn parse(text: &str) -> Result<Self, BadGrant> {
        Self::from_words(text.split(',').map(str::trim))
    }

    /// The same from a list. `all` in it grants all.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, BadGrant> {
        let (mut all, mut none, mut hosts) = (false, false, Vec::new());
        for word in words {
            match word {
                "" => {}
                "all" => all = true,
                "none" => none = true,
                _ if hosts.len() == MOST => return Err(BadGrant::TooMany),
                _ => {
                    let (host, with_path) = host::of_url(word);
                    let pattern = Pattern::parse(host)?;
                    hosts.push(Pattern {
                        with_path,
                        ..pattern
                    });
                }
            }
        }
        match (none, all, hosts.is_empty()) {
            (true, false, true) | (false, false, true) => Ok(Self::None),
            (true, ..) => Err(BadGrant::NoneAndMore),
            (false, true, _) => Ok(Self::All),
            (false, false, false) => Ok(Self::Hosts(hosts)),
        }
    }

    /// Whether the address behind `target` may be dialled, if it turns out to be public.
    pub fn allows(&self, target: &Target) -> bool {
        match self {
            Self::None => false,
            Self::Hosts(patterns) => patterns.iter().any(|pattern| pattern.allows(target)),
            Self::All => USUAL_PORTS.contains(&target.port),
        }
    }

    /// The same as what an owner lets others have, which must not only look like a bound.
    pub fn as_ceiling(self) -> Result<Self, BadGrant> {
        let path = self.with_paths().next().map(ToString::to_string);
        path.map_or(Ok(self), |host| Err(BadGrant::Path(host)))
    }

    /// The hosts that were granted by a URL with a path, which they are granted without.
    pub fn with_paths(&self) -> impl Iterator<Item = &Pattern> {
        let patterns = match self {
            Self::Hosts(patterns) => patterns.as_slice(),
            Self::None | Self::All => &[],
        };
        patterns.iter().filter(|pattern| pattern.with_path)
    }

    /// Whether some host of `pattern` is granted, whatever the ports.
    pub fn touches(&self, pattern: &Pattern) -> bool {
        match self {
            Self::None => false,
            Self::Hosts(patterns) => patterns.iter().any(|own| own.touches(pattern)),
            Self::All => true,
        }
    }

    /// What is left of this under a ceiling; or the first grant that exceeds it.
    pub fn within(&self, ceiling: &Self) -> Result<Self, Pattern> {
        match (self, ceiling) {
            (Self::None, _) => Ok(Self::None),
            (_, Self::All) => Ok(self.clone()),
            (Self::All, _) => Ok(ceiling.clone()),
            (Self::Hosts(asked), _) => {
                let allowed = match ceiling {
                    Self::Hosts(allowed) => allowed.as_slice(),
                    _ => &[],
                };
                let covered = |one: &&Pattern| !allowed.iter().any(|most| most.covers(one));
                match asked.iter().find(covered) {
                    Some(beyond) => Err(beyond.clone()),
                    None => Ok(self.clone()),
                }
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Hosts(patterns) => {
                let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
                f.write_str(&patterns.join(","))
            }
        }
    }
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, BadGrant> {
        let bad = |reason| BadGrant::Host {
            text: text.chars().take(300).collect(),
            reason,
        };
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = host::split(rest).map_err(bad)?;
        let hosts = match (below, Host::parse(host).map_err(bad)?) {
            (true, Host::Name(name)) => Hosts::Below(name),
            (true, Host::Address(_)) => return Err(bad(BadHost::Wildcard)),
            (false, host) => Hosts::One(host),
        };
        Ok(Self {
            hosts,
            port,
            with_path: false,
        })
    }

    pub fn allows(&self, target: &Target) -> bool {
        let port = match self.port {
            Some(port) => port == target.port,
            None => USUAL_PORTS.contains(&target.port),
        };
        port && match &self.hosts {
            Hosts::One(host) => *host == target.host,
            Hosts::Below(name) => {
                matches!(&target.host, Host::Name(asked) if asked.is_below(name))
            }
        }
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether some host is in both, whatever the ports.
    pub fn touches(&self, other: &Self) -> bool {
        let any = |pattern: &Self| Self {
            port: None,
            ..pattern.clone()
        };
        let (own, other) = (any(self), any(other));
        own.covers(&other) || other.covers(&own)
    }

    /// Whether everything that `other` grants is granted by this too.
    fn covers(&self, other: &Self) -> bool {
        let port = match (self.port, other.port) {
            (None, Some(port)) => USUAL_PORTS.contains(&port),
            (own, port) => own == port,
        };
        port && match (&self.hosts, &other.hosts) {
            (Hosts::One(own), Hosts::One(host)) => own == host,
            (Hosts::Below(own), Hosts::One(Host::Name(name))) => name.is_below(own),
            (Hosts::Below(own), Hosts::Below(name)) => own == name || name.is_below(own),
            _ => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(f, "{host}")?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
