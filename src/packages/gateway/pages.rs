//! The pages of PyPI and of the npm registry, and the files that they list.

use std::ops::Range;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use reqwest::Url;

use super::super::registry::Unanswered;
use super::super::registry_page::{Listed, rewrite};
use super::super::requirement::{Ecosystem, Requirement};
use super::{Gateway, PORT, plain};
use crate::loopback::{Body, full};

/// What one page may list. The largest of PyPI have a few thousand.
const MOST_FILES: usize = 200_000;

impl Gateway {
    pub(super) async fn find(
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
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
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
}
