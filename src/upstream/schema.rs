//! Whether the arguments of a call fit the schema of its tool: looked at here, so that a program hears at once what is wrong.
//!
//! SECURITY: schemas are a server's words. References lead nowhere outside of them, and patterns are matched in linear time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::lifecycle::lock;
use super::nearest::nearest;
use super::{Arguments, CallError, Tool, signature};

/// A larger schema is not looked at: the server does that.
const LARGEST: usize = 256 << 10;
/// Bytes that a pattern may take.
const PATTERN: usize = 1 << 20;
/// What is wrong, at most.
const MOST: usize = 4;
/// Characters of one thing that is wrong.
const LONGEST: usize = 200;

/// Checks of the tools that were called, as long as the tools are the same.
#[derive(Default)]
pub struct Checks(Mutex<Made>);

#[derive(Default)]
struct Made {
    of: Arc<Vec<Tool>>,
    /// By tool; none for a schema that cannot be used.
    validators: HashMap<String, Option<Arc<Validator>>>,
}

impl Checks {
    /// What is wrong with the arguments of a call of `tool`, which is one of `known`.
    pub fn check(
        &self,
        known: &Arc<Vec<Tool>>,
        tool: &Tool,
        arguments: &Arguments,
    ) -> Result<(), CallError> {
        let validator = {
            let mut made = lock(&self.0);
            if !Arc::ptr_eq(&made.of, known) {
                *made = Made {
                    of: known.clone(),
                    validators: HashMap::new(),
                };
            }
            match made.validators.get(&tool.name) {
                Some(validator) => validator.clone(),
                None => {
                    let validator = validator(&tool.input).map(Arc::new);
                    made.validators.insert(tool.name.clone(), validator.clone());
                    validator
                }
            }
        };
        let Some(validator) = validator else {
            return Ok(());
        };
        let given = Value::Object(arguments.to_map()?);
        let wrong = errors(&validator, &given);
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(CallError::Arguments(explain(tool, &given, wrong))),
        }
    }
}

/// What is wrong with a value that is to fit a schema, if something is.
pub fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let wrong = errors(&validator(schema)?, value);
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    let wrong = validator.iter_errors(value).take(MOST);
    wrong.map(|error| told(&error)).collect()
}

/// A schema that cannot be used says nothing.
fn validator(schema: &Value) -> Option<Validator> {
    let is_plain = schema.as_object().is_some_and(|it| !it.is_empty());
    if !is_plain || schema.to_string().len() > LARGEST {
        return None;
    }
    let patterns = PatternOptions::regex()
        .size_limit(PATTERN)
        .dfa_size_limit(PATTERN);
    let options = jsonschema::options().with_pattern_options(patterns);
    options.should_validate_formats(false).build(schema).ok()
}

/// What is wrong, and what would be right: names that are not known, and all that are.
fn explain(tool: &Tool, given: &Value, mut wrong: Vec<String>) -> String {
    let known = tool.input["properties"].as_object();
    let known: Vec<&str> = known
        .into_iter()
        .flat_map(|it| it.keys().map(String::as_str))
        .collect();
    let given = given.as_object().into_iter().flat_map(|it| it.keys());
    let unknown = given.filter(|name| !known.is_empty() && !known.contains(&name.as_str()));
    for name in unknown.take(MOST) {
        let meant = nearest(known.iter().copied(), name);
        let meant = meant.map(|it| format!(" (did you mean '{}'?)", signature::one_line(it)));
        let text = format!(
            "unknown '{}'{}",
            signature::one_line(name),
            meant.unwrap_or_default()
        );
        wrong.push(text.chars().take(LONGEST).collect());
    }
    let parameters = signature::parameters(tool);
    format!("{}. Parameters: {parameters}", wrong.join("; "))
}

fn told(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let at = at.trim_start_matches('/').replace('/', ".");
    let what = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let name = match at.is_empty() {
                true => name.to_owned(),
                false => format!("{at}.{name}"),
            };
            format!("missing '{name}'")
        }
        // Those that are not known are told with what may be meant.
        _ if at.is_empty() => error.masked().to_string(),
        _ => format!("'{at}': {}", error.masked()),
    };
    signature::one_line(&what).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(input: Value, given: &str) -> Result<(), String> {
        let known = Arc::new(vec![Tool::new("t", "", input)]);
        let arguments = serde_json::from_str(given).unwrap();
        let checked = Checks::default().check(&known, &known[0], &arguments);
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        let input = json!({
            "type": "object",
            "properties": {
                "repo": { "type": "string" },
                "title": { "type": "string" },
                "labels": { "type": "array", "items": { "enum": ["a", "b"] } },
                "count": { "type": "integer", "minimum": 1 },
            },
            "required": ["repo", "title"],
        });
        let right = r#"{"repo":"r","title":"t","labels":["a"],"count":2,"more":1}"#;
        assert_eq!(check(input.clone(), right), Ok(()));
        let parameters =
            "Parameters: {repo:string, title:string, labels?:(\"a\"|\"b\")[], count?:number}";
        for (given, told) in [
            (
                r#"{"repo":"r","titel":"t"}"#,
                "missing 'title'; unknown 'titel' (did you mean 'title'?).",
            ),
            (
                r#"{"repo":"r","title":5}"#,
                "'title': value is not of type \"string\".",
            ),
            (r#"{"repo":"r","title":"t","count":0}"#, "'count': "),
        ] {
            let said = check(input.clone(), given).unwrap_err();
            assert!(said.starts_with(told), "{said}");
            assert!(said.ends_with(parameters), "{said}");
        }
    }

    #[test]
    fn a_schema_that_is_odd_or_leads_elsewhere_is_left_to_its_server() {
        for odd in [
            json!({}),
            json!(true),
            Value::Null,
            json!({ "type": "nonsense" }),
            json!({ "$ref": "http://127.0.0.1:9/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "properties": { "a": { "pattern": "(?<=x)y(" } } }),
        ] {
            assert_eq!(check(odd.clone(), r#"{"a":"b"}"#), Ok(()), "{odd}");
        }
        let recursive =
            json!({ "properties": { "a": { "$ref": "#" } }, "additionalProperties": false });
        assert_eq!(check(recursive.clone(), r#"{"a":{"a":{}}}"#), Ok(()));
        assert!(check(recursive, r#"{"a":{"b":{}}}"#).is_err());
        // One that would take for ever by trying all ways.
        let slow = json!({ "properties": { "a": { "pattern": "^(a+)+$" } } });
        let given = format!(r#"{{"a":"{}!"}}"#, "a".repeat(100_000));
        assert!(check(slow, &given).is_err());
    }

    #[test]
    fn what_is_said_is_bounded_and_stays_in_its_line() {
        let input = json!({
            "type": "object",
            "properties": { "x\ny": { "type": "string" } },
            "required": ["a\n".repeat(1000)],
        });
        let given = json!({ "\u{1b}[2J\n".repeat(1000): 1, "x\ny": 5 });
        let said = check(input, &given.to_string()).unwrap_err();
        assert!(!said.contains(char::is_control), "{said:?}");
        assert!(said.len() < 2000, "{}", said.len());
    }
}
