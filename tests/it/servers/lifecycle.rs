//! When a server runs, and what is known of it while it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{configure, log, run, serve, structured};
use crate::mcp::client::Client;
use crate::support::{Hotcell, PATIENCE, anyone, eventually, everyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";

fn description(client: &mut Client) -> String {
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    let run = tools.iter().find(|tool| tool["name"] == "run").expect("it");
    run["description"].as_str().unwrap_or_default().to_owned()
}

fn say(client: &mut Client, code: &str) -> Value {
    let result = client.run(json!({ "language": "python", "code": code }));
    structured(&result)["stdout"].clone()
}

fn one_clock(hotcell: &Hotcell, more: &str) {
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log = hotcell.write("clock.log", "");
    let config = format!(
        "[servers.clock]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?} }}\n{more}"
    );
    hotcell.write(CONFIG, config);
}

fn starts(hotcell: &Hotcell) -> usize {
    log(hotcell, "clock.log").matches("start").count()
}

/// The files in which the tools are remembered.
fn remembered(hotcell: &Hotcell) -> Vec<PathBuf> {
    let folder = hotcell.place("home/.local/state/hotcell/servers");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect()
}

#[test]
fn the_tools_are_remembered_and_a_server_is_not_started_to_learn_them_again() {
    let Some(hotcell) = anyone() else { return };
    one_clock(&hotcell, "");
    let mut client = serve(&hotcell);
    assert!(eventually(PATIENCE, || remembered(&hotcell).len() == 1));
    client.close();
    let [file] = remembered(&hotcell).try_into().expect("one file");
    let modes = [&file, &file.parent().expect("its folder").to_owned()]
        .map(|path| fs::metadata(path).expect("it").permissions().mode() & 0o777);
    assert_eq!(modes, [0o600, 0o700]);
    assert_eq!(starts(&hotcell), 1);

    let mut client = serve(&hotcell);
    let told = || "clock.wait({seconds:number, note?:string})";
    assert!(eventually(PATIENCE, || description(&mut client).contains(told())));
    assert_eq!(starts(&hotcell), 1, "it was started without being called");
    // Control: a call starts it.
    assert_eq!(say(&mut client, "print(clock.text(text='x'))"), "x\n");
    assert_eq!(starts(&hotcell), 2);
    client.close();

    // What is no list of tools is as if there were none.
    for nonsense in ["", "{", "[]", "{\"tools\": 5}", "{\"tools\": [5, {}]}"] {
        fs::write(&file, nonsense).expect("it can be written");
        let mut client = serve(&hotcell);
        assert_eq!(say(&mut client, "print(clock.text(text='y'))"), "y\n");
    }
}

#[test]
fn a_server_that_nobody_calls_is_closed_and_started_again_at_need() {
    let Some(hotcell) = anyone() else { return };
    one_clock(&hotcell, "idle = '1s'\n");
    let mut client = serve(&hotcell);
    let code = "print(clock.wait(seconds=2.5)['waited'])";
    // It is not idle while a call is in it.
    assert_eq!(say(&mut client, code), "2.5\n");
    let before = starts(&hotcell);
    let ended = || log(&hotcell, "clock.log").matches("end").count();
    assert!(eventually(PATIENCE, || ended() == before), "it runs on");
    assert_eq!(say(&mut client, "print(clock.text(text='x'))"), "x\n");
    assert_eq!(starts(&hotcell), before + 1);
}

#[test]
fn a_slow_or_broken_server_is_nobody_elses_matter() {
    let Some(hotcell) = anyone() else { return };
    configure(&hotcell);
    let config = fs::read_to_string(hotcell.place(CONFIG)).expect("it");
    let slow = "[servers.slow]\ncommand = 'sleep'\nargs = ['1000']\n";
    hotcell.write(CONFIG, config + slow);
    let mut client = serve(&hotcell);
    let begun = Instant::now();
    assert!(eventually(PATIENCE, || {
        description(&mut client).contains("clock.wait(")
    }));
    assert_eq!(say(&mut client, "print(1)"), "1\n");
    assert_eq!(say(&mut client, "print(clock.text(text='x'))"), "x\n");
    // The slow one has a minute to answer.
    assert!(
        begun.elapsed() < Duration::from_secs(50),
        "{:?}",
        begun.elapsed()
    );
    let code = "slow.any()";
    let result = client.run(json!({ "language": "python", "code": code, "timeout": 2 }));
    assert_eq!(structured(&result)["status"], "timeout", "{result}");
}

#[test]
fn a_start_goes_on_when_the_run_that_wanted_it_has_ended() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log_file = hotcell.write("clock.log", "");
    let late = format!(
        "echo began >> {}; sleep 4; exec python3 {}",
        log_file.display(),
        script.display()
    );
    let config = format!(
        "[servers.clock]\ncommand = 'sh'\nargs = ['-c', {late:?}]\nenv = {{ CLOCK_LOG = {log_file:?} }}\n"
    );
    hotcell.write(CONFIG, config);
    let mut client = serve(&hotcell);
    let code = "print(clock.text(text='at last'))";
    let result = client.run(json!({ "language": "python", "code": code, "timeout": 1 }));
    assert_eq!(structured(&result)["status"], "timeout", "{result}");
    assert_eq!(say(&mut client, code), "at last\n");
    assert_eq!(log(&hotcell, "clock.log").matches("began").count(), 1);
}

