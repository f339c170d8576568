//! The same over MCP: a call names the hosts, within what the server's owner allows.

use serde_json::json;

use super::stage::Stage;
use crate::mcp::client::Client;
use crate::support::{everyone, has};

const CODE: &str = "import urllib.request\nfor host in ('allowed.test', 'evil.test'):\n    \
    try: print(host, urllib.request.urlopen('http://' + host).status)\n    except OSError as error: print(host, 'no')\n";

#[test]
fn a_call_reaches_the_hosts_it_names_and_is_told_how_to_name_others() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        let mut command = stage.command(&hotcell);
        command.arg("serve");
        let mut client = Client::of(command);
        client.begin();
        let call = |network| json!({ "code": CODE, "language": "python", "network": network });
        let result = client.run(call(json!(["allowed.test"])));
        let facts = &result["structuredContent"];
        assert_eq!(
            facts["stdout"], "allowed.test 200\nevil.test no\n",
            "{result}"
        );
        assert_eq!(facts["network"]["denied"][0]["grant"], "evil.test");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.ends_with("[network: `evil.test:80` was refused: it is not granted to this run. Grant it with `network`: [\"evil.test\"].]"), "{text}");
        // The next call has nothing of it, warm or cold.
        let result = client.run(json!({ "code": CODE, "language": "python" }));
        assert_eq!(
            result["structuredContent"]["stdout"],
            "allowed.test no\nevil.test no\n"
        );
        let code = "import urllib.request\nurllib.request.urlopen('http://evil.test')";
        let result = client.run(json!({ "code": code, "language": "python" }));
        let error = &result["structuredContent"]["error"];
        assert_eq!(
            (&error["kind"], &error["hint"]),
            (
                &json!("denied"),
                &json!("Grant `evil.test` with `network`.")
            ),
            "{result}"
        );
        for all in [json!("all"), json!(["all"])] {
            let result = client.run(call(all));
            assert_eq!(
                result["structuredContent"]["stdout"],
                "allowed.test 200\nevil.test 200\n"
            );
        }
        for bad in [
            json!(["ftp://a.test"]),
            json!([1]),
            json!(5),
            json!({"a": 1}),
        ] {
            let result = client.run(call(bad));
            assert_eq!(
                result["structuredContent"]["error"]["kind"],
                "invalid_request"
            );
        }
        // Mounts and variables are not a caller's to ask for.
        for key in ["mount", "mounts", "env"] {
            let result = client.run(json!({ "code": CODE, key: ["/:/data"] }));
            assert_eq!(
                result["structuredContent"]["error"]["kind"],
                "invalid_request"
            );
        }
    }
}

#[test]
fn a_server_started_without_network_gives_none() {
    let Some(stage) = Stage::set() else { return };
    for hotcell in everyone() {
        let mut command = stage.command(&hotcell);
        command.args(["serve", "--network", "allowed.test"]);
        let mut client = Client::of(command);
        client.begin();
        let mut ask = |network| {
            let result =
                client.run(json!({ "code": CODE, "language": "python", "network": network }));
            result["structuredContent"].clone()
        };
        let refused = ask(json!(["evil.test"]));
        assert_eq!(
            (&refused["status"], &refused["error"]["kind"]),
            (&json!("rejected"), &json!("denied"))
        );
        assert_eq!(refused["error"]["hint"], "Ask only for: allowed.test.");
        assert_eq!(
            ask(json!(["all"]))["stdout"],
            "allowed.test 200\nevil.test no\n"
        );
        assert_eq!(ask(json!([]))["stdout"], "allowed.test no\nevil.test no\n");
        stage.log();
    }
}

#[test]
fn in_the_place_of_code_runner_mcp_the_permissions_of_deno_grant_hosts() {
    let Some(stage) = Stage::set() else { return };
    if !has("node") {
        return;
    }
    let code = "for (const host of ['allowed.test', 'evil.test']) \
        await fetch(`http://${host}/`).then(r => console.log(host, r.status), () => console.log(host, 'no'))";
    for hotcell in everyone() {
        let ask = |permissions: &str| {
            let mut command = stage.dressed(&hotcell);
            command
                .arg(format!("DENO_PERMISSION_ARGS={permissions}"))
                .arg(hotcell.binary())
                .args(["serve", "--as", "code-runner-mcp"]);
            let mut client = Client::of(command);
            client.begin();
            let call = json!({ "name": "javascript-code-runner", "arguments": { "code": code } });
            let answer = client.request("tools/call", call);
            answer["result"]["content"][0]["text"]
                .as_str()
                .expect("text")
                .to_owned()
        };
        assert_eq!(ask(""), "allowed.test no\nevil.test no\n");
        assert_eq!(
            ask("--allow-net=allowed.test"),
            "allowed.test 200\nevil.test no\n\n[note] network: `evil.test:80` was refused: it is not granted to this run. \
             Start the server with DENO_PERMISSION_ARGS=--allow-net=evil.test to grant it."
        );
        assert_eq!(ask("--allow-all"), "allowed.test 200\nevil.test 200\n");
    }
}
