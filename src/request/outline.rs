//! A request as it is written down: without the program and the files that it brings along, which are kept beside it, and without the
//! values of its variables, which are kept nowhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    AskedLimits, AskedPackages, CellPath, FileSource, InputFile, IsolationChoice, Network,
    RequestError, RunRequest, SessionName, Showing, check_mount,
};
use jail::{Access, Mount};

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The program's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// SECURITY: their names alone. A value may be a secret, and nobody has said which are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<OutlinedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<OutlinedMount>,
    #[serde(default)]
    pub packages: AskedPackages,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// Hosts between commas, or `none`, or `all`.
    pub network: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default)]
    pub showing: Showing,
}

/// A file or folder of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutlinedFile {
    pub path: String,
    pub mode: u32,
    /// The file or folder of the host that it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_folder: bool,
    /// Of its content, as far as that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A folder of the host that was granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutlinedMount {
    pub host: PathBuf,
    pub sandbox: PathBuf,
    pub write: bool,
}

impl Outline {
    pub fn of(request: &RunRequest) -> Self {
        Self {
            language: request.language.clone(),
            engine: request.engine.clone(),
            name: request.file_name.as_ref().map(ToString::to_string),
            args: request.args.clone(),
            variables: request.env.keys().cloned().collect(),
            files: request.files.iter().map(OutlinedFile::of).collect(),
            mounts: request.mounts.iter().map(OutlinedMount::of).collect(),
            packages: request.packages.clone(),
            offline: request.offline,
            network: request.network.to_string(),
            servers: request.servers.clone(),
            isolation: request.isolation,
            session: request.session.as_ref().map(ToString::to_string),
            showing: request.showing,
        }
    }

    /// The request again, with what is not in its outline.
    pub fn request(
        &self,
        code: Vec<u8>,
        files: Vec<InputFile>,
        limits: AskedLimits,
    ) -> Result<RunRequest, RequestError> {
        let mounts = self.mounts.iter().map(OutlinedMount::granted);
        let mut request = RunRequest::new(code)?
            .args(self.args.iter().cloned())?
            .files(files)?
            .packages(self.packages.clone())?
            .offline(self.offline)
            .limits(limits)?
            .mounts(mounts.collect::<Result<Vec<_>, _>>()?)?
            .network(Network::parse(&self.network)?)
            .showing(self.showing)
            .isolation(self.isolation)
            .wants_files(true);
        if let Some(language) = &self.language {
            request = request.language(language);
        }
        if let Some(engine) = &self.engine {
            request = request.engine(engine);
        }
        if let Some(name) = &self.name {
            request = request.named(name);
        }
        if let Some(servers) = &self.servers {
            request = request.servers(servers.clone());
        }
        if let Some(name) = &self.session {
            request = request.in_session(SessionName::parse(name)?);
        }
        Ok(request)
    }
}

impl OutlinedFile {
    fn of(file: &InputFile) -> Self {
        let (host, is_folder) = match &file.source {
            FileSource::HostFile(path) => (Some(path.clone()), false),
            FileSource::HostFolder(path) => (Some(path.clone()), true),
            FileSource::EmptyFolder => (None, true),
            FileSource::Bytes(_) | FileSource::Kept(_) | FileSource::Link(_) => (None, false),
        };
        Self {
            path: file.path.to_string(),
            mode: file.mode,
            // Relative to where we were started, which nobody knows later.
            host: host.map(|host| std::path::absolute(&host).unwrap_or(host)),
            is_folder,
            sha256: None,
        }
    }

    /// The file again; `content` is what it held, if that is known.
    pub fn input(&self, content: Option<Vec<u8>>) -> Result<InputFile, RequestError> {
        let source = match (&self.host, content) {
            (_, Some(bytes)) => FileSource::Bytes(bytes),
            (Some(host), None) if self.is_folder => FileSource::HostFolder(host.clone()),
            (Some(host), None) => FileSource::HostFile(host.clone()),
            (None, None) => FileSource::EmptyFolder,
        };
        Ok(InputFile {
            path: CellPath::parse(&self.path)?,
            source,
            mode: self.mode,
        })
    }
}

impl OutlinedMount {
    fn of(mount: &Mount) -> Self {
        Self {
            host: mount.host.clone(),
            sandbox: mount.cell.clone(),
            write: mount.access == Access::Write,
        }
    }

    fn granted(&self) -> Result<Mount, RequestError> {
        let access = match self.write {
            true => Access::Write,
            false => Access::ReadOnly,
        };
        check_mount(&self.host, &self.sandbox.to_string_lossy(), access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_from_its_outline_without_the_values_of_variables() {
        let file = InputFile::from_bytes(CellPath::parse("in.csv").unwrap(), "1,2");
        let limits = AskedLimits {
            memory: Some(1 << 20),
            ..AskedLimits::default()
        };
        let request = RunRequest::new("print(1)")
            .and_then(|it| it.args(["a"]))
            .and_then(|it| it.files([file.clone()]))
            .and_then(|it| it.limits(limits))
            .unwrap()
            .language("python@embedded")
            .network(Network::parse("*.a.test:8443,b.test").unwrap())
            .showing(Showing::All)
            .wants_files(true);
        let with_secret = request.clone().env([("KEY", "sesame")]).unwrap();
        let outline = Outline::of(&with_secret);
        assert_eq!(outline.variables, ["KEY"]);
        let text = serde_json::to_string(&outline).unwrap();
        assert!(!text.contains("sesame"), "{text}");
        let read: Outline = serde_json::from_str(&text).unwrap();
        let back = read.request(b"print(1)".to_vec(), vec![file], limits);
        assert_eq!(back.unwrap(), request);
    }
}
