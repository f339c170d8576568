//! `tests/languages/cases.json`: what each language must do.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    pub id: String,
    /// The name that the program usually has.
    #[expect(dead_code, reason = "for readers")]
    file: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers")]
    pub note: String,
    pub hello: Case,
    pub args: Option<Case>,
    stdin: Option<Case>,
    exit3: Option<Case>,
    error: Option<Case>,
    unicode: Option<Case>,
    syntax_error: Option<Case>,
    compile_error: Option<Case>,
    missing_module: Option<Case>,
    signal: Option<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub code: String,
    #[serde(default)]
    pub args: Vec<String>,
    pub stdin: Option<String>,
    /// Exactly.
    stdout: Option<String>,
    stdout_contains: Option<String>,
    stderr_contains: Option<String>,
    exit: Option<i64>,
    /// What was observed once, for information.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers")]
    exit_seen: Option<i64>,
    signal: Option<i64>,
    /// The kind of picture that it prints, instead of text.
    artifact: Option<String>,
    /// The runtimes that the program is written for.
    #[serde(default)]
    pub only: Vec<String>,
    /// Its launcher cannot pass every argument; the note says why.
    #[serde(default)]
    pub simple: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers")]
    note: String,
}

pub fn languages() -> Vec<Language> {
    let text = include_str!("../../languages/cases.json");
    serde_json::from_str(text).expect("the cases are right")
}

impl Language {
    pub fn cases(&self) -> impl Iterator<Item = (&'static str, &Case)> {
        let others = [
            ("args", &self.args),
            ("stdin", &self.stdin),
            ("exit3", &self.exit3),
            ("error", &self.error),
            ("unicode", &self.unicode),
            ("syntax_error", &self.syntax_error),
            ("compile_error", &self.compile_error),
            ("missing_module", &self.missing_module),
            ("signal", &self.signal),
        ];
        let others = others
            .into_iter()
            .filter_map(|(name, case)| Some((name, case.as_ref()?)));
        [("hello", &self.hello)].into_iter().chain(others)
    }
}

impl Case {
    /// What is wrong with this record of the case; none if it is right.
    pub fn judge(&self, name: &str, record: &Value) -> Option<String> {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let error = &record["error"];
        let well = record["status"] == "ok" && text("stderr").is_empty();
        let right = [
            self.stdout.as_ref().is_none_or(|it| text("stdout") == it),
            self.stdout_contains
                .as_ref()
                .is_none_or(|it| text("stdout").contains(it)),
            self.stderr_contains
                .as_ref()
                .is_none_or(|it| text("stderr").contains(it)),
            self.artifact
                .as_ref()
                .is_none_or(|it| record["image"]["mime_type"] == it.as_str()),
            self.exit.is_none_or(|it| record["exit_code"] == it),
            self.signal.is_none() || record["signal"].is_string(),
            match name {
                "hello" | "args" | "stdin" | "unicode" => well,
                "error" => record["status"] != "ok" && !text("stderr").is_empty(),
                // The program did not start, and it is said where it is wrong.
                "syntax_error" | "compile_error" => {
                    error["kind"] == "syntax" && error["message"].is_string()
                }
                "missing_module" => error["kind"] == "missing_module",
                _ => record["status"] != "ok",
            },
        ];
        if right.iter().all(|it| *it) {
            return None;
        }
        let mut record = record.clone();
        record.as_object_mut().map(|it| it.remove("isolation"));
        Some(format!("{name}: {record}"))
    }
}
