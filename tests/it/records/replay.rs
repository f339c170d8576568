//! What was recorded is run again.

use serde_json::{Value, json};

use super::{Hotcell, hotcell_with, logs, serve};
use crate::support::{Answer, anyone, everyone, has};

/// Runs the newest record again.
fn replay(hotcell: &Hotcell, more: &[&str]) -> Answer {
    let id = logs(hotcell).last().expect("a record")["id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    hotcell_with(hotcell, &[&["replay", &id], more].concat())
}

#[test]
fn a_run_of_the_same_program_with_the_same_inputs_is_the_same() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let code = "cat; cat in/a.txt; echo \"$1\"; echo made > out.txt; echo wrong >&2; ulimit -a > /dev/null; exit 4";
        let arguments = json!({
            "code": code, "language": "sh", "args": ["x y"], "stdin": "read\n",
            "files": { "in/a.txt": "given\n" }, "memory": "64m", "timeout": 20,
        });
        let result = client.run(arguments);
        assert_eq!(
            result["structuredContent"]["stdout"], "read\ngiven\nx y\n",
            "{result}"
        );
        client.close();
        let same = replay(&hotcell, &[]);
        assert_eq!(
            same.whole(),
            (Some(0), "nothing differs\n".to_owned(), String::new()),
            "{}",
            hotcell.name
        );
        let told = replay(&hotcell, &["--json"]).json();
        assert_eq!(told["differs"], json!([]));
    }
}

#[test]
fn what_differs_is_said() {
    let Some(hotcell) = anyone() else { return };
    let code =
        "echo same; cat /proc/sys/kernel/random/uuid; cat /proc/sys/kernel/random/uuid > id.txt";
    let mut client = serve(&hotcell, &[]);
    client.run(json!({ "code": code, "language": "sh" }));
    client.close();
    let differs = replay(&hotcell, &[]);
    assert_eq!(differs.code, Some(1), "{}", differs.err());
    assert!(
        differs.out().contains("stdout: line 2 was"),
        "{}",
        differs.out()
    );
    assert!(
        differs.out().contains("file id.txt: was"),
        "{}",
        differs.out()
    );
    let told = replay(&hotcell, &["--json"]).json();
    let what: Vec<&Value> = told["differs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["what"])
        .collect();
    assert_eq!(what, ["stdout", "file id.txt"]);
}

#[test]
fn a_file_of_the_host_that_has_changed_is_named_and_a_variable_is_asked_for() {
    let Some(hotcell) = anyone() else { return };
    let file = hotcell.write("home/in.txt", "one\n");
    let argument = file.to_str().unwrap();
    hotcell.run(&[
        "-l",
        "sh",
        "--file",
        argument,
        "--env",
        "GIVEN=2",
        "-c",
        "cat in.txt; echo $GIVEN",
    ]);
    let asked = replay(&hotcell, &[]);
    assert_eq!(asked.code, Some(2));
    assert!(asked.err().contains("--env GIVEN=VALUE"), "{}", asked.err());
    assert_eq!(replay(&hotcell, &["--env", "GIVEN=2"]).code, Some(0));
    hotcell.write("home/in.txt", "two\n");
    let changed = replay(&hotcell, &["--env", "GIVEN=2"]);
    assert_eq!(changed.code, Some(1), "{}", changed.err());
    assert!(
        changed.err().contains("`in.txt` is not what it was"),
        "{}",
        changed.err()
    );
    assert!(
        changed.out().contains("line 1 was \"one\", is \"two\""),
        "{}",
        changed.out()
    );
}

#[test]
fn what_cannot_be_run_again_is_refused_with_its_reason() {
    if !has("python3") {
        return;
    }
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    client.run(json!({ "code": "x = 1", "language": "python", "session": "s" }));
    client.close();
    let refused = replay(&hotcell, &[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err().contains("session `s`"), "{}", refused.err());
    assert_eq!(hotcell_with(&hotcell, &["replay", "nothing"]).code, Some(2));
}
