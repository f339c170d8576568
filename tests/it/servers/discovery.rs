//! The servers that other programs have configured: found where that is allowed, and only there.

use serde_json::{Value, json};

use super::{log, run, structured};
use crate::mcp::client::Client;
use crate::support::{Hotcell, PATIENCE, Running, anyone, eventually};

const CONFIG: &str = "home/.config/hotcell/config.toml";

fn configure_others(hotcell: &Hotcell) {
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log = hotcell.write("clock.log", "");
    let cursor = format!(
        "{{ // of an editor\n \"mcpServers\": {{ \"clock\": {{ \"command\": \"${{PYTHON:-python3}}\", \"args\": [{script:?}], \"env\": {{ \"CLOCK_LOG\": {log:?}, }}, }},\n\
         \"hotcell\": {{ \"command\": \"hotcell\", \"args\": [\"serve\"] }}, \"off\": {{ \"command\": \"x\", \"disabled\": true }} }} }}"
    );
    hotcell.write("home/.cursor/mcp.json", cursor);
    hotcell.write("home/.gemini/settings.json", "{ broken");
    // A project's file starts nothing.
    hotcell.write(
        "home/.mcp.json",
        "{\"mcpServers\": {\"project\": {\"command\": \"x\"}}}",
    );
}

#[test]
fn servers_of_other_programs_are_found_only_where_that_is_allowed() {
    let Some(hotcell) = anyone() else { return };
    configure_others(&hotcell);
    let code = "print(clock.text(text='found'), 'off' in globals(), 'hotcell' in globals(), 'project' in globals())";
    let found = "found False False False\n";
    let denied = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(denied["stdout"], "", "{denied}");
    assert_eq!(log(&hotcell, "clock.log"), "", "it was started");

    // Control: with the flag, and with the setting.
    let flagged = run(&hotcell, &["--discover", "-l", "python", "-c", code]);
    assert_eq!(flagged["stdout"], found, "{flagged}");
    hotcell.write(CONFIG, "[servers]\ndiscover = true\n");
    let set = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(set["stdout"], found, "{set}");
    hotcell.write(CONFIG, "");
    let mut command = hotcell.command();
    command.args(["serve", "--discover"]);
    let mut client = Client::of(command);
    client.begin();
    let served = client.run(json!({ "language": "python", "code": code }));
    assert_eq!(structured(&served)["stdout"], found, "{served}");

    let mut command = hotcell.command();
    command.env("MCP_BRIDGE_ALLOW_SELF_SERVER", "yes");
    command.args(["servers", "--discover", "list"]);
    let listed = Running::start(&mut command).finish().out();
    let hotcell_entry = "hotcell: no tools known yet; `hotcell servers check` asks for them\n";
    assert_eq!(listed, format!("clock: 9 tools\n{hotcell_entry}"));
    let listed = Running::start(hotcell.command().args(["servers", "--discover", "list"])).finish();
    assert_eq!(listed.out(), "clock: 9 tools\n", "{}", listed.err());
    assert!(
        listed.err().contains(".gemini/settings.json: "),
        "{}",
        listed.err()
    );
}

#[test]
fn the_variables_of_an_env_file_reach_their_server_and_nobody_else() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    // It notes the value as it has it.
    let noted = hotcell.write("noted", "");
    let (noted, script) = (noted.display(), script.display());
    let start = format!("printenv CLOCK_KEY > {noted}; exec python3 {script}");
    let file = "# of an editor\nexport CLOCK_KEY=\"key-in-a-file-4711\"\nCLOCK_TEAM=own # no\n";
    hotcell.write("home/keys/clock.env", file);
    hotcell.write("home/keys/broken.env", "CLOCK_KEY\nkey-in-a-file-4711\n");
    let entry = |name: &str, path: &str| {
        format!(
            "{name:?}: {{ \"type\": \"stdio\", \"command\": \"sh\", \"args\": [\"-c\", {start:?}], \"envFile\": {path:?}, \
             \"env\": {{ \"CLOCK_TEAM\": \"team\" }} }}"
        )
    };
    let entries = [
        entry("clock", "${userHome}/keys/clock.env"),
        entry("broken", "~/keys/broken.env"),
        entry("missing", "~/keys/missing.env"),
        entry("beside", "keys/clock.env"),
        entry("workspace", "${workspaceFolder}/clock.env"),
    ];
    let servers = format!("{{ \"servers\": {{ {} }} }}", entries.join(", "));
    hotcell.write("home/.config/Code/User/mcp.json", servers);
    hotcell.write(CONFIG, "[servers]\ndiscover = true\n");

    // The server says what it has, and what must not come back does not.
    let code = "import os\nhas = clock.environment()\nprint(has['CLOCK_KEY'] != '', has['CLOCK_KEY'], has['CLOCK_TEAM'], 'CLOCK_KEY' in os.environ)";
    let said = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(said["stdout"], "True (hidden) team False\n", "{said}");
    assert_eq!(log(&hotcell, "noted"), "key-in-a-file-4711\n");

    let listed = Running::start(hotcell.command().args(["servers", "list"])).finish();
    let listed = listed.out() + &listed.err();
    for why in [
        "broken.env: line 1 is not NAME=value",
        "missing.env: No such file or directory",
        "keys/clock.env: it must be an absolute path",
        "its `envFile` needs `${workspaceFolder}`",
    ] {
        assert!(listed.contains(why), "{why}: {listed}");
    }
    assert!(!listed.contains("4711"), "{listed}");
    assert!(listed.contains("clock: 9 tools"), "{listed}");
}

#[test]
fn an_env_file_that_changes_is_noticed_while_serving() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let starts = hotcell.write("clock.log", "");
    let file = |team: &str| {
        hotcell.write("home/keys/clock.env", format!("CLOCK_TEAM={team}\n"));
    };
    file("red");
    let entry = json!({
        "command": "python3",
        "args": [script],
        "envFile": "~/keys/clock.env",
        "env": { "CLOCK_LOG": starts },
    });
    let servers = json!({ "servers": { "clock": entry } });
    hotcell.write("home/.config/Code/User/mcp.json", servers.to_string());
    hotcell.write(CONFIG, "[servers]\ndiscover = true\n");
    let mut command = hotcell.command();
    command.arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let code = "try:\n    print(clock.environment()['CLOCK_TEAM'])\nexcept ToolError as error:\n    print(error.message)";
    let mut expect = |expected: &str| {
        let mut last = Value::Null;
        let came = eventually(PATIENCE, || {
            last = client.run(json!({ "language": "python", "code": code }));
            let said = structured(&last)["stdout"].as_str().unwrap_or_default();
            said.contains(expected)
        });
        assert!(came, "{expected}: {last}");
    };
    expect("red\n");
    file("blue");
    expect("blue\n");
    // One that cannot be read is one bad server, until it can.
    std::fs::remove_file(hotcell.place("home/keys/clock.env")).expect("it is there");
    expect("its entry has a mistake");
    file("green");
    expect("green\n");
    // Control: it was started anew for these changes and for nothing else.
    let started = log(&hotcell, "clock.log");
    assert_eq!(started.matches("start ").count(), 3, "{started}");
}
