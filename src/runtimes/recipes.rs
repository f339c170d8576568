//! All recipes: the built-in ones and the user's own, and the names that no
//! recipe may use.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::FetchError;
use super::recipe::{Archive, Recipe, RecipeError, Registry};

/// Every `recipes/*.toml` of the source tree, as (name, text), sorted by name.
const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
const NEVER: &str = include_str!("../../recipes/never/names.toml");

/// Names in registries that are not what they seem to be.
#[derive(Deserialize)]
struct Never {
    name: Vec<NeverName>,
}

#[derive(Deserialize)]
struct NeverName {
    from: Registry,
    name: String,
    /// One version only; every one, if there is none.
    version: Option<String>,
    why: String,
}

/// Whether a built-in recipe runs this language, without reading all of them.
pub fn offers(language: &str) -> bool {
    let quoted = format!("\"{language}\"");
    let arch = std::env::consts::ARCH;
    let fits = |(name, text): &&(&str, &str)| {
        let recipe = text.contains(&quoted).then(|| built_in(name, text));
        recipe.is_some_and(|recipe| {
            recipe.is_ok_and(|recipe| {
                recipe.languages.iter().any(|it| it == language)
                    && !recipe.archives_for(arch).is_empty()
            })
        })
    };
    BUILT_IN.iter().any(|it| fits(&it))
}

/// Whether a built-in recipe of this name runs this language.
pub fn offers_by(recipe: &str, language: &str) -> bool {
    let found = BUILT_IN.iter().find(|(name, _)| *name == recipe);
    let found = found.and_then(|(name, text)| built_in(name, text).ok());
    found.is_some_and(|it| {
        it.languages.iter().any(|id| id == language)
            && !it.archives_for(std::env::consts::ARCH).is_empty()
    })
}

/// The language that a built-in recipe of this name is for.
pub fn language_of(recipe: &str) -> Option<String> {
    let (name, text) = BUILT_IN.iter().find(|(name, _)| *name == recipe)?;
    built_in(name, text).ok()?.languages.into_iter().next()
}

/// Every recipe. A user's file replaces the built-in one of the same name.
pub fn recipes(config: Option<&Path>) -> Result<Vec<Recipe>, RecipeError> {
    let mut found = Vec::new();
    let folder = config.map(|config| config.join("recipes"));
    let files = folder.iter().flat_map(fs::read_dir).flatten().flatten();
    for path in files.map(|file| file.path()) {
        let name = path.file_stem().and_then(|name| name.to_str());
        if let (Some(name), Some("toml")) = (name, path.extension().and_then(|it| it.to_str())) {
            let text = fs::read_to_string(&path).map_err(|error| RecipeError {
                file: path.display().to_string(),
                message: error.to_string(),
            })?;
            found.push(Recipe::parse(name, &text, &path, never)?);
        }
    }
    for (name, text) in BUILT_IN {
        if !found.iter().any(|it: &Recipe| it.name == *name) {
            found.push(built_in(name, text)?);
        }
    }
    found.sort_by(|a, b| (a.rank, &a.name).cmp(&(b.rank, &b.name)));
    Ok(found)
}

/// The recipes that run a language, the best first.
pub fn for_language(language: &str, all: &[Recipe]) -> Result<Vec<Recipe>, FetchError> {
    let arch = std::env::consts::ARCH;
    let runs = |it: &&Recipe| it.languages.iter().any(|id| id == language);
    let found: Vec<&Recipe> = all.iter().filter(runs).collect();
    let here: Vec<Recipe> = found
        .iter()
        .filter(|it| !it.archives_for(arch).is_empty())
        .map(|it| (*it).clone())
        .collect();
    match (here.is_empty(), found.first()) {
        (false, _) => Ok(here),
        (true, Some(other)) => Err(FetchError::OtherMachine {
            recipe: other.name.clone(),
            arch,
        }),
        (true, None) => Err(FetchError::NoRecipe(language.to_owned())),
    }
}

fn built_in(name: &str, text: &str) -> Result<Recipe, RecipeError> {
    let file = Path::new("recipes").join(format!("{name}.toml"));
    Recipe::parse(name, text, &file, never)
}

/// Why a package is never used, if it is one of those.
pub fn never(archive: &Archive) -> Option<String> {
    // Read each time: this happens when a runtime is added, not when one is used.
    let never: Never = toml::from_str(NEVER).ok()?;
    let same = |it: &&NeverName| {
        it.from == archive.from
            && normal(&it.name) == normal(&archive.name)
            && it.version.as_ref().is_none_or(|version| {
                archive.file.contains(&format!("-{version}."))
                    || archive.file.contains(&format!("-{version}-"))
            })
    };
    let found = never.name.iter().find(same)?;
    Some(format!(
        "`{}` of {} must not be used: {}",
        found.name, found.from, found.why
    ))
}

/// PyPI does not tell `-`, `_` and `.` or cases apart.
fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PINNED: &str =
        "size = 1\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\n";

    fn recipe(from: &str, name: &str, file: &str) -> Result<Recipe, RecipeError> {
        let text = format!(
            "version = \"1\"\nlanguages = [\"x\"]\nprograms = {{ x = \"x\" }}\n\
             [[archive]]\nfrom = \"{from}\"\nname = \"{name}\"\nfile = \"{file}\"\n{PINNED}"
        );
        Recipe::parse("x", &text, Path::new("x.toml"), never)
    }

    #[test]
    fn every_built_in_recipe_can_be_read_and_names_nothing_that_is_never_used() {
        let all = recipes(None).unwrap();
        assert!(all.len() >= BUILT_IN.len());
        for recipe in &all {
            for required in &recipe.requires {
                assert!(all.iter().any(|it| it.name == *required), "{required}");
            }
        }
    }

    #[test]
    fn a_squatted_name_is_refused_however_it_is_written() {
        // Controls: the same shape with an honest name.
        assert!(recipe("npm", "bun", "bun-1.4.4.tgz").is_ok());
        assert!(recipe("npm", "coffeescript", "coffeescript-2.7.0.tgz").is_ok());
        for (from, name, file) in [
            ("pypi", "bun", "bun-1.0-py3-none-any.whl"),
            ("pypi", "Bun", "Bun-1.0-py3-none-any.whl"),
            ("pypi", "swift", "swift-2.0-py3-none-any.whl"),
            ("debian", "swift", "pool/main/s/swift/swift_1_all.deb"),
            ("npm", "pwsh", "pwsh-1.0.0.tgz"),
            ("npm", "coffeescript", "coffeescript-99.999.9999.tgz"),
        ] {
            let error = recipe(from, name, file).unwrap_err();
            assert!(error.message.contains("must not be used"), "{error}");
        }
    }

    #[test]
    fn a_recipe_is_offered_for_its_own_languages_only() {
        assert!(offers("typescript") || std::env::consts::ARCH != "x86_64");
        assert!(!offers("applescript"));
        assert!(!offers("deno"), "a program is not a language");
    }
}
