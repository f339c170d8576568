//! The arguments of `hotcell run`, and the request that they make.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::cli::RequirementArguments;
use crate::language::Registry;
use crate::request::{
    Access, AskedLimits, AskedPackages, InputFile, Mount, Network, RequestError, RunRequest,
    Showing, check_mount, check_variable, parse_count, parse_cpus, parse_duration, parse_mount,
    parse_size,
};

const EXIT_CODES: &str = "\
Exit codes:
  N      the program's own exit code
  128+N  the program was ended by signal N
  124    it was ended at its time limit
  122    it was ended at its memory limit
  123    it was ended because it printed too much
  125    hotcell could not run it, or lost it
  2      the arguments cannot be used; nothing was run
  130    interrupted";

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// The program's file, or the name of a language; without it and without --code, the program
    /// is read from standard input
    file: Option<PathBuf>,
    /// The program itself, after the name of a language
    #[arg(value_name = "CODE", conflicts_with_all = ["code", "program"])]
    inline: Option<String>,
    /// The program's file, after the name of a language
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "code")]
    program: Option<PathBuf>,
    /// The program itself
    #[arg(short, long, value_name = "CODE", conflicts_with = "file")]
    code: Option<String>,
    /// The program's language [default: detected from its `#!` line, file name or content]
    #[arg(short, long, value_name = "NAME")]
    language: Option<String>,
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
    #[arg(long = "package", value_name = "NAME", group = "naming")]
    packages: Vec<String>,
    /// Install these packages first: a JSON object of import names and their packages
    #[arg(short = 'p', long = "packages", value_name = "JSON", group = "naming")]
    package_map: Option<String>,
    /// Install exactly the packages of an earlier run, whose `packages.lock` is in this file
    #[arg(long, value_name = "FILE", group = "naming")]
    lock: Option<PathBuf>,
    /// Install no packages
    #[arg(long, group = "naming")]
    no_packages: bool,
    /// Download nothing: use only packages that are installed already
    #[arg(long)]
    offline: bool,
    /// Allow connections to these hosts, as in api.example.com,*.example.org:8443, or to all
    /// [default: none]
    #[arg(long, value_name = "HOSTS")]
    network: Vec<String>,
    /// Give the program a folder of this machine to read and write, or only to read with :ro
    /// (repeatable)
    #[arg(long = "mount", value_name = "HOST:SANDBOX[:ro]")]
    mounts: Vec<String>,
    /// The same as --mount, in two flags
    #[arg(long, value_name = "HOST", hide = true)]
    nodefs_root: Option<PathBuf>,
    #[arg(long, value_name = "SANDBOX", hide = true, requires = "nodefs_root")]
    nodefs_mount: Option<String>,
    /// End the program after this time, as in 30, 1m, 1500ms [default: 30s]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    timeout: Option<String>,
    /// End the program when its processes together use more memory than this, as in 512m, 1g
    /// [default: 512m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    memory: Option<String>,
    /// Let the program have this many processes and threads at a time [default: 128]
    #[arg(
        long,
        value_name = "COUNT",
        alias = "processes",
        allow_negative_numbers = true
    )]
    pids: Option<String>,
    /// Let the program use this many processors, as in 0.5 or 2 [default: 1.0]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    cpus: Option<String>,
    /// End the program when it has printed more than this [default: 256m]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    output_limit: Option<String>,
    /// Write the files that the program leaves in its working directory, new or changed, into
    /// this folder
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub out: Option<PathBuf>,
    /// Print the result as JSON when the program has ended, instead of its output as it comes
    #[arg(long)]
    pub json: bool,
    /// Do not record this run: `hotcell logs` will not show it
    #[arg(long)]
    pub no_record: bool,
    /// Print what would be run, as JSON, and run nothing
    #[arg(long)]
    pub plan: bool,
    #[command(flatten)]
    pub requirement: RequirementArguments,
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// A program, and where it came from.
struct Program<'a> {
    code: Vec<u8>,
    file: Option<&'a Path>,
    /// It was not read from there itself.
    may_read_stdin: bool,
}

impl Arguments {
    /// What to run, and whether our standard input is the program's.
    pub fn request(&self, registry: &Registry) -> Result<(RunRequest, bool), RequestError> {
        // A file of that name comes first; nobody has one called `py`.
        let first = self.file.as_deref().filter(|file| !file.exists());
        let named = first
            .and_then(Path::to_str)
            .filter(|it| registry.find(it).is_ok());
        let program = self.program(named.is_some())?;
        let mut request = RunRequest::new(program.code)?
            .args(self.arguments.iter().cloned())?
            .env(self.variables()?)?
            .files(self.input_files()?)?
            .packages(self.asked_packages()?)?
            .offline(self.offline)
            .limits(self.limits()?)?
            .mounts(self.mounts()?)?
            .wants_files(self.out.is_some() || self.json)
            .network(self.network()?)
            .showing(self.showing());
        if let Some(language) = self.language.as_deref().or(named) {
            request = request.language(language);
        }
        if let Some(engine) = &self.engine {
            request = request.engine(engine);
        }
        if let Some(file) = program.file {
            request = request.named(file);
        }
        Ok((request, program.may_read_stdin))
    }

    /// Who pipes our output wants what the program prints and nothing else.
    fn showing(&self) -> Showing {
        match self.json || io::stdout().is_terminal() {
            true => Showing::All,
            false => Showing::Pictures,
        }
    }

    fn program(&self, is_language: bool) -> Result<Program<'_>, RequestError> {
        let given = |code: &str| Program {
            code: code.as_bytes().to_vec(),
            file: None,
            may_read_stdin: true,
        };
        if let Some(inline) = &self.inline {
            if is_language {
                return Ok(given(inline));
            }
            // Nothing is guessed: the first word is neither a file nor a language.
            return Err(RequestError::HostFile {
                path: self.file.clone().unwrap_or_else(|| inline.into()),
                source: io::Error::other("it is neither a language nor a file"),
            });
        }
        if let Some(code) = &self.code {
            return Ok(given(code));
        }
        let first = self.file.as_deref().filter(|_| !is_language);
        match self.program.as_deref().or(first) {
            Some(file) if file != Path::new("-") => Ok(Program {
                code: std::fs::read(file).map_err(|source| cannot_read(file, source))?,
                file: Some(file),
                may_read_stdin: true,
            }),
            None if io::stdin().is_terminal() => Err(RequestError::EmptyCode),
            _ => {
                let mut code = Vec::new();
                let read = io::stdin().lock().read_to_end(&mut code);
                read.map_err(|source| cannot_read(Path::new("standard input"), source))?;
                Ok(Program {
                    code,
                    file: None,
                    may_read_stdin: false,
                })
            }
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
            let read = serde_json::from_str(map).map(AskedPackages::Map);
            return read.map_err(|_| RequestError::BadNumber {
                value: map.clone(),
                expected: "a JSON object of imports and packages",
                example: "{\"sklearn\": \"scikit-learn\"}",
            });
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

fn cannot_read(path: &Path, source: io::Error) -> RequestError {
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
