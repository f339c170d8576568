//! A linear model over features: for each of its languages the chance that a text is in it.
//!
//! `scripts/detection/train` makes its file out of a corpus of ours; docs/adr has the reasons. All of it is in the binary, and what
//! is read of it is bounded by its own table.

use std::sync::OnceLock;

use super::features::features;

/// Made by `scripts/detection/train`: names with a first weight each, then the features sorted, how many weights each has, the weights.
const BYTES: &[u8] = include_bytes!("model.bin");
/// One unit of a stored weight.
const UNIT: f64 = 1.0 / 24.0;
/// How much surer the model is of texts that it has learned from than of others, as a divisor.
const SPREAD: f64 = 1.0;

pub struct Model {
    /// A language's id and what speaks for it before anything is read.
    names: Vec<(&'static str, i8)>,
    features: Vec<u32>,
    /// Where the weights of each feature begin, and where the last ones end.
    starts: Vec<u32>,
    /// A language and a weight.
    weights: &'static [u8],
}

/// The model that is part of the binary.
pub fn model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| Model::read(BYTES).unwrap_or(Model::EMPTY))
}

impl Model {
    const EMPTY: Self = Self {
        names: Vec::new(),
        features: Vec::new(),
        starts: Vec::new(),
        weights: &[],
    };

    fn read(bytes: &'static [u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first()?;
        let mut names = Vec::new();
        for _ in 0..*count {
            let (length, text) = rest.split_first()?;
            let (name, text) = text.split_at_checked(usize::from(*length))?;
            let (first, text) = text.split_first()?;
            names.push((std::str::from_utf8(name).ok()?, first.cast_signed()));
            rest = text;
        }
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (features, rest) = rest.split_at_checked(count * 4)?;
        let (lengths, weights) = rest.split_at_checked(count)?;
        let features = features.chunks_exact(4);
        let features = features.map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
        let mut starts = vec![0];
        let mut end = 0;
        for length in lengths {
            end += u32::from(*length) * 2;
            starts.push(end);
        }
        (end as usize == weights.len()).then(|| Self {
            names,
            features: features.collect(),
            starts,
            weights,
        })
    }

    /// Whether it was made to tell this language from others.
    pub fn knows(&self, id: &str) -> bool {
        self.names.iter().any(|(name, _)| *name == id)
    }

    /// How likely each language is, likeliest first; all together are one. One of them may stand for all that it was not made for.
    pub fn chances(&self, text: &str) -> Vec<(&'static str, f64)> {
        let mut scores: Vec<i32> = self.names.iter().map(|(_, it)| i32::from(*it)).collect();
        for feature in features(text) {
            let Ok(at) = self.features.binary_search(&feature) else {
                continue;
            };
            let weights = &self.weights[self.starts[at] as usize..self.starts[at + 1] as usize];
            for pair in weights.chunks_exact(2) {
                if let Some(score) = scores.get_mut(usize::from(pair[0])) {
                    *score += i32::from(pair[1].cast_signed());
                }
            }
        }
        let scores = scores.iter().map(|it| f64::from(*it) * UNIT / SPREAD);
        let most = scores.clone().fold(f64::MIN, f64::max);
        let chances: Vec<f64> = scores.map(|it| (it - most).exp()).collect();
        let total: f64 = chances.iter().sum();
        let names = self.names.iter().map(|(name, _)| *name);
        let mut all: Vec<_> = names.zip(chances.iter().map(|it| it / total)).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }
}
