use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::cell::Limits;
use crate::request::AskedLimits;

fn definition() -> Definition {
    let text = r#"
name = "Snake"
extensions = ["sn"]
runtime.commands = ["snake"]
source.file = "main.sn"
run.argv = ["{runtime}", "-u", "{file}", "{args...}"]
env = { SNAKE = "1", LANG = "snake" }
failure.memory = ["{file}: full"]
"#;
    Definition::parse("snake", text, Path::new("snake.toml")).unwrap()
}

fn in_usr() -> Runtime {
    Runtime {
        command: "snake".to_owned(),
        path: PathBuf::from("/usr/bin/snake3"),
        program: "/usr/bin/snake3".to_owned(),
        prefix: None,
        libraries: Vec::new(),
        way: definition().commands()[0].clone(),
        tools: Vec::new(),
        shown: Vec::new(),
        env: Default::default(),
    }
}

fn elsewhere() -> Runtime {
    Runtime {
        path: PathBuf::from("/home/ann/.snakes/3/bin/snake3"),
        program: "/opt/snake/bin/snake3".to_owned(),
        prefix: Some(Tree {
            host: PathBuf::from("/home/ann/.snakes/3"),
            cell: PathBuf::from("/opt/snake"),
        }),
        libraries: vec!["/opt/snake/lib".to_owned()],
        ..in_usr()
    }
}

fn request() -> RunRequest {
    RunRequest::new("hiss").unwrap()
}

fn with(request: RunRequest, runtime: &Runtime) -> Result<RunPlan, RequestError> {
    let inputs = Inputs {
        definition: &definition(),
        chosen: (By::Request, 1.0),
        runtime,
        version: None,
        defaults: &Defaults::default(),
        packages: PackageInputs::default(),
        egress: None,
        upstream: UpstreamInputs::default(),
        notes: Vec::new(),
    };
    plan(request, inputs)
}

fn planned(request: RunRequest) -> RunPlan {
    with(request, &in_usr()).unwrap()
}

#[test]
fn a_plan_is_printed_whole_but_for_the_contents_of_files() {
    let file = InputFile::from_bytes(CellPath::parse("data/in").unwrap(), "12345");
    let request = request()
        .args(["a b", "{file}"])
        .unwrap()
        .env([("SNAKE", "2")])
        .unwrap()
        .files([file])
        .unwrap();

    let plan = with(request, &elsewhere()).unwrap();

    let expected = json!({
        "language": "snake",
        "runtime": {"command": "snake", "path": "/home/ann/.snakes/3/bin/snake3"},
        "argv": ["/opt/snake/bin/snake3", "-u", "main.sn", "a b", "{file}"],
        "env": {
            "HOME": "/workspace/.home",
            "LANG": "snake",
            "LD_LIBRARY_PATH": "/opt/snake/lib",
            "OMP_NUM_THREADS": "1",
            "PATH": "/opt/snake/bin:/usr/local/bin:/usr/bin:/bin",
            "SNAKE": "2",
            "TMPDIR": "/tmp",
        },
        "trees": [{"host": "/home/ann/.snakes/3", "cell": "/opt/snake"}],
        "source": {"path": "main.sn", "bytes": 4},
        "files": [{"path": "data/in", "bytes": 5, "mode": "0644"}],
        "timeout_ms": 30_000,
        "limits": {
            "memory": 512 << 20,
            "tasks": 128,
            "cpus": 1.0,
            "cpu_seconds": 31,
            "file_size": 256 << 20,
            "open_files": 1024,
            "workspace": 384 << 20,
            "workspace_inodes": 100_000,
            "tmp": 256 << 20,
            "shm": 64 << 20,
            "output": 256 << 20,
        },
        "notes": [],
    });
    assert_eq!(serde_json::to_value(&plan).unwrap(), expected);
}

#[test]
fn a_runtime_in_usr_adds_nothing_to_the_cell() {
    let plan = planned(request());
    assert_eq!(plan.launch.view.trees, []);
    assert_eq!(plan.launch.argv, ["/usr/bin/snake3", "-u", "main.sn"]);
    assert_eq!(plan.launch.env["PATH"], "/usr/local/bin:/usr/bin:/bin");
    assert_eq!(plan.launch.env.get("LD_LIBRARY_PATH"), None);
}

