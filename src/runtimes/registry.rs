//! Where the registries are: their addresses are in this file alone.
//!
//! A mirror that the registry's own tool would use is used here too.

use std::env;

use super::FetchError;
use super::download::Client;
use super::recipe::{Archive, Registry};

/// A registry's usual address, and the variables that name another; the first that is set wins.
const PLACES: &[(Registry, &str, &[&str])] = &[
    (
        Registry::Npm,
        "https://registry.npmjs.org",
        &["NPM_CONFIG_REGISTRY", "npm_config_registry"],
    ),
    (
        Registry::Pypi,
        "https://pypi.org/simple",
        &["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"],
    ),
    (
        Registry::Debian,
        "https://deb.debian.org/debian",
        &["HOTCELL_DEBIAN_MIRROR"],
    ),
    (
        Registry::DebianSecurity,
        "https://deb.debian.org/debian-security",
        &["HOTCELL_DEBIAN_SECURITY_MIRROR"],
    ),
    (
        Registry::PythonBuilds,
        "https://releases.astral.sh/github/python-build-standalone/releases/download",
        &["UV_PYTHON_INSTALL_MIRROR"],
    ),
    (Registry::Go, "https://proxy.golang.org", &["GOPROXY"]),
    (Registry::Crates, "https://index.crates.io", &[]),
];

/// The address of an archive. PyPI is asked for it, the others have a rule.
pub fn address(archive: &Archive, client: &Client) -> Result<String, FetchError> {
    let base = base(archive.from);
    Ok(match archive.from {
        Registry::Url | Registry::Go | Registry::Crates => archive.file.clone(),
        Registry::Npm => format!("{base}/{}/-/{}", archive.name, archive.file),
        Registry::Debian | Registry::DebianSecurity | Registry::PythonBuilds => {
            // A `+` is a space to some servers.
            format!("{base}/{}", archive.file.replace('+', "%2B"))
        }
        Registry::Pypi => {
            let page = format!("{base}/{}/", archive.name);
            let (page, text) = client.page(&page)?;
            let link = link_to(&archive.file, &text);
            let joined = link.and_then(|link| page.join(&link).ok());
            joined
                .ok_or_else(|| FetchError::NotListed {
                    registry: shown(&page),
                    file: archive.file.clone(),
                })?
                .to_string()
        }
    })
}

/// An address as people may see it: without a password.
pub fn shown(url: &reqwest::Url) -> String {
    let mut url = url.clone();
    // Neither can fail where there is something to hide.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

/// Where a registry is, without a slash at its end.
pub fn base(registry: Registry) -> String {
    let Some((_, usual, variables)) = PLACES.iter().find(|(it, ..)| *it == registry) else {
        return String::new();
    };
    let set = variables.iter().filter_map(|name| env::var(name).ok());
    let base = set.into_iter().find(|value| !value.trim().is_empty());
    let base = base.unwrap_or_else(|| (*usual).to_owned());
    base.trim().trim_end_matches('/').to_owned()
}

/// The link whose last part is this file, on a page of the simple index (PEP 503), without its `#`.
///
/// What it leads to is checked against the recipe's hash, so the page needs no trust.
fn link_to(file: &str, page: &str) -> Option<String> {
    let mut hrefs = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    hrefs.find_map(|href| {
        let href = href.replace("&amp;", "&");
        let path = href.split(['#', '?']).next()?;
        let last = path.rsplit('/').next()?;
        let same = last == file || last.replace("%2B", "+").replace("%2b", "+") == file;
        same.then(|| href.split('#').next().unwrap_or_default().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_on_an_index_page_however_it_is_linked() {
        let page = r#"<a href="https://files/a/uv-1-x.whl#sha256=00">uv-1-x.whl</a>
            <a data-x='1' href='../../b/uv-2-x.whl'>uv-2-x.whl</a>
            <a href="c/uv-3%2Blocal.whl?token=1&amp;b=2#x">uv-3+local.whl</a>"#;
        let found = |file: &str| link_to(file, page);
        assert_eq!(
            found("uv-1-x.whl").as_deref(),
            Some("https://files/a/uv-1-x.whl")
        );
        assert_eq!(found("uv-2-x.whl").as_deref(), Some("../../b/uv-2-x.whl"));
        assert_eq!(
            found("uv-3+local.whl").as_deref(),
            Some("c/uv-3%2Blocal.whl?token=1&b=2")
        );
        assert_eq!(found("uv-4-x.whl"), None);
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = reqwest::Url::parse("https://me:secret@mirror/simple/uv/").unwrap();
        assert_eq!(shown(&url), "https://mirror/simple/uv/");
    }
}
