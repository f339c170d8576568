//! Putting secrets into a request to the host that they are bound to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::secret::{Secret, percent_encoded};

/// Puts each secret in the place of its placeholder in the headers and in the path, and
/// adds the header that it is to be sent in. Bodies are left as they are.
pub fn inject(headers: &mut HeaderMap, uri: &mut Uri, secrets: &[&Secret]) {
    for value in headers.values_mut() {
        if let Some(mut filled) =
            fill(value.as_bytes(), secrets).and_then(|filled| HeaderValue::from_bytes(&filled).ok())
        {
            filled.set_sensitive(true);
            *value = filled;
        }
    }
    for secret in secrets {
        if let Some(own) = &secret.header
            && let Ok(name) = HeaderName::try_from(own.name.as_str())
            && !headers.contains_key(&name)
            && let Ok(mut value) = HeaderValue::try_from(own.filled(&secret.value))
        {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    if secrets
        .iter()
        .any(|secret| path.contains(&secret.placeholder))
    {
        let filled = secrets.iter().fold(path.to_owned(), |path, secret| {
            path.replace(&secret.placeholder, &percent_encoded(secret.value.reveal()))
        });
        if let Ok(filled) = filled.parse() {
            *uri = filled;
        }
    }
    // What is compressed cannot be searched, and a value that comes in parts is not found.
    for name in [header::RANGE, header::IF_RANGE] {
        headers.remove(name);
    }
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
}

/// `None` if there is no placeholder.
fn fill(value: &[u8], secrets: &[&Secret]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(value).ok()?;
    let replace = |text: &str| {
        let found = secrets
            .iter()
            .any(|secret| text.contains(&secret.placeholder));
        found.then(|| {
            secrets.iter().fold(text.to_owned(), |text, secret| {
                text.replace(&secret.placeholder, secret.value.reveal())
            })
        })
    };
    if let Some(filled) = replace(text) {
        return Some(filled.into_bytes());
    }
    // A user's name and password go as base64.
    let encoded = text.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let filled = replace(&decoded)?;
    Some(format!("Basic {}", STANDARD.encode(filled)).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{Header, Hidden};

    #[test]
    fn a_placeholder_becomes_the_value_in_headers_paths_and_passwords() {
        let secret = Secret {
            name: "KEY".to_owned(),
            placeholder: "PLACE".to_owned(),
            value: Hidden::new("a/b c"),
            hosts: Vec::new(),
            header: Header::parse("X-Key: k={secret}"),
        };
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer PLACE"));
        headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
        headers.insert("range", HeaderValue::from_static("bytes=0-3"));
        let basic = format!("Basic {}", STANDARD.encode("me:PLACE"));
        headers.insert("x-basic", HeaderValue::try_from(basic).unwrap());
        let mut uri: Uri = "/x?key=PLACE&y=1".parse().unwrap();
        inject(&mut headers, &mut uri, &[&secret]);
        assert_eq!(headers["authorization"], "Bearer a/b c");
        assert_eq!(headers["x-key"], "k=a/b c");
        assert_eq!(headers["accept-encoding"], "identity");
        assert!(!headers.contains_key("range"));
        let basic = format!("Basic {}", STANDARD.encode("me:a/b c"));
        assert_eq!(headers["x-basic"], basic);
        assert_eq!(uri, "/x?key=a%2Fb%20c&y=1");

        // The program's own header counts.
        headers.insert("x-key", HeaderValue::from_static("mine"));
        inject(&mut headers, &mut uri, &[&secret]);
        assert_eq!(headers["x-key"], "mine");
    }
}
