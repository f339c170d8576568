//! The package gateway: the one registry that an install cell sees, at a port of its own loopback.
//!
//! The cell has no network. Its installer asks a port of its own loopback, where the
//! server answers: with a package's page, rewritten, and with files that such a page
//! listed, or that every package has by the registry's rules. SECURITY: a cell can say
//! which package and which of its files it wants, and nothing else: no host, no
//! address, no header, no method but GET.

mod pieces;

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use hyper::{Method, Request, Response, StatusCode};
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use self::pieces::{Pieces, Sender};
use super::registry::{RegistryClient, Unanswered, crate_path, reason};
use super::registry_page::{Listed, rewrite};
use super::requirement::{Ecosystem, Requirement};
use crate::loopback::{Body, Http, full};

/// Where a cell finds it, on its own loopback.
pub const PORT: u16 = 8377;
/// What one set of packages may be in all, over the line.
const MOST: u64 = 3 << 30;
/// What one page may list. The largest of PyPI have a few thousand.
const MOST_FILES: usize = 200_000;

/// A registry as one install sees it.
pub struct Gateway {
    upstream: RegistryClient,
    log: Mutex<Log>,
    /// Where crates are, once the index was asked.
    crate_template: OnceCell<String>,
    fetched: AtomicU64,
    /// Bytes of the files that were asked for whole.
    announced: AtomicU64,
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
    /// The files that were fetched whole, with the hashes of their bytes.
    pub fetched: Vec<(String, String)>,
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

    async fn find(
        self: Arc<Self>,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        let path = request.uri().path();
        let listed = path
            .strip_prefix("/file/")
            .and_then(|it| it.split_once('/'));
        if let Some((number, file)) = listed {
            let listed = number.parse::<usize>().ok();
            let listed = listed.and_then(|number| self.log().files.get(number).cloned());
            return self.file(listed, file, request).await;
        }
        // What has a lock does not ask for a page: `/@scope/name/-/name-1.0.0.tgz`.
        match path.split_once("/-/") {
            Some((name, file)) if self.upstream.ecosystem == Ecosystem::Npm => {
                let name = name.replace("%2F", "/").replace("%2f", "/");
                let (page, files) = self.page(&name).await?;
                if !page.status().is_success() {
                    return Ok(page);
                }
                let short = name.rsplit('/').next().unwrap_or_default();
                let is_asked = |it: &&Listed| file == format!("{short}-{}.tgz", it.version);
                let listed = {
                    let log = self.log();
                    let listed = log.files.get(files).unwrap_or_default();
                    listed.iter().find(is_asked).cloned()
                };
                let file = listed.as_ref().map(|it| it.file.clone());
                self.file(listed, &file.unwrap_or_default(), request).await
            }
            _ => Ok(self.page(path).await?.0),
        }
    }

    /// A package's page, and which files of the log it has listed.
    async fn page(&self, path: &str) -> Result<(Response<Body>, Range<usize>), Unanswered> {
        let ecosystem = self.upstream.ecosystem;
        let name = match ecosystem {
            Ecosystem::Pypi => path.strip_prefix("/simple/").unwrap_or_default(),
            _ => path.strip_prefix('/').unwrap_or_default(),
        };
        let name = name
            .trim_end_matches('/')
            .replace("%2F", "/")
            .replace("%2f", "/");
        // The same grammar as for callers: a name, and nothing that could lead elsewhere.
        let parsed = Requirement::parse(&name, ecosystem).ok();
        let Some(name) = parsed.filter(Requirement::is_bare) else {
            return Ok((
                plain(StatusCode::NOT_FOUND, "not the name of a package"),
                0..0,
            ));
        };
        let page = self.upstream.page(name.name(), false).await?;
        let (text, files) = {
            let mut log = self.log();
            let first = log.files.len();
            let text = rewrite(&page, &self.upstream, &mut |listed| {
                // Kept in order, so that a number is all a cell has to say.
                let number = log.files.len();
                let link = format!("http://127.0.0.1:{PORT}/file/{number}/{}", listed.file);
                if number < MOST_FILES {
                    log.files.push(listed);
                }
                link
            });
            (text, first..log.files.len())
        };
        let text = text.ok_or_else(|| Unanswered::Unreachable("its page cannot be read".into()))?;
        let kind = match (ecosystem, page.is_json) {
            (Ecosystem::Pypi, true) => "application/vnd.pypi.simple.v1+json",
            (Ecosystem::Pypi, false) => "text/html",
            _ => "application/json",
        };
        let mut response = Response::new(full(text));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
        Ok((response, files))
    }

