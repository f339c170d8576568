use serde_json::json;

use super::signature;
use super::*;

fn tool(input: Value) -> Tool {
    let described = "Makes an issue. Needs a token.\nMore of it.";
    Tool::read(json!({ "name": "create", "description": described, "inputSchema": input })).unwrap()
}

#[test]
fn a_tool_is_one_line_with_what_is_required_first() {
    let input = json!({
        "type": "object",
        "properties": {
            "body": { "type": ["string", "null"] },
            "repo": { "type": "string" },
            "state": { "enum": ["open", "closed"] },
            "labels": { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "type": "number" }] } },
            "who": { "$ref": "#/$defs/who" },
        },
        "required": ["repo"],
        "$defs": { "who": { "type": "object", "properties": { "id": { "type": "integer" } } } },
    });
    assert_eq!(
        signature::line("github", &tool(input)),
        "github.create({repo:string, body?:string|null, state?:\"open\"|\"closed\", labels?:number[], who?:{…}}) // Makes an issue"
    );
    assert_eq!(
        signature::line("a", &tool(json!({ "type": "object" }))),
        "a.create() // Makes an issue"
    );
}

#[test]
fn what_a_server_says_stays_in_its_line_and_is_bounded() {
    let nested = (0..100).fold(
        json!({ "type": "string" }),
        |of, _| json!({ "type": "array", "items": of }),
    );
    let loops = json!({ "$ref": "#" });
    let long = json!({ "type": "object", "properties": { "x".repeat(5000): { "enum": vec!["\n"; 900] } } });
    for input in [nested, loops, long, Value::Null, json!(7)] {
        let mut tool = tool(input);
        tool.name = "a\nb\u{1b}[2J".to_owned();
        tool.description = "first\r\nsecond\u{7}".to_owned();
        let line = signature::line("s", &tool);
        assert!(line.starts_with("s.a_b_2j("), "{line}");
        assert!(
            !line.contains(char::is_control) && line.chars().count() < 360,
            "{line}"
        );
    }
}

#[test]
fn a_server_has_a_name_that_programs_can_write() {
    for (name, expected) in [
        ("github", "github"),
        ("My Server-2", "my_server_2"),
        ("7zip", "_7zip"),
        ("日本", "_"),
        ("", "_"),
    ] {
        assert_eq!(alias(name), expected, "{name}");
    }
    let settings = Settings {
        command: Vec::new(),
        folder: None,
        env: BTreeMap::new(),
        secret: Vec::new(),
        unset: Vec::new(),
    };
    let names = ["a b", "a-b"].map(|name| (name.to_owned(), settings.clone()));
    let servers = UpstreamServers::new(names, [], ServerStderr::Dropped);
    let aliases: Vec<&str> = servers.all().iter().map(|it| it.alias.as_str()).collect();
    assert_eq!(aliases, ["a_b", "a_b_2"]);
}

#[test]
fn many_tools_are_told_by_their_number() {
    struct Many(usize);
    impl Functions for Many {
        fn tools(&self) -> Vec<Tool> {
            vec![tool(Value::Null); self.0]
        }
        fn call<'a>(&'a self, _: &'a str, _: Map<String, Value>) -> Called<'a> {
            Box::pin(async { Ok(Value::Null) })
        }
    }
    let of = |count| {
        let functions: Arc<dyn Functions> = Arc::new(Many(count));
        UpstreamServers::new([], [("host".to_owned(), functions)], ServerStderr::Dropped)
            .catalogue()
    };
    assert_eq!(of(2), "host.create() // Makes an issue\n".repeat(2));
    assert_eq!(
        of(900),
        "host(900)\nprint(mcp.help(\"NAME\")) lists the tools of one.\n"
    );
    let many = (0..500).map(|at| {
        (
            format!("server{at}"),
            Arc::new(Many(9)) as Arc<dyn Functions>,
        )
    });
    assert!(
        UpstreamServers::new([], many, ServerStderr::Dropped)
            .catalogue()
            .len()
            < 1200
    );
}

#[test]
fn arguments_are_an_object_of_bounded_depth() {
    let read = |text: &str| serde_json::from_str::<Arguments>(text).is_ok();
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(read("{}") && read(&nested(99)) && read(r#"{"a":"\"[[[[","b":"\\"}"#));
    assert!(read(&format!("{{\"a\":\"{}\"}}", "[{".repeat(500))));
    for bad in ["[]", "7", "null", "\"{\"", &nested(100), &nested(1_000_000)] {
        assert!(!read(bad), "{}", &bad[..bad.len().min(40)]);
    }
}
