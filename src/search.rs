//! Ranks short descriptions of tools by a question in words, without a model: BM25 over fields of different weight, synonyms, and words that
//! are nearly spelled the same for those that occur nowhere.
//!
//! It knows nothing of servers and calls: it is given texts, and says which of them fit best. All of them are foreign, so they are bounded here.

mod synonyms;
mod words;

use std::collections::HashMap;

use synonyms::{is_common_verb, synonyms};
use words::{is_near, words};

/// What a tool says of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Document<'a> {
    pub server: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    /// The names of its parameters.
    pub parameters: &'a [&'a str],
}

/// What an occurrence counts in each field: its name says most about a tool, the end of a long description least.
const NAME: f32 = 4.0;
const SERVER: f32 = 3.0;
const FIRST_SENTENCE: f32 = 1.5;
const REST: f32 = 0.3;
const PARAMETERS: f32 = 0.5;
/// BM25: how soon further occurrences count less, and how much a longer field counts less.
const SATURATION: f32 = 1.0;
const LENGTH: f32 = 0.3;
/// What a match counts that is not the word itself.
const SYNONYM: f32 = 0.5;
const NEAR: f32 = 0.5;
/// What a verb that half of all tools could have counts.
const COMMON_VERB: f32 = 0.7;

/// Characters of a description, and parameters, that are looked at.
const LONGEST: usize = 4000;
const MOST_PARAMETERS: usize = 100;
/// Characters and words of a question.
const LONGEST_QUERY: usize = 2000;
const MOST_WORDS: usize = 64;

/// The texts, ready to be searched.
#[derive(Default)]
pub struct Index {
    /// Of each text.
    names: Vec<String>,
    terms: HashMap<String, Term>,
}

/// A word that occurs.
struct Term {
    rarity: f32,
    /// In which texts, and how much it counts there.
    postings: Vec<(usize, f32)>,
}

/// What was found, best first.
#[derive(Debug, PartialEq, Eq)]
pub struct Ranking {
    pub best: Vec<Hit>,
    /// How many more there are.
    pub more: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Hit {
    /// The place of the text in what the index was made of.
    pub at: usize,
    /// Others of the same name, which fit less well.
    pub also: Vec<usize>,
}

impl Index {
    pub fn new<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut names = Vec::new();
        let mut fields: [Vec<Vec<String>>; 5] = Default::default();
        for document in documents {
            let about = bounded(document.description.trim(), LONGEST);
            let (first, rest) = first_sentence(about);
            let parameters = document.parameters.iter().take(MOST_PARAMETERS);
            let parameters: Vec<&str> = parameters.map(|name| bounded(name, 100)).collect();
            let texts = [
                bounded(document.name, 200),
                bounded(document.server, 200),
                first,
                rest,
                &parameters.join(" "),
            ];
            for (field, text) in fields.iter_mut().zip(texts) {
                field.push(words(text));
            }
            names.push(document.name.to_owned());
        }
        let mut postings: HashMap<String, Vec<(usize, f32)>> = HashMap::new();
        let weights = [NAME, SERVER, FIRST_SENTENCE, REST, PARAMETERS];
        let mean = |field: &Vec<Vec<String>>| {
            let all: usize = field.iter().map(Vec::len).sum();
            (all as f32 / names.len().max(1) as f32).max(f32::MIN_POSITIVE)
        };
        let means: Vec<f32> = fields.iter().map(mean).collect();
        for at in 0..names.len() {
            for ((field, weight), mean) in fields.iter_mut().zip(weights).zip(&means) {
                let words = std::mem::take(&mut field[at]);
                let counts = weight / (1.0 - LENGTH + LENGTH * words.len() as f32 / mean);
                for word in words {
                    let of_word = postings.entry(word).or_default();
                    match of_word.last_mut() {
                        Some((last, count)) if *last == at => *count += counts,
                        _ => of_word.push((at, counts)),
                    }
                }
            }
        }
        let all = names.len() as f32;
        let term = |postings: Vec<(usize, f32)>| {
            let some = postings.len() as f32;
            Term {
                rarity: (1.0 + (all - some + 0.5) / (some + 0.5)).ln(),
                postings,
            }
        };
        let terms = postings
            .into_iter()
            .map(|(word, found)| (word, term(found)));
        Self {
            terms: terms.collect(),
            names,
        }
    }

    /// The texts that fit the question best, at most `limit`; texts of tools with the same name count as one.
    pub fn search(&self, query: &str, limit: usize) -> Ranking {
        let scores = self.scores(query);
        let mut found: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        // Equal ones in their own order: an answer is the same each time.
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let mut best: Vec<Hit> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for at in found {
            match places.get(self.names[at].as_str()) {
                Some(place) => best[*place].also.push(at),
                None => {
                    places.insert(&self.names[at], best.len());
                    let also = Vec::new();
                    best.push(Hit { at, also });
                }
            }
        }
        let more = best.len().saturating_sub(limit);
        best.truncate(limit);
        Ranking { best, more }
    }

    fn scores(&self, query: &str) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.names.len()];
        let mut best = scores.clone();
        let mut asked: Vec<String> = Vec::new();
        for word in words(bounded(query, LONGEST_QUERY)) {
            if asked.len() < MOST_WORDS && !asked.contains(&word) {
                asked.push(word);
            }
        }
        for word in asked {
            let common = if is_common_verb(&word) {
                COMMON_VERB
            } else {
                1.0
            };
            // Of a word and its synonyms only the one that fits a text best counts there.
            best.fill(0.0);
            for (term, weight) in self.expand(&word) {
                for (at, count) in &term.postings {
                    let counts = count * (SATURATION + 1.0) / (count + SATURATION);
                    best[*at] = best[*at].max(common * weight * term.rarity * counts);
                }
            }
            for (score, best) in scores.iter_mut().zip(&best) {
                *score += best;
            }
        }
        scores
    }

    /// The terms that a word of a question stands for, and how well.
    fn expand<'a>(&'a self, word: &'a str) -> Vec<(&'a Term, f32)> {
        let itself = self.terms.get(word).map(|term| (term, 1.0));
        let alike = synonyms(word).iter().filter_map(|it| self.terms.get(it));
        let mut found: Vec<_> = itself.into_iter().collect();
        found.extend(alike.map(|term| (term, SYNONYM)));
        if itself.is_none() {
            let near = self.terms.iter().filter(|(term, _)| is_near(word, term));
            found.extend(near.map(|(_, term)| (term, NEAR)));
        }
        found
    }
}

/// The first sentence of a text, or its first line, and what is behind it.
fn first_sentence(text: &str) -> (&str, &str) {
    let line = text.find('\n').unwrap_or(text.len());
    let stops = ["。", ". "];
    let stop = stops
        .iter()
        .filter_map(|stop| text[..line].find(stop))
        .min();
    text.split_at(stop.unwrap_or(line))
}

fn bounded(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests;
