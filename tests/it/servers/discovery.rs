//! The servers that other programs have configured: found where that is allowed, and only there.

use serde_json::json;

use super::{log, run, structured};
use crate::mcp::client::Client;
use crate::support::{Hotcell, Running, anyone};

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
    assert_eq!(listed, "clock: 9 tools\nhotcell: 0 tools\n");
    let listed = Running::start(hotcell.command().args(["servers", "--discover", "list"])).finish();
    assert_eq!(listed.out(), "clock: 9 tools\n", "{}", listed.err());
    assert!(
        listed.err().contains(".gemini/settings.json: "),
        "{}",
        listed.err()
    );
}
