//! A registry of the test's own: PyPI's pages, npm's, Go's and cargo's, and what is in them.

use std::io::{Cursor, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::OLD;
use crate::fetch::server::Server;

pub struct Registry {
    pub server: Server,
}

impl Registry {
    pub fn start() -> Self {
        Self {
            server: Server::start([]),
        }
    }

    pub fn pypi(&self) -> String {
        format!("{}/simple", self.server.address)
    }

    pub fn npm(&self) -> String {
        format!("{}/npm", self.server.address)
    }

    pub fn go(&self) -> String {
        format!("{}/go", self.server.address)
    }

    /// Adds a version of a Go module, and what it requires.
    pub fn add_module(&self, path: &str, version: &str, code: &str, requires: &str) {
        let own = format!("module {path}\n\ngo 1.17\n{requires}");
        let inside = |name: &str| format!("{path}@{version}/{name}");
        let files = [
            (inside("go.mod"), own.clone()),
            (inside("code.go"), code.to_owned()),
        ];
        let info = format!("{{\"Version\":\"{version}\",\"Time\":\"2020-01-01T00:00:00Z\"}}");
        self.server.with(|state| {
            let base = format!("/go/{path}/@v");
            let list = state.files.entry(format!("{base}/list")).or_default();
            list.extend_from_slice(format!("{version}\n").as_bytes());
            let mut add = |ending: &str, bytes: Vec<u8>| {
                state
                    .files
                    .insert(format!("{base}/{version}.{ending}"), bytes);
            };
            add("info", info.into_bytes());
            add("mod", own.into_bytes());
            add("zip", zip(&files));
        });
    }

    pub fn crates(&self) -> String {
        format!("{}/crates", self.server.address)
    }

    /// Adds a version of a crate, first published at that moment, with what it depends on.
    pub fn add_crate(&self, name: &str, version: &str, published: &str, file: &[u8], needs: &str) {
        let hash = hex(&Sha256::digest(file));
        let line = format!(
            "{{\"name\":\"{name}\",\"vers\":\"{version}\",\"deps\":[{needs}],\"cksum\":\"{hash}\",\"features\":{{}},\"yanked\":false,\"pubtime\":\"{published}\"}}\n"
        );
        let config = format!("{{\"dl\":\"{}/dl\"}}", self.crates());
        let page = format!("/crates/{}/{}/{name}", &name[..2], &name[2..4]);
        self.server.with(|state| {
            let page = state.files.entry(page).or_default();
            page.extend_from_slice(line.as_bytes());
            let place = format!("/crates/dl/{name}/{version}/download");
            state.files.insert(place, file.to_vec());
            let place = "/crates/config.json".to_owned();
            state.files.insert(place, config.into_bytes());
        });
    }

    /// Adds a wheel, first uploaded at that moment.
    pub fn add(&self, name: &str, version: &str, uploaded: &str, wheel: &[u8]) {
        self.add_file(
            name,
            &format!("{name}-{version}-py3-none-any.whl"),
            uploaded,
            wheel,
        );
    }

    pub fn add_file(&self, name: &str, file: &str, uploaded: &str, bytes: &[u8]) {
        let hash = hex(&Sha256::digest(bytes));
        let link = format!(
            "<a href=\"/files/{file}#sha256={hash}\" data-upload-time=\"{uploaded}\">{file}</a>\n"
        );
        self.server.with(|state| {
            let page = state.files.entry(format!("/simple/{name}/")).or_default();
            page.extend_from_slice(link.as_bytes());
            state.files.insert(format!("/files/{file}"), bytes.to_vec());
        });
    }

    /// Puts other bytes behind the same page.
    pub fn replace(&self, name: &str, version: &str, wheel: &[u8]) {
        let file = format!("/files/{name}-{version}-py3-none-any.whl");
        self.server
            .with(|state| state.files.insert(file, wheel.to_vec()));
    }

    /// Adds a version to npm's page of a package, with what the page says of it.
    pub fn publish(&self, name: &str, version: &str, about: Value, tarball: &[u8]) {
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha512::digest(tarball));
        let file = format!(
            "/npm/{name}/-/{}-{version}.tgz",
            name.replace(['@', '/'], "")
        );
        let mut about = about;
        about["name"] = name.into();
        about["version"] = version.into();
        about["dist"] = json!({ "tarball": format!("{}{file}", self.server.address), "integrity": format!("sha512-{hash}") });
        // A scope's slash is a part of the name.
        let path = format!("/npm/{}", name.replace('/', "%2F"));
        self.server.with(|state| {
            let page = state
                .files
                .get(&path)
                .and_then(|page| serde_json::from_slice(page).ok());
            let mut page: Value = page.unwrap_or_else(
                || json!({ "name": name, "time": { "created": OLD }, "versions": {} }),
            );
            page["dist-tags"]["latest"] = version.into();
            page["time"][version] = OLD.into();
            page["versions"][version] = about;
            state.files.insert(path, page.to_string().into_bytes());
            state.files.insert(file, tarball.to_vec());
        });
    }

    /// Adds a page as it is.
    pub fn add_page(&self, path: &str, text: impl Into<Vec<u8>>) {
        self.server
            .with(|state| state.files.insert(path.to_owned(), text.into()));
    }

    pub fn asked(&self) -> usize {
        self.server.with(|state| state.asked.len())
    }

    pub fn count(&self, ending: &str) -> usize {
        self.server.count(ending)
    }
}

