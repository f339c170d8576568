//! Programs without their language's name: told by their looks, or refused.

use std::collections::{BTreeMap, BTreeSet};

use hotcell::engine::{Engine, Rejected};
use hotcell::language::{LanguageError, Surroundings};
use hotcell::request::RunRequest;
use serde_json::json;

use super::cases::{Case, Language, languages};
use crate::raw::Stdio;

/// Cases that are programs of their language; what does not parse may look like anything.
const PROGRAMS: [&str; 9] = [
    "hello",
    "args",
    "stdin",
    "exit3",
    "error",
    "unicode",
    "compile_error",
    "missing_module",
    "signal",
];
/// Known by name, fence, file or `#!` line only.
const BY_NAME: [&str; 8] = [
    "yaml", "toml", "csv", "markdown", "duckdb", "starlark", "rhai", "erlang",
];

#[test]
fn programs_without_a_name_are_told_or_refused_and_never_run_as_something_else() {
    let all = languages();
    let programs: Vec<(&Language, &str, &Case)> = all
        .iter()
        .filter(|language| !BY_NAME.contains(&language.id.as_str()))
        .flat_map(|language| {
            language
                .cases()
                .map(move |(name, case)| (language, name, case))
        })
        .filter(|(_, name, case)| PROGRAMS.contains(name) && !case.code.starts_with("#!"))
        .collect();
    // The same text is a program of several languages; it has no right answer but a refusal, or any of them.
    let mut owners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (language, _, case) in &programs {
        owners.entry(&case.code).or_default().insert(&language.id);
    }
    let engine = Engine::new(Surroundings::from_env());
    let mut client = Stdio::open(&[]);
    let (mut asked, mut right) = (0, 0);
    let (mut refused, mut wrong) = (Vec::new(), Vec::new());
    for (language, name, case) in &programs {
        let request = RunRequest::new(case.code.as_str()).expect("a program");
        let (told, runs) = match engine.plan(request) {
            Ok(plan) => (Some(plan.language), true),
            // Told, and not to be had here.
            Err(Rejected::Runtime(missing)) => (Some(missing.language), false),
            Err(Rejected::Platform(elsewhere)) => (Some(elsewhere.language), false),
            Err(Rejected::Language(LanguageError::Undetected { .. })) => (None, false),
            Err(error) => panic!("{}: {error}", language.id),
        };
        let told = told.as_ref().map(|id| id.as_str());
        let same = &owners[case.code.as_str()];
        let line = format!("{} {name}: {:?} as {told:?}", language.id, case.code);
        let counts = same.len() == 1;
        asked += usize::from(counts);
        match told {
            Some(told) if same.contains(told) => right += usize::from(counts),
            None if !counts => {}
            // It would run as another language: then it must do what its own would do.
            Some(_) if runs => {
                let mut arguments = json!({ "code": case.code, "args": case.args });
                if let Some(stdin) = &case.stdin {
                    arguments["stdin"] = stdin.as_str().into();
                }
                if let Some(why) = case.judge(name, &client.run(arguments)) {
                    wrong.push(format!("{line}: {why}"));
                }
            }
            _ => refused.push(line),
        }
    }
    println!("{right} of {asked} right; refused: {refused:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        right * 100 >= asked * 90,
        "{right} of {asked}: {refused:#?}"
    );
}

#[test]
fn the_answer_says_what_was_chosen_and_how_sure() {
    let mut client = Stdio::open(&[]);
    let record = client.run(json!({ "code": "```bash\necho hi\n```" }));
    assert_eq!(record["stdout"], "hi\n", "{record}");
    assert_eq!(
        record["detected"],
        json!({ "by": "fence", "certainty": 1.0 })
    );
    let record = client.run(json!({ "code": "#!/bin/sh\necho hi" }));
    assert_eq!(record["detected"]["by"], "shebang");
    let record = client.run(json!({ "code": "import sys\nprint(sys.argv[0])" }));
    assert_eq!(record["language"], "python", "{record}");
    assert_eq!(record["detected"]["by"], "looks");
    let certainty = record["detected"]["certainty"].as_f64().expect("a number");
    assert!((0.7..1.0).contains(&certainty), "{certainty}");
    let note = record["notes"][0].as_str().expect("a note");
    assert!(
        note.starts_with("no language was named; detected python from its content ("),
        "{note}"
    );
    // Asked for: nothing was detected.
    let record = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert!(record.get("detected").is_none(), "{record}");

    let record = client.run(json!({ "code": "x = 1" }));
    assert_eq!(record["status"], "rejected");
    assert_eq!(record["error"]["kind"], "ambiguous_language");
    let candidates = record["error"]["candidates"].as_array();
    assert!(
        candidates.is_some_and(|it| it.contains(&json!("python")) && it.len() > 1),
        "{record}"
    );
    let record = client.run(json!({ "code": "print \"hi\"\n" }));
    assert_eq!(record["error"]["kind"], "ambiguous_language", "{record}");
    assert!(
        record["error"]["candidates"]
            .as_array()
            .is_some_and(|it| !it.is_empty()),
        "{record}"
    );
}