    async fn file(
        self: Arc<Self>,
        listed: Option<Listed>,
        file: &str,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        let Some(listed) = listed else {
            return Ok(plain(StatusCode::NOT_FOUND, "no page has listed it"));
        };
        let is_metadata = match file.strip_prefix(listed.file.as_str()) {
            Some("") => false,
            // PEP 658: beside the file.
            Some(".metadata") => true,
            _ => return Ok(plain(StatusCode::NOT_FOUND, "no page has listed it")),
        };
        let mut url: Url = listed.url.clone();
        if is_metadata {
            url.set_path(&format!("{}.metadata", listed.url.path()));
        }
        let name = (!is_metadata).then_some(listed.file);
        self.send(url, name, request).await
    }

    /// What a module has by the rules of Go's proxies: its versions, and for each of them three files.
    async fn of_module(
        self: Arc<Self>,
        path: &str,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        // The client writes its own sign for a capital letter in this way.
        let path = path.trim_start_matches('/').replace("%21", "!");
        let url = self.upstream.base.join(&path).ok();
        let url = url.filter(|url| self.upstream.trusts(url));
        let (Some(file), Some(url)) = (ModuleFile::parse(&path), url) else {
            return Ok(plain(StatusCode::NOT_FOUND, "not a file of a module"));
        };
        let name = match file {
            ModuleFile::Zip(name) => Some(name),
            ModuleFile::Other => None,
        };
        match self.send(url, name, request).await {
            // Some mirrors forbid what they do not have. The client looks further after a 404 only.
            Err(Unanswered::Refused(403 | 404 | 410)) => {
                Ok(plain(StatusCode::NOT_FOUND, "there is no such module"))
            }
            answered => answered,
        }
    }

