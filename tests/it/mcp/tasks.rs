//! Jobs as tasks of the protocol, in the two eras that have them.

use serde_json::{Value, json};

use super::client::{Client, PATIENCE, hello, modern};
use crate::support::eventually;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const SLOW: &str = "echo begun; sleep 600";

/// The parameters of a request whose client declares the extension.
fn declared(params: Value) -> Value {
    let mut params = modern(params);
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { EXTENSION: {} } });
    params
}

fn call(code: &str, more: Value) -> Value {
    let mut arguments = json!({ "code": code, "language": "sh" });
    for (name, value) in more.as_object().expect("an object") {
        arguments[name] = value.clone();
    }
    json!({ "name": "run", "arguments": arguments })
}

#[test]
fn a_client_of_2025_11_25_may_ask_for_a_task_and_fetch_its_result() {
    let mut client = Client::start(&[]);
    let hello = client.request("initialize", hello("2025-11-25"));
    let tasks = &hello["result"]["capabilities"]["tasks"];
    assert_eq!(tasks["requests"]["tools"]["call"], json!({}), "{hello}");
    let tools = client.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let support = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name);
        tool.unwrap()["execution"]["taskSupport"].clone()
    };
    assert_eq!(
        (support("run"), support("session")),
        (json!("optional"), Value::Null)
    );

    let mut params = call("sleep 1; echo done", json!({}));
    params["task"] = json!({ "ttl": 60_000 });
    let task = client.request("tools/call", params.clone())["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    assert!(task["ttl"].is_u64() && task["pollInterval"].is_u64());
    let id = json!({ "taskId": task["taskId"] });
    let known = client.request("tasks/get", id.clone())["result"].clone();
    assert_eq!(known["taskId"], task["taskId"]);
    let result = client.request("tasks/result", id.clone())["result"].clone();
    assert_eq!(result["structuredContent"]["stdout"], "done\n", "{result}");
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], task["taskId"]);
    let ended = client.request("tasks/get", id.clone())["result"].clone();
    assert_eq!(ended["status"], "completed");
    let listed = client.request("tasks/list", json!({}))["result"].clone();
    assert_eq!(listed["tasks"][0]["taskId"], task["taskId"]);
    let late = client.request("tasks/cancel", id);
    assert_eq!(late["error"]["code"], -32602, "{late}");

    params["arguments"]["code"] = SLOW.into();
    let task = client.request("tools/call", params)["result"]["task"].clone();
    let id = json!({ "taskId": task["taskId"] });
    let cancelled = client.request("tasks/cancel", id.clone())["result"].clone();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let result = client.request("tasks/result", id)["result"].clone();
    assert_eq!(result["structuredContent"]["status"], "cancelled");
    for id in [json!("nothing"), json!(5)] {
        let unknown = client.request("tasks/get", json!({ "taskId": id }));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let other = json!({ "name": "session", "arguments": {}, "task": {} });
    assert_eq!(client.request("tools/call", other)["error"]["code"], -32601);
}

#[test]
fn a_client_that_declares_the_extension_may_be_answered_with_a_task() {
    let mut client = Client::start(&[]);
    let found = client.request("server/discover", modern(json!({})));
    let capabilities = &found["result"]["capabilities"];
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}));
    assert!(capabilities.get("tasks").is_none());

    // What is done at once is answered at once.
    let quick = client.request("tools/call", declared(call("echo 1", json!({}))));
    assert_eq!(quick["result"]["resultType"], "complete", "{quick}");
    let params = call("echo 1; exit 3", json!({ "background": true }));
    let task = client.request("tools/call", declared(params))["result"].clone();
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working"))
    );
    assert!(
        task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64(),
        "{task}"
    );
    for member in ["task", "result", "content", "ttl"] {
        assert!(task.get(member).is_none(), "{member} in {task}");
    }
    let id = json!({ "taskId": task["taskId"] });
    let mut ended = Value::Null;
    eventually(PATIENCE, || {
        ended = client.request("tasks/get", declared(id.clone()))["result"].clone();
        ended["status"] != "working"
    });
    // A program that fails is a task that is done.
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["result"]["isError"], true);
    assert_eq!(ended["result"]["structuredContent"]["stdout"], "1\n");

    let params = call(SLOW, json!({ "background": true }));
    let task = client.request("tools/call", declared(params))["result"].clone();
    let id = json!({ "taskId": task["taskId"] });
    for _ in 0..2 {
        let ack = client.request("tasks/cancel", declared(id.clone()))["result"].clone();
        assert_eq!(ack["resultType"], "complete");
        assert!(ack.get("taskId").is_none(), "{ack}");
    }
    let cancelled = client.request("tasks/get", declared(id.clone()));
    assert_eq!(cancelled["result"]["status"], "cancelled");
}

#[test]
fn a_client_that_declares_no_tasks_has_none() {
    let mut client = Client::start(&[]);
    let params = call("echo 1", json!({ "background": true }));
    let job = client.request("tools/call", modern(params))["result"].clone();
    assert_eq!(job["resultType"], "complete");
    let id = json!({ "taskId": job["structuredContent"]["job"] });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client.request(method, modern(id.clone()));
        assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
        let required = &refused["error"]["data"]["requiredCapabilities"];
        assert_eq!(required["extensions"][EXTENSION], json!({}));
    }
    // Methods of the other era.
    for method in ["tasks/list", "tasks/result"] {
        let refused = client.request(method, declared(id.clone()));
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
    let mut client = Client::start(&[]);
    let hello = client.request("initialize", hello("2025-06-18"));
    assert!(hello["result"]["capabilities"].get("tasks").is_none());
    let refused = client.request("tasks/get", id);
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}
