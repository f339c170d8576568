//! A registry, asked by the server itself: pages and files over HTTP.
//!
//! No cell ever holds this client, an address or a password of it.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url};

use super::{Ecosystem, PackageError};

/// How long a server may say nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// The page of one package. npm's largest is about 20 MB.
const MOST_PAGE: u64 = 64 << 20;
const PYPI_TYPES: &str = "application/vnd.pypi.simple.v1+json, text/html;q=0.2";
const NPM_TYPES: &str = "application/vnd.npm.install-v1+json, application/json;q=0.8";

#[derive(Debug, Clone)]
pub struct RegistryClient {
    client: Client,
    pub base: Url,
    pub ecosystem: Ecosystem,
}

/// A page as it came.
pub struct Page {
    pub url: Url,
    pub is_json: bool,
    pub text: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error("the registry has no `{0}`")]
    NotFound(String),
    #[error("the registry answered with status {0}")]
    Refused(u16),
    #[error("{0}")]
    Unreachable(String),
}

impl RegistryClient {
    pub fn new(base: Url, ecosystem: Ecosystem) -> Result<Self, PackageError> {
        // Only one provider can be installed; a second try says so, and that is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let is_safe = base.scheme() == "https";
        let redirect = reqwest::redirect::Policy::custom(move |attempt| {
            // SECURITY: who can change what comes over a plain line must not get a say
            // because a safe server sent us there.
            if attempt.previous().len() > 5 || (is_safe && attempt.url().scheme() != "https") {
                attempt.stop()
            } else {
                attempt.follow()
            }
        });
        let built = Client::builder()
            .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(PATIENCE / 3)
            .read_timeout(PATIENCE)
            .redirect(redirect)
            .build();
        let client = built.map_err(|error| PackageError::NoNetwork {
            what: "any package".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            client,
            base,
            ecosystem,
        })
    }

    /// The page of a package; with all that the registry knows of it if it is wanted `whole`.
    pub async fn page(&self, name: &str, whole: bool) -> Result<Page, Unanswered> {
        let (path, types) = match self.ecosystem {
            Ecosystem::Pypi => (format!("{name}/"), PYPI_TYPES),
            // A scope's slash is a part of the name.
            Ecosystem::Npm if whole => (name.replace('/', "%2F"), "application/json"),
            Ecosystem::Npm => (name.replace('/', "%2F"), NPM_TYPES),
            Ecosystem::Crates => (crate_path(name), "text/plain"),
            Ecosystem::Go => return Err(Unanswered::NotFound(name.to_owned())),
        };
        let url = self.base.join(&path);
        let url = url.map_err(|_| Unanswered::NotFound(name.to_owned()))?;
        let response = self.get(url, &[(ACCEPT.as_str(), types)]).await?;
        match response.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return Err(Unanswered::NotFound(name.to_owned()));
            }
            status if !status.is_success() => return Err(Unanswered::Refused(status.as_u16())),
            _ => {}
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let is_json = kind.is_some_and(|kind| kind.to_str().is_ok_and(|it| it.contains("json")));
        let url = response.url().clone();
        let text = text(response).await?;
        Ok(Page { url, is_json, text })
    }

    /// Where the files of crates are, as the index says it for all of them.
    pub async fn crate_template(&self) -> Result<String, Unanswered> {
        let wrong =
            || Unanswered::Unreachable("the registry does not say where its files are".to_owned());
        let url = self.base.join("config.json").map_err(|_| wrong())?;
        let response = self.get(url, &[]).await?;
        if !response.status().is_success() {
            return Err(Unanswered::Refused(response.status().as_u16()));
        }
        let config = serde_json::from_str::<serde_json::Value>(&text(response).await?);
        let config = config.map_err(|_| wrong())?;
        let template = config["dl"].as_str().ok_or_else(wrong)?;
        Ok(match template.contains('{') {
            true => template.to_owned(),
            false => format!("{template}/{{crate}}/{{version}}/download"),
        })
    }

    /// A version of a crate at such a template.
    pub fn crate_url(&self, template: &str, name: &str, version: &str) -> Option<Url> {
        let path = crate_path(name);
        let prefix = path.rsplit_once('/').map_or("", |it| it.0);
        let template = template
            .replace("{crate}", name)
            .replace("{version}", version)
            .replace("{prefix}", prefix)
            .replace("{lowerprefix}", prefix);
        Url::parse(&template).ok().filter(|url| self.trusts(url))
    }

    /// Asks for a file; the caller reads it.
    pub async fn get(&self, url: Url, headers: &[(&str, &str)]) -> Result<Response, Unanswered> {
        let mut request = self.client.get(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        // Its own words have the address, and that may have a password.
        request
            .send()
            .await
            .map_err(|error| Unanswered::Unreachable(reason(&error.without_url())))
    }

    /// Whether a file may be fetched from where a page says it is.
    ///
    /// SECURITY: a page says what the registry wants. One with TLS leads to hosts with TLS only, and
    /// one without to itself only, so that no page makes us ask some other machine.
    pub fn trusts(&self, url: &Url) -> bool {
        let same = url.scheme() == self.base.scheme()
            && url.host_str() == self.base.host_str()
            && url.port_or_known_default() == self.base.port_or_known_default();
        same || (self.base.scheme() == "https" && url.scheme() == "https" && url.domain().is_some())
    }
}

