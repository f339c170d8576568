//! Makes the model that tells languages apart: multinomial logistic regression over the features of detect/features.rs, held sparse by
//! an L1 penalty. Nothing is random but by a fixed seed, so the same corpus gives the same bytes.
//!
//! Usage: train CORPUS_FOLDER MODEL PROGRAMS_FOLDER (see `make-model`)

#[path = "../../src/language/detect/features.rs"]
mod features;
#[path = "../../src/language/detect/strings.rs"]
mod strings;
#[path = "../../src/language/detect/tokens.rs"]
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::{env, fs};

const PASSES: usize = 60;
const RATE: f32 = 0.1;
const PENALTY: f32 = 0.004;
/// How many features of a text are left out in each pass, so that none is relied upon alone.
const DROPPED: f32 = 0.4;
/// In how many cases only words are looked at, so that they count by themselves.
const WORDS_ALONE: f32 = 0.3;
/// A feature that is in fewer texts says nothing of others. Words are kept.
const LEAST_TEXTS: u32 = 3;
/// What speaks against a language for a word that it does not have (only.txt).
const FOREIGN: f32 = 3.0;
/// Stored weights below this are left out.
const LEAST_WEIGHT: i8 = 4;
/// One unit of a stored weight.
const UNIT: f32 = 1.0 / 24.0;

