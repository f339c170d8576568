//! Which facts of a result a model is given, and which only its client.

use serde_json::{Map, Value, json};

use crate::cell::{OF_ROOT, WallReport};
use crate::output::RunOutput;

/// Under which name in `_meta` the other facts are.
pub const REST: &str = "dev.hotcell/run";

/// What says how a run was made, and not what came of it.
const OF_THE_RUN: [&str; 8] = [
    "language",
    "detected",
    "runtime",
    "compile",
    "duration_ms",
    "usage",
    "network",
    "calls",
];

/// What a caller acts on, without what is empty or as it should be; and the rest.
pub fn split(output: &mut RunOutput) -> (Map<String, Value>, Map<String, Value>) {
    // Of which nearly nothing is told.
    let isolation = output.isolation.take();
    let mut facts = match serde_json::to_value(&*output) {
        Ok(Value::Object(facts)) => facts,
        _ => Map::new(),
    };
    let mut rest = Map::new();
    for name in OF_THE_RUN {
        rest.extend(facts.shift_remove_entry(name));
    }
    // What was refused can be asked for.
    let denied = |network: &Value| {
        network
            .get("denied")
            .filter(|it| it[0] != Value::Null)
            .cloned()
    };
    if let Some(denied) = rest.get("network").and_then(denied) {
        facts.insert("network".to_owned(), json!({ "denied": denied }));
    }
    // Which language a program was taken for is news if nobody named it.
    if rest.contains_key("detected") {
        facts.extend(rest.get_key_value("language").map(own));
    }
    if let Some(Value::Object(mut packages)) = facts.shift_remove("packages") {
        if packages.get("cached") == Some(&true.into()) {
            packages.remove("lock");
        } else {
            let news = Map::from_iter(packages.remove_entry("lock"));
            facts.insert("packages".to_owned(), news.into());
        }
        rest.insert("packages".to_owned(), packages.into());
    }
    if let Some(isolation) = isolation {
        let (name, provider) = ("isolation".to_owned(), isolation.provider);
        let walls = isolation.walls.iter().filter(|wall| !wall.stands);
        let walls: Vec<&WallReport> = walls.collect();
        // A model can do nothing about who started the server, and would read it in every answer.
        let missing = walls.iter().map(|wall| wall.name);
        let missing: Vec<&str> = missing.filter(|it| !OF_ROOT.contains(it)).collect();
        match provider {
            "jail" if missing.is_empty() => {}
            "jail" => drop(facts.insert(name.clone(), json!({ "missing": missing }))),
            // What it lacks is the same in every answer, too.
            engine => drop(facts.insert(name.clone(), json!({ "provider": engine }))),
        }
        let told = json!({ "provider": provider, "level": isolation.level, "walls": walls });
        rest.insert(name, told);
    }
    facts.retain(|name, value| name == "stdout" || !is_nothing(name, value));
    (facts, rest)
}

fn own((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn is_nothing(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        _ if name == "value" => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => name == "exit_code" && number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}
