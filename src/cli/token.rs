//! `hotcell token`: the token that HTTP clients send, and where a server finds it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{BAD_INPUT, print_error, print_line};
use crate::http::{Token, TokenError};
use crate::language::Surroundings;

/// Where a token may come from beside a file.
pub const VARIABLE: &str = "HOTCELL_TOKEN";

#[derive(clap::Args)]
pub struct Arguments {
    /// The file that `hotcell serve --token-file` names, if it does
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Where a token is.
pub enum Origin {
    Variable,
    /// With whether it was made just now, so that nobody can have seen it.
    File(PathBuf, bool),
    /// There is no folder to store it in: it ends with this process.
    Memory,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    match find(arguments.token_file.as_deref()) {
        Ok((_, Origin::Memory)) => {
            let hint = "Set $HOME to an absolute path, or $HOTCELL_TOKEN.";
            print_error("there is no folder for the token", Some(hint));
            BAD_INPUT.into()
        }
        Ok((token, _)) => {
            print_line(token.reveal());
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&error.to_string(), error.hint().as_deref());
            BAD_INPUT.into()
        }
    }
}

/// The token of this file, of the variable, or of the usual file. A file that is not there is made.
pub fn find(file: Option<&Path>) -> Result<(Token, Origin), TokenError> {
    let in_file = |file: PathBuf| {
        let is_new = !file.exists();
        Ok((Token::at(&file)?, Origin::File(file, is_new)))
    };
    if let Some(file) = file {
        return in_file(file.to_owned());
    }
    if let Ok(token) = std::env::var(VARIABLE) {
        return Ok((Token::parse(&token)?, Origin::Variable));
    }
    match Surroundings::from_env().state {
        Some(folder) => in_file(folder.join("token")),
        None => Ok((Token::random(), Origin::Memory)),
    }
}
