//! Secrets that a program may use and never see: it gets a placeholder, and the proxy
//! puts the value in its place on the way to the hosts it is bound to.

mod redact;

use std::fmt;
use std::sync::Arc;

use crate::random::random_name;
use crate::request::{Pattern, Target};

pub use redact::Redactor;

/// One secret in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Secret {
    /// The variable in which the program finds the placeholder.
    pub name: String,
    pub placeholder: String,
    pub value: Hidden,
    /// Where it goes, and nowhere else; without a port, 443 alone.
    pub hosts: Vec<Pattern>,
    /// A header that requests to those hosts get if they have none of its name.
    pub header: Option<Header>,
}

/// A value that nothing prints.
#[derive(Clone, PartialEq)]
pub struct Hidden(Arc<str>);

/// A header with `{secret}` in its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: String,
}

impl Hidden {
    pub fn new(value: &str) -> Self {
        Self(value.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Header {
    /// Reads `Name: value with {secret}`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once(':')?;
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let plain = |byte: u8| (b' '..=b'~').contains(&byte);
        let good = !name.is_empty() && name.bytes().all(token) && value.bytes().all(plain);
        (good && value.contains("{secret}")).then(|| Self {
            name: name.to_owned(),
            value: value.trim().to_owned(),
        })
    }

    pub fn filled(&self, value: &Hidden) -> String {
        self.value.replace("{secret}", value.reveal())
    }
}

/// As it may stand in a URL.
pub fn percent_encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let letter = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.bytes().map(letter).collect()
}

impl Secret {
    /// The same for another run: no two have one placeholder.
    pub fn for_run(&self) -> Self {
        Self {
            placeholder: format!("hotcell-secret-{}", random_name()),
            ..self.clone()
        }
    }

    /// Whether a request to `target` may carry it, encrypted.
    pub fn is_for(&self, target: &Target) -> bool {
        let fits =
            |host: &Pattern| host.allows(target) && (host.port().is_some() || target.port == 443);
        self.hosts.iter().any(fits)
    }

    /// The same unencrypted: only if the owner has written the port.
    pub fn is_for_plain(&self, target: &Target) -> bool {
        let fits = |host: &Pattern| host.port().is_some() && host.allows(target);
        self.hosts.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_to_its_hosts_alone_and_encrypted_unless_a_port_is_named() {
        let secret = Secret {
            name: "KEY".to_owned(),
            placeholder: String::new(),
            value: Hidden::new("sesame"),
            hosts: ["a.test", "*.b.test:8443", "plain.test:80"]
                .map(|host| Pattern::parse(host).unwrap())
                .to_vec(),
            header: Header::parse("Authorization: Bearer {secret}"),
        };
        let is_for = |text: &str| secret.is_for(&Target::parse(text, None).unwrap());
        assert!(is_for("a.test:443") && is_for("x.b.test:8443") && is_for("plain.test:80"));
        for other in [
            "a.test:80",
            "a.test:8443",
            "x.b.test:443",
            "c.test:443",
            "plain.test:443",
            "xa.test:443",
        ] {
            assert!(!is_for(other), "{other}");
        }
        let is_for_plain = |text: &str| secret.is_for_plain(&Target::parse(text, None).unwrap());
        assert!(is_for_plain("x.b.test:8443") && is_for_plain("plain.test:80"));
        assert!(!is_for_plain("a.test:443") && !is_for_plain("a.test:80"));
        assert_eq!(
            secret.header.as_ref().unwrap().filled(&secret.value),
            "Bearer sesame"
        );
        assert!(!format!("{secret:?}").contains("sesame"));
        assert_ne!(secret.for_run().placeholder, secret.for_run().placeholder);
        for bad in [
            "Authorization",
            "X: y",
            "A B: {secret}",
            ": {secret}",
            "X: {secret}\r\nY: z",
        ] {
            assert_eq!(Header::parse(bad), None, "{bad}");
        }
    }
}
