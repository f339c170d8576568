//! The arguments of `hotcell run`, and the request that they make.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::beside::{Folder, Found};
use super::grants::{ACCESS, Grants, cannot_read};
use super::{project, two_words};
use crate::cli::{RequirementArguments, parse_run, typed};
use crate::engine::Rejected;
use crate::language::Registry;
use crate::request::{CellPath, InputFile, RequestError, RunRequest, Showing};

const EXIT_CODES: &str = "\
Exit codes:
  N      the program's own exit code
  128+N  the program was ended by signal N
  124    it was ended at its time limit
  122    it was ended at its memory limit
  123    it was ended because it printed too much
  125    hotcell could not run it, or lost it
  2      the arguments cannot be used; nothing was run (1 in the form `run py CODE`)
  130    it was interrupted: the first Ctrl-C goes to the program, the second ends it";

const RESULT: &str = "Result";

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// A file, a notebook (.ipynb), the folder of a project, or the name of a language and the code; standard input if nothing is
    /// given, or `-`. Everything after it is passed to the program
    #[arg(value_name = "PROGRAM [ARGS]", trailing_var_arg = true)]
    words: Vec<OsString>,
    /// Run this file: everything else is passed to the program
    #[arg(short = 'f', value_name = "FILE", conflicts_with = "code")]
    program: Option<PathBuf>,
    /// Run this code: everything else is passed to the program
    #[arg(short, long, value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// The program's language [default: detected from its `#!` line, file name or content]
    #[arg(short, long, alias = "lang", value_name = "NAME")]
    pub language: Option<String>,
    #[command(flatten)]
    pub grants: Grants,
    /// Write the files that the program leaves, new or changed, into this folder. For a notebook: write it to this folder, to
    /// this file or to standard output (`-`), and leave the original as it is
    #[arg(long, value_name = "DIR", conflicts_with = "plan", help_heading = RESULT)]
    pub out: Option<PathBuf>,
    /// Go on with the next cell when one of a notebook fails
    #[arg(long, help_heading = RESULT)]
    pub allow_errors: bool,
    /// Print the whole result as JSON when the program has ended
    #[arg(long, help_heading = RESULT)]
    pub json: bool,
    /// Give the program pipes, even if you run it at a terminal
    #[arg(long, help_heading = RESULT)]
    pub no_tty: bool,
    /// Do not record this run: `hotcell logs` will not show it
    #[arg(long, help_heading = RESULT)]
    pub no_record: bool,
    /// Let the program also call the tools of MCP servers that your other programs have configured
    #[arg(long, help_heading = ACCESS)]
    pub discover: bool,
    /// Make a new sandbox, even if a server of yours has one ready
    #[arg(long, help_heading = "Sandbox")]
    // Looked for before the arguments are read: `resident::ALONE`.
    no_server: bool,
    /// Print what would be run, as JSON, and run nothing
    #[arg(long, help_heading = RESULT)]
    pub plan: bool,
    #[command(flatten)]
    pub requirement: RequirementArguments,
    /// Whether it is of the form `py CODE`.
    #[arg(skip)]
    pub is_two_words: bool,
}

/// What is to be run, and what is to be said about that.
pub struct Asked {
    pub request: RunRequest,
    /// Whether our standard input is the program's.
    pub has_stdin: bool,
    pub notes: Vec<String>,
}

/// A program, and where it came from.
struct Program {
    code: Vec<u8>,
    /// Its path in the folder that it came from.
    file: Option<(PathBuf, String)>,
    /// Whether all of that folder is the program's.
    is_project: bool,
    language: Option<&'static str>,
    /// It was not read from there itself.
    may_read_stdin: bool,
}