#[test]
fn a_server_that_cannot_be_started_is_left_alone_for_a_while() {
    let Some(hotcell) = anyone() else { return };
    let log_file = hotcell.write("tries.log", "");
    let broken = format!("echo tried >> {}; exit 1", log_file.display());
    let config = format!("[servers.broken]\ncommand = 'sh'\nargs = ['-c', {broken:?}]\n");
    hotcell.write(CONFIG, config);
    let code = r#"
for _ in range(20):
    try:
        broken.any()
    except ToolError as error:
        last = str(error)
print(last)
"#;
    let mut client = serve(&hotcell);
    let said = say(&mut client, code);
    let said = said.as_str().unwrap_or_default();
    assert!(
        said.contains("it has ended; it is tried again in "),
        "{said}"
    );
    let tries = log(&hotcell, "tries.log").matches("tried").count();
    assert!((1..=4).contains(&tries), "{tries}");
}

#[test]
fn a_server_that_dies_is_started_again_and_costs_one_call() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    configure(&hotcell);
    let code = r#"
for _ in range(2):
    try:
        clock.die()
    except ToolError as error:
        print(error.kind, error)
    print(clock.text(text="again"))
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let round = "unavailable clock.die: the server is not available: it has ended; run `hotcell servers` to see its messages\nagain\n";
    assert_eq!(result["stdout"], round.repeat(2), "{result}");
    assert_eq!(log(&hotcell, "clock.log").matches("start").count(), 3);
}

#[test]
fn a_call_ends_with_its_run_and_a_server_with_hotcell() {
    for hotcell in everyone() {
        configure(&hotcell);
        for killed in [false, true] {
            fs::write(hotcell.place("clock.log"), "").expect("an empty log");
            let mut client = serve(&hotcell);
            // The server is there before the call that must reach it in time.
            let begun =
                client.run(json!({ "language": "python", "code": "clock.wait(seconds=0)" }));
            assert_eq!(structured(&begun)["status"], "ok", "{begun}");
            let code = "clock.wait(seconds=60)";
            let result = client.run(json!({ "language": "python", "code": code, "timeout": 3 }));
            assert_eq!(structured(&result)["status"], "timeout", "{result}");
            let seen =
                |what: &str| eventually(PATIENCE, || log(&hotcell, "clock.log").contains(what));
            assert!(seen("cancelled"), "{}", log(&hotcell, "clock.log"));
            let text = log(&hotcell, "clock.log");
            let pid = text
                .lines()
                .find_map(|line| line.strip_prefix("start "))
                .expect("its pid");
            let process = Path::new("/proc").join(pid);
            assert!(process.exists(), "it is kept for the next call");
            if killed {
                client.child.kill().expect("a kill");
                client.child.wait().expect("an end");
            } else {
                drop(client);
            }
            assert!(
                eventually(PATIENCE, || !process.exists()),
                "{killed}: {pid} is left"
            );
        }
    }
}

#[test]
fn c5_c15_a_server_starts_in_its_folder_stays_between_runs_and_may_say_what_is_no_message() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let noted = hotcell.write("clock.log", "");
    hotcell.write("home/folder/here", "");
    let folder = hotcell.place("home/folder");
    // Blank lines and lines that are no JSON come before and between its messages.
    let start = format!(
        "pwd > where; echo; echo 'not a message'; echo '{{'; exec python3 {}",
        script.display()
    );
    let config = format!(
        "[servers.clock]\ncommand = 'sh'\nargs = ['-c', {start:?}]\ncwd = {folder:?}\nenv = {{ CLOCK_LOG = {noted:?} }}\n"
    );
    hotcell.write("home/.config/hotcell/config.toml", config);
    let mut client = serve(&hotcell);
    for text in ["one", "two"] {
        let code =
            format!("print(clock.text(text={text:?}), runtime.describe_server('clock')['cwd'])");
        let result = client.run(json!({ "language": "python", "code": code }));
        let said = format!("{text} {}\n", folder.display());
        assert_eq!(structured(&result)["stdout"], said, "{result}");
    }
    let where_it_was = std::fs::read_to_string(folder.join("where")).expect("it was there");
    assert_eq!(where_it_was.trim(), folder.to_str().expect("a path"));
    // One process for both runs.
    let noted = log(&hotcell, "clock.log");
    assert_eq!(noted.matches("start ").count(), 1, "{noted}");
    assert_eq!(noted.matches("call text").count(), 2, "{noted}");
}
