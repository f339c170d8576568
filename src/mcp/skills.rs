//! The Skills extension of the protocol (SEP-2640): folders with a `SKILL.md` that an agent reads when it needs them, each file a resource
//! with its digest. Which skills there are is said by whoever implements [`Skills`].

use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Boxed, Resource};

pub const EXTENSION: &str = "io.modelcontextprotocol/skills";
const SCHEME: &str = "skill://";
const MARKDOWN: &str = "text/markdown";
/// Characters of a description, as the format has it.
const LONGEST: usize = 1024;

/// One skill: its text, and the files beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Where it is among the skills: segments, of which the last is its name.
    path: String,
    name: String,
    description: String,
    /// `SKILL.md` first.
    files: Vec<(String, Vec<u8>)>,
}

/// Which skills there are now. May read files.
pub trait Skills: Send + Sync {
    fn all(&self) -> Vec<Skill>;
}

impl Skill {
    /// A skill in a group of skills. Its name becomes one that skills may have.
    pub fn new(group: &str, name: &str, description: &str, text: &str) -> Option<Self> {
        let name = spelled(name)?;
        let one_line = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let description: String = one_line.chars().take(LONGEST).collect();
        if description.is_empty() {
            return None;
        }
        // A text of JSON is one of YAML.
        let front = format!(
            "---\nname: {name}\ndescription: {}\n---\n\n",
            json!(description)
        );
        Some(Self {
            path: format!("{group}/{name}"),
            files: vec![("SKILL.md".to_owned(), (front + text).into_bytes())],
            name,
            description,
        })
    }

    pub fn with_file(mut self, path: &str, bytes: Vec<u8>) -> Self {
        self.files.push((path.to_owned(), bytes));
        self
    }

    fn uri(&self, file: &str) -> String {
        format!("{SCHEME}{}/{file}", self.path)
    }

    fn entry(&self) -> Value {
        let file = |(path, bytes): &(String, Vec<u8>)| {
            let mut digest = "sha256:".to_owned();
            for byte in Sha256::digest(bytes) {
                let _ = write!(digest, "{byte:02x}");
            }
            json!({ "uri": self.uri(path), "digest": digest, "size": bytes.len() })
        };
        json!({
            "uri": self.uri("SKILL.md"),
            "frontmatter": { "name": self.name, "description": self.description },
            "resources": self.files.iter().map(file).collect::<Vec<_>>(),
        })
    }
}

/// The name as a skill may have it: small letters and digits with single hyphens between them, 64 at most.
fn spelled(name: &str) -> Option<String> {
    let mut spelled = String::new();
    for letter in name.chars() {
        match letter.to_ascii_lowercase() {
            it @ ('a'..='z' | '0'..='9') => spelled.push(it),
            _ if spelled.ends_with('-') || spelled.is_empty() => {}
            _ => spelled.push('-'),
        }
    }
    spelled.truncate(64);
    let spelled = spelled.trim_end_matches('-').to_owned();
    (!spelled.is_empty()).then_some(spelled)
}

/// All skills, each under an address of its own.
async fn all(skills: &Arc<dyn Skills>) -> Vec<Skill> {
    let skills = skills.clone();
    let read = tokio::task::spawn_blocking(move || skills.all());
    let mut all = read.await.unwrap_or_default();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|skill| seen.insert(skill.path.clone()));
    all
}

/// The entries of `skills/list`.
pub async fn list(skills: &Arc<dyn Skills>) -> Vec<Value> {
    all(skills).await.iter().map(Skill::entry).collect()
}

/// The answer to `skills/get`.
pub async fn get(skills: &Arc<dyn Skills>, uri: &str) -> Option<Map<String, Value>> {
    let all = all(skills).await;
    let found = all.iter().find(|skill| skill.uri("SKILL.md") == uri)?;
    Some(Map::from_iter([("skill".to_owned(), found.entry())]))
}

/// The files of all skills.
pub struct SkillFiles(pub Arc<dyn Skills>);

impl Resource for SkillFiles {
    fn listing(&self) -> Value {
        json!({
            "uriTemplate": "skill://{+path}",
            "name": "skills",
            "title": "Skills",
            "description": "The files of the skills that `skills/list` lists.",
        })
    }

    fn holds(&self, uri: &str) -> bool {
        uri.starts_with(SCHEME)
    }

    fn read<'a>(&'a self, uri: &'a str, _: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let all = all(&self.0).await;
            let files = all
                .iter()
                .flat_map(|skill| skill.files.iter().map(move |file| (skill, file)));
            let mut found = files.filter(|(skill, file)| skill.uri(&file.0) == uri);
            let Some((_, (path, bytes))) = found.next() else {
                let fault =
                    Fault::invalid_params(format!("resource not found: {}", uri.escape_debug()));
                return Err(fault.with(json!({ "uri": uri })));
            };
            let content = match std::str::from_utf8(bytes) {
                Ok(text) if path == "SKILL.md" => {
                    json!({ "uri": uri, "mimeType": MARKDOWN, "text": text })
                }
                Ok(text) => json!({ "uri": uri, "mimeType": "text/plain", "text": text }),
                Err(_) => {
                    let blob = STANDARD.encode(bytes);
                    json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": blob })
                }
            };
            let contents = ("contents".to_owned(), json!([content]));
            Ok(Answer::Complete(Map::from_iter([contents])))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_that_skills_may_have() {
        for (name, expected) in [
            ("count", Some("count")),
            ("count_words", Some("count-words")),
            ("__Count--Words__", Some("count-words")),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(spelled(name).as_deref(), expected, "{name}");
        }
        assert_eq!(spelled(&"a_".repeat(100)).map(|it| it.len()), Some(63));
    }

    #[test]
    fn a_description_cannot_leave_its_line() {
        let skill = Skill::new("saved", "x", "a\n---\nname: \"y\"", "text").unwrap();
        let text = String::from_utf8(skill.files[0].1.clone()).unwrap();
        assert_eq!(
            text,
            "---\nname: x\ndescription: \"a --- name: \\\"y\\\"\"\n---\n\ntext"
        );
        assert_eq!(
            skill.entry()["frontmatter"]["description"],
            "a --- name: \"y\""
        );
        assert_eq!(Skill::new("saved", "x", " \n", ""), None);
    }
}
