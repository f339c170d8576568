use std::path::Path;

use serde_json::json;

use super::signature;
use super::*;
use crate::config::Server;

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
    let settings = Server::mistaken("why".to_owned(), Path::new("config.toml"));
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
    let lines = "host.create() // Makes an issue\n".repeat(2);
    assert_eq!(of(2), Catalogue::Whole(lines));
    assert_eq!(of(900), Catalogue::Counted("host(900)".to_owned()));
    let many = (0..500).map(|at| {
        (
            format!("server{at}"),
            Arc::new(Many(9)) as Arc<dyn Functions>,
        )
    });
    let many = UpstreamServers::new([], many, ServerStderr::Dropped);
    let Catalogue::Counted(text) = many.catalogue() else {
        panic!("4,500 lines");
    };
    assert!(text.len() < 400 && text.ends_with(" more"), "{text}");
    assert!(text.starts_with("server0(9) server1(9) "), "{text}");
    assert_eq!(many.catalogue(), Catalogue::Counted(text), "it is another");
}

#[test]
fn a_tool_is_found_by_what_it_does_and_described_by_its_name() {
    struct Two;
    impl Functions for Two {
        fn tools(&self) -> Vec<Tool> {
            let repo =
                json!({ "type": "string", "description": "Owner/name\nof it", "default": "a/b" });
            let input = json!({ "type": "object", "properties": { "repo": repo, "count": { "type": "integer" } }, "required": ["count"] });
            vec![
                tool(input),
                Tool::new("delete", "Removes a comment", Value::Null),
            ]
        }
        fn call<'a>(&'a self, _: &'a str, _: Map<String, Value>) -> Called<'a> {
            Box::pin(async { Ok(Value::Null) })
        }
    }
    let two = || Arc::new(Two) as Arc<dyn Functions>;
    let named = [("git.hub".to_owned(), two()), ("lab".to_owned(), two())];
    let servers = UpstreamServers::new([], named, ServerStderr::Dropped);
    let found = servers.search("open a new issue", 8);
    assert_eq!(
        found[0].signature(),
        "git_hub.create({count:number, repo?:string}) // Makes an issue"
    );
    assert_eq!(
        (found[0].tool.name.as_str(), found[0].also.as_slice()),
        ("create", &["lab".to_owned()][..])
    );
    assert_eq!(
        servers.answer("erase comments", 8),
        "git_hub.delete() // Removes a comment (also: lab)\n"
    );
    let all = "git_hub.create({count:number, repo?:string})\n    Makes an issue. Needs a token.\n    More of it.\n  repo: Owner/name of it; default \"a/b\"\nExample: git_hub.create(count=1)\n";
    for name in ["git.hub.create", "git_hub.create", "git_hub.Create"] {
        assert_eq!(servers.answer(name, 8), all, "{name}");
    }
    assert_eq!(servers.answer("lab", 8), "lab: create, delete\n");
    assert_eq!(servers.answer(" ", 8), "git_hub: 2 tools\nlab: 2 tools\n");
    assert!(servers.answer("zzzzzz", 8).starts_with("Nothing fits."));
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

#[test]
fn a_server_that_is_as_before_is_the_same_one() {
    let server = |why: &str| Server::mistaken(why.to_owned(), Path::new("config.toml"));
    let of = |list: &[(&str, &str)]| -> Vec<(String, Server)> {
        let named = list.iter();
        named
            .map(|(name, why)| ((*name).to_owned(), server(why)))
            .collect()
    };
    let servers = UpstreamServers::new(of(&[("a", "1"), ("b", "1")]), [], ServerStderr::Dropped);
    let renewed = servers.renewed(of(&[("a", "1"), ("b", "2"), ("c", "1")]));
    let names: Vec<&str> = renewed.all().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(Arc::ptr_eq(&servers.all()[0], &renewed.all()[0]));
    assert!(!Arc::ptr_eq(&servers.all()[1], &renewed.all()[1]));
    assert!(servers.renewed([]).all().is_empty());
}
