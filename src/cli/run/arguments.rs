//! The arguments of `hotcell run`, and the request that they make.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::grants::{Grants, cannot_read};
use crate::cli::RequirementArguments;
use crate::language::Registry;
use crate::request::{RequestError, RunRequest, Showing};

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
    /// The program's file, a notebook (.ipynb), or the name of a language; without it and without
    /// --code, the program is read from standard input
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
    pub language: Option<String>,
    #[command(flatten)]
    pub grants: Grants,
    /// Write the files that the program leaves in its working directory, new or changed, into
    /// this folder; of a notebook: write it to this folder, file or `-`, and not back
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub out: Option<PathBuf>,
    /// Go on with the next cell when one of a notebook fails
    #[arg(long)]
    pub allow_errors: bool,
    /// Print the result as JSON when the program has ended, instead of its output as it comes
    #[arg(long)]
    pub json: bool,
    /// Do not record this run: `hotcell logs` will not show it
    #[arg(long)]
    pub no_record: bool,
    /// Let it also call the tools of the MCP servers that other programs on this machine have configured
    #[arg(long)]
    pub discover: bool,
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
        let mut request = self
            .grants
            .give(program.code)?
            .args(self.arguments.iter().cloned())?
            .wants_files(self.out.is_some() || self.json)
            .showing(self.showing());
        if let Some(language) = self.language.as_deref().or(named) {
            request = request.language(language);
        }
        if let Some(file) = program.file {
            request = request.named(file);
        }
        Ok((request, program.may_read_stdin))
    }

    /// The file of the program, if that is a notebook.
    pub fn notebook(&self) -> Option<&Path> {
        let file = self.program.as_deref().or(self.file.as_deref())?;
        let is_notebook = file.extension().is_some_and(|it| it == "ipynb");
        let is_program = self.inline.is_none() && self.code.is_none();
        Some(file).filter(|_| is_notebook && is_program)
    }

    /// Whether there are words for the program, which a notebook has no use for.
    pub fn has_words(&self) -> bool {
        !self.arguments.is_empty()
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
}