impl Arguments {
    /// Finds the program among the words, which leaves its arguments there.
    ///
    /// Behind the name of a language come options of ours again, as in `run python 'print(1)' --timeout 5 x`.
    pub fn find_program(mut self, registry: &Registry) -> Self {
        let mut typed = typed();
        let at = typed.len().saturating_sub(self.words.len());
        // What comes behind `--` is for the program.
        let is_given = |it: &Self, before: Option<&OsString>| {
            it.code.is_some() || it.program.is_some() || before.is_some_and(|word| word == "--")
        };
        let before = at.checked_sub(1).and_then(|at| typed.get(at));
        if self.words.is_empty() || is_given(&self, before) && !self.begins_with_file() {
            return self;
        }
        // A file of that name comes first; nobody has one called `py`.
        let name = self.words[0].to_str();
        // With what shall run it: `lua@embedded`.
        let is_known = |name: &str| {
            registry
                .find(name.split('@').next().unwrap_or(name))
                .is_ok()
        };
        let name = name.filter(|name| !Path::new(name).exists() && is_known(name));
        if let Some(name) = name.map(str::to_owned) {
            typed.remove(at);
            let mut again = parse_run(&typed);
            let at = typed.len().saturating_sub(again.words.len());
            let before = at.checked_sub(1).and_then(|at| typed.get(at));
            let is_two_words = two_words::is_its(&name);
            again.language = again.language.or(Some(name));
            if !again.words.is_empty() && !is_given(&again, before) {
                // And behind the program itself, up to its first argument.
                let code = typed.remove(at);
                let language = again.language.take();
                again = parse_run(&typed);
                again.language = again.language.or(language);
                again.code = again.code.or(Some(code.to_string_lossy().into_owned()));
                again.drop_dashes();
            }
            again.is_two_words = is_two_words;
            return again;
        }
        let program = PathBuf::from(self.words.remove(0));
        if is_notebook(&program) {
            // It takes no arguments, so that options of ours may follow it.
            typed.remove(at);
            self = parse_run(&typed);
        }
        self.program = Some(program);
        self.drop_dashes();
        self
    }

    /// Whether nothing but a file behind `--` can be the program: `run -- a.py x`.
    fn begins_with_file(&self) -> bool {
        let is_named = self.code.is_some() || self.program.is_some() || self.language.is_some();
        let is_file = |word: &OsString| Path::new(word).is_file();
        !is_named && self.words.first().is_some_and(is_file) && !is_piped()
    }

    /// The `--` between a program and its arguments is not one of them.
    fn drop_dashes(&mut self) {
        if self.words.first().is_some_and(|word| word == "--") {
            self.words.remove(0);
        }
    }

    /// What to run.
    pub fn request(&self, registry: &Registry) -> Result<Asked, Rejected> {
        let program = match self.program(registry) {
            Err(RequestError::HostFile { path, source })
                if source.kind() == io::ErrorKind::NotFound
                    && (is_bare(&path) || path.to_str().is_some_and(is_code)) =>
            {
                return Err(neither(path, registry));
            }
            program => program?,
        };
        let Found {
            files,
            refused,
            line,
        } = self.beside(&program, registry);
        let mut request = self
            .grants
            .give(program.code)?
            .args(self.program_arguments()?)?
            .wants_files(self.out.is_some() || self.json)
            .showing(self.showing());
        if let Some(language) = self.language.as_deref().or(program.language) {
            request = request.language(language);
        }
        if let Some((_, path)) = &program.file {
            request = match CellPath::parse(path) {
                Ok(path) => request.placed(path),
                Err(_) => request,
            };
        }
        // What the caller has given by name comes first.
        let given = request.asked_files().to_vec();
        let is_free = |file: &InputFile| !given.iter().any(|it| it.is_in_the_way_of(file));
        Ok(Asked {
            request: request
                .files(files.into_iter().filter(is_free))?
                .own_modules(refused),
            has_stdin: program.may_read_stdin,
            notes: line.into_iter().collect(),
        })
    }

