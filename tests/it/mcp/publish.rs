//! `hotcell serve --publish`.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Client, hello, modern};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");

const NAME: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

/// A folder with these scripts, and flags that publish it.
struct Folder(TempDir);

impl Folder {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        for (name, code) in scripts {
            folder.write(name, code);
        }
        folder
    }

    fn write(&self, name: &str, code: &str) {
        fs::write(self.0.path().join(name), code).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.path().join(name)).unwrap();
    }

    fn open(&self) -> Client {
        Client::open(&["--publish", self.0.path().to_str().unwrap()])
    }
}

/// Opens the fixtures as a legacy client that can do all.
fn able_client(flags: &[&str]) -> Client {
    let mut client = Client::start(flags);
    let mut params = hello("2025-11-25");
    params["capabilities"] = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    client.request("initialize", params);
    client
}

fn call(client: &mut Client, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    client.request("tools/call", params)["result"].clone()
}

/// A modern call of a client that can be asked.
fn call_modern(client: &mut Client, name: &str, more: Value) -> Value {
    let mut params = modern(json!({ "name": name, "arguments": {} }));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    client.request("tools/call", params)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_script_is_a_tool_that_answers_with_what_it_prints() {
    let folder = Folder::new(&[(
        "greet.py",
        "# --- tool\n# description = \"Greets\"\n# [parameters]\n# who = \"Whom\"\n# loud = { type = \"boolean\", default = false }\n# ---\nimport hotcell, os\nprint('Hello,', hotcell.arguments['who'], os.environ['ARG_who'])\n",
    )]);
    let mut client = folder.open();
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&Value> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["greet", "run", "session"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["who"]));
    let result = call(&mut client, "greet", json!({ "who": "Ada\n\"L\"" }));
    assert_eq!(text(&result), "Hello, Ada\n\"L\" Ada\n\"L\"");
    assert_eq!(result.get("isError"), None);

    let result = call(&mut client, "greet", json!({ "loud": "yes" }));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "invalid arguments: `who` is missing");
}

#[test]
fn content_of_every_kind_comes_in_the_order_of_the_script() {
    let mut client = Client::open(&["--publish", FIXTURES]);
    let result = call(&mut client, "test_multiple_content_types", json!({}));
    let kinds: Vec<&Value> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
    let read = |client: &mut Client, uri: &str| {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        answer["result"]["contents"][0].clone()
    };
    let binary = read(&mut client, "test://static-binary");
    assert!(
        binary["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"),
        "{binary}"
    );
    let data = read(&mut client, "test://template/4%205/data");
    assert_eq!(
        data["text"],
        r#"{"id": "4 5", "templateTest": true, "data": "Data for ID: 4 5"}"#
    );
    let values = client.request(
        "completion/complete",
        json!({
            "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
            "argument": { "name": "arg1", "value": "PAR" },
        }),
    );
    assert_eq!(
        values["result"]["completion"]["values"],
        json!(["paris", "park", "party"])
    );
    let prompt = json!({ "name": "test_prompt_with_arguments", "arguments": { "arg1": "x" } });
    assert_eq!(
        client.request("prompts/get", prompt)["error"]["code"],
        -32602
    );
}

#[test]
fn a_script_that_fails_says_why_in_its_own_words() {
    let folder = Folder::new(&[
        (
            "raise.py",
            "# --- tool\n# ---\nprint('before')\nraise ValueError('no such city')\n",
        ),
        (
            "slow.sh",
            "# --- tool\n# timeout = \"300ms\"\n# ---\nsleep 30\n",
        ),
        (
            "gone.sh",
            "# --- resource\n# uri = \"a:b\"\n# ---\necho no such thing >&2; exit 3\n",
        ),
    ]);
    let mut client = folder.open();
    let result = call(&mut client, "raise", json!({}));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "before");
    assert!(
        result["content"][1]["text"]
            .as_str()
            .unwrap()
            .ends_with("ValueError: no such city")
    );
    let result = call(&mut client, "slow", json!({}));
    assert_eq!(
        text(&result),
        "the program was ended at its time limit of 0.3 s"
    );
    let answer = client.request("resources/read", json!({ "uri": "a:b" }));
    assert_eq!(answer["error"]["message"], "no such thing");
}

