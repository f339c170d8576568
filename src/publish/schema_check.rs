//! Whether a value fits a schema, as far as we look.
//!
//! This is for good messages: a model that forgets an argument should hear which.
//! It knows the plain keywords and lets everything else pass, so nothing may
//! rely on it; a script checks what it needs.

use serde_json::Value;

/// Schemas inside schemas that are followed.
const DEEPEST: usize = 16;

/// Says what is wrong with `value`; the path is written like `address.city`.
pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    check_at("", schema, value, DEEPEST)
}

fn check_at(path: &str, schema: &Value, value: &Value, deeper: usize) -> Result<(), String> {
    let Some(deeper) = deeper.checked_sub(1) else {
        return Ok(());
    };
    let named = if path.is_empty() {
        "the whole".to_owned()
    } else {
        format!("`{path}`")
    };
    if let Some(types) = schema.get("type") {
        let wanted = match types {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            Value::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        if !wanted.is_empty() && !wanted.iter().any(|name| is(name, value)) {
            return Err(format!("{named} must be {}", wanted.join(" or ")));
        }
    }
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("{named} must be one of {}", allowed.join(", ")));
    }
    match value {
        Value::Object(members) => {
            let required = schema.get("required").and_then(Value::as_array);
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if !members.contains_key(name) {
                    return Err(format!("`{}` is missing", join(path, name)));
                }
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            // Only where nothing else in the schema could allow the name.
            let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
                && schema.get("patternProperties").is_none();
            for (name, member) in members {
                match properties.and_then(|all| all.get(name)) {
                    Some(schema) => check_at(&join(path, name), schema, member, deeper)?,
                    None if closed => {
                        return Err(format!("`{}` is not known", join(path, name)));
                    }
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for (at, item) in items.iter().enumerate() {
                check_at(&join(path, &at.to_string()), schema, item, deeper)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn join(path: &str, name: &str) -> String {
    // Bounded: names come from outside.
    let name: String = name.chars().take(100).collect();
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        // 3.0 is an integer, says the standard.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "enum": ["Rome", "Oslo"] },
                "days": { "type": "integer" },
                "where": { "type": "object", "properties": { "x": { "type": "number" } } },
                "tags": { "type": "array", "items": { "type": ["string", "null"] } },
            },
            "required": ["city"],
            "additionalProperties": false,
        });
        for (value, wrong) in [
            (json!(1), "the whole must be object"),
            (json!({}), "`city` is missing"),
            (json!({"city": 1}), "`city` must be string"),
            (
                json!({"city": "Bonn"}),
                "`city` must be one of \"Rome\", \"Oslo\"",
            ),
            (
                json!({"city": "Rome", "days": 1.5}),
                "`days` must be integer",
            ),
            (
                json!({"city": "Rome", "where": {"x": "1"}}),
                "`where.x` must be number",
            ),
            (
                json!({"city": "Rome", "tags": ["a", 1]}),
                "`tags.1` must be string or null",
            ),
            (json!({"city": "Rome", "more": 1}), "`more` is not known"),
        ] {
            assert_eq!(check(&schema, &value), Err(wrong.to_owned()), "{value}");
        }
        let good = json!({"city": "Rome", "days": 3.0, "where": {"x": 1, "y": 2}, "tags": [null]});
        assert_eq!(check(&schema, &good), Ok(()));
    }

    #[test]
    fn what_we_do_not_know_passes() {
        let schema =
            json!({"$ref": "#/$defs/a", "type": "odd", "enum": 3, "required": [1], "items": 1});
        for value in [json!(null), json!([1, {"a": 2}]), json!({"a": 1})] {
            assert_eq!(check(&schema, &value), Ok(()));
        }
    }
}