    /// The program's file, or the folder of a project.
    pub fn file(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// The folder that the program's file is in.
    pub fn folder(&self) -> Option<&Path> {
        let file = self.program.as_deref()?;
        match file.is_dir() {
            true => Some(file),
            false => file.parent(),
        }
    }

    /// The files beside the program that it uses, and a line about them.
    fn beside(&self, program: &Program, registry: &Registry) -> Found {
        let Some((folder, path)) = &program.file else {
            return Found::default();
        };
        let Ok(mut folder) = Folder::open(folder) else {
            return Found::default();
        };
        let asked = self.language.as_deref();
        let asked = asked.map(|it| it.split('@').next().unwrap_or(it));
        let definition = match asked {
            Some(asked) => registry.find(asked).ok(),
            None => {
                let found = registry.recognize(None, None, Some(path), &program.code, |_| true);
                found.ok().map(|it| it.definition)
            }
        };
        match (program.is_project, definition) {
            (true, _) => folder.take_all(path),
            (false, Some(definition)) => folder.take_named((path, &program.code), definition),
            (false, None) => {}
        }
        folder.finish()
    }

    fn program_arguments(&self) -> Result<Vec<String>, RequestError> {
        let text = |word: &OsString| {
            let not_text = || RequestError::BadNumber {
                value: word.to_string_lossy().into_owned(),
                expected: "UTF-8 text, as arguments of a program are here",
                example: "caf\u{e9}",
            };
            word.to_str().map(str::to_owned).ok_or_else(not_text)
        };
        self.words.iter().map(text).collect()
    }

    /// The file of the program, if that is a notebook.
    pub fn notebook(&self) -> Option<&Path> {
        let file = self.program.as_deref();
        file.filter(|file| is_notebook(file))
    }

    /// Whether there are words for the program, which a notebook has no use for.
    pub fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Who pipes our output wants what the program prints and nothing else.
    fn showing(&self) -> Showing {
        match self.json || io::stdout().is_terminal() {
            true => Showing::All,
            false => Showing::Pictures,
        }
    }

    fn program(&self, registry: &Registry) -> Result<Program, RequestError> {
        let alone = |code: Vec<u8>| Program {
            code,
            file: None,
            is_project: false,
            language: None,
            may_read_stdin: true,
        };
        if let Some(code) = &self.code {
            return Ok(alone(code.as_bytes().to_vec()));
        }
        match self.program.as_deref() {
            Some(folder) if folder.is_dir() => project(folder, registry),
            Some(file) if file != Path::new("-") => {
                let code = std::fs::read(file).map_err(|source| cannot_read(file, source))?;
                let name = file.file_name().and_then(OsStr::to_str);
                let folder = file.parent().map(Path::to_owned);
                Ok(Program {
                    file: folder.zip(name.map(str::to_owned)),
                    ..alone(code)
                })
            }
            None if io::stdin().is_terminal() => self.lone_file().map(alone),
            _ => {
                let mut code = Vec::new();
                let read = io::stdin().lock().read_to_end(&mut code);
                read.map_err(|source| cannot_read(Path::new("standard input"), source))?;
                if code.is_empty() && self.program.is_none() {
                    return self.lone_file().map(alone);
                }
                Ok(Program {
                    may_read_stdin: false,
                    ..alone(code)
                })
            }
        }
    }
}

impl Arguments {
    /// The program of `hotcell run py --file a.py`, where there is no other: the file that is copied is what was meant.
    fn lone_file(&self) -> Result<Vec<u8>, RequestError> {
        let named = self.language.as_ref().and(self.grants.lone_file());
        let file = named.ok_or(RequestError::EmptyCode)?;
        std::fs::read(file).map_err(|source| cannot_read(file, source))
    }
}

/// Whether a program can come over standard input: not from a terminal or `/dev/null`.
fn is_piped() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|it| FileType::from_raw_mode(it.st_mode));
    kind.is_ok_and(|kind| kind != FileType::CharacterDevice)
}

fn is_notebook(file: &Path) -> bool {
    file.extension().is_some_and(|it| it == "ipynb")
}

/// A folder's program.
fn project(path: &Path, registry: &Registry) -> Result<Program, RequestError> {
    let folder = Folder::open(path).map_err(|source| cannot_read(path, source))?;
    let Some(entry) = project::find(&folder, registry) else {
        return Err(RequestError::HostFile {
            path: path.to_owned(),
            source: io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder without a `main` file, and without a package.json, pyproject.toml, go.mod, Cargo.toml or Makefile that says what to start",
            ),
        });
    };
    Ok(Program {
        code: entry.code.into_bytes(),
        file: Some((path.to_owned(), entry.path)),
        is_project: true,
        language: entry.language,
        may_read_stdin: true,
    })
}

/// About a word that is no file, and may have been meant to be a language.
fn neither(path: PathBuf, registry: &Registry) -> Rejected {
    match registry.find(&path.to_string_lossy()) {
        Err(error) if error.has_similar() => error.into(),
        _ => {
            let kind = match path.to_str().is_some_and(is_code) {
                true => io::ErrorKind::InvalidInput,
                false => io::ErrorKind::NotFound,
            };
            let source = io::Error::new(kind, "it is neither a language nor a file");
            RequestError::HostFile { path, source }.into()
        }
    }
}

/// Whether a word could be a language: a file's name mostly has an ending or a folder.
pub fn is_bare(path: &Path) -> bool {
    path.extension().is_none() && path.file_name() == Some(path.as_os_str())
}

/// Whether a word is more likely code than the name of anything.
pub fn is_code(word: &str) -> bool {
    word.contains([' ', '(', ';', '"', '\''])
}

/// Whether a first word of the command line is a program to run, and no command of ours.
pub fn is_program(word: &OsStr) -> bool {
    let path = Path::new(word);
    let is_option = word.as_encoded_bytes().starts_with(b"-");
    // One that is not there is an error about a file, not about commands.
    !is_option && (path.exists() || !is_bare(path))
}
