//! One file over HTTP, to the byte that a recipe pins, going on where an earlier
//! try broke off.
//!
//! What arrives is not trusted: it is bounded by the pinned size while it comes
//! and is nothing until its hash is right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use reqwest::blocking::Response;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{StatusCode, Url};
use sha2::{Digest, Sha256};

use super::FetchError;
use super::recipe::Archive;
use super::registry::{address, shown};

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(30);
const TRIES: u32 = 3;
/// More than any runtime; for files whose size is not pinned.
const MOST_FILE: u64 = 2 << 30;
/// An index page is at most a few megabytes.
const MOST_PAGE: u64 = 32 << 20;

/// An HTTPS client that knows `HTTPS_PROXY` and `NO_PROXY`.
pub struct Client(reqwest::blocking::Client);

impl Client {
    pub fn new() -> Result<Self, FetchError> {
        // Only one provider can be installed; a second try says so, and that is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = reqwest::blocking::Client::builder()
            .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(PATIENCE / 3)
            // For each read, not for the whole: a slow line is no fault.
            .timeout(PATIENCE)
            .build();
        built.map(Self).map_err(|source| FetchError::Unreachable {
            url: "any server".to_owned(),
            source,
        })
    }

    /// A page as text, and the address that it came from in the end.
    pub fn page(&self, url: &str) -> Result<(Url, String), FetchError> {
        let response = self.get(url, 0)?;
        let from = response.url().clone();
        let mut text = Vec::new();
        let read = response.take(MOST_PAGE).read_to_end(&mut text);
        read.map_err(|_| FetchError::BrokeOff {
            file: shown(&from),
            got: text.len() as u64,
            size: MOST_PAGE,
        })?;
        Ok((from, String::from_utf8_lossy(&text).into_owned()))
    }

    fn get(&self, url: &str, from: u64) -> Result<Response, FetchError> {
        let mut request = self.0.get(url);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = request.send().map_err(|error| FetchError::Unreachable {
            url: Url::parse(url).map_or_else(|_| url.to_owned(), |url| shown(&url)),
            // The error would say the address too, with the password in it.
            source: error.without_url(),
        })?;
        let status = response.status();
        let past_the_end = from > 0 && status == StatusCode::RANGE_NOT_SATISFIABLE;
        if status.is_success() || past_the_end {
            return Ok(response);
        }
        Err(FetchError::Refused {
            url: shown(response.url()),
            status: status.as_u16(),
        })
    }
}

/// Brings `archive` into the file `to`, which may hold the beginning of it already.
/// `arrived` is told how many bytes are there.
pub fn download(
    client: &Client,
    archive: &Archive,
    to: &Path,
    arrived: &mut dyn FnMut(u64),
) -> Result<(), FetchError> {
    let disk = |source| FetchError::Disk {
        path: to.to_owned(),
        source,
    };
    let mut got = fs::metadata(to).map_or(0, |found| found.len());
    let mut size = archive.size;
    let mut url = None;
    let (mut tries, mut farthest) = (0, got);
    while size != Some(got) {
        if size.is_some_and(|size| got > size) {
            fs::remove_file(to).map_err(disk)?;
            got = 0;
        }
        let url = match &url {
            Some(url) => url,
            None => url.insert(address(archive, client)?),
        };
        let mut response = client.get(url, got)?;
        if response.status() == StatusCode::RANGE_NOT_SATISFIABLE {
            // There is no more. What we have is right or is thrown away.
            break;
        }
        // SECURITY: never through a link that someone put there.
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
            .open(to)
            .map_err(disk)?;
        if got > 0 && !continues(&response, got) {
            // A server that cannot go on starts again, and so do we.
            file.set_len(0).map_err(disk)?;
            got = 0;
        }
        let announced = response.content_length().map(|left| got + left);
        let most = *size.get_or_insert(announced.unwrap_or(MOST_FILE).min(MOST_FILE));
        match copy(&mut response, &mut file, most, &mut got, arrived) {
            Ok(()) => {}
            Err(Stopped::Disk(source)) => return Err(disk(source)),
            Err(Stopped::TooMuch) => {
                let _ = fs::remove_file(to);
                return Err(FetchError::WrongSize {
                    file: archive.file.clone(),
                    expected: most,
                });
            }
        }
        // A line that breaks now and then is no fault as long as it gets farther.
        tries = if got > farthest { 0 } else { tries } + 1;
        farthest = farthest.max(got);
        if got < most && tries >= TRIES {
            return Err(FetchError::BrokeOff {
                file: archive.file.clone(),
                got,
                size: most,
            });
        }
    }
    check(archive, to)
}

enum Stopped {
    Disk(io::Error),
    TooMuch,
}

/// Writes what arrives until it ends or breaks off.
fn copy(
    from: &mut Response,
    to: &mut File,
    size: u64,
    got: &mut u64,
    arrived: &mut dyn FnMut(u64),
) -> Result<(), Stopped> {
    let mut bytes = vec![0; 128 << 10];
    loop {
        let count = match from.read(&mut bytes) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        *got += count as u64;
        if *got > size {
            return Err(Stopped::TooMuch);
        }
        to.write_all(&bytes[..count]).map_err(Stopped::Disk)?;
        arrived(*got);
    }
}

/// Whether the answer begins where our file ends.
fn continues(response: &Response, got: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE);
    let range = range.and_then(|value| value.to_str().ok());
    let start = range.and_then(|text| text.strip_prefix("bytes ")?.split('-').next());
    response.status() == StatusCode::PARTIAL_CONTENT
        && start.and_then(|start| start.parse().ok()) == Some(got)
}

/// A complete file is kept only if it is the pinned one.
fn check(archive: &Archive, file: &Path) -> Result<(), FetchError> {
    let disk = |source| FetchError::Disk {
        path: file.to_owned(),
        source,
    };
    let mut hash = Sha256::new();
    let mut from = File::open(file).map_err(disk)?;
    let mut bytes = vec![0; 128 << 10];
    loop {
        match from.read(&mut bytes).map_err(disk)? {
            0 => break,
            count => hash.update(&bytes[..count]),
        }
    }
    let found = hex(&hash.finalize());
    if found == archive.sha256.as_str() {
        return Ok(());
    }
    let _ = fs::remove_file(file);
    Err(FetchError::WrongHash {
        file: archive.file.clone(),
        expected: archive.sha256.as_str().to_owned(),
        found,
    })
}

/// A hash of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
