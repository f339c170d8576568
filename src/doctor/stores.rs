//! Looks at every byte of what hotcell keeps on the disk, and throws away what is not as it was stored.

use serde::Serialize;

use crate::engine::Engine;
use crate::runtimes::RuntimesFolder;

/// One kind of thing that is kept.
#[derive(Debug, Serialize)]
pub struct Kept {
    pub name: &'static str,
    pub count: usize,
    /// What was not as it was stored.
    pub damaged: Vec<String>,
    /// What becomes of those.
    pub fix: Option<String>,
}

/// Everything that is kept. Reads all of it, which may take minutes.
pub fn verify(engine: &Engine) -> Vec<Kept> {
    let again = |damaged: &[String]| {
        let text = "Nothing: it was removed, and is made again when it is needed.";
        (!damaged.is_empty()).then(|| text.to_owned())
    };
    let mut all = Vec::new();
    for (name, (count, damaged)) in engine.builder().verify() {
        all.push(Kept {
            name,
            count,
            fix: again(&damaged),
            damaged,
        });
    }
    if let Ok(store) = engine.packages().store() {
        let (count, damaged) = store.verify();
        let damaged = damaged.into_iter().map(|it| it.asked.join(", "));
        let damaged: Vec<String> = damaged.collect();
        all.push(Kept {
            name: "packages",
            count,
            fix: again(&damaged),
            damaged,
        });
    }
    if let Some(data) = engine.surroundings().data.as_deref() {
        let folder = RuntimesFolder::in_data(data);
        let installed = folder.installed();
        let damaged = installed.iter().filter(|it| !folder.is_whole(&it.0));
        let (names, languages): (Vec<String>, Vec<String>) = damaged
            .map(|(name, receipt)| (name.clone(), receipt.languages.join(" or ")))
            .unzip();
        let fix = languages.first().map(|language| {
            format!("Run `hotcell languages add {language}`: it is fetched again.")
        });
        all.push(Kept {
            name: "runtimes",
            count: installed.len(),
            damaged: names,
            fix,
        });
    }
    all
}