#[test]
fn a_legacy_client_is_asked_while_its_call_waits() {
    let folder = Folder::new(&[(
        "ask.sh",
        &format!(
            "# --- tool\n# ---\n. ./hotcell.sh\nhotcell_log once\nhotcell_ask a 'A \"name\"?' '{NAME}'\nhotcell_ask b 'B?' '{NAME}'\necho $ANSWER_a_name and $ANSWER_b\n"
        ),
    )]);
    let flags = ["--publish", folder.0.path().to_str().unwrap()];
    let mut client = able_client(&flags);
    let id = client.post("tools/call", json!({ "name": "ask", "arguments": {} }));
    let asks = |message: &Value| message["method"] == "elicitation/create";
    let first = client.wait(asks);
    assert_eq!(first["params"]["message"], "A \"name\"?");
    assert_eq!(
        first["params"]["requestedSchema"],
        serde_json::from_str::<Value>(NAME).unwrap()
    );
    let answer = |client: &mut Client, to: &Value, result: Value| {
        client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": result }));
    };
    answer(
        &mut client,
        &first,
        json!({ "action": "accept", "content": { "name": "Ada" } }),
    );
    let second = client.wait(asks);
    answer(&mut client, &second, json!({ "action": "decline" }));
    let result = client.answer(id)["result"].clone();
    assert_eq!(text(&result), "Ada and decline");
    let logged = |message: &Value| message["method"] == "notifications/message";
    assert_eq!(client.wait(logged)["params"]["data"], "once");
    assert_eq!(
        client.wait_for(Duration::ZERO, logged),
        None,
        "told again by a later round"
    );

    // What was asked for, or nothing: a script never sees another thing.
    let id = client.post("tools/call", json!({ "name": "ask", "arguments": {} }));
    let first = client.wait(asks);
    answer(
        &mut client,
        &first,
        json!({ "action": "accept", "content": { "name": 7 } }),
    );
    let result = client.answer(id)["result"].clone();
    assert_eq!(
        text(&result),
        "the client's answer to `a` does not fit: `name` must be string"
    );

    // And a client that cannot be asked is not.
    let mut client = Client::open(&flags);
    let result = call(&mut client, "ask", json!({}));
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "this needs a client that can do elicitation");
}

#[test]
fn a_modern_client_brings_answers_and_a_state_that_it_cannot_change() {
    let mut client = Client::start(&["--publish", FIXTURES]);
    let name = "test_input_required_result_multi_round";
    let first = call_modern(&mut client, name, json!({}))["result"].clone();
    assert_eq!(first["resultType"], "input_required");
    assert_eq!(
        first["inputRequests"]["step1"]["method"],
        "elicitation/create"
    );
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let answer = json!({
        "inputResponses": { "step1": accept(json!({ "name": "Ada" })), "other": accept(json!({})) },
        "requestState": first["requestState"],
    });
    let second = call_modern(&mut client, name, answer.clone())["result"].clone();
    assert!(second["inputRequests"].get("step1").is_none(), "{second}");
    let last = json!({
        "inputResponses": { "step2": accept(json!({ "color": "blue" })) },
        "requestState": second["requestState"],
    });
    let done = call_modern(&mut client, name, last.clone())["result"].clone();
    assert_eq!(text(&done), "Ada likes blue.");

    // A state is good for its own request, as it is, and for nothing else.
    let mut touched = last.clone();
    touched["requestState"] = format!("{}x", second["requestState"].as_str().unwrap()).into();
    assert_eq!(
        call_modern(&mut client, name, touched)["error"]["code"],
        -32602
    );
    let mut elsewhere = last.clone();
    elsewhere["arguments"] = json!({ "more": 1 });
    assert_eq!(
        call_modern(&mut client, name, elsewhere)["error"]["code"],
        -32602
    );
    let other = "test_input_required_result_elicitation";
    assert_eq!(
        call_modern(&mut client, other, last)["error"]["code"],
        -32602
    );

    // What is no answer was not given.
    let nonsense = json!({ "inputResponses": { "step1": 12345 } });
    let again = call_modern(&mut client, name, nonsense)["result"].clone();
    assert!(again["inputRequests"].get("step1").is_some(), "{again}");

    // A client that cannot be asked is told what it lacks.
    let params = modern(json!({ "name": name, "arguments": {} }));
    let error = client.request("tools/call", params)["error"].clone();
    assert_eq!(error["code"], -32021);
    assert_eq!(
        error["data"],
        json!({ "requiredCapabilities": { "elicitation": {} } })
    );
}

