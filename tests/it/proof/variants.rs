//! Other shapes of a language's programs: `tests/languages/variants.json`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::raw::{Stdio, record};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    id: String,
    why: String,
    code: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    stdout: String,
}

#[test]
fn every_shape_of_a_program_runs_where_its_language_is() {
    let text = include_str!("../../languages/variants.json");
    let variants: Vec<Variant> = serde_json::from_str(text).expect("the variants are right");
    let mut client = Stdio::open(&[]);
    let (mut ran, mut wrong) = (0, Vec::new());
    for variant in &variants {
        let Variant {
            id,
            code,
            args,
            files,
            ..
        } = variant;
        let arguments =
            json!({ "language": id, "code": code, "args": args, "files": files, "timeout": 120 });
        let call = client.begin_call("run", arguments);
        let answer = client.answer_within(&call, super::PATIENCE);
        let record = &record(&answer["result"]);
        if record["error"]["kind"] == "missing_runtime" {
            println!("not here: {id}, {}", variant.why);
            continue;
        }
        ran += 1;
        if record["stdout"] != variant.stdout.as_str() || record["status"] != "ok" {
            wrong.push(format!("{id}, {}: {record}", variant.why));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ran > 0, "nothing is here");
}
