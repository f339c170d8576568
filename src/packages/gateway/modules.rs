//! What Go's and cargo's clients ask for: paths that every module and every crate has, so no page lists them.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

use super::super::registry::{Unanswered, crate_path};
use super::super::requirement::{Ecosystem, Requirement};
use super::module_file::ModuleFile;
use super::{Gateway, PORT, plain};
use crate::loopback::{Body, full};

impl Gateway {
    /// What a module has by the rules of Go's proxies: its versions, and for each of them three files.
    pub(super) async fn of_module(
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
    pub(super) async fn of_crate(
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
}
