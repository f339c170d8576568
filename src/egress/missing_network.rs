//! The network that a program without one would have needed, by what it said when it failed.
//!
//! Like a language's own words for failures, these only refine what the supervisor saw.

use regex_lite::Regex;

/// Words by which programs say that there is no network.
const WORDS: [&str; 13] = [
    "Network is unreachable",
    "network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "name resolution",
    "Name or service not known",
    "resolve host",
    "Failed to resolve",
    "dns error",
    "no such host",
    "Failed to open TCP connection",
    "JSR package manifest for ",
];

/// How some of them name the host.
const HOSTS: &str = r"(?:resolve host:? (?:address )?|Failed to resolve |EAI_AGAIN |ENOTFOUND |host=|lookup |TCP connection to |for url \(https?://|Import .https?://)['‘`]?([A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9-]+)";

/// Where a program itself names one.
const URLS: &str = r"https?://(?:[^/@\s]*@)?([A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9-]+)";

/// Whether a failed program wanted a network, and the host if it said which, or names only one.
pub fn missing_network(stderr: &[u8], code: &str) -> Option<Option<String>> {
    let text = String::from_utf8_lossy(stderr);
    if !WORDS.iter().any(|words| text.contains(words)) {
        return None;
    }
    let host = Regex::new(HOSTS).ok().and_then(|hosts| {
        let found = hosts.captures_iter(&text).last()?;
        Some(found.get(1)?.as_str().to_owned())
    });
    // Many libraries only say that a name was not found: then the line that is shown of the program has it, or its text.
    Some(
        host.or_else(|| only_host(&text))
            .or_else(|| only_host(code)),
    )
}

/// The host of all URLs in a text, if it is the same in all.
fn only_host(text: &str) -> Option<String> {
    let urls = Regex::new(URLS).ok()?;
    let found = urls
        .captures_iter(text)
        .filter_map(|it| Some(it.get(1)?.as_str()));
    let mut hosts: Vec<&str> = found.collect();
    hosts.sort_unstable();
    hosts.dedup();
    match hosts.as_slice() {
        [host] => Some((*host).to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_found_in_the_words_of_many_programs() {
        for text in [
            "curl: (6) Could not resolve host: api.example.com",
            "wget: unable to resolve host address ‘api.example.com’",
            "    at GetAddrInfoReqWrap {\n  code: 'EAI_AGAIN'\n getaddrinfo EAI_AGAIN api.example.com\n",
            "fatal: unable to access 'https://api.example.com/x/': Could not resolve host: api.example.com",
            "urllib3.exceptions.NameResolutionError: Failed to resolve 'api.example.com' ([Errno -3])",
            "requests: HTTPSConnectionPool(host='api.example.com', port=443): Max retries (name resolution)",
            "dial tcp: lookup api.example.com on [::1]:53: network is unreachable",
            "Failed to open TCP connection to api.example.com:443 (getaddrinfo: Temporary failure in name resolution)",
            "error sending request for url (https://api.example.com/x.ts): client error (Connect): dns error",
            "error: JSR package manifest for '@a/b' failed to load. Import 'https://api.example.com/@a/b/meta.json' failed.",
            "error: Import 'https://api.example.com/x.ts' failed.\n    0: dns error: failed to lookup address information",
        ] {
            assert_eq!(
                missing_network(text.as_bytes(), ""),
                Some(Some("api.example.com".to_owned())),
                "{text}"
            );
        }
        let nameless = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>";
        assert_eq!(missing_network(nameless.as_bytes(), ""), Some(None));
        assert_eq!(
            missing_network(b"ZeroDivisionError: division by zero", ""),
            None
        );
    }
}
