//! The members that an era adds to every result.

use serde_json::{Map, Value, json};

use super::era::{Era, SERVER_INFO_KEY};
use super::server::Identity;

/// How long a client may keep a list: a real change is announced.
const LIST_TTL: u64 = 300_000;

/// Gives a result the shape of `era`. Legacy results are complete as they are.
pub fn shape(
    era: Era,
    method: &str,
    identity: &Identity,
    mut result: Map<String, Value>,
) -> Map<String, Value> {
    if !era.is_modern() {
        return result;
    }
    result
        .entry("resultType")
        .or_insert_with(|| "complete".into());
    let complete = result["resultType"] == "complete";
    let keep = match method {
        "server/discover"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list" => Some(LIST_TTL),
        "resources/read" if complete => Some(0),
        _ => None,
    };
    if let Some(keep) = keep {
        result.entry("ttlMs").or_insert_with(|| keep.into());
        // What one caller sees is nobody else's business.
        result
            .entry("cacheScope")
            .or_insert_with(|| "private".into());
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    meta[SERVER_INFO_KEY] = identity.to_value();
    result
}
