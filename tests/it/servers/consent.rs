//! Calls that the user must agree to: asked in both eras, and refused where nobody can be asked.

use serde_json::{Value, json};

use super::{log, structured};
use crate::mcp::client::{Client, hello, modern};
use crate::support::{Hotcell, anyone};

const CONFIG: &str = "home/.config/hotcell/config.toml";
const CALL: &str = "try:\n    print(clock.text(text='a \"quoted\" word'))\nexcept ToolError as error:\n    print(error.kind, error)\n";

fn configure(hotcell: &Hotcell) {
    let script = hotcell.write("clock.py", include_str!("../../servers/clock.py"));
    let log = hotcell.write("clock.log", "");
    let config = format!(
        "[servers.clock]\ncommand = 'python3'\nargs = [{script:?}]\nenv = {{ CLOCK_LOG = {log:?} }}\nask = ['text']\n"
    );
    hotcell.write(CONFIG, config);
}

fn serve(hotcell: &Hotcell) -> Client {
    let mut command = hotcell.command();
    command.arg("serve");
    Client::of(command)
}

fn calls(hotcell: &Hotcell) -> usize {
    log(hotcell, "clock.log").matches("call text").count()
}

fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// Runs it with a client of 2025, which answers as it is asked; what was printed, and the question.
fn legacy(client: &mut Client, answer: Option<Value>) -> (Value, Value) {
    let arguments = json!({ "language": "python", "code": CALL, "timeout": 5 });
    let id = client.post(
        "tools/call",
        json!({ "name": "run", "arguments": arguments }),
    );
    let mut question = Value::Null;
    if let Some(answer) = answer {
        question = client.wait(|message| message["method"] == "elicitation/create");
        client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    }
    let result = client.answer(id)["result"].clone();
    (structured(&result)["stdout"].clone(), question)
}

const YES: &str = "a \"quoted\" word\n";
const NO: &str = "denied clock.text: this is not allowed: the user said no\n";
const UNASKED: &str = "denied clock.text: this is not allowed: nobody can be asked here; to grant it, take \"text\" out of `ask` of `[servers.clock]` in config.toml\n";

#[test]
fn a_legacy_client_is_asked_with_the_exact_call_and_its_answer_counts() {
    let Some(hotcell) = anyone() else { return };
    configure(&hotcell);
    let begin = |capabilities: Value| {
        let mut client = serve(&hotcell);
        let mut params = hello("2025-11-25");
        params["capabilities"] = capabilities;
        client.request("initialize", params);
        client
    };
    // Who cannot be asked is not.
    for none in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let (said, _) = legacy(&mut begin(none), None);
        assert_eq!(said, UNASKED);
    }
    let mut client = begin(json!({ "elicitation": {} }));
    for no in [
        accept("no"),
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept" }),
    ] {
        let (said, question) = legacy(&mut client, Some(no));
        assert_eq!(said, NO);
        let asked = "A program wants to call clock.text with {\"text\":\"a \\\"quoted\\\" word\"}";
        assert_eq!(question["params"]["message"], asked, "{question}");
    }
    assert_eq!(calls(&hotcell), 0, "it was called");
    assert_eq!(legacy(&mut client, Some(accept("once"))).0, YES);
    assert_eq!(legacy(&mut client, Some(accept("session"))).0, YES);
    assert_eq!(legacy(&mut client, None).0, YES);
    assert_eq!(calls(&hotcell), 3);
    client.close();

    let mut client = begin(json!({ "elicitation": {} }));
    assert_eq!(legacy(&mut client, Some(accept("always"))).0, YES);
    client.close();
    // For good, also for who cannot be asked.
    assert_eq!(legacy(&mut begin(json!({})), None).0, YES);
}

/// A call of `run` by a modern client, with more in its parameters.
fn ask(client: &mut Client, code: &str, more: Value) -> Value {
    let arguments = json!({ "language": "python", "code": code, "timeout": 3 });
    let mut params = modern(json!({ "name": "run", "arguments": arguments }));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    for (name, value) in more.as_object().expect("members") {
        params[name] = value.clone();
    }
    client.request("tools/call", params)
}

#[test]
fn a_modern_client_is_asked_by_the_answer_and_comes_back_with_a_decision() {
    let Some(hotcell) = anyone() else { return };
    configure(&hotcell);
    let mut client = serve(&hotcell);
    let twice = format!("{CALL}{CALL}print('done')\n");
    let first = ask(&mut client, &twice, json!({}))["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let question = &first["inputRequests"]["approve"];
    assert_eq!(question["method"], "elicitation/create", "{first}");
    assert!(
        question["params"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("clock.text with {\"text\""))
    );
    assert_eq!(calls(&hotcell), 0);
    // The time that a person takes is not the program's, which has 3 s.
    std::thread::sleep(std::time::Duration::from_secs(4));

    let back = |state: &Value, answer: Value| json!({ "requestState": state, "inputResponses": { "approve": answer } });
    // A state is good for the request that it was made for, and nothing else is one.
    let state = first["requestState"].clone();
    let other = ask(&mut client, CALL, back(&state, accept("once")));
    assert!(other["error"].is_object(), "{other}");
    let forged = ask(&mut client, &twice, back(&json!("forged"), accept("once")));
    assert!(forged["error"].is_object(), "{forged}");
    assert_eq!(calls(&hotcell), 0);

    let second = ask(&mut client, &twice, back(&state, accept("once")))["result"].clone();
    assert_eq!(second["resultType"], "input_required", "{second}");
    assert_eq!(calls(&hotcell), 1);
    let used = ask(&mut client, &twice, back(&state, accept("once")));
    assert!(used["error"].is_object(), "{used}");
    let end = ask(
        &mut client,
        &twice,
        back(&second["requestState"], accept("no")),
    )["result"]
        .clone();
    assert_eq!(
        structured(&end)["stdout"],
        format!("{YES}{NO}done\n"),
        "{end}"
    );
    assert_eq!(structured(&end)["status"], "ok", "{end}");
    assert_eq!(calls(&hotcell), 1);

    // Who has not said that it can be asked is not.
    let arguments = json!({ "language": "python", "code": CALL });
    let params = modern(json!({ "name": "run", "arguments": arguments }));
    let unasked = client.request("tools/call", params);
    assert_eq!(
        structured(&unasked["result"])["stdout"],
        UNASKED,
        "{unasked}"
    );
}
