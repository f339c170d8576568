//! What a model is told of all tools: each in a line while that is little, else how many there are.

use std::fmt::Write;
use std::sync::Arc;

use super::{UpstreamServer, UpstreamServers, signature};

/// Tokens that the lines of all tools may have. It buys the model one call less, since it need not search.
const MOST_FOR_LINES: usize = 580;
/// Tokens that the list of servers may have beside them: with it, the whole list of our tools stays below 700.
const MOST_FOR_NAMES: usize = 60;

/// The tools as the description of `run` shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Catalogue {
    /// A line for each of them.
    Whole(String),
    /// Too many for that: the servers, each with how many it has. The tools have to be searched.
    Counted(String),
}

impl UpstreamServers {
    /// What is known of the tools now. Waits for nothing, and is the same as long as they are.
    pub fn catalogue(&self) -> Catalogue {
        let mut text = String::new();
        let mut left = MOST_FOR_LINES;
        for server in self.shown() {
            // One after the other: most servers have more of them than fit.
            for tool in server.known().iter() {
                let line = signature::line(&server.alias, tool);
                let Some(rest) = left.checked_sub(tokens(&line)) else {
                    return Catalogue::Counted(self.counts(MOST_FOR_NAMES));
                };
                left = rest;
                text += &line;
                text.push('\n');
            }
        }
        Catalogue::Whole(text)
    }

    /// Those that somebody is told of: not functions of which there are none yet.
    pub fn shown(&self) -> impl Iterator<Item = &Arc<UpstreamServer>> {
        self.all.iter().filter(|server| server.is_shown())
    }

    /// Whether programs are likely to call one: sandboxes are then pre-started for that.
    pub fn has_lasting(&self) -> bool {
        self.all.iter().any(|server| server.is_lasting())
    }

    /// `github(35) slack(12)`: the servers with how many tools they have, the largest first, as far as `most` tokens go.
    pub fn counts(&self, most: usize) -> String {
        let count = |server: &Arc<UpstreamServer>| server.known().len();
        let mut counts: Vec<(usize, &str)> = self
            .shown()
            .map(|server| (count(server), server.alias.as_str()))
            .collect();
        counts.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        let mut text = String::new();
        for (at, (count, alias)) in counts.iter().enumerate() {
            let one = format!("{alias}({count})");
            if tokens(&text) + tokens(&one) > most {
                let _ = write!(text, " and {} more", counts.len() - at);
                break;
            }
            let space = if at == 0 { "" } else { " " };
            let _ = write!(text, "{space}{one}");
        }
        text
    }
}

/// How many tools there are, in words.
pub fn counted(tools: usize) -> String {
    match tools {
        1 => "1 tool".to_owned(),
        tools => format!("{tools} tools"),
    }
}

/// About as many tokens as a tokenizer makes of a line like ours: one for four letters and signs, and one for each character of other scripts.
fn tokens(text: &str) -> usize {
    let plain = text.chars().filter(char::is_ascii).count();
    plain.div_ceil(4) + text.chars().count() - plain
}
