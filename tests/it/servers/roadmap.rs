//! C18: what mcp-server-code-execution-mode has on its roadmap is here. Each of these has tests of its own elsewhere; this one has them all in
//! one server, so that none of them is missed.

use serde_json::{Value, json};

use super::{log, structured};
use crate::mcp::client::Client;
use crate::support::{Running, anyone, has};

#[test]
fn c18_every_item_of_the_roadmap_is_there() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let noted = hotcell.write("clock.log", "");
    // The policy, and a cap on calls.
    let config = format!(
        "[servers.clock]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {noted:?} }}\ndeny = ['die']\ncalls = 20\n"
    );
    hotcell.write("home/.config/hotcell/config.toml", config);
    let serve = |flags: &[&str]| {
        let mut command = hotcell.command();
        command.arg("serve").args(flags);
        let mut client = Client::of(command);
        client.begin();
        client
    };
    let mut client = serve(&["--max-runs", "2"]);
    let said = |result: &Value| {
        let said = structured(result)["stdout"].as_str();
        said.unwrap_or_else(|| panic!("{result}")).to_owned()
    };
    let mut run =
        |language: &str, code: &str| client.run(json!({ "language": language, "code": code }));

    // Tools are found and added while it serves; steps that were kept are called by later ones: a workflow.
    let steps = "
def fetched(text: str) -> dict:
    return {'words': clock.text(text=text).split()}
save_tool(fetched, text='a b')

def counted(text: str) -> int:
    return len(saved.fetched(text=text)['words'])
save_tool(counted, text='a b')
print([it['name'] for it in mcp.search('counted')][:1], saved.counted(text='x y z'))
";
    assert_eq!(said(&run("python", steps)), "['counted'] 3\n");
    // Allow and deny, and the cap.
    let refused = "
for n in range(30):
    try:
        clock.text(text='x') if n else clock.die()
    except ToolError as error:
        print(n, error.kind)
        if n: break
";
    assert_eq!(said(&run("python", refused)), "0 denied\n20 denied\n");
    // More languages.
    assert_eq!(
        said(&run("bash", "mcp call saved.counted text='x y'")),
        "2\n"
    );
    if has("node") {
        let code = "saved.counted({ text: 'a b c d' }).then(console.log)";
        assert_eq!(said(&run("javascript", code)), "4\n");
    }
    // Artifacts that can be handed on: a file that a program leaves is at an address.
    let left = run("python", "open('report.csv', 'w').write('a,b\\n')");
    let mut content = left["content"].as_array().expect("content").iter();
    let link = content.find(|it| it["type"] == "resource_link");
    let link = link.unwrap_or_else(|| panic!("{left}"));
    let read = client.request("resources/read", json!({ "uri": link["uri"] }));
    assert_eq!(read["result"]["contents"][0]["text"], "a,b\n", "{read}");
    drop(client);

    // Connections are kept: one process had all calls of this server.
    let started = log(&hotcell, "clock.log");
    let by_first = started.matches("start ").count();
    assert_eq!(by_first, 1, "{started}");

    // A workflow is offered as a tool of its own, for clients that write no code.
    let folder = hotcell.place("home/.local/share/hotcell/tools");
    let mut client = serve(&["--publish", folder.to_str().expect("a path")]);
    let call = json!({ "name": "counted", "arguments": { "text": "one two" } });
    let answer = client.request("tools/call", call);
    assert_eq!(
        answer["result"]["structuredContent"]["result"], 2,
        "{answer}"
    );
    drop(client);

    // Telemetry: every call is in the record of its run.
    let logs = Running::start(hotcell.command().args(["logs", "--json"])).finish();
    let called =
        logs.out().contains("\"tool\":\"counted\"") || logs.out().contains("\"tool\": \"counted\"");
    assert!(called, "{}", logs.out());
}
