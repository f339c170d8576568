//! Which language a program is in, when nobody says so.
//!
//! First what is written down: the tag of a fence around the code, its `#!` line,
//! its file's name, a comment that names it. Then its content: a model that has learned the
//! common languages says how likely each is. Where it is in doubt, or says that it is
//! none of them, the patterns of the definitions are asked: a language's score is the
//! sum of the weights of those that fit. What is not clear is refused: a program that
//! runs in the wrong language does something nobody asked for.

mod comment;
mod features;
mod model;
mod strings;
mod tokens;

use std::sync::OnceLock;

use super::{Definition, LanguageError, LanguageId, Registry, Rule};

/// The hints of the built-in definitions, as (index in the list of them, pattern, weight).
const HINTS: &[(usize, &str, i32)] = include!(concat!(env!("OUT_DIR"), "/hints.rs"));

/// A language that was chosen for a program, and why.
#[derive(Debug)]
pub struct Chosen<'a> {
    pub definition: &'a Definition,
    pub by: By,
    /// From 0 to 1.
    pub certainty: f64,
}

/// What told the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Request,
    Fence,
    Shebang,
    FileName,
    /// A comment that names it, or a line for an editor.
    Comment,
    /// Its content: how likely each language is to look like that.
    #[serde(rename = "looks")]
    Content,
}

/// From this on we say that we are sure.
const SURE: f64 = 0.98;
/// Below this chance nothing runs by what the model says.
const LIKELY: f64 = 0.5;
/// What the model must leave to a language that patterns speak for.
const POSSIBLE: f64 = 0.2;
/// The model's name for all languages that it has not learned.
const OTHERS: &str = "other";
/// Below this chance nothing runs by patterns. With two languages alike it is a lead of one weak hint.
const CLEAR: f64 = 0.7;
/// A score below this is too little to go by, however alone it is.
const ENOUGH: i32 = 3;
/// The chance that it is something we know nothing of, as a score.
const UNKNOWN: f64 = 1.0;
/// How much of a long program is looked at. Its beginning tells as much as the rest, and all patterns over four times of that take half a second.
const LOOKED_AT: usize = 8 << 10;
/// How many languages a refusal names.
const NAMED: usize = 5;

/// The tag of a fence around the whole program, and what is inside.
pub fn unfence(code: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(code).ok()?.trim();
    let marks = ["```", "~~~"].into_iter().find(|it| text.starts_with(it))?;
    let (first, rest) = text.split_once('\n')?;
    let inside = rest.strip_suffix(marks)?;
    // More than one fence is a document about code.
    if inside.lines().any(|line| line.starts_with(marks))
        || !(inside.is_empty() || inside.ends_with('\n'))
    {
        return None;
    }
    let tag = first
        .trim_start_matches(['`', '~'])
        .split([' ', ',', '{', '\t'])
        .find(|it| !it.is_empty());
    Some((
        tag.unwrap_or_default()
            .trim_end_matches('}')
            .trim_start_matches('.'),
        inside,
    ))
}

impl Chosen<'_> {
    /// Whether it may be said without a doubt.
    pub fn is_sure(&self) -> bool {
        self.certainty >= SURE
    }
}

