//! A registry's page for one package, rewritten so that all its links lead to the
//! gateway; and what can be read from it.

use reqwest::Url;
use serde_json::Value;

use super::Ecosystem;
use super::registry::{Page, RegistryClient};

/// A file that a page lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub url: Url,
    /// Its name, safe as the last part of a path.
    pub file: String,
    /// Its version, where a page says that beside it.
    pub version: String,
}

/// The page with each address replaced by what `keep` makes of it. Files that the registry
/// may not lead to are left out.
pub fn rewrite(
    page: &Page,
    upstream: &RegistryClient,
    keep: &mut dyn FnMut(Listed) -> String,
) -> Option<String> {
    let mut keep = |link: &str, version: &str| -> Option<String> {
        let url = page.url.join(link).ok()?;
        let file = url.path_segments()?.next_back()?.to_owned();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-%~!".contains(&byte);
        let good = !file.is_empty() && file.bytes().all(plain) && upstream.trusts(&url);
        let version = version.to_owned();
        good.then(|| keep(Listed { url, file, version }))
    };
    match (upstream.ecosystem, page.is_json) {
        (Ecosystem::Pypi, true) => simple_json(&page.text, &mut keep),
        (Ecosystem::Pypi, false) => Some(simple_html(&page.text, &mut keep)),
        (Ecosystem::Npm, _) => packument(&page.text, &mut keep),
        // Their answers lead nowhere.
        (Ecosystem::Go | Ecosystem::Crates, _) => None,
    }
}

type Keep<'a> = &'a mut dyn FnMut(&str, &str) -> Option<String>;

/// PEP 691.
fn simple_json(text: &str, keep: Keep<'_>) -> Option<String> {
    let mut page: Value = serde_json::from_str(text).ok()?;
    page.get_mut("files")?.as_array_mut()?.retain_mut(|file| {
        let kept = file["url"].as_str().and_then(|link| keep(link, ""));
        kept.map(|kept| file["url"] = kept.into()).is_some()
    });
    Some(page.to_string())
}

/// PEP 503: only its links are kept, each on a line of its own.
fn simple_html(text: &str, keep: Keep<'_>) -> String {
    let mut page = "<!DOCTYPE html>\n<html><body>\n".to_owned();
    for anchor in text.split("<a ").skip(1) {
        let Some((tag, rest)) = anchor.split_once('>') else {
            continue;
        };
        let Some(link) = attribute(tag, "href") else {
            continue;
        };
        let (link, fragment) = link.split_once('#').unwrap_or((&link, ""));
        let Some(kept) = keep(link, "") else {
            continue;
        };
        let name = rest.split('<').next().unwrap_or_default().trim();
        let mut others = String::new();
        for key in [
            "data-requires-python",
            "data-yanked",
            "data-core-metadata",
            "data-dist-info-metadata",
        ] {
            if let Some(value) = attribute(tag, key) {
                others += &format!(" {key}=\"{}\"", escaped(&value));
            }
        }
        page += &format!(
            "<a href=\"{kept}#{}\"{others}>{}</a>\n",
            escaped(fragment),
            escaped(&unescaped(name))
        );
    }
    page + "</body></html>\n"
}

fn packument(text: &str, keep: Keep<'_>) -> Option<String> {
    let mut page: Value = serde_json::from_str(text).ok()?;
    page.get_mut("versions")?
        .as_object_mut()?
        .retain(|number, version| {
            let link = version["dist"]["tarball"].as_str();
            let kept = link.and_then(|link| keep(link, number));
            kept.map(|kept| version["dist"]["tarball"] = kept.into())
                .is_some()
        });
    Some(page.to_string())
}

