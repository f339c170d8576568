//! Saved tools and published scripts as skills, for agents that read skills (`mcp/skills.rs`): what the tool is for, how it is called, and its source.

use super::saved::{SavedFolder, SavedTool};
use crate::mcp::{Skill, Skills};
use crate::upstream::Tool;

/// The folders whose tools are skills. They are read when somebody asks.
pub struct ToolSkills {
    pub saved: Option<SavedFolder>,
    pub published: Option<SavedFolder>,
}

impl Skills for ToolSkills {
    fn all(&self) -> Vec<Skill> {
        let saved = self.saved.iter().flat_map(SavedFolder::list);
        let saved = saved.filter_map(|tool| skill("saved", tool));
        let published = self.published.iter().flat_map(SavedFolder::list);
        saved
            .chain(published.filter_map(|tool| skill("published", tool)))
            .collect()
    }
}

/// The skill of a tool; none if the tool is broken.
fn skill(group: &str, tool: SavedTool) -> Option<Skill> {
    let front = tool.front.as_ref().ok()?;
    let about = front.listing["description"].as_str().unwrap_or_default();
    let (name, how) = match group {
        "saved" => {
            let name = tool.name.as_str();
            (
                name,
                format!("Call it in a program of the tool `run`, as `saved.{name}`"),
            )
        }
        _ => {
            let name = front.key.as_str();
            (
                name,
                format!("Call it as the MCP tool `{name}` of this server"),
            )
        }
    };
    let signature = Tool::new(name, about, front.schema.clone()).signature("saved");
    let signature = match group {
        "saved" => signature.as_str(),
        _ => signature.trim_start_matches("saved."),
    };
    let file = &tool.file_name;
    let text = format!(
        "# {name}\n\n{about}\n\n{how}:\n\n    {signature}\n\nIts source is [scripts/{file}](scripts/{file}).\n"
    );
    let summary = match about.trim() {
        "" => how,
        about => format!("{about} {how}."),
    };
    let skill = Skill::new(group, name, &summary, &text)?;
    Some(skill.with_file(&format!("scripts/{file}"), tool.code.clone()))
}
