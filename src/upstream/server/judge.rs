//! Whether a program may call a tool: what the configuration says, and the user where it says to ask.

use serde_json::Value;

use super::UpstreamServer;
use crate::config::{Rules, Ruling};
use crate::upstream::approval::{Decision, Question};
use crate::upstream::{Arguments, CallError};

impl UpstreamServer {
    pub(super) async fn judge(
        &self,
        tool: &str,
        arguments: &Arguments,
        rules: &Rules,
    ) -> Result<(), CallError> {
        let ruling = rules.judge(tool);
        if ruling == Ruling::Ask {
            // Without a run it is the owner who calls.
            let Some(ledger) = &self.ledger else {
                return Ok(());
            };
            let question = Question {
                server: self.name.clone(),
                tool: tool.to_owned(),
                // Without what a person would not see.
                arguments: Value::Object(arguments.to_map()?).to_string(),
            };
            match ledger.is_approved(&self.approved, question).await {
                Decision::Once | Decision::Session | Decision::Always => return Ok(()),
                Decision::No => return Err(CallError::Denied("the user said no".to_owned())),
                Decision::Unasked => {}
            }
        }
        let (name, shown) = (self.name.escape_debug(), tool.escape_debug());
        let entry = format!("`[servers.{name}]` in config.toml");
        Err(CallError::Denied(match ruling {
            Ruling::Allow => return Ok(()),
            Ruling::Deny => format!("`deny` of {entry} names `{shown}`"),
            // An `allow` would be the first, and forbid all that it does not name.
            Ruling::Ask if rules.asks_for_that_alone(tool) => {
                format!(
                    "nobody can be asked here; to grant it, take \"{shown}\" out of `ask` of {entry}"
                )
            }
            Ruling::NotAllowed | Ruling::Ask => {
                format!("to grant it, add \"{shown}\" to `allow` of {entry}")
            }
        }))
    }
}