/// The moment of the first file on a page, as the registry wrote it: `2011-10-12T…`. `None`
/// if it has no file or does not say.
pub fn first_upload(page: &Page, ecosystem: Ecosystem) -> Option<String> {
    match (ecosystem, page.is_json) {
        (Ecosystem::Pypi, false) => {
            let tags = page.text.split("<a ").skip(1);
            let times =
                tags.filter_map(|tag| attribute(tag.split('>').next()?, "data-upload-time"));
            times.min()
        }
        (Ecosystem::Pypi, true) => {
            let page: Value = serde_json::from_str(&page.text).ok()?;
            let files = page["files"].as_array()?.iter();
            let times = files.filter_map(|file| file["upload-time"].as_str());
            times.min().map(str::to_owned)
        }
        (Ecosystem::Go, _) => None,
        (Ecosystem::Crates, _) => {
            let lines = page.text.lines();
            let read = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let times = read.filter_map(|line| line["pubtime"].as_str().map(str::to_owned));
            times.min()
        }
        (Ecosystem::Npm, _) => {
            let page: Value = serde_json::from_str(&page.text).ok()?;
            // With `created` among them, on most registries.
            let times = page["time"].as_object()?.iter();
            let times = times.filter(|(key, _)| *key != "modified");
            times
                .filter_map(|it| it.1.as_str())
                .min()
                .map(str::to_owned)
        }
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let is_start = at == 0 || rest.as_bytes()[at - 1].is_ascii_whitespace();
        rest = &rest[at + name.len()..];
        let Some(value) = rest.trim_start().strip_prefix('=').filter(|_| is_start) else {
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        return Some(unescaped(value[1..].split(quote).next()?));
    }
}

fn unescaped(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn escaped(text: &str) -> String {
    let pairs = [
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("\"", "&quot;"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(is_json: bool, text: &str) -> Page {
        let url = Url::parse("https://index.example/simple/a/").unwrap();
        Page {
            url,
            is_json,
            text: text.to_owned(),
        }
    }

    fn rewritten(ecosystem: Ecosystem, is_json: bool, text: &str) -> (String, Vec<String>) {
        let upstream = RegistryClient::new(
            Url::parse("https://index.example/simple/").unwrap(),
            ecosystem,
        )
        .unwrap();
        let mut urls = Vec::new();
        let mut keep = |listed: Listed| {
            urls.push(listed.url.to_string());
            format!("/file/{}/{}", urls.len() - 1, listed.file)
        };
        let text = rewrite(&page(is_json, text), &upstream, &mut keep).unwrap();
        (text, urls)
    }

    #[test]
    fn links_lead_to_the_gateway_and_what_is_not_trusted_is_left_out() {
        let html = r#"<a href="../../f/a-1.whl#sha256=00" data-requires-python="&gt;=3.8">a-1.whl</a>
            <a href='https://files.example/a-2.whl'>a-2.whl</a><a href="http://10.0.0.1/a-3.whl">a-3.whl</a>
            <a href="https://files.example/x%22y/">b</a><a name="x">c</a>"#;
        let (text, urls) = rewritten(Ecosystem::Pypi, false, html);
        assert_eq!(
            urls,
            [
                "https://index.example/f/a-1.whl",
                "https://files.example/a-2.whl"
            ]
        );
        assert!(text.contains("<a href=\"/file/0/a-1.whl#sha256=00\" data-requires-python=\"&gt;=3.8\">a-1.whl</a>"), "{text}");
        assert!(
            !text.contains("10.0.0.1") && !text.contains("a-3"),
            "{text}"
        );

        let json = r#"{"name":"a","files":[{"url":"https://files.example/a.whl","hashes":{"sha256":"11"}},{"url":"file:///etc/passwd"}]}"#;
        let (text, urls) = rewritten(Ecosystem::Pypi, true, json);
        assert_eq!(urls.len(), 1);
        assert!(
            text.contains("/file/0/a.whl") && !text.contains("passwd"),
            "{text}"
        );

        let json = r#"{"versions":{"1.0.0":{"dist":{"tarball":"https://index.example/a/-/a-1.0.0.tgz"}},"2.0.0":{"dist":{"tarball":"http://x/y.tgz"}}}}"#;
        let (text, urls) = rewritten(Ecosystem::Npm, true, json);
        assert_eq!(urls.len(), 1);
        assert!(
            text.contains("/file/0/a-1.0.0.tgz") && !text.contains("2.0.0"),
            "{text}"
        );
    }

    #[test]
    fn the_first_file_tells_a_packages_age() {
        let html = r#"<a href="b" data-upload-time="2012-01-19T03:48:12Z">b</a><a href="a" data-upload-time="2011-10-12T21:40:01Z">a</a>"#;
        assert_eq!(
            first_upload(&page(false, html), Ecosystem::Pypi).as_deref(),
            Some("2011-10-12T21:40:01Z")
        );
        let json = r#"{"files":[{"upload-time":"2020-01-01T00:00:00Z"},{"upload-time":"2019-01-01T00:00:00Z"},{}]}"#;
        assert_eq!(
            first_upload(&page(true, json), Ecosystem::Pypi).as_deref(),
            Some("2019-01-01T00:00:00Z")
        );
        assert_eq!(
            first_upload(&page(false, "<a href='x'>x</a>"), Ecosystem::Pypi),
            None
        );
    }
}