    /// What cargo asks an index for: where files are, a crate's page, and a version's file.
    async fn of_crate(
        self: Arc<Self>,
        path: &str,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        if path == "/config.json" {
            let config = format!("{{\"dl\":\"http://127.0.0.1:{PORT}/dl\"}}");
            return Ok(Response::new(full(config)));
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        // The same grammar as for callers.
        let is_crate = |text: &str| Requirement::parse(text, Ecosystem::Crates).is_ok();
        if let Some(rest) = path.strip_prefix("/dl/")
            && let [name, version, "download"] = rest.split('/').collect::<Vec<_>>()[..]
            && is_crate(&format!("{name}@{version}"))
            && !name.contains('[')
        {
            let asked = self
                .crate_template
                .get_or_try_init(|| self.upstream.crate_template());
            let Some(url) = self.upstream.crate_url(asked.await?, name, version) else {
                return Ok(plain(StatusCode::NOT_FOUND, "the index leads elsewhere"));
            };
            let file = format!("{name}-{version}.crate");
            return self.send(url, Some(file), request).await;
        }
        let is_bare = !name.contains(['[', '@']) && is_crate(name);
        if !is_bare || path.strip_prefix('/') != Some(&crate_path(name)) {
            return Ok(plain(StatusCode::NOT_FOUND, "not the path of a crate"));
        }
        let page = self.upstream.page(name, false).await?;
        Ok(Response::new(full(page.text)))
    }

    /// Passes a file on. One with a `name` is a package itself, and told of.
    async fn send(
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
        if let Some(name) = &whole {
            let size = upstream.content_length().map_or(String::new(), |size| {
                format!(" ({})", crate::runtimes::megabytes(size))
            });
            let length = upstream.content_length().unwrap_or(0);
            self.announced.fetch_add(length, Ordering::Relaxed);
            (self.tell)(format!("fetching {name}{size}"));
        }
        let mut response = Response::new(full(""));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        for name in [CONTENT_LENGTH, CONTENT_RANGE, ACCEPT_RANGES] {
            let value = upstream.headers().get(name.as_str());
            let value = value.map(|value| hyper::header::HeaderValue::from_bytes(value.as_bytes()));
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
        let (mut hash, mut received, mut file) = (Sha256::new(), 0, file);
        loop {
            let next = upstream.chunk().await;
            if let Ok(Some(piece)) = &next {
                hash.update(piece);
                received += piece.len() as u64;
            }
            if matches!(next, Ok(None)) || Some(received) == length {
                let digest = hash.finalize_reset();
                let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                self.log()
                    .fetched
                    .extend(file.take().map(|file| (file, digest)));
            }
            let piece = match next {
                Ok(None) => return,
                Ok(Some(piece)) => self.count(piece),
                Err(error) => {
                    let mut log = self.log();
                    log.is_unreachable = true;
                    log.trouble.push(reason(&error.without_url()));
                    Err(io::ErrorKind::ConnectionAborted.into())
                }
            };
            let is_last = piece.is_err();
            if to.send(piece).await.is_err() || is_last {
                return;
            }
        }
    }

    /// How many bytes were fetched, of how many that are known to come.
    pub fn progress(&self) -> (u64, u64) {
        let [got, size] = [&self.fetched, &self.announced].map(|it| it.load(Ordering::Relaxed));
        (got, size.max(got))
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

/// A path as Go's client asks for it, of the few kinds that there are.
enum ModuleFile {
    /// A version itself, and what to call it.
    Zip(String),
    Other,
}

impl ModuleFile {
    fn parse(path: &str) -> Option<Self> {
        // A capital letter is written as `!` and the small one.
        let mut plain = String::with_capacity(path.len());
        let mut letters = path.chars();
        while let Some(letter) = letters.next() {
            plain.push(match letter {
                '!' => letters
                    .next()
                    .filter(char::is_ascii_lowercase)?
                    .to_ascii_uppercase(),
                letter => Some(letter).filter(|it| !it.is_ascii_uppercase())?,
            });
        }
        let (module, file) = plain.split_once("/@")?;
        let bare = |text: &str| Requirement::parse(text, Ecosystem::Go).ok();
        bare(module).filter(Requirement::is_bare)?;
        let Some(file) = file.strip_prefix("v/").filter(|it| *it != "list") else {
            return ["latest", "v/list"].contains(&file).then_some(Self::Other);
        };
        let (version, ending) = file.rsplit_once('.')?;
        // With the same grammar as a caller's.
        let whole = bare(&format!("{module}@{version}"))?.to_string();
        match ending {
            "zip" => Some(Self::Zip(whole)),
            "info" | "mod" => Some(Self::Other),
            _ => None,
        }
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(text.to_owned()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_a_few_files_and_no_path_leads_elsewhere() {
        for (path, zip) in [
            ("github.com/google/uuid/@v/list", None),
            ("github.com/google/uuid/@latest", None),
            ("github.com/!burnt!sushi/toml/@v/v1.2.0.info", None),
            ("github.com/!burnt!sushi/toml/@v/master.info", None),
            ("gopkg.in/yaml.v3/@v/v3.0.1.mod", None),
            (
                "github.com/!burnt!sushi/toml/@v/v1.2.0+incompatible.zip",
                Some("github.com/BurntSushi/toml@v1.2.0+incompatible"),
            ),
        ] {
            let name = match ModuleFile::parse(path).expect(path) {
                ModuleFile::Zip(name) => Some(name),
                ModuleFile::Other => None,
            };
            assert_eq!(name.as_deref(), zip, "{path}");
        }
        for path in [
            "",
            "@v/list",
            "uuid/@v/list",
            "github.com/../x/@v/list",
            "github.com//x/@v/list",
            "github.com/x/@v/../../y",
            "github.com/x/@v/v1.0.0.exe",
            "github.com/x/@v/",
            "github.com/x/@v/.zip",
            "github.com/x/@v/a/b.zip",
            "github.com/x/@v/v1%2e0.zip",
            "github.com/x/@v/list.zip.info/@v/list",
            "github.com/X/@v/list",
            "github.com/x!/@v/list",
            "github.com/x/y",
            "http://h.example/x/@v/list",
            "/h.example/x/@v/list",
            "sumdb/sum.example/latest",
        ] {
            assert!(ModuleFile::parse(path).is_none(), "{path}");
        }
    }
}
