//! A definition's commands with their placeholders filled.

use crate::language::{Piece, Runtime, Word};

use super::build::{BUILD_FOLDER, out};

/// What stands for the placeholders of one run.
pub struct Names<'a> {
    pub runtime: &'a Runtime,
    pub file: &'a str,
    pub name: &'a str,
    pub args: &'a [String],
    pub sources: Vec<String>,
}

impl Names<'_> {
    /// A command.
    pub fn expand(&self, words: &[Word]) -> Vec<String> {
        match words {
            [Word::Literal(program), rest @ ..] => {
                let mut argv = vec![self.program(program)];
                argv.extend(self.arguments(rest));
                argv
            }
            words => self.arguments(words),
        }
    }

    /// Arguments of a command.
    pub fn arguments(&self, words: &[Word]) -> Vec<String> {
        let mut argv = Vec::new();
        for word in words {
            match word {
                Word::Literal(text) => argv.push(text.clone()),
                // Absolute: with a bare name Python would search PATH for its own prefix.
                Word::Runtime => argv.push(self.runtime.program.clone()),
                Word::File => argv.push(self.file.to_owned()),
                Word::Args => argv.extend(self.args.iter().cloned()),
                Word::Sources => argv.extend(self.sources.iter().cloned()),
                Word::Mixed(pieces) => {
                    argv.push(pieces.iter().map(|piece| self.piece(piece)).collect());
                }
            }
        }
        argv
    }

    fn piece(&self, piece: &Piece) -> String {
        match piece {
            Piece::Text(text) => text.clone(),
            Piece::File => self.file.to_owned(),
            Piece::Name => self.name.to_owned(),
            Piece::Prepared => {
                let first = self.runtime.way.prepared.first();
                first.map_or("", |it| it.as_str()).to_owned()
            }
            Piece::Out => out(),
            Piece::OutFolder => format!("/workspace/{BUILD_FOLDER}"),
        }
    }

    /// One of the programs that the way needs, as the cell sees it.
    fn program(&self, name: &str) -> String {
        let mut tools = self.runtime.tools.iter();
        let found = tools.find(|tool| tool.command == name);
        found.map_or_else(|| self.runtime.program.clone(), |tool| tool.program.clone())
    }
}
