//! Files on their way from the registry to the cell: counted, hashed, never held whole but for small wheels.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, HeaderValue, RANGE};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;
use sha2::{Digest, Sha256, Sha512};

use super::super::install::implausible;
use super::super::lock::Fetched;
use super::super::registry::{Unanswered, reason};
use super::super::requirement::Ecosystem;
use super::Gateway;
use super::pieces::{Pieces, Sender};
use super::zip_directory::HeldBack;
use crate::loopback::{Body, full};

/// What one set of packages may be in all, over the line.
const MOST: u64 = 3 << 30;
/// How much of a wheel is held back until it is known what it unpacks to: a directory of some fifty thousand files, or all of a file that unpacks to four gigabytes at most.
const HELD: usize = 4 << 20;
/// The KiB that all files of an install hold back together.
pub(super) const ROOM: usize = 32 << 10;

impl Gateway {
    /// Passes a file on. One with a `name` is a package itself, and told of.
    pub(super) async fn send(
        self: Arc<Self>,
        url: Url,
        name: Option<String>,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        let range = request.headers().get(RANGE).and_then(|it| it.to_str().ok());
        // A part of a file is asked for to read what a package needs.
        let headers: Vec<(&str, &str)> = range.map(|it| (RANGE.as_str(), it)).into_iter().collect();
        let is_whole = range.is_none() && request.method() == Method::GET;
        let whole = name.filter(|_| is_whole);
        let upstream = self.upstream.get(url, &headers).await?;
        let status = upstream.status().as_u16();
        if !upstream.status().is_success() {
            return Err(Unanswered::Refused(status));
        }
        if let Some(name) = &whole
            && self.log().told.insert(name.clone())
        {
            let size = upstream.content_length().map(|size| match size {
                0..100_000 => format!(" ({} kB)", size.div_ceil(1000)),
                size => format!(" ({})", crate::runtimes::megabytes(size)),
            });
            let size = size.unwrap_or_default();
            let length = upstream.content_length().unwrap_or(0);
            self.announced.fetch_add(length, Ordering::Relaxed);
            (self.tell)(format!("fetching {name}{size}"));
        }
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        for name in [CONTENT_LENGTH, CONTENT_RANGE, ACCEPT_RANGES] {
            let value = upstream.headers().get(name.as_str());
            let value = value.map(|value| HeaderValue::from_bytes(value.as_bytes()));
            if let Some(Ok(value)) = value {
                response.headers_mut().insert(name, value);
            }
        }
        if request.method() == Method::HEAD {
            return Ok(response);
        }
        let pieces = Pieces::sent_by(|to| self.pump(upstream, to, whole));
        Ok(response.map(|_| pieces.boxed_unsync()))
    }

    /// Passes a file on until it ends, breaks off, or the cell hangs up. A whole `file` is in the
    /// log before its last piece is in the cell.
    async fn pump(
        self: Arc<Self>,
        mut upstream: reqwest::Response,
        to: Sender,
        file: Option<String>,
    ) {
        let length = upstream.content_length();
        let (mut hash, mut received) = (Sha256::new(), 0);
        let name = file.clone().unwrap_or_default();
        let mut file = file;
        let is_zip = [".whl", ".zip"].iter().any(|it| name.ends_with(it));
        let most = if is_zip { HELD } else { 0 };
        let mut held = HeldBack::new(most);
        // All of it at once: two that each had half would wait for each other.
        let needed = length.map_or(most as u64, |length| length.min(most as u64));
        let needed = (needed >> 10) as u32;
        let Ok(_room) = self.room.acquire_many(needed).await else {
            return;
        };
        let mut longer = (self.upstream.ecosystem == Ecosystem::Npm).then(Sha512::new);
        loop {
            let next = upstream.chunk().await;
            if let Ok(Some(piece)) = &next {
                hash.update(piece);
                longer.iter_mut().for_each(|it| it.update(piece));
                received += piece.len() as u64;
            }
            let is_end = matches!(next, Ok(None));
            let is_over = is_end || Some(received) == length;
            if is_over {
                let digest = hash.finalize_reset();
                let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let sha512 = longer.take().map(|it| BASE64.encode(it.finalize()));
                let fetched = file.take().map(|file| Fetched {
                    file,
                    sha256,
                    sha512,
                });
                self.log().fetched.extend(fetched);
            }
            let mut pieces = match next {
                Ok(None) => Ok(Vec::new()),
                Ok(Some(piece)) => self.count(piece).map(|piece| held.pass(piece)),
                Err(error) => {
                    let mut log = self.log();
                    log.is_unreachable = true;
                    log.trouble.push(reason(&error.without_url()));
                    Err(io::ErrorKind::ConnectionAborted.into())
                }
            };
            if is_over && let Ok(free) = &mut pieces {
                match held.unpacked().and_then(|size| implausible(received, size)) {
                    None => free.extend(held.rest()),
                    Some(why) => {
                        self.log().trouble.push(format!("{name}: {why}"));
                        pieces = Err(io::ErrorKind::FileTooLarge.into());
                    }
                }
            }
            let is_last = is_end || pieces.is_err();
            let pieces = match pieces {
                Ok(pieces) => pieces.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            for piece in pieces {
                if to.send(piece).await.is_err() {
                    return;
                }
            }
            if is_last {
                return;
            }
        }
    }

    fn count(&self, piece: Bytes) -> io::Result<Bytes> {
        let length = piece.len() as u64;
        if self.fetched.fetch_add(length, Ordering::Relaxed) + length > MOST {
            let most = crate::request::bytes(MOST);
            self.log()
                .trouble
                .push(format!("the packages are larger than {most}"));
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(piece)
    }
}