#[test]
fn a_file_of_the_language_keeps_its_name_and_any_other_does_not() {
    let path = |name: &str| planned(request().named(name)).source.to_string();
    assert_eq!(path("examples/hello.sn"), "hello.sn");
    assert_eq!(path("HELLO.SN"), "HELLO.SN");
    assert_eq!(path("hello.txt"), "main.sn");
    assert_eq!(path("hello"), "main.sn");
}

#[test]
fn a_file_name_is_never_read_as_an_option() {
    let plan = planned(request().named("-c.sn"));
    assert_eq!(plan.source.as_str(), "-c.sn");
    assert_eq!(plan.launch.argv[2], "./-c.sn");
}

#[test]
fn the_failures_first_words_know_the_files_name() {
    let plan = planned(request().named("eat.sn"));
    assert!(plan.failure().ran_out_of_memory(b"eat.sn: full\n"));
    assert!(!plan.failure().ran_out_of_memory(b"main.sn: full\n"));
}

#[test]
fn a_file_may_not_take_the_programs_place() {
    let file = InputFile::from_bytes(CellPath::parse("main.sn").unwrap(), "x");
    let error = with(request().files([file]).unwrap(), &in_usr()).unwrap_err();
    assert_eq!(error.to_string(), "two files have the path `main.sn`");
}

#[test]
fn what_is_asked_for_is_given_within_its_bounds_and_a_change_is_told() {
    let asked = AskedLimits {
        timeout: Some(Duration::from_secs(3600)),
        memory: Some(64 << 20),
        tasks: Some(5000),
        cpus: Some(2.5),
        output: Some(1000),
    };
    let plan = planned(request().limits(asked).unwrap());

    assert_eq!(plan.launch.timeout, Duration::from_secs(600));
    assert_eq!(plan.launch.output_limit, 1000);
    assert_eq!(plan.launch.env["OMP_NUM_THREADS"], "3");
    let limits = Limits {
        memory: 64 << 20,
        tasks: 4096,
        cpus: 2.5,
        cpu_seconds: 1501,
        workspace: 48 << 20,
        tmp: 32 << 20,
        shm: 16 << 20,
        ..Limits::default()
    };
    assert_eq!(plan.launch.limits, limits);
    let notes = [
        "timeout: 3600 s was asked for, 600 s is the most allowed and was used; \
         the owner can raise it with `[limits] max.timeout` in config.toml",
        "processes: 5000 was asked for, 4096 is the most allowed and was used; \
         the owner can raise it with `[limits] max.processes` in config.toml",
    ];
    assert_eq!(plan.notes, notes);

    let tiny = AskedLimits {
        memory: Some(1001),
        ..Default::default()
    };
    let notes = planned(request().limits(tiny).unwrap()).notes;
    assert_eq!(
        notes,
        ["memory: 1001 bytes was asked for, 16 MiB is the least allowed and was used"]
    );
}

#[test]
fn a_runtime_that_is_too_old_for_preludes_is_not_waited_with() {
    let text = include_str!("../../languages/javascript.toml");
    let definition = Definition::parse("javascript", text, Path::new("javascript.toml")).unwrap();
    let runtime = Runtime {
        way: definition.commands()[0].clone(),
        ..in_usr()
    };
    let waits = |code: &str, version: Option<&str>| {
        let inputs = Inputs {
            definition: &definition,
            chosen: (By::Request, 1.0),
            runtime: &runtime,
            version: version.map(str::to_owned),
            defaults: &Defaults::default(),
            packages: PackageInputs::default(),
            egress: None,
            upstream: UpstreamInputs::default(),
            notes: Vec::new(),
        };
        let request = RunRequest::new(code).unwrap().showing(Showing::All);
        let plan = plan(request, inputs).unwrap();
        plan.launch.prestart.is_some()
    };
    for (version, runs) in [
        (None, false),
        (Some("18.20.8"), false),
        (Some("20.15.1"), false),
        (Some("21.7.3"), false),
        (Some("22.2.0"), false),
        (Some("20.16.0"), true),
        (Some("v22.3.0"), true),
        (Some("24.1.0"), true),
    ] {
        assert_eq!(waits("display('x')", version), runs, "{version:?}");
        // Control: one that needs no prelude.
        assert!(waits("console.log(1)", version), "{version:?}");
    }
}