struct Text {
    class: usize,
    features: Vec<u32>,
    weight: f32,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = &arguments[0];
    let mut snippets: BTreeMap<String, Vec<(String, f32)>> = BTreeMap::new();
    let folders = [(format!("{folder}/learn"), 1.0)]
        .into_iter()
        .chain([(arguments[2].clone(), 0.5)]);
    for (folder, weight) in folders {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&file).unwrap();
            let lines = text.lines().filter(|it| !it.is_empty());
            snippets
                .entry(id)
                .or_default()
                .extend(lines.map(|it| (it.replace('⏎', "\n"), weight)));
        }
    }
    let ids: Vec<String> = snippets.keys().cloned().collect();
    let mut texts = Vec::new();
    for (class, of) in snippets.values().enumerate() {
        for (text, weight) in of {
            texts.push(Text {
                class,
                features: features::features(text),
                weight: *weight,
            });
        }
    }
    let words = fs::read_to_string(format!("{folder}/words.txt")).unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for line in words.lines().filter(|it| !it.starts_with('#')) {
        let (id, list) = line.split_once(": ").unwrap();
        let class = ids.iter().position(|it| it == id).unwrap();
        let list: Vec<u32> = list.split(' ').map(features::word).collect();
        for word in &list {
            let other = list[(random.next() * list.len() as f32) as usize];
            texts.push(Text {
                class,
                features: vec![*word, other],
                weight: 1.0,
            });
        }
    }
    // Every language counts the same.
    let mut sums = vec![0.0f32; ids.len()];
    texts.iter().for_each(|it| sums[it.class] += it.weight);
    let mean = sums.iter().sum::<f32>() / sums.len() as f32;
    let share = |class: usize| (mean / sums[class]).clamp(0.5, 2.0);

    let mut seen: HashMap<u32, u32> = HashMap::new();
    for feature in texts.iter().flat_map(|it| &it.features) {
        *seen.entry(*feature).or_default() += 1;
    }
    let is_word = |feature: &u32| matches!(feature & 15, 1 | 11);
    for text in &mut texts {
        text.features
            .retain(|it| seen[it] >= LEAST_TEXTS || is_word(it));
    }
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    for text in &texts {
        for feature in &text.features {
            let next = numbers.len();
            numbers.entry(*feature).or_insert(next);
        }
    }
    let classes = ids.len();
    let mut weights = vec![0.0f32; (numbers.len() + 1) * classes];
    let only = fs::read_to_string(format!("{folder}/only.txt")).unwrap();
    for line in only.lines().filter(|it| !it.starts_with("# ")) {
        let (token, of) = line.rsplit_once(": ").unwrap();
        let Some(at) = numbers.get(&features::word(token)) else {
            eprintln!("`{token}` is in no text");
            continue;
        };
        let foreign = ids
            .iter()
            .enumerate()
            .filter(|(_, id)| !of.split(' ').any(|it| it == *id));
        for (class, _) in foreign {
            weights[at * classes + class] = -FOREIGN;
        }
    }
    let mut sum = vec![0.0f32; weights.len()];
    let mut squares = vec![1e-6f32; weights.len()];
    let bias = numbers.len();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    for pass in 0..PASSES {
        for at in (1..order.len()).rev() {
            order.swap(at, (random.next() * (at + 1) as f32) as usize % (at + 1));
        }
        let mut loss = 0.0;
        for at in &order {
            let text = &texts[*at];
            let words_alone = random.next() < WORDS_ALONE;
            let kept: Vec<usize> = text
                .features
                .iter()
                .filter(|it| !words_alone || matches!(**it & 15, 1 | 2 | 11))
                .filter(|_| random.next() >= DROPPED)
                .map(|it| numbers[it])
                .chain([bias])
                .collect();
            let mut scores = vec![0.0f32; classes];
            for feature in &kept {
                for (class, score) in scores.iter_mut().enumerate() {
                    *score += weights[feature * classes + class];
                }
            }
            let most = scores.iter().copied().fold(f32::MIN, f32::max);
            let total: f32 = scores.iter().map(|it| (it - most).exp()).sum();
            let weight = text.weight * share(text.class);
            loss -= weight * (scores[text.class] - most - total.ln());
            for class in 0..classes {
                let chance = (scores[class] - most).exp() / total;
                let slope = weight * (chance - f32::from(u8::from(class == text.class)));
                if slope.abs() < 1e-4 {
                    continue;
                }
                for feature in &kept {
                    let index = feature * classes + class;
                    squares[index] += slope * slope;
                    let rate = RATE / squares[index].sqrt();
                    let next = weights[index] - rate * slope;
                    let penalty = if *feature == bias {
                        0.0
                    } else {
                        rate * PENALTY
                    };
                    weights[index] = next.signum() * (next.abs() - penalty).max(0.0);
                }
            }
        }
        // The mean of the later passes is steadier than the last.
        if pass >= PASSES / 3 {
            sum.iter_mut()
                .zip(&weights)
                .for_each(|(sum, weight)| *sum += weight);
        }
        if pass % 10 == 9 {
            eprintln!("pass {}: loss {:.4}", pass + 1, loss / texts.len() as f32);
        }
    }

    let taken = (PASSES - PASSES / 3) as f32;
    let weights: Vec<f32> = sum.iter().map(|it| it / taken).collect();
    let mut rows: Vec<(u32, Vec<(u8, i8)>)> = Vec::new();
    let row = |at: usize| -> Vec<(u8, i8)> {
        let stored = (0..classes).map(|class| {
            let weight = (weights[at * classes + class] / UNIT)
                .round()
                .clamp(-127.0, 127.0) as i8;
            (class as u8, weight)
        });
        stored
            .filter(|(_, weight)| weight.unsigned_abs() >= LEAST_WEIGHT.unsigned_abs())
            .collect()
    };
    for (feature, at) in &numbers {
        let row = row(*at);
        if !row.is_empty() {
            rows.push((*feature, row));
        }
    }
    rows.sort();
    let mut bytes = Vec::new();
    bytes.push(classes as u8);
    for (class, id) in ids.iter().enumerate() {
        bytes.push(id.len() as u8);
        bytes.extend(id.as_bytes());
        bytes.push(
            (weights[bias * classes + class] / UNIT)
                .round()
                .clamp(-127.0, 127.0) as i8 as u8,
        );
    }
    bytes.extend((rows.len() as u32).to_le_bytes());
    rows.iter()
        .for_each(|(feature, _)| bytes.extend(feature.to_le_bytes()));
    rows.iter().for_each(|(_, row)| bytes.push(row.len() as u8));
    rows.iter()
        .flat_map(|(_, row)| row)
        .for_each(|(class, weight)| bytes.extend([*class, *weight as u8]));
    eprintln!(
        "{} texts, {} features, {} kept, {} bytes",
        texts.len(),
        numbers.len(),
        rows.len(),
        bytes.len()
    );
    fs::write(&arguments[1], bytes).unwrap();
}
