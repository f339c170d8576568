//! The line editor: it goes on where the session says that a text is no whole program, and completes names of the session.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::Prompt;
use super::input::word_start;

/// Names that are offered.
const MOST_NAMES: usize = 200;
/// Bytes of one of them.
const LONGEST_NAME: usize = 200;

/// What the editor asks.
pub struct Assistant {
    prompt: Rc<Prompt>,
    /// Words that were typed, for where nothing better is known.
    words: RefCell<BTreeSet<String>>,
}

pub fn open(prompt: Rc<Prompt>) -> rustyline::Result<Editor<Assistant, MemHistory>> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(1000)?
        .auto_add_history(false)
        .build();
    let history = MemHistory::with_config(&config);
    let mut editor = Editor::with_history(config, history)?;
    editor.set_helper(Some(Assistant {
        prompt,
        words: RefCell::default(),
    }));
    Ok(editor)
}

impl Assistant {
    /// The names that begin like this. SECURITY: those of the session are a stranger's words, and this is a terminal.
    fn names(&self, word: &str) -> Vec<String> {
        let said = self.prompt.ask(&self.prompt.complete, word);
        let is_name = |name: &&str| {
            name.len() <= LONGEST_NAME
                && name.starts_with(word)
                && name.len() > word.len()
                && !name.chars().any(char::is_control)
        };
        let said = said.unwrap_or_default();
        let names: BTreeSet<&str> = said.lines().filter(is_name).collect();
        let words = self.words.borrow();
        let own = words.iter().map(String::as_str).filter(is_name);
        let names = names.into_iter().chain(own);
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        names.into_iter().take(MOST_NAMES).collect()
    }

    fn learn(&self, text: &str) {
        let is_part = |part: char| part.is_alphanumeric() || matches!(part, '_' | '$');
        let words = text.split(|part| !is_part(part));
        let words = words.filter(|word| word.chars().count() > 3 && word.len() <= LONGEST_NAME);
        let mut known = self.words.borrow_mut();
        for word in words {
            if known.len() < 10_000 {
                known.insert(word.to_owned());
            }
        }
    }
}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..at];
        let start = word_start(before);
        let word = &before[start..];
        if word.is_empty() {
            let line = before.rsplit('\n').next().unwrap_or_default();
            let is_indent = line.trim().is_empty();
            let indent = is_indent.then(|| "    ".to_owned());
            return Ok((at, indent.into_iter().collect()));
        }
        Ok((start, self.names(word)))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        if self.prompt.is_incomplete(text) {
            return Ok(ValidationResult::Incomplete);
        }
        self.learn(text);
        Ok(ValidationResult::Valid(None))
    }
}

impl Hinter for Assistant {
    type Hint = String;
}

impl Highlighter for Assistant {}

impl Helper for Assistant {}
