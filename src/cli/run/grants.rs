//! What a program is given, by the flags that `hotcell run` and `hotcell repl` share.

use std::io;
use std::path::{Path, PathBuf};

use crate::request::{
    Access, AskedLimits, AskedPackages, InputFile, Mount, Network, RequestError, RunRequest,
    check_mount, check_variable, parse_count, parse_cpus, parse_duration, parse_mount, parse_size,
    parse_workspace,
};

pub const ACCESS: &str = "Access";
const PACKAGES: &str = "Packages";
const LIMITS: &str = "Limits";

#[derive(clap::Args)]
pub struct Grants {
    /// What runs the program: `embedded`, or a runtime's command such as `node`
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Set an environment variable for the program; a name alone passes on the value that it has
    /// here (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Copy a file or folder into the program's working directory (repeatable)
    #[arg(long = "file", value_name = "HOST[:SANDBOX]")]
    files: Vec<String>,
    /// Install a package first, as in requests or 'numpy<3'; what the program imports is installed
    /// without it (repeatable)
    #[arg(long = "package", value_name = "NAME", group = "naming", help_heading = PACKAGES)]
    packages: Vec<String>,
    /// Install these packages first: a JSON object of import names and their packages, or lists for
    /// registries, as in '{"npm": ["prettier"], "pypi": ["ruff"]}', whose commands any program finds
    #[arg(short = 'p', long = "packages", value_name = "JSON", group = "naming", help_heading = PACKAGES)]
    package_map: Option<String>,
    /// Install exactly the packages of an earlier run, whose `packages.lock` is in this file
    #[arg(long, value_name = "FILE", group = "naming", help_heading = PACKAGES)]
    lock: Option<PathBuf>,
    /// Install no packages
    #[arg(long, group = "naming", help_heading = PACKAGES)]
    no_packages: bool,
    /// Download nothing: use only packages that are installed already
    #[arg(long, help_heading = PACKAGES)]
    offline: bool,
    /// Let the program connect to these hosts, as in api.example.com,*.example.org:8443, or to all
    /// [default: none]
    #[arg(long, value_name = "HOSTS", help_heading = ACCESS)]
    network: Vec<String>,
    /// Let the program read and write a folder of this machine, or only read it with :ro
    /// (repeatable)
    #[arg(long = "mount", value_name = "HOST:SANDBOX[:ro]", help_heading = ACCESS)]
    mounts: Vec<String>,
    /// Let the program read this folder of this machine at /work, or also write to it with :rw
    #[arg(long, value_name = "DIR[:rw]", help_heading = ACCESS)]
    workspace: Option<String>,
    /// The same as --mount, in two flags
    #[arg(long, value_name = "HOST", hide = true)]
    nodefs_root: Option<PathBuf>,
    #[arg(long, value_name = "SANDBOX", hide = true, requires = "nodefs_root")]
    nodefs_mount: Option<String>,
    /// End the program after this time, as in 30, 1m, 1500ms [default: 30s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = LIMITS)]
    timeout: Option<String>,
    /// End the program when its processes together use more memory than this, as in 512m, 1g
    /// [default: 512m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, help_heading = LIMITS)]
    memory: Option<String>,
    /// Let the program have this many processes and threads at a time [default: 128]
    #[arg(
        long,
        value_name = "COUNT",
        alias = "processes",
        allow_negative_numbers = true,
        help_heading = LIMITS
    )]
    pids: Option<String>,
    /// Let the program use this many processors, as in 0.5 or 2 [default: 1.0]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true, help_heading = LIMITS)]
    cpus: Option<String>,
    /// End the program when it has printed more than this [default: 256m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, help_heading = LIMITS)]
    output_limit: Option<String>,
}

impl Grants {
    /// A request to run a program with all of it.
    pub fn give(&self, code: impl Into<Vec<u8>>) -> Result<RunRequest, RequestError> {
        let request = RunRequest::new(code)?
            .env(self.variables()?)?
            .files(self.input_files()?)?
            .packages(self.asked_packages()?)?
            .offline(self.offline)
            .limits(self.limits()?)?
            .mounts(self.mounts()?)?
            .network(self.network()?);
        Ok(match &self.engine {
            Some(engine) => request.engine(engine),
            None => request,
        })
    }

    /// The one file that `--file` names as it is, if it does.
    pub fn lone_file(&self) -> Option<&Path> {
        match self.files.as_slice() {
            [file] if Path::new(file).is_file() => Some(Path::new(file)),
            _ => None,
        }
    }

    fn limits(&self) -> Result<AskedLimits, RequestError> {
        Ok(AskedLimits {
            timeout: parse(&self.timeout, parse_duration)?,
            memory: parse(&self.memory, parse_size)?,
            tasks: parse(&self.pids, parse_count)?,
            cpus: parse(&self.cpus, parse_cpus)?,
            output: parse(&self.output_limit, parse_size)?,
        })
    }

    fn input_files(&self) -> Result<Vec<InputFile>, RequestError> {
        let files = self.files.iter();
        files.map(|file| InputFile::from_argument(file)).collect()
    }

    fn variables(&self) -> Result<Vec<(String, String)>, RequestError> {
        let read = |variable: &String| match variable.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => own_variable(variable),
        };
        self.env.iter().map(read).collect()
    }

    fn network(&self) -> Result<Network, RequestError> {
        let words = self.network.iter().flat_map(|list| list.split(','));
        Ok(Network::from_words(words.map(str::trim))?)
    }

    fn mounts(&self) -> Result<Vec<Mount>, RequestError> {
        let mounts = self.mounts.iter().map(|mount| parse_mount(mount));
        let mut mounts = mounts.collect::<Result<Vec<_>, _>>()?;
        if let Some(workspace) = &self.workspace {
            mounts.push(parse_workspace(workspace)?);
        }
        if let Some(root) = &self.nodefs_root {
            let same = root.to_string_lossy();
            let path = self.nodefs_mount.as_deref().unwrap_or(&same);
            mounts.push(check_mount(root, path, Access::Write)?);
        }
        Ok(mounts)
    }

    fn asked_packages(&self) -> Result<AskedPackages, RequestError> {
        if let Some(lock) = &self.lock {
            let text = std::fs::read_to_string(lock);
            let text = text.map_err(|source| cannot_read(lock, source))?;
            return Ok(AskedPackages::Lock(text));
        }
        if let Some(map) = &self.package_map {
            let read = AskedPackages::from_json_text(map);
            return read.ok_or_else(|| RequestError::BadPackages(map.clone()));
        }
        Ok(match (self.no_packages, self.packages.is_empty()) {
            (false, true) => AskedPackages::Detect,
            _ => AskedPackages::List(self.packages.clone()),
        })
    }
}

fn parse<T>(
    text: &Option<String>,
    parse: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<Option<T>, RequestError> {
    text.as_deref().map(parse).transpose()
}

pub fn cannot_read(path: &Path, source: io::Error) -> RequestError {
    RequestError::HostFile {
        path: path.to_owned(),
        source,
    }
}

/// A bare name takes our own value, by explicit wish of the caller.
fn own_variable(name: &str) -> Result<(String, String), RequestError> {
    check_variable(name, "")?;
    let unset = |_| RequestError::Unset(name.to_owned());
    Ok((name.to_owned(), std::env::var(name).map_err(unset)?))
}
