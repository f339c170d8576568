//! The package gateway: the one registry that an install cell sees, at a port of its own loopback.
//!
//! The cell has no network. Its installer asks a port of its own loopback, where the
//! server answers: with a package's page, rewritten, and with files that such a page
//! listed, or that every package has by the registry's rules. SECURITY: a cell can say
//! which package and which of its files it wants, and nothing else: no host, no
//! address, no header, no method but GET.

mod module_file;
mod modules;
mod pages;
mod pieces;
mod send;
mod zip_directory;

#[cfg(any(test, fuzzing))]
pub use zip_directory::unpacked;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{OnceCell, Semaphore};

use super::lock::Fetched;
use super::registry::{RegistryClient, Unanswered};
use super::registry_page::Listed;
use super::requirement::Ecosystem;
use crate::loopback::{Body, Http, full};

/// Where a cell finds it, on its own loopback.
pub const PORT: u16 = 8377;

/// A registry as one install sees it.
pub struct Gateway {
    upstream: RegistryClient,
    log: Mutex<Log>,
    /// Where crates are, once the index was asked.
    crate_template: OnceCell<String>,
    fetched: AtomicU64,
    /// Bytes of the files that were asked for whole.
    announced: AtomicU64,
    /// For what is held back until it was looked at.
    room: Semaphore,
    tell: Box<dyn Fn(String) + Send + Sync>,
}

/// What was asked of it.
#[derive(Default)]
pub struct Log {
    files: Vec<Listed>,
    /// Packages that were asked for and are not in the registry.
    pub missing: Vec<String>,
    /// Why something else could not be had.
    pub trouble: Vec<String>,
    /// Whether it was the line, and not the registry.
    pub is_unreachable: bool,
    /// Those that somebody was told of. Some installers fetch a file twice: to read what it needs, and to install it.
    pub told: HashSet<String>,
    /// The files that were fetched whole, with the hashes of their bytes.
    pub fetched: Vec<Fetched>,
}

impl Http for Gateway {
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        Box::pin(self.respond(request))
    }
}

impl Gateway {
    /// `tell` hears of each file that is fetched.
    pub fn new(
        upstream: RegistryClient,
        tell: impl Fn(String) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            log: Mutex::default(),
            crate_template: OnceCell::new(),
            fetched: AtomicU64::new(0),
            announced: AtomicU64::new(0),
            room: Semaphore::new(send::ROOM),
            tell: Box::new(tell),
        })
    }

    /// The registry's address for the installer.
    pub fn index(&self) -> String {
        match self.upstream.ecosystem {
            Ecosystem::Pypi => format!("http://127.0.0.1:{PORT}/simple"),
            Ecosystem::Npm | Ecosystem::Go | Ecosystem::Crates => {
                format!("http://127.0.0.1:{PORT}/")
            }
        }
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
        }
        let answered = match self.upstream.ecosystem {
            Ecosystem::Go => self.clone().of_module(request.uri().path(), &request).await,
            Ecosystem::Crates => self.clone().of_crate(request.uri().path(), &request).await,
            Ecosystem::Pypi | Ecosystem::Npm => self.clone().find(&request).await,
        };
        answered.unwrap_or_else(|unanswered| {
            let mut log = self.log();
            match &unanswered {
                Unanswered::NotFound(name) => {
                    log.missing.push(name.clone());
                    return plain(StatusCode::NOT_FOUND, "there is no such package");
                }
                Unanswered::Refused(404 | 403 | 410) => {}
                Unanswered::Refused(_) => log.trouble.push(unanswered.to_string()),
                Unanswered::Unreachable(_) => {
                    log.is_unreachable = true;
                    log.trouble.push(unanswered.to_string());
                }
            }
            let status = match unanswered {
                Unanswered::Refused(status) if status < 500 => status,
                _ => 502,
            };
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            plain(status, &unanswered.to_string())
        })
    }

    /// How many bytes were fetched, of how many that are known to come.
    pub fn progress(&self) -> (u64, u64) {
        let [got, size] = [&self.fetched, &self.announced].map(|it| it.load(Ordering::Relaxed));
        (got, size.max(got))
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(text.to_owned()));
    *response.status_mut() = status;
    response
}
