//! What is said about a run beside its output: the plan, the whole result, the help.

use serde_json::json;

use crate::support::{anyone, everyone};

#[test]
fn a_plan_is_printed_and_nothing_is_run() {
    let Some(hotcell) = anyone() else { return };
    let input = hotcell.write("home/in.csv", "1,2");
    let input = input.to_str().unwrap();
    let asked = [
        "--plan",
        "-l",
        "py",
        "-c",
        "while True: print()",
        "--file",
        input,
    ];
    let answer =
        hotcell.run(&[&asked[..], &["--env", "A=b", "--timeout", "2s", "--", "x"]].concat());

    let mut plan = answer.json();
    assert_eq!((answer.code, answer.err()), (Some(0), String::new()));
    assert_eq!(
        plan["argv"].as_array_mut().unwrap().remove(0),
        plan["runtime"]["path"]
    );
    for name in ["runtime", "trees"] {
        plan.as_object_mut().unwrap().remove(name);
    }
    let expected = json!({
        "language": "python",
        "argv": ["-u", "main.py", "x"],
        "env": {"A": "b", "HOME": "/workspace/.home", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp"},
        "source": {"path": "main.py", "bytes": 19},
        "files": [{"path": "in.csv", "from": input, "mode": "0644"}],
        "timeout_ms": 2000,
        "limits": {
            "memory": 536870912, "tasks": 128, "cpus": 1.0, "cpu_seconds": 3, "file_size": 268435456,
            "open_files": 1024, "workspace": 402653184, "workspace_inodes": 100000, "tmp": 268435456,
            "shm": 67108864, "output": 268435456,
        },
        "notes": [],
    });
    assert_eq!(plan, expected);
}

#[test]
fn the_json_result_is_whole() {
    for hotcell in everyone() {
        let mut result = hotcell.json(&["-l", "python", "-c", "print('é')"]);
        let fields = result.as_object_mut().unwrap();
        assert!(fields.remove("duration_ms").unwrap().as_f64().unwrap() > 0.0);
        let usage = fields.remove("usage").unwrap();
        assert!(
            usage["memory_peak_bytes"].as_u64().unwrap() > 1 << 20,
            "{usage}"
        );
        let runtime = fields.remove("runtime").unwrap();
        assert!(
            runtime["path"].as_str().unwrap().starts_with("/usr/"),
            "{runtime}"
        );
        let isolation = fields.remove("isolation").unwrap();
        let walls = isolation["walls"].as_array().unwrap();
        let missing = walls.iter().filter(|wall| wall["stands"] != true).count();
        let level = if missing == 0 { "full" } else { "reduced" };
        assert_eq!(isolation["level"], level);
        let expected = json!({
            "status": "ok", "exit_code": 0, "signal": null, "stdout": "é\n", "stderr": "",
            "error": null, "language": "python",
        });
        assert_eq!(result, expected);
    }
}

#[test]
fn a_strict_run_needs_every_wall() {
    for hotcell in everyone() {
        let full = hotcell.json(&["-l", "sh", "-c", "true"])["isolation"]["level"] == "full";
        let answer = hotcell.run(&["--require", "strict", "-l", "sh", "-c", "echo ran"]);
        if full {
            assert_eq!(answer.whole(), (Some(0), "ran\n".to_owned(), String::new()));
        } else {
            assert_eq!((answer.code, answer.out()), (Some(125), String::new()));
            let cause =
                "hotcell: this host cannot build a layer of the sandbox that the run needs: ";
            assert!(answer.err().starts_with(cause), "{}", answer.err());
            assert!(answer.err().contains("\nhint: "), "{}", answer.err());
        }
    }
}

#[test]
fn the_exit_codes_are_documented() {
    for hotcell in everyone() {
        let help = hotcell.run(&["--help"]).out();
        let (_, codes) = help
            .split_once("Exit codes:\n")
            .expect("they are in the help");
        let listed: Vec<&str> = codes
            .lines()
            .filter_map(|line| line.split_ascii_whitespace().next())
            .collect();
        assert_eq!(
            listed,
            ["N", "128+N", "124", "122", "123", "125", "2", "130"]
        );
    }
}