impl Registry {
    /// The language of a program: the one that was asked for, else the fence's, else by
    /// its `#!` line, its file's name, a comment that names it, its looks.
    pub fn recognize(
        &self,
        asked: Option<&str>,
        fence: Option<&str>,
        file: Option<&str>,
        code: &[u8],
        can_run: impl Fn(&Definition) -> bool,
    ) -> Result<Chosen<'_>, LanguageError> {
        let sure = |definition, by| Chosen {
            definition,
            by,
            certainty: 1.0,
        };
        if let Some(asked) = asked {
            let found = self.find(asked)?;
            // Who asks for JavaScript with a file of TypeScript means that.
            let named = file.and_then(|file| self.by_file_name(file).ok()?);
            let wider = named.filter(|it| it.includes.contains(&found.id));
            return Ok(sure(wider.unwrap_or(found), By::Request));
        }
        // A tag that is no language (`text`, `output`) says nothing.
        if let Some(found) = fence.and_then(|tag| self.find(tag).ok()) {
            return Ok(sure(found, By::Fence));
        }
        if let Some(found) = self.by_shebang(code)? {
            return Ok(sure(found, By::Shebang));
        }
        if let Some(found) = file
            .map(|file| self.by_file_name(file))
            .transpose()?
            .flatten()
        {
            return Ok(sure(found, By::FileName));
        }
        let text = String::from_utf8_lossy(&code[..code.len().min(LOOKED_AT)]);
        let named = comment::names(&text);
        if let Some(found) = named.iter().find_map(|name| self.find(name).ok()) {
            return Ok(sure(found, By::Comment));
        }
        self.by_looks(code, can_run)
            .map_err(|candidates| LanguageError::Undetected {
                file: file.map(str::to_owned),
                candidates,
            })
    }

    /// The language a program looks like; else those it may be in, likeliest first.
    fn by_looks(
        &self,
        code: &[u8],
        can_run: impl Fn(&Definition) -> bool,
    ) -> Result<Chosen<'_>, Vec<LanguageId>> {
        let text = String::from_utf8_lossy(&code[..code.len().min(LOOKED_AT)]);
        let chances = model::model().chances(&text);
        let chosen = |(definition, certainty)| Chosen {
            definition,
            by: By::Content,
            certainty,
        };
        // One that is clear and cannot run is still the answer: its refusal says what to install.
        let own = self.own().any(|it| score(it, &text) > 0);
        // A word alone may be a command, or anything.
        let is_word = !text
            .trim()
            .contains(|it: char| !it.is_alphanumeric() && it != '_');
        let enough = if is_word { SURE } else { LIKELY };
        match chances.first() {
            Some((id, chance)) if *chance >= enough && *id != OTHERS && !own => {
                if let Ok(definition) = self.find(id) {
                    return Ok(chosen((definition, *chance)));
                }
            }
            _ => {}
        }
        let left = |id: &str| {
            let known = if model::model().knows(id) { id } else { OTHERS };
            chances
                .iter()
                .find(|it| it.0 == known)
                .map_or(1.0, |it| it.1)
        };
        let mut scores = self.scores(&text);
        scores.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        if let Some(clear) = clear(&scores).filter(|it| left(it.0.id.as_str()) >= POSSIBLE) {
            return Ok(chosen(clear));
        }
        let likely = chances
            .iter()
            .filter(|(id, chance)| !is_word && *id != OTHERS && *chance >= POSSIBLE / 4.0);
        let likely = likely.filter_map(|(id, _)| self.find(id).ok());
        let listed = scores.iter().map(|(definition, _)| *definition);
        let mut named: Vec<&Definition> = Vec::new();
        for definition in likely.chain(listed).take(2 * NAMED) {
            if !named.iter().any(|it| it.id == definition.id) {
                named.push(definition);
            }
        }
        scores.truncate(2 * NAMED);
        scores.retain(|(definition, _)| can_run(definition));
        if let Some(clear) = clear(&scores).filter(|it| left(it.0.id.as_str()) >= POSSIBLE) {
            return Ok(chosen(clear));
        }
        if named.len() < 2 {
            let named_first = named.first().map(|it| &it.id);
            let possible = self.possible(&text).into_iter();
            let others: Vec<_> = possible.filter(|it| Some(&it.id) != named_first).collect();
            named.extend(others);
        }
        if named.iter().any(|it| can_run(it)) {
            named.retain(|it| can_run(it));
        }
        named.sort_by_key(|definition| !can_run(definition));
        let ids = named.iter().map(|definition| definition.id.clone());
        Err(ids.take(NAMED).collect())
    }

    /// The languages of which such a program may be one, though little speaks for them: those
    /// with a hint of no weight.
    fn possible(&self, text: &str) -> Vec<&Definition> {
        let fits = |(rule, weight): &(Rule, i32)| *weight == 0 && rule.is_in(text);
        let own = self.own().filter(|it| it.hints.iter().any(fits));
        let ours = rules()
            .iter()
            .filter(|(_, rule, weight)| *weight == 0 && rule.is_in(text));
        let ours = ours.filter_map(|(at, ..)| self.built_in(*at));
        own.chain(ours).collect()
    }

    /// All languages that something speaks for.
    fn scores(&self, text: &str) -> Vec<(&Definition, i32)> {
        let mut built_in: Vec<i32> = Vec::new();
        for (at, rule, weight) in rules() {
            if built_in.len() <= *at {
                built_in.resize(at + 1, 0);
            }
            if rule.is_in(text) {
                built_in[*at] += weight;
            }
        }
        let own = self
            .own()
            .map(|definition| (definition, score(definition, text)));
        let ours = built_in
            .into_iter()
            .enumerate()
            .filter(|(_, score)| *score > 0);
        let ours = ours.filter_map(|(at, score)| Some((self.built_in(at)?, score)));
        own.chain(ours).filter(|(_, score)| *score > 0).collect()
    }
}

/// What the hints of a definition of the user's say for it.
fn score(definition: &Definition, text: &str) -> i32 {
    let fitting = definition.hints.iter().filter(|(rule, _)| rule.is_in(text));
    fitting.map(|(_, weight)| weight).sum()
}

fn rules() -> &'static [(usize, Rule, i32)] {
    static RULES: OnceLock<Vec<(usize, Rule, i32)>> = OnceLock::new();
    let rule = |(at, rule, weight): &(usize, &str, i32)| (*at, Rule::new(rule), *weight);
    RULES.get_or_init(|| HINTS.iter().map(rule).collect())
}

/// The first of sorted scores and its chance, if that is enough.
fn clear<'a>(scores: &[(&'a Definition, i32)]) -> Option<(&'a Definition, f64)> {
    let (first, score) = *scores.first()?;
    let weight = |score: f64| (score - f64::from(scores[0].1)).exp();
    let others: f64 = scores
        .iter()
        .map(|(_, score)| weight(f64::from(*score)))
        .sum();
    let chance = 1.0 / (others + weight(UNKNOWN));
    (score >= ENOUGH && chance >= CLEAR).then_some((first, chance))
}

#[cfg(test)]
mod tests;
