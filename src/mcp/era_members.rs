//! The members that an era adds to every result.

use serde_json::{Map, Value, json};

use super::era::{Era, Revision, SERVER_INFO_KEY};
use super::server::Identity;

/// How long a client may keep a list: a real change is announced.
const LIST_TTL: u64 = 300_000;

/// Gives a result the shape of `era`. Legacy results are complete as they are, but
/// for what their revision does not know.
pub fn shape(
    era: Era,
    method: &str,
    identity: &Identity,
    mut result: Map<String, Value>,
) -> Map<String, Value> {
    if let Era::Legacy(revision) = era {
        if revision < Revision::V2025_06_18 {
            leave_out_links(&mut result);
        }
        return result;
    }
    result
        .entry("resultType")
        .or_insert_with(|| "complete".into());
    let complete = result["resultType"] == "complete";
    let ttl = match method {
        "server/discover"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list" => Some(LIST_TTL),
        "resources/read" | "skills/list" | "skills/get" if complete => Some(0),
        _ => None,
    };
    if let Some(ttl) = ttl {
        result.entry("ttlMs").or_insert_with(|| ttl.into());
        // What one caller sees is nobody else's business.
        result
            .entry("cacheScope")
            .or_insert_with(|| "private".into());
    }
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    meta[SERVER_INFO_KEY] = identity.to_value();
    result
}

/// Links came with 2025-06-18; a strict client of before refuses the whole result.
fn leave_out_links(result: &mut Map<String, Value>) {
    if let Some(Value::Array(blocks)) = result.get_mut("content") {
        blocks.retain(|block| block["type"] != "resource_link");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(era: Era, method: &str, result: Value) -> Value {
        let identity = Identity {
            name: "n".to_owned(),
            title: "t".to_owned(),
            instructions: None,
        };
        let Value::Object(result) = result else {
            panic!("not an object");
        };
        shape(era, method, &identity, result).into()
    }

    #[test]
    fn a_legacy_result_stays_as_it_is_but_for_links_its_revision_does_not_know() {
        let result = json!({ "content": [{ "type": "text" }, { "type": "resource_link" }] });
        for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
            let era = Era::Legacy(revision);
            assert_eq!(shaped(era, "tools/call", result.clone()), result);
        }
        let oldest = shaped(Era::Legacy(Revision::V2025_03_26), "tools/call", result);
        assert_eq!(oldest, json!({ "content": [{ "type": "text" }] }));
    }

    #[test]
    fn a_modern_result_says_what_it_is_and_how_long_it_may_be_kept() {
        let list = shaped(Era::Modern, "tools/list", json!({ "tools": [] }));
        assert_eq!(list["resultType"], "complete");
        assert_eq!(
            (&list["ttlMs"], &list["cacheScope"]),
            (&json!(300_000), &json!("private"))
        );
        assert_eq!(list["_meta"][SERVER_INFO_KEY]["name"], "n");
        let asked = json!({ "resultType": "input_required" });
        let asked = shaped(Era::Modern, "resources/read", asked);
        assert!(asked.get("ttlMs").is_none());
        assert!(
            shaped(Era::Modern, "tools/call", json!({}))
                .get("ttlMs")
                .is_none()
        );
    }
}
