//! What was seen of each language, as lines and as `docs/languages.md`.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::cases::Language;

pub struct Line {
    pub id: String,
    version: String,
    from: String,
    pub cold: Duration,
    pub warm: Duration,
    passed: Vec<&'static str>,
    pub wrong: Vec<String>,
}

impl Line {
    pub fn new(language: &Language, row: &Value) -> Self {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        Self {
            id: language.id.clone(),
            version: text("version"),
            from: match row["from"].as_str() {
                // Whose folder it lies in says nothing to others.
                Some("fetched") => "languages add".to_owned(),
                Some("built in") => "built in".to_owned(),
                _ => text("path"),
            },
            cold: Duration::ZERO,
            warm: Duration::ZERO,
            passed: Vec::new(),
            wrong: Vec::new(),
        }
    }

    pub fn note(&mut self, check: &'static str, wrong: Option<String>) {
        match wrong {
            None => self.passed.push(check),
            Some(wrong) => self.wrong.push(format!("{} {check}: {wrong}", self.id)),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cold, warm) = (self.cold.as_millis(), self.warm.as_millis());
        let checks = format!("{} right, {} wrong", self.passed.len(), self.wrong.len());
        write!(
            f,
            "{:<13} {:<12} {cold:>6} ms cold {warm:>5} ms again  {checks:<20} {}",
            self.id, self.version, self.from
        )
    }
}

/// `docs/languages.md`.
pub fn document(lines: &[Line], rows: &[Value]) -> String {
    let mut text = format!(
        "# Languages that were tested\n\n\
         `scripts/test --all-languages` wrote this page: it ran {} of {} languages on Debian 12, each in sandboxes, over MCP. \"cold\" is the time of the first hello, \
         including its compile step and a new sandbox if needed; \"again\" is the time of the same program once more. The checks are: hello, arguments (also with quotes, `;`, `$()` and \
         line breaks), input, exit code 3, error, unicode, syntax or compile error, missing module, signal, and 16 programs at once. A language is only checked for what it \
         has. The times are from one run on a busy machine with two processors: use them to compare languages, no more.\n\n\
         | language | version | from | cold ms | again ms | checks passed |\n|---|---|---|---:|---:|---|\n",
        lines.len(),
        rows.len()
    );
    for line in lines {
        text += &format!(
            "| {} | {} | `{}` | {} | {} | {} |\n",
            line.id,
            line.version,
            line.from,
            line.cold.as_millis(),
            line.warm.as_millis(),
            line.passed.join(", ")
        );
    }
    text += "\nNot tested, with what `hotcell languages` said:\n\n";
    let missing = rows.iter().filter(|row| row["available"] == false);
    for row in missing {
        let said = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let problem = said("problem");
        let words = match said("hint") {
            hint if hint.is_empty() => problem,
            hint => format!("{}. {hint}", problem.trim_end_matches('.')),
        };
        text += &format!("- `{}`: {words}\n", said("id"));
    }
    text
}
