//! Other walls for some callers and for some calls, as far as the owner leaves that to them.

use serde_json::{Value, json};

use super::{PATIENCE, containers_of, none_is_left, podman};
use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::{Hotcell, eventually};

fn serve(hotcell: &Hotcell, config: &str) -> Client {
    hotcell.write("home/.config/hotcell/config.toml", config);
    let mut command = hotcell.command();
    command.arg("serve");
    let mut client = Client::of(command);
    client.begin();
    client
}

fn run(client: &mut Client, more: Value) -> Value {
    let mut arguments = json!({ "code": "echo 1", "language": "sh" });
    let own = arguments.as_object_mut().unwrap();
    own.extend(more.as_object().unwrap().clone());
    record(&client.run(arguments))
}

/// What the tool `run` says of its parameter `isolation`.
fn offered(client: &mut Client) -> Value {
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "run").unwrap();
    tool["inputSchema"]["properties"]["isolation"]["enum"].clone()
}

#[test]
fn a_call_chooses_among_the_walls_that_the_owner_offers() {
    let Some(hotcell) = podman() else { return };
    let mut client = serve(&hotcell, "isolation_choices = [\"podman\"]\n");
    assert_eq!(offered(&mut client), json!(["podman"]));
    let usual = run(&mut client, json!({}));
    assert_eq!(usual["isolation"]["provider"], "jail", "{usual}");
    let chosen = run(&mut client, json!({ "isolation": "podman" }));
    assert_eq!(chosen["isolation"]["provider"], "podman", "{chosen}");
    assert_eq!(chosen["stdout"], "1\n");
    // What is made for such a program is made there too: a compiler sees its source.
    let main = "#include <stdio.h>\nint main(void) { puts(\"built\"); }";
    let arguments = json!({ "code": main, "language": "c", "isolation": "podman" });
    let built = record(&client.run(arguments));
    assert_eq!(built["stdout"], "built\n", "{built}");
    assert_eq!(built["isolation"]["provider"], "podman");

    for (choice, kind, says) in [
        ("docker", "denied", "offers no isolation `docker`"),
        ("cage", "invalid_request", "`isolation` must be one of"),
    ] {
        let refused = run(&mut client, json!({ "isolation": choice }));
        assert_eq!(refused["error"]["kind"], kind, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
    }
    let hint = run(&mut client, json!({ "isolation": "docker" }));
    let hint = hint["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("isolation_choices = [\"docker\"]"), "{hint}");
}

#[test]
fn nothing_is_offered_unless_the_owner_says_so() {
    let Some(hotcell) = podman() else { return };
    let mut client = serve(&hotcell, "");
    assert_eq!(offered(&mut client), Value::Null);
    let refused = run(&mut client, json!({ "isolation": "podman" }));
    assert_eq!(refused["error"]["kind"], "denied", "{refused}");
    // Naming the usual asks for nothing.
    let usual = run(&mut client, json!({ "isolation": "jail" }));
    assert_eq!(usual["isolation"]["provider"], "jail", "{usual}");
}

#[test]
fn a_caller_has_the_walls_that_the_owner_chose_for_it() {
    let Some(hotcell) = podman() else { return };
    let config = "isolation_of = { local = \"podman\" }\nisolation_choices = [\"jail\"]\n";
    let mut client = serve(&hotcell, config);
    let own = run(&mut client, json!({}));
    assert_eq!(own["isolation"]["provider"], "podman", "{own}");
    let chosen = run(&mut client, json!({ "isolation": "jail" }));
    assert_eq!(chosen["isolation"]["provider"], "jail", "{chosen}");
    // At the shell too, where a flag comes first.
    let shell = hotcell.json(&["-l", "sh", "-c", "echo 1"]);
    assert_eq!(shell["isolation"]["provider"], "podman", "{shell}");
    let flag = hotcell.json(&["--isolation", "jail", "-l", "sh", "-c", "echo 1"]);
    assert_eq!(flag["isolation"]["provider"], "jail", "{flag}");

    // Another caller's is no matter.
    let mut client = serve(&hotcell, "isolation_of = { token = \"podman\" }\n");
    let own = run(&mut client, json!({}));
    assert_eq!(own["isolation"]["provider"], "jail", "{own}");
}

#[test]
fn a_session_stays_behind_the_walls_of_its_first_call() {
    let Some(hotcell) = podman() else { return };
    let mut client = serve(&hotcell, "isolation_choices = [\"podman\"]\n");
    let first = json!({ "session": "s", "isolation": "podman" });
    let first = run(&mut client, first);
    assert_eq!(first["isolation"]["provider"], "podman", "{first}");
    let later = run(&mut client, json!({ "session": "s" }));
    assert_eq!(later["isolation"]["provider"], "podman", "{later}");
    let arguments = json!({ "code": "print(2)", "language": "python", "session": "s" });
    let other = record(&client.run(arguments));
    assert_eq!(other["isolation"]["provider"], "podman", "{other}");
    let refused = run(&mut client, json!({ "session": "s", "isolation": "jail" }));
    assert_eq!(refused["status"], "rejected", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("its first call decided"), "{message}");
}

#[test]
fn p26_the_variables_of_code_execution_mode_choose_an_engine() {
    let Some(hotcell) = podman() else { return };
    let mut command = hotcell.command();
    command
        .args(["serve", "--as", "code-execution-mode", "--pool", "0"])
        .env("MCP_BRIDGE_RUNTIME", "/usr/bin/podman");
    let mut client = Client::of(command);
    client.begin();
    let code = "import time\nprint('in it', flush=True)\ntime.sleep(600)";
    let call = json!({ "name": "run_python", "arguments": { "code": code } });
    client.post("tools/call", call);
    // Seen from outside, while its program runs.
    let pid = client.child.id();
    assert!(eventually(PATIENCE, || !containers_of(pid).is_empty()));
    drop(client);
    none_is_left(pid);
}