/// What npm unpacks: all of it is in a folder.
pub fn tarball(files: &[(&str, String)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, text.as_bytes())
            .expect("in memory");
    }
    builder
        .into_inner()
        .and_then(|it| it.finish())
        .expect("in memory")
}

/// A wheel with these files, and what it requires.
pub fn wheel(name: &str, version: &str, files: &[(&str, &str)], requires: &[&str]) -> Vec<u8> {
    zip(&wheel_files(name, version, files, requires))
}

fn wheel_files(
    name: &str,
    version: &str,
    files: &[(&str, &str)],
    requires: &[&str],
) -> Vec<(String, String)> {
    let info = format!("{name}-{version}.dist-info");
    let mut metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    for required in requires {
        metadata += &format!("Requires-Dist: {required}\n");
    }
    let own = [
        (format!("{info}/METADATA"), metadata),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                .to_owned(),
        ),
    ];
    let files = files.iter().map(|it| (it.0.to_owned(), it.1.to_owned()));
    let mut all: Vec<(String, String)> = files.chain(own).collect();
    let record: String = all.iter().map(|it| format!("{},,\n", it.0)).collect();
    all.push((
        format!("{info}/RECORD"),
        format!("{record}{info}/RECORD,,\n"),
    ));
    all
}

pub fn zip(files: &[(String, String)]) -> Vec<u8> {
    packed(files, CompressionMethod::Stored)
}

/// A wheel that is smaller than what is in it.
pub fn packed_wheel(name: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    packed(
        &wheel_files(name, version, files, &[]),
        CompressionMethod::Deflated,
    )
}

/// A wheel that unpacks to `size` bytes of the same small file, again and again.
pub fn bomb_wheel(name: &str, version: &str, size: u64) -> Vec<u8> {
    const ONE: usize = 128 << 20;
    let zeros = "0".repeat(ONE);
    let small = packed_wheel(
        name,
        version,
        &[
            (&format!("{name}/zeros.txt"), &zeros),
            (&format!("{name}/__init__.py"), ""),
        ],
    );
    let mut archive = ZipArchive::new(Cursor::new(small)).expect("a wheel");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for at in 0..archive.len() {
        let file = archive.by_index_raw(at).expect("a file");
        writer.raw_copy_file(file).expect("in memory");
    }
    for copy in 1..size.div_ceil(ONE as u64) {
        let file = archive
            .by_name(&format!("{name}/zeros.txt"))
            .expect("a file");
        writer
            .raw_copy_file_rename(file, format!("{name}/zeros{copy}.txt"))
            .expect("in memory");
    }
    writer.finish().expect("in memory").into_inner()
}

/// Has the directory of a zip file say that what has `size` bytes has one.
pub fn shorten_directory(file: &mut [u8], size: u32) {
    let entry = |at: &usize| {
        file[*at..].starts_with(b"PK\x01\x02") && file[at + 24..].starts_with(&size.to_le_bytes())
    };
    let at = (0..file.len()).find(entry).expect("an entry of that size");
    file[at + 24..at + 28].copy_from_slice(&1_u32.to_le_bytes());
}

fn packed(files: &[(String, String)], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, text) in files {
        writer
            .start_file(name.as_str(), options)
            .expect("in memory");
        writer.write_all(text.as_bytes()).expect("in memory");
    }
    writer.finish().expect("in memory").into_inner()
}

/// This moment, in a registry's words.
pub fn today() -> String {
    let days = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
        / 86_400;
    // A date in the last weeks will do: the first of the month, or of the one before.
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) {
            366
        } else {
            365
        };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let month = (left / 31 + 1).min(12);
    format!("{year}-{month:02}-01T00:00:00Z")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