/// Where the index has a crate: `ra/nd/rand`, in small letters.
pub fn crate_path(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.len() {
        0..=2 => format!("{}/{name}", name.len()),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    }
}

async fn text(mut response: Response) -> Result<String, Unanswered> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if (bytes.len() + chunk.len()) as u64 <= MOST_PAGE => {
                bytes.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Err(Unanswered::Unreachable("its page is too long".to_owned())),
            Ok(None) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => return Err(Unanswered::Unreachable(reason(&error.without_url()))),
        }
    }
}

/// An error and its causes, in one line.
pub fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_where_the_index_says_and_nowhere_else() {
        assert_eq!(
            ["a", "AB", "abc", "Rand", "serde_json"].map(crate_path),
            ["1/a", "2/ab", "3/a/abc", "ra/nd/rand", "se/rd/serde_json"]
        );
        let base = Url::parse("https://index.example/").unwrap();
        let upstream = RegistryClient::new(base, Ecosystem::Crates).unwrap();
        let url = |template| {
            upstream
                .crate_url(template, "rand", "0.8.5")
                .map(String::from)
        };
        assert_eq!(
            url("https://files.example/{prefix}/{crate}-{version}.crate").as_deref(),
            Some("https://files.example/ra/nd/rand-0.8.5.crate")
        );
        for template in [
            "http://files.example/{crate}",
            "https://10.0.0.1/{crate}",
            "file:///{crate}",
            "{crate}",
        ] {
            assert_eq!(url(template), None, "{template}");
        }
    }

    #[test]
    fn a_page_leads_to_safe_places_or_back_to_its_own_server() {
        let trusts = |base: &str, url: &str| {
            let upstream = RegistryClient::new(Url::parse(base).unwrap(), Ecosystem::Pypi).unwrap();
            upstream.trusts(&Url::parse(url).unwrap())
        };
        let (safe, plain) = (
            "https://index.example/simple/",
            "http://mirror.example:8080/simple/",
        );
        assert!(trusts(safe, "https://files.example/a.whl"));
        assert!(trusts(safe, "https://index.example/a.whl"));
        assert!(trusts(plain, "http://mirror.example:8080/a.whl"));
        for (base, url) in [
            (safe, "http://files.example/a.whl"),
            (safe, "http://index.example/a.whl"),
            (safe, "https://169.254.169.254/a"),
            (safe, "https://[::1]/a"),
            (safe, "ftp://files.example/a"),
            (plain, "http://other.example:8080/a.whl"),
            (plain, "http://mirror.example/a.whl"),
            (plain, "https://files.example/a.whl"),
            (plain, "http://127.0.0.1:8080/a"),
        ] {
            assert!(!trusts(base, url), "{base} {url}");
        }
    }
}
