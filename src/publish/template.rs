//! Addresses with holes: `weather://{city}/{day}`.

use serde_json::{Map, Value};

/// A template of addresses: literal text and variables, no two of them adjacent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    start: String,
    /// Each variable and the text after it.
    holes: Vec<Hole>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hole {
    name: String,
    /// `{+name}`: may hold slashes.
    deep: bool,
    after: String,
}

impl Template {
    /// Reads a template; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split('{');
        let start = parts.next().unwrap_or_default().to_owned();
        let mut holes: Vec<Hole> = Vec::new();
        for part in parts {
            let (name, after) = part
                .split_once('}')
                .ok_or_else(|| "a `{` has no `}`".to_owned())?;
            let (deep, name) = match name.strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                return Err(format!("`{{{name}}}` is not a name of a variable"));
            }
            if holes.iter().any(|hole| hole.name == name) {
                return Err(format!("`{{{name}}}` occurs twice"));
            }
            if holes.last().is_some_and(|hole| hole.after.is_empty()) {
                return Err(format!(
                    "there must be text between two variables: `{{{name}}}` follows another"
                ));
            }
            holes.push(Hole {
                name: name.to_owned(),
                deep,
                after: after.to_owned(),
            });
        }
        if text.split('{').any(|part| part.matches('}').count() > 1) || start.contains('}') {
            return Err("a `}` has no `{`".to_owned());
        }
        Ok(Self { start, holes })
    }

    /// Whether it has variables at all.
    pub fn is_template(&self) -> bool {
        !self.holes.is_empty()
    }

    /// The values of the variables in `uri`; none if it does not fit.
    pub fn fit(&self, uri: &str) -> Option<Map<String, Value>> {
        let mut rest = uri.strip_prefix(self.start.as_str())?;
        let mut values = Map::new();
        for (at, hole) in self.holes.iter().enumerate() {
            let last = at + 1 == self.holes.len();
            let end = match last {
                true => rest.len().checked_sub(hole.after.len())?,
                false => rest.find(hole.after.as_str())?,
            };
            let value = rest.get(..end)?;
            rest = rest.get(end..)?.strip_prefix(hole.after.as_str())?;
            let value = decode(value)?;
            // After decoding: an encoded slash is a slash to whoever gets it.
            if value.is_empty() || (!hole.deep && value.contains('/')) {
                return None;
            }
            values.insert(hole.name.clone(), value.into());
        }
        rest.is_empty().then_some(values)
    }
}

/// Undoes percent encoding; none if that is broken or no text comes out.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fit(template: &str, uri: &str) -> Option<Value> {
        Template::parse(template)
            .unwrap()
            .fit(uri)
            .map(Value::Object)
    }

    #[test]
    fn variables_are_what_stands_in_their_place() {
        let of_two = "w://{city}/on/{day}.txt";
        assert_eq!(
            fit(of_two, "w://S%C3%A3o%20Paulo/on/monday.txt"),
            Some(json!({"city": "São Paulo", "day": "monday"}))
        );
        assert_eq!(
            fit("test://t/{id}/data", "test://t/123/data"),
            Some(json!({"id": "123"}))
        );
        assert_eq!(
            fit("f:///{+path}", "f:///a/b"),
            Some(json!({"path": "a/b"}))
        );
        assert_eq!(fit("a://b", "a://b"), Some(json!({})));
    }

    #[test]
    fn what_does_not_fit_is_not_held() {
        let template = "w://{city}/on/{day}.txt";
        for uri in [
            "",
            "w://",
            "w:///on/.txt",
            "w://a/on/b",
            "w://a/on/b.txtx",
            "w://a/b/on/c.txt",
            "w://a%2Fb/on/c.txt",
            "w://a%/on/b.txt",
            "w://a%zz/on/b.txt",
            "w://a%ff/on/b.txt",
            "x://a/on/b.txt",
            "w://a/on/b/c.txt",
            "w://é",
        ] {
            assert_eq!(fit(template, uri), None, "{uri}");
        }
    }

    #[test]
    fn a_template_that_is_unclear_is_refused() {
        for bad in [
            "a{", "a}", "{}", "{a}{b}", "{a b}", "{a}/{a}", "{{a}}", "{a}}",
        ] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
    }
}
