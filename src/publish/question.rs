//! Questions that a script has for the client, and whether an answer is one.

use serde_json::{Map, Value, json};

use super::schema_check::check;
use crate::mcp::Context;

/// Questions that may be asked at once.
const MOST: usize = 16;
const LONGEST_KEY: usize = 100;

/// A request of the protocol to the client, under the script's own key.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub key: String,
    pub method: String,
    pub params: Map<String, Value>,
}

impl Question {
    /// Reads `{key: {"method": …, "params": …}}`.
    pub fn read_all(questions: &Value) -> Result<Vec<Self>, String> {
        let Value::Object(questions) = questions else {
            return Err("`questions` is not an object".to_owned());
        };
        if questions.is_empty() || questions.len() > MOST {
            return Err(format!("1 to {MOST} questions can be asked at once"));
        }
        let questions = questions.iter();
        questions
            .map(|(key, question)| Self::read(key, question))
            .collect()
    }

    fn read(key: &str, question: &Value) -> Result<Self, String> {
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(format!("a key has 1 to {LONGEST_KEY} bytes"));
        }
        let method = question["method"].as_str().unwrap_or("elicitation/create");
        let params = match question.get("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params.clone(),
            Some(_) => return Err(format!("`params` of `{key}` is not an object")),
        };
        let is = |name: &str, fits: fn(&Value) -> bool| params.get(name).is_some_and(fits);
        let whole = match (method, params.get("mode").and_then(Value::as_str)) {
            ("elicitation/create", None | Some("form")) => {
                is("message", Value::is_string) && is("requestedSchema", Value::is_object)
            }
            ("elicitation/create", Some("url")) => ["message", "url", "elicitationId"]
                .iter()
                .all(|name| is(name, Value::is_string)),
            ("sampling/createMessage", _) => {
                is("messages", Value::is_array) && is("maxTokens", Value::is_number)
            }
            ("roots/list", _) => true,
            _ => return Err(format!("`{key}` asks for something that no client answers")),
        };
        if !whole {
            return Err(format!("`params` of `{key}` lacks what `{method}` needs"));
        }
        Ok(Self {
            key: key.to_owned(),
            method: method.to_owned(),
            params,
        })
    }

    /// What the client must be able to do.
    pub fn need(&self) -> &'static str {
        match (self.method.as_str(), self.params.get("mode")) {
            ("elicitation/create", Some(mode)) if mode == "url" => "elicitation.url",
            ("elicitation/create", _) => "elicitation",
            ("roots/list", _) => "roots",
            _ => "sampling",
        }
    }

    /// Whether `answer` has the shape of an answer to this. What has not was never
    /// given, and can be asked for again.
    pub fn is_answered_by(&self, answer: &Value) -> bool {
        match self.need() {
            "elicitation" => match answer["action"].as_str() {
                Some("accept") => answer["content"].is_object(),
                Some("decline" | "cancel") => true,
                _ => false,
            },
            "elicitation.url" => {
                matches!(
                    answer["action"].as_str(),
                    Some("accept" | "decline" | "cancel")
                )
            }
            "roots" => answer["roots"].is_array(),
            _ => {
                let content = &answer["content"];
                answer["role"].is_string() && (content.is_object() || content.is_array())
            }
        }
    }

    /// What is wrong with the content of an answer, if it is not what was asked for.
    ///
    /// Asking again would only get the same: whoever shows forms has to keep to them.
    pub fn fault_of(&self, answer: &Value) -> Option<String> {
        let form = self.need() == "elicitation" && answer["action"] == "accept";
        let schema = self.params.get("requestedSchema").filter(|_| form)?;
        let wrong = check(schema, &answer["content"]).err()?;
        Some(format!(
            "the client's answer to `{}` does not fit: {wrong}",
            self.key
        ))
    }

    pub fn to_value(&self) -> Value {
        json!({ "method": self.method, "params": self.params })
    }
}

