//! The fuzz targets `lock`, `page` and `wheel`: what a caller brings back, what a registry says of a package, and the end of a wheel.

use reqwest::Url;

use super::gateway::unpacked;
use super::lock::{Lock, bun};
use super::registry::{Page, RegistryClient};
use super::registry_page::{Listed, first_upload, rewrite};
use crate::request::Ecosystem;

/// The first byte says of which kind the rest is.
fn kind(bytes: &[u8]) -> Option<(Ecosystem, bool, &str)> {
    let (first, rest) = bytes.split_first()?;
    let ecosystem = match first / 2 % 4 {
        0 => Ecosystem::Pypi,
        1 => Ecosystem::Npm,
        2 => Ecosystem::Go,
        _ => Ecosystem::Crates,
    };
    Some((ecosystem, first % 2 == 1, std::str::from_utf8(rest).ok()?))
}

pub fn lock(bytes: &[u8]) {
    let Some((ecosystem, is_bun, text)) = kind(bytes) else {
        return;
    };
    let converted = is_bun.then(|| bun::package_lock(text)).flatten();
    let Ok(lock) = Lock::read(converted.as_deref().unwrap_or(text), ecosystem) else {
        return;
    };
    assert!(!lock.is_verified, "the server has seen nothing of it");
    // What is given out can be brought back, and is the same.
    assert_eq!(Lock::read(&lock.text, ecosystem).as_ref(), Ok(&lock));
    for word in lock.installed {
        assert!(
            !word.contains(char::is_whitespace) && !word.starts_with('-'),
            "{word:?}"
        );
    }
}

pub fn page(bytes: &[u8]) {
    let Some((ecosystem, is_json, text)) = kind(bytes) else {
        return;
    };
    thread_local! {
        static CLIENT: RegistryClient = RegistryClient::new(
            Url::parse("https://index.example/simple/").expect("an address"),
            Ecosystem::Pypi,
        ).expect("a client");
    }
    let page = Page {
        url: Url::parse("https://index.example/simple/a/").expect("an address"),
        is_json,
        text: text.to_owned(),
    };
    let _ = first_upload(&page, ecosystem);
    let mut kept = 0;
    let mut keep = |listed: Listed| {
        assert!(
            !listed.file.contains(['/', '"', '<', '>', '\'']),
            "{listed:?}"
        );
        kept += 1;
        format!("/file/{}/{}", kept - 1, listed.file)
    };
    let mut client = CLIENT.with(Clone::clone);
    client.ecosystem = ecosystem;
    let Some(text) = rewrite(&page, &client, &mut keep) else {
        return;
    };
    // SECURITY: each link leads to the gateway.
    if let (Ecosystem::Pypi, false) = (ecosystem, is_json) {
        let links: Vec<&str> = text.split("<a ").skip(1).collect();
        assert_eq!(links.len(), kept, "{text}");
        assert!(
            links.iter().all(|it| it.starts_with("href=\"/file/")),
            "{text}"
        );
    }
}

pub fn wheel(bytes: &[u8]) {
    let _ = unpacked(bytes);
}
