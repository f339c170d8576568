//! Messages as they are, and changed: by bytes, by words, by structure.

use serde_json::{Map, Value, json};

/// A sequence of messages that is the same for the same seed.
pub struct Source {
    state: u64,
    recorded: Vec<Vec<u8>>,
}

/// Words that mean something to a reader of messages.
const WORDS: &[&str] = &[
    "null",
    "true",
    "-0",
    "0",
    "1.5",
    "1e400",
    "9223372036854775808",
    "-1",
    "{}",
    "[]",
    "\"\"",
    "\"x\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\u{1f600}\"",
    "\"jsonrpc\"",
    "\"id\"",
    "\"method\"",
    "\"params\"",
    "\"_meta\"",
    "\"tools/call\"",
    "\"tools/list\"",
    "\"ping\"",
    "\"resources/read\"",
    "\"run\"",
    "\"run://x/stdout\"",
    "\"2.0\"",
    "\"progressToken\"",
    ",",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\u{feff}",
    " ",
    "\t",
];

impl Source {
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            recorded: recorded()
                .iter()
                .map(|message| message.to_string().into_bytes())
                .collect(),
        }
    }

    /// The next message; it need not be one.
    pub fn message(&mut self) -> Vec<u8> {
        let at = self.below(self.recorded.len());
        let mut bytes = self.recorded[at].clone();
        match self.below(10) {
            0 => return bytes,
            1 => {
                let length = self.below(200);
                return (0..length).map(|_| self.next() as u8).collect();
            }
            2..=5 => {
                if let Ok(mut value) = serde_json::from_slice(&bytes) {
                    for _ in 0..=self.below(3) {
                        self.change(&mut value);
                    }
                    bytes = value.to_string().into_bytes();
                }
            }
            _ => {}
        }
        if self.below(2) == 0 {
            for _ in 0..=self.below(4) {
                self.damage(&mut bytes);
            }
        }
        bytes
    }

    /// Changes bytes, without a thought for what they mean.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.below(12)).min(bytes.len());
        match self.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 => bytes.insert(at, self.next() as u8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let word = WORDS[self.below(WORDS.len())];
                bytes.splice(at..end, word.bytes());
            }
            _ => {
                let other = self.below(self.recorded.len());
                let other = &self.recorded[other];
                let from = other.len().min(at);
                let rest = other[from..].to_vec();
                bytes.truncate(at);
                bytes.extend(rest);
            }
        }
    }

    /// Changes one thing somewhere in a value.
    fn change(&mut self, value: &mut Value) {
        let deeper = self.below(4) > 0;
        match value {
            Value::Object(members) if deeper && !members.is_empty() => {
                let at = self.below(members.len());
                if let Some(member) = members.values_mut().nth(at) {
                    return self.change(member);
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                return self.change(&mut items[at]);
            }
            Value::Object(members) if self.below(2) == 0 => return self.change_members(members),
            _ => {}
        }
        *value = self.some_value();
    }

    fn change_members(&mut self, members: &mut Map<String, Value>) {
        let at = self.below(members.len().max(1));
        let key = members.keys().nth(at).cloned().unwrap_or_default();
        match self.below(3) {
            0 => drop(members.shift_remove(&key)),
            1 => {
                let member = members.shift_remove(&key).unwrap_or_default();
                members.insert(key + "x", member);
            }
            _ => {
                let value = self.some_value();
                members.insert("extra".to_owned(), value);
            }
        }
    }

    fn some_value(&mut self) -> Value {
        match self.below(12) {
            0 => Value::Null,
            1 => true.into(),
            2 => (self.next() as i64).into(),
            3 => json!(1e308),
            4 => json!(-1),
            5 => "".into(),
            6 => "\u{0}\u{1b}[2J\u{202e}".into(),
            7 => "x".repeat(self.below(5000)).into(),
            8 => json!([]),
            9 => json!({}),
            10 => (0..self.below(200)).fold(json!(1), |inside, _| json!([inside])),
            _ => json!({ "a": { "b": ["c", 1, null] } }),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// splitmix64: short, and good enough to stumble with.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A session of each era, as a client has it.
fn recorded() -> Vec<Value> {
    let request = |id: Value, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "t",
    });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": { "name": "c", "version": "1" } });
    let run = json!({ "name": "run", "arguments": { "code": "echo $1", "language": "bash", "args": ["a"], "stdin": "s", "files": { "f": "t" }, "timeout": 5 } });
    let mut modern = run.clone();
    modern["_meta"] = meta.clone();
    vec![
        request(json!(0), "initialize", hello),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        request(json!(1), "ping", json!({})),
        request(json!("two"), "tools/list", json!({ "cursor": "p0" })),
        request(json!(3), "tools/call", run),
        request(json!("four"), "tools/call", modern),
        request(json!(5), "server/discover", json!({ "_meta": meta })),
        request(
            json!(6),
            "resources/read",
            json!({ "uri": "run://0/stdout?offset=1&length=2" }),
        ),
        request(
            json!(7),
            "resources/subscribe",
            json!({ "uri": "run://0/stdout" }),
        ),
        request(
            json!(8),
            "resources/templates/list",
            json!({ "_meta": meta }),
        ),
        request(
            json!(9),
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } }),
        ),
        request(
            json!(10),
            "prompts/get",
            json!({ "name": "p", "arguments": { "a": "b" } }),
        ),
        request(json!(11), "logging/setLevel", json!({ "level": "debug" })),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "none such" } }),
        json!({ "jsonrpc": "2.0", "id": "0123456789abcdef", "result": { "action": "accept", "content": {} } }),
        json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": -1, "message": "m" } }),
    ]
}
