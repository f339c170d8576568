//! A program that runs an installer itself. It cannot: its sandbox has no network, and what it would write to is read-only.

use std::sync::OnceLock;

use regex_lite::Regex;

use crate::request::Ecosystem;

/// `pip install x`, `python -m pip install x`, `uv add x`, `npm i x`; as a shell writes it, or as a list of texts.
const COMMAND: &str = r#"\b(pip3?|uv|npm|pnpm|yarn)(?:[\s"',]+pip)?[\s"',]+(?:install|add|i)\b[\s"',]*([^\n;&|)\]]*)"#;
/// How they say that they failed.
const FAILED: [&str; 4] = [
    "ERROR: No matching distribution found",
    "error: externally-managed-environment",
    "npm error network",
    "npm error code EAI_AGAIN",
];
/// More than a hint should list.
const MOST: usize = 5;

/// An installer that a program runs, and what it is to install.
#[derive(Debug, PartialEq, Eq)]
pub struct Installs {
    pub installer: String,
    pub packages: Vec<String>,
}

impl Installs {
    /// The registry that it installs from.
    pub fn from(&self) -> Ecosystem {
        match self.installer.as_str() {
            "npm" | "pnpm" | "yarn" => Ecosystem::Npm,
            _ => Ecosystem::Pypi,
        }
    }
}

/// The first installer in a program's text.
pub fn find(code: &str) -> Option<Installs> {
    static RULE: OnceLock<Option<Regex>> = OnceLock::new();
    let rule = RULE.get_or_init(|| Regex::new(COMMAND).ok()).as_ref()?;
    let found = rule.captures(code)?;
    let words = found.get(2)?.as_str();
    let words = words.split(|c: char| c.is_whitespace() || "\"',[".contains(c));
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@/=<>~^*".contains(c);
    let is_package = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@')
            && word.len() <= 60
            && word.chars().all(plain)
    };
    Some(Installs {
        installer: found.get(1)?.as_str().to_owned(),
        packages: words
            .take_while(|word| !is_redirection(word))
            .filter(is_package)
            .take(MOST)
            .map(str::to_owned)
            .collect(),
    })
}

/// `>log` and `2>/dev/null` of a shell.
fn is_redirection(word: &str) -> bool {
    let sign = word.trim_start_matches(|c: char| c.is_ascii_digit());
    sign.starts_with(['<', '>'])
}

/// Whether an installer said that it could install nothing.
pub fn has_failed(said: &str) -> bool {
    FAILED.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installer_is_found_as_people_and_models_write_it() {
        for (code, installer, packages) in [
            ("pip install humanize", "pip", &["humanize"][..]),
            (
                "set -e\npip3 install -q 'a==1' b && python x.py",
                "pip3",
                &["a==1", "b"],
            ),
            ("!pip install pandas", "pip", &["pandas"]),
            (
                "subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'humanize'])",
                "pip",
                &["humanize"],
            ),
            (
                "os.system(\"pip install --upgrade rich\")",
                "pip",
                &["rich"],
            ),
            ("pip install 'x>2' 2>/dev/null || true", "pip", &["x>2"]),
            ("pip install x > log", "pip", &["x"]),
            ("uv pip install x", "uv", &["x"]),
            ("uv add x", "uv", &["x"]),
            ("npm i @a/b left-pad", "npm", &["@a/b", "left-pad"]),
            ("execSync('npm install zod')", "npm", &["zod"]),
            (
                "pip install -r requirements.txt",
                "pip",
                &["requirements.txt"],
            ),
        ] {
            let found = find(code).unwrap_or_else(|| panic!("{code}"));
            assert_eq!(
                (&*found.installer, &found.packages[..]),
                (
                    installer,
                    packages
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>()
                        .as_slice()
                ),
                "{code}"
            );
        }
        for code in [
            "print(1)",
            "pipe install",
            "pip list",
            "# to install: see the page",
            "apt install x",
        ] {
            assert_eq!(find(code), None, "{code}");
        }
    }
}