#[test]
fn data_that_a_script_prints_never_speaks_for_it() {
    let folder = Folder::new(&[
        (
            "echo.py",
            "# --- tool\n# parameters.text = \"t\"\n# ---\nimport hotcell\nprint(hotcell.arguments['text'])\n",
        ),
        // Control: with the mark, the same words are heard.
        (
            "say.py",
            "# --- tool\n# parameters.text = \"t\"\n# ---\nimport hotcell, os\nprint(os.environ['HOTCELL_TALK'] + hotcell.arguments['text'])\n",
        ),
    ]);
    let mut client = folder.open();
    let words = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
    let result = call(&mut client, "say", json!({ "text": words }));
    assert_eq!(result["content"][0]["type"], "image");
    for text_to_print in [
        words.to_owned(),
        format!("hotcell:{}:{words}", "0".repeat(26)),
    ] {
        let result = call(&mut client, "echo", json!({ "text": text_to_print }));
        assert_eq!(text(&result), text_to_print);
    }
}

#[test]
fn a_script_that_says_nonsense_or_too_much_is_an_error_and_the_server_lives() {
    let said = |what: &str| {
        format!("# --- tool\n# ---\nimport os, sys\nmark = os.environ['HOTCELL_TALK']\n{what}\n")
    };
    let scripts = [
        ("nonsense.py", said("print(mark + '{')")),
        (
            "unknown.py",
            said("print(mark + '{\"type\": \"format_disk\"}')"),
        ),
        ("deep.py", said("print(mark + '[' * 1000000)")),
        (
            "endless.py",
            said("for _ in range(40): sys.stdout.write((mark if not _ else '') + 'x' * (1 << 20))"),
        ),
        (
            "blocks.py",
            said("for _ in range(3000): print(mark + '{\"type\": \"text\", \"text\": \"a\"}')"),
        ),
        (
            "questions.py",
            said(
                "print(mark + '{\"type\": \"ask\", \"questions\": {\"a\": {\"method\": \"tools/call\"}}}')",
            ),
        ),
    ];
    let scripts: Vec<(&str, &str)> = scripts
        .iter()
        .map(|(name, code)| (*name, code.as_str()))
        .collect();
    let folder = Folder::new(&scripts);
    let mut client = folder.open();
    for (name, _) in scripts {
        let name = name.strip_suffix(".py").unwrap();
        let result = call(&mut client, name, json!({}));
        assert_eq!(result["isError"], true, "{name}");
        let last = result["content"].as_array().unwrap().last().unwrap();
        let why = last["text"].as_str().unwrap();
        assert!(
            why.starts_with("the script sent a message that is not valid: "),
            "{name}: {why}"
        );
        assert!(why.len() < 600, "{name}");
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn clients_hear_of_scripts_that_come_change_and_go() {
    let script =
        |text: &str| format!("# --- tool\n# description = \"{text}\"\n# ---\necho {text}\n");
    let folder = Folder::new(&[("one.sh", &script("one"))]);
    let mut client = folder.open();
    let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
    client.post("subscriptions/listen", params);
    client.wait(|message| message["method"] == "notifications/subscriptions/acknowledged");
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    let told = |client: &mut Client| {
        // One for the listener, and one for the legacy client of the same process.
        client.wait(changed);
        client.wait(changed);
    };
    folder.write("two.sh", &script("two"));
    told(&mut client);
    assert_eq!(text(&call(&mut client, "two", json!({}))), "two");
    folder.write("two.sh", &script("too"));
    told(&mut client);
    assert_eq!(text(&call(&mut client, "two", json!({}))), "too");
    folder.remove("one.sh");
    told(&mut client);
    let gone = json!({ "name": "one", "arguments": {} });
    assert_eq!(client.request("tools/call", gone)["error"]["code"], -32602);
}

#[test]
fn our_own_tools_cannot_be_replaced_by_a_script() {
    let folder = Folder::new(&[("run.sh", "# --- tool\n# ---\necho mine now\n")]);
    let mut client = folder.open();
    let result = client.run(json!({ "code": "echo still here", "language": "bash" }));
    assert_eq!(text(&result), "still here\n");

    // Nor does one that tries make anything look changed.
    folder.write("notes.txt", "not a script");
    folder.write("more.sh", "# --- prompt\n# ---\necho hi\n");
    let changed = |message: &Value| {
        message["method"]
            .as_str()
            .is_some_and(|method| method.contains("list_changed"))
    };
    let first = client.wait(changed);
    assert_eq!(first["method"], "notifications/prompts/list_changed");
}
