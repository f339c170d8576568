//! A tool in one line: what a model needs to call it, and a fraction of its schema.
//!
//! All of it is text of a foreign server: it never leaves its line.

use serde_json::Value;

use super::Tool;

/// Characters of a signature, and of the sentence behind it.
const LONGEST: usize = 240;
const LONGEST_SENTENCE: usize = 100;
/// Objects in objects, and values of an enumeration, that are shown.
const DEEPEST: usize = 2;
const MOST_VALUES: usize = 6;

/// `server.tool({a:string, b?:number}) // What it does`
pub fn line(server: &str, tool: &Tool) -> String {
    let call = cut(&call(server, tool, DEEPEST), LONGEST);
    match cut(&sentence(&tool.description), LONGEST_SENTENCE) {
        about if about.is_empty() => call,
        about => format!("{call} // {about}"),
    }
}

/// The same with everything that its server says.
pub fn whole(server: &str, tool: &Tool) -> String {
    let call = call(server, tool, usize::MAX);
    let about = tool.description.lines().map(one_line);
    about
        .filter(|line| !line.is_empty())
        .fold(call, |text, line| format!("{text}\n    {line}"))
}

/// The types of its arguments and of its value, as TypeScript writes them: `: {a:string}` or `?: {a?:string}`, and `{b:number}`.
pub fn types(tool: &Tool) -> (String, String) {
    let of = |root| Schema {
        root,
        depth: usize::MAX,
    };
    let arguments = of(&tool.input).of(&tool.input, 0);
    let required = tool.input["required"].as_array();
    let mark = if required.is_some_and(|it| !it.is_empty()) {
        ""
    } else {
        "?"
    };
    (
        format!("{mark}: {arguments}"),
        of(&tool.output).of(&tool.output, 0),
    )
}

/// The type of a server with these tools, as TypeScript writes it.
pub fn interface(tools: &[Tool]) -> String {
    let mut text = "{".to_owned();
    for tool in tools {
        let (arguments, output) = types(tool);
        let about = one_line(&tool.description).replace("*/", "* /");
        let name = spelled(&tool.name);
        text += &format!("\n  /** {about} */\n  {name}(args{arguments}): Promise<{output}>;");
    }
    text + "\n}"
}

/// What a tool takes, in short.
pub fn parameters(tool: &Tool) -> String {
    let schema = Schema {
        root: &tool.input,
        depth: DEEPEST,
    };
    cut(&schema.of(&tool.input, 0), LONGEST)
}

pub fn call(server: &str, tool: &Tool, depth: usize) -> String {
    let name = spelled(&tool.name);
    let schema = Schema {
        root: &tool.input,
        depth,
    };
    let arguments = match schema.of(&tool.input, 0) {
        empty if empty == "{}" || empty == "object" || empty == "any" => String::new(),
        arguments => arguments,
    };
    let schema = Schema {
        root: &tool.output,
        depth,
    };
    match &tool.output {
        Value::Null => format!("{server}.{name}({arguments})"),
        output => format!("{server}.{name}({arguments}) → {}", schema.of(output, 0)),
    }
}

/// A tool's name as code can write it: letters, digits and `_`; the server is asked for the real one.
pub fn spelled(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    match name.chars().all(is_plain) && !name.starts_with(|it: char| it.is_ascii_digit()) {
        true if KEYWORDS.contains(&name) => format!("{name}_"),
        true => name.to_owned(),
        false => super::alias(name),
    }
}

/// Words that neither Python nor JavaScript takes for a name after a dot: Python alone is strict.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Types as TypeScript writes them.
struct Schema<'a> {
    root: &'a Value,
    depth: usize,
}

impl Schema<'_> {
    fn of(&self, schema: &Value, level: usize) -> String {
        if level > 12 {
            return "any".to_owned();
        }
        if let Some(target) = schema["$ref"].as_str() {
            // Within the document only: nothing is fetched.
            let target = target
                .strip_prefix('#')
                .and_then(|it| self.root.pointer(it));
            return target.map_or("any".to_owned(), |it| self.of(it, level + 8));
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.values(values);
        }
        if !schema["const"].is_null() {
            return one_line(&schema["const"].to_string());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[key].as_array() {
                return union(choices.iter().map(|it| self.of(it, level + 1)));
            }
        }
        if let Some(names) = schema["type"].as_array() {
            let named = names.iter().filter_map(Value::as_str);
            return union(named.map(|name| self.named(name, schema, level)));
        }
        match schema["type"].as_str() {
            Some(name) => self.named(name, schema, level),
            None if schema["properties"].is_object() => self.named("object", schema, level),
            None => "any".to_owned(),
        }
    }

    fn named(&self, name: &str, schema: &Value, level: usize) -> String {
        match name {
            "integer" => "number".to_owned(),
            "string" | "number" | "boolean" | "null" => name.to_owned(),
            "array" => match self.of(&schema["items"], level + 1) {
                of if of.contains('|') => format!("({of})[]"),
                of => format!("{of}[]"),
            },
            "object" => self.object(schema, level),
            _ => "any".to_owned(),
        }
    }

    fn object(&self, schema: &Value, level: usize) -> String {
        let Some(properties) = schema["properties"].as_object() else {
            return "object".to_owned();
        };
        if level >= self.depth {
            return "{…}".to_owned();
        }
        let required = |name: &str| {
            let names = schema["required"].as_array().into_iter().flatten();
            names.into_iter().any(|it| it.as_str() == Some(name))
        };
        let member = |(name, schema): (&String, &Value)| {
            let mark = if required(name) { "" } else { "?" };
            format!("{}{mark}:{}", one_line(name), self.of(schema, level + 1))
        };
        let (first, then): (Vec<_>, Vec<_>) = properties.iter().partition(|it| required(it.0));
        let members: Vec<String> = first.into_iter().chain(then).map(member).collect();
        format!("{{{}}}", members.join(", "))
    }

    fn values(&self, values: &[Value]) -> String {
        let most = if self.depth == usize::MAX {
            values.len()
        } else {
            MOST_VALUES
        };
        let shown = values.iter().take(most).map(|it| one_line(&it.to_string()));
        let more = (values.len() > most).then(|| "…".to_owned());
        shown.chain(more).collect::<Vec<_>>().join("|")
    }
}

fn union(types: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for one in types {
        if !different.contains(&one) {
            different.push(one);
        }
    }
    different.join("|")
}

/// Up to the first full stop that ends something, or the end of the line.
fn sentence(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    // Of what is longer, no more is shown however it ends.
    let line = one_line(&cut(line, 4 * LONGEST_SENTENCE));
    let end = ["。", ". "].iter().filter_map(|stop| line.find(stop)).min();
    let sentence = line.get(..end.unwrap_or(line.len())).unwrap_or_default();
    sentence.trim_end_matches('.').to_owned()
}

/// Without what nobody sees, and spaces for what breaks lines.
pub fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .filter(|it| it.is_whitespace() || !is_unseen(*it))
        .collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a letter is shown to nobody, or changes how others are shown: control characters, zero widths, directions, variants, tags.
/// SECURITY: a model reads what a person does not see.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