/// Whether the client can do `need`; a legacy client that we know nothing of may.
pub fn can(context: &Context, need: &str) -> bool {
    let Some(capabilities) = &context.capabilities else {
        return !context.era.is_modern();
    };
    let mut path = need.split('.');
    let Some(mut found) = path.next().and_then(|name| capabilities.get(name)) else {
        return false;
    };
    if need == "elicitation" {
        // Whoever names only other ways cannot show a form.
        let ways = found.as_object();
        return ways.is_none_or(|ways| ways.is_empty() || ways.contains_key("form"));
    }
    for name in path {
        match found.get(name) {
            Some(deeper) => found = deeper,
            None => return false,
        }
    }
    true
}

/// Needs in the shape of a client's capabilities.
pub fn as_capabilities<'a>(needs: impl IntoIterator<Item = &'a str>) -> Value {
    let mut all = json!({});
    for need in needs {
        let mut entry = &mut all;
        for name in need.split('.') {
            entry = &mut entry[name];
            if entry.is_null() {
                *entry = json!({});
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(question: Value) -> Result<Question, String> {
        Question::read_all(&json!({ "k": question })).map(|mut all| all.remove(0))
    }

    fn form() -> Question {
        let schema = json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        });
        one(json!({ "params": { "message": "Who?", "requestedSchema": schema } })).unwrap()
    }

    #[test]
    fn only_an_answer_to_the_question_is_one() {
        let form = form();
        for good in [
            json!({"action": "accept", "content": {"name": "Ada"}}),
            json!({"action": "decline"}),
            json!({"action": "cancel"}),
        ] {
            assert!(form.is_answered_by(&good), "{good}");
        }
        for bad in [
            json!(12345),
            json!(null),
            json!({}),
            json!({"action": "maybe"}),
            json!({"action": "accept"}),
            json!({"roots": []}),
        ] {
            assert!(!form.is_answered_by(&bad), "{bad}");
        }
        let fault =
            |content: Value| form.fault_of(&json!({"action": "accept", "content": content}));
        assert_eq!(fault(json!({"name": "Ada"})), None);
        let missing = "the client's answer to `k` does not fit: `name` is missing";
        assert_eq!(fault(json!({})).as_deref(), Some(missing));
        assert!(fault(json!({"name": 1})).is_some());
        assert_eq!(form.fault_of(&json!({"action": "decline"})), None);
        let roots = one(json!({"method": "roots/list"})).unwrap();
        assert!(roots.is_answered_by(&json!({"roots": []})));
        assert!(!roots.is_answered_by(&json!({"action": "accept"})));
        let sampling =
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
        let sampling = one(sampling).unwrap();
        let reply =
            json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"});
        assert!(sampling.is_answered_by(&reply));
        assert!(!sampling.is_answered_by(&json!({"role": "assistant"})));
    }

    #[test]
    fn what_no_client_answers_is_not_asked() {
        for bad in [
            json!(1),
            json!({}),
            json!({"params": 1}),
            json!({"params": {"message": "x"}}),
            json!({"method": "tools/call"}),
            json!({"method": "sampling/createMessage", "params": {"messages": []}}),
            json!({"params": {"mode": "url", "message": "x"}}),
            json!({"params": {"mode": "odd", "message": "x", "requestedSchema": {}}}),
        ] {
            assert!(one(bad.clone()).is_err(), "{bad}");
        }
        let many: Map<String, Value> = (0..MOST + 1)
            .map(|at| (at.to_string(), json!({"method": "roots/list"})))
            .collect();
        for bad in [
            json!([]),
            json!({}),
            Value::Object(many),
            json!({"": {"method": "roots/list"}}),
        ] {
            assert!(Question::read_all(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn needs_are_told_in_the_shape_of_capabilities() {
        assert_eq!(
            as_capabilities(["sampling", "elicitation.url", "elicitation.form"]),
            json!({"sampling": {}, "elicitation": {"url": {}, "form": {}}})
        );
    }
}
