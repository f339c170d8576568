//! Whether a request was meant for us: the names in `Host` and `Origin`.
//!
//! SECURITY: a page in a browser on this machine can send requests to loopback,
//! and by rebinding its own name can even read the answers. It cannot choose the
//! `Host` and `Origin` that its browser writes.

use hyper::header::{HOST, ORIGIN};
use hyper::{HeaderMap, Uri};

/// The names we may be called by, beside those of loopback.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Host names or addresses, without a port.
    pub hosts: Vec<String>,
    /// Whole origins, as a browser writes them.
    pub origins: Vec<String>,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Names {
    /// Whether a request with these headers is meant for us.
    pub fn allow(&self, uri: &Uri, headers: &HeaderMap, port: u16) -> bool {
        self.host_is_ours(uri, headers) && self.origin_is_ours(headers, port)
    }

    fn host_is_ours(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return false;
        };
        // A request line may name a host too, and a proxy may believe it.
        let line = uri.authority().map(|authority| authority.as_str());
        let ours = |host: &str| name_of(host).is_some_and(|name| self.is_ours(name));
        host.to_str().is_ok_and(ours) && line.is_none_or(ours)
    }

    /// A client that is no browser sends no origin.
    fn origin_is_ours(&self, headers: &HeaderMap, port: u16) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else {
            return true;
        };
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let own = LOOPBACK
            .iter()
            .any(|host| origin == format!("http://{host}:{port}"));
        // SECURITY: a browser writes both, and the host is ours: so this is our own page, at whatever port it is reached.
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let schemes = ["http://", "https://"].into_iter();
        let mut names = schemes.filter_map(|scheme| origin.strip_prefix(scheme));
        let is_same = names.any(|name| Some(name) == host);
        let named = self.origins.iter().any(|known| known == origin);
        origins.next().is_none() && (own || is_same || named)
    }

    fn is_ours(&self, name: &str) -> bool {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        LOOPBACK.into_iter().any(same) || self.hosts.iter().any(|host| same(host))
    }
}

/// A host without its port.
fn name_of(host: &str) -> Option<&str> {
    let port_is_number =
        |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if host.starts_with('[') {
        let end = host.find(']')? + 1;
        let rest = &host[end..];
        let good = rest.is_empty() || rest.strip_prefix(':').is_some_and(port_is_number);
        return good.then_some(&host[..end]);
    }
    match host.split_once(':') {
        None => Some(host),
        Some((name, port)) => port_is_number(port).then_some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(host: &str, origin: Option<&str>) -> bool {
        let names = Names {
            hosts: vec!["cells.example".to_owned()],
            origins: vec!["https://page.example".to_owned()],
        };
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        names.allow(&"/mcp".parse().unwrap(), &headers, 8000)
    }

    #[test]
    fn a_host_is_ours_on_any_port_and_nothing_that_only_looks_like_it() {
        for good in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8000",
            "[::1]:9",
            "[::1]",
            "cells.example:443",
        ] {
            assert!(allowed(good, None), "{good}");
        }
        for bad in [
            "",
            "evil.test",
            "evil.test:8000",
            "127.0.0.1.nip.io",
            "localhost.evil.test",
            "localhost:x",
            "localhost:",
            "[::1",
            "[::1]x",
            "127.0.0.1:80@evil.test",
        ] {
            assert!(!allowed(bad, None), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_our_own_or_one_that_was_named_to_the_letter() {
        for good in [
            "http://localhost:8000",
            "http://127.0.0.1:8000",
            "https://page.example",
        ] {
            assert!(allowed("localhost", Some(good)), "{good}");
        }
        assert!(allowed("cells.example:9", Some("http://cells.example:9")));
        assert!(!allowed("cells.example:9", Some("http://cells.example")));
        assert!(!allowed("evil.test", Some("http://evil.test")));
        for bad in [
            "http://evil.test",
            "null",
            "http://localhost.evil.test",
            "http://127.0.0.1.evil.test",
            "https://127.0.0.1:8000@evil.test",
            "file://",
            "http://LOCALHOST:8000",
            "http://localhost:8001",
            "chrome-extension://x",
            "https://page.example/",
        ] {
            assert!(!allowed("localhost", Some(bad)), "{bad}");
        }
    }

    #[test]
    fn two_hosts_and_a_request_line_with_another_are_refused() {
        let names = Names::default();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let elsewhere: Uri = "http://evil.test/mcp".parse().unwrap();
        assert!(!names.allow(&elsewhere, &headers, 80));
        headers.append(HOST, "localhost".parse().unwrap());
        assert!(!names.allow(&"/mcp".parse().unwrap(), &headers, 80));
    }
}
