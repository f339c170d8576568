//! The certificate authorities that this host trusts, for programs that would trust a list of their own instead.
//!
//! A company's authority is known to the host: in its system's list, or by a variable in hotcell's own environment. Python's
//! `requests`, Node, Deno and others look at neither unless a variable tells them to.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::request::{CellPath, FileSource, InputFile};

const FILE: &str = ".home/.hotcell/ca.pem";
const WGET: &str = ".home/.wgetrc";
/// The same for Java, which reads no other form, in the workspace.
pub const KEY_STORE: &str = ".home/.hotcell/ca.jks";
/// Where systems keep the authorities that everybody trusts. The first is in every sandbox too.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Variables of ours that name more of them.
const OWN: [&str; 4] = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];
/// The variables by which programs find a file of authorities.
const VARIABLES: [&str; 9] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "DENO_CERT",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
];
/// The lists of systems have a quarter of a megabyte.
const MOST: u64 = 4 << 20;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A list of authorities, and where a program finds it.
pub struct Authorities {
    /// For the program's workspace, unless the sandbox has it already.
    pub file: Option<InputFile>,
    path: String,
}

impl Authorities {
    /// Those of this host; none if it has no list at all.
    pub fn of_host() -> Option<Self> {
        let own = OWN.iter().filter_map(|name| std::env::var(name).ok());
        let mut own: Vec<String> = own
            .filter(|path| !SYSTEM.contains(&path.as_str()))
            .collect();
        own.dedup();
        let system = SYSTEM.iter().find(|path| Path::new(path).exists());
        let is_seen = system.is_some_and(|path| {
            *path == SYSTEM[0] && std::fs::symlink_metadata(path).is_ok_and(|it| it.is_file())
        });
        if own.is_empty() && is_seen {
            return Some(Self {
                file: None,
                path: SYSTEM[0].to_owned(),
            });
        }
        let list = own.iter().map(String::as_str).chain(system.copied());
        let list: String = list.filter_map(read).collect();
        (!list.is_empty()).then(|| Self::made(list))
    }

    /// Those of this host and one more.
    pub fn with(authority: &str) -> Self {
        let own = OWN.iter().filter_map(|name| std::env::var(name).ok());
        let system = SYSTEM.iter().find(|path| Path::new(path).exists());
        let files = own.chain(system.map(|path| (*path).to_owned()));
        let list: String = files.filter_map(|path| read(&path)).collect();
        Self::made(format!("{authority}\n{list}"))
    }

    fn made(list: String) -> Self {
        let path = CellPath::parse(FILE).expect("a plain path");
        Self {
            file: Some(InputFile::from_bytes(path, list)),
            path: format!("/workspace/{FILE}"),
        }
    }

    /// The settings of wget, which reads no variable, where the list is not the system's.
    pub fn wget(&self) -> Option<InputFile> {
        let path = CellPath::parse(WGET).ok().filter(|_| self.file.is_some())?;
        let text = format!("ca_certificate = {}\n", self.path);
        Some(InputFile::from_bytes(path, text))
    }

    /// The list as Java reads it.
    pub fn key_store(&self) -> Option<InputFile> {
        let list = match self.file.as_ref().map(|it| &it.source) {
            Some(FileSource::Bytes(list)) => String::from_utf8_lossy(list).into_owned(),
            _ => read(&self.path)?,
        };
        let path = CellPath::parse(KEY_STORE).ok()?;
        Some(InputFile::from_bytes(path, key_store(&list)))
    }

    /// The variables by which programs find the list.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        VARIABLES
            .iter()
            .map(|it| ((*it).to_owned(), self.path.clone()))
    }
}

/// The certificates of a file, and nothing else of it: beside its own certificate some keep a key.
fn read(path: &str) -> Option<String> {
    let size = std::fs::metadata(path).ok()?.len();
    let text = (size <= MOST).then(|| std::fs::read(path).ok())??;
    Some(certificates(&String::from_utf8_lossy(&text)))
}

fn certificates(text: &str) -> String {
    let parts = text.split(BEGIN).skip(1);
    let bodies = parts.filter_map(|part| part.split_once(END));
    bodies
        .map(|(body, _)| format!("{BEGIN}{body}{END}\n"))
        .collect()
}

/// A Java key store (`JKS`) of trusted certificates. Its checksum is keyed with a password, and is not looked at where there is none.
fn key_store(list: &str) -> Vec<u8> {
    const MAGIC: u32 = 0xFEED_FEED;
    const VERSION: u32 = 2;
    const TRUSTED: u32 = 2;
    const CHECKSUM: [u8; 20] = [0; 20];
    let parts = list.split(BEGIN).skip(1);
    let bodies = parts.filter_map(|part| part.split_once(END));
    let bodies = bodies.map(|(body, _)| body.split_whitespace().collect::<String>());
    let certificates: Vec<Vec<u8>> = bodies
        .filter_map(|body| STANDARD.decode(body).ok())
        .collect();
    let mut store = Vec::new();
    for number in [MAGIC, VERSION, certificates.len() as u32] {
        store.extend(number.to_be_bytes());
    }
    let text = |store: &mut Vec<u8>, text: &str| {
        store.extend((text.len() as u16).to_be_bytes());
        store.extend(text.as_bytes());
    };
    for (at, certificate) in certificates.iter().enumerate() {
        store.extend(TRUSTED.to_be_bytes());
        text(&mut store, &at.to_string());
        // When it was made, which nobody looks at.
        store.extend(0u64.to_be_bytes());
        text(&mut store, "X.509");
        store.extend((certificate.len() as u32).to_be_bytes());
        store.extend(certificate);
    }
    store.extend(CHECKSUM);
    store
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_the_certificates_are_taken_and_never_a_key() {
        let text = format!(
            "# ours\n{BEGIN}\nYWJj\n{END}\n-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n{BEGIN}\nZGVm\n{END}\n{BEGIN}\nhalf"
        );
        assert_eq!(
            certificates(&text),
            format!("{BEGIN}\nYWJj\n{END}\n{BEGIN}\nZGVm\n{END}\n")
        );
    }
}
