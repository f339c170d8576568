use super::*;

fn read(code: &str) -> Result<Option<FrontMatter>, String> {
    FrontMatter::read("my_script.py", code)
}

fn front(code: &str) -> FrontMatter {
    read(code).unwrap().unwrap()
}

#[test]
fn a_tool_in_the_comments_of_any_language() {
    let hash = "#!/usr/bin/env python3\n# --- tool\n# description = \"d\"\n#\n# [parameters]\n# city = \"Which city\"\n# ---\nprint(1)\n";
    let expected = json!({
        "name": "my_script",
        "description": "d",
        "inputSchema": {
            "type": "object",
            "properties": { "city": { "type": "string", "description": "Which city" } },
            "required": ["city"],
        },
    });
    let replaced = |comment: &str| {
        hash.replace("# ", comment)
            .replace("\n#\n", &format!("\n{}\n", comment.trim_end()))
    };
    for code in [
        hash.to_owned(),
        hash.replace('\n', "\r\n"),
        replaced("// "),
        replaced("-- "),
        replaced(";; "),
        replaced(" * "),
        format!(
            "/*\n{}*/",
            replaced("").replace("#!/usr/bin/env python3\n", "")
        ),
        format!("<?php\n{}", replaced("// ")),
    ] {
        let front = front(&code);
        assert_eq!(
            (front.kind, front.key.as_str()),
            (Kind::Tool, "my_script"),
            "{code}"
        );
        assert_eq!(front.listing, expected, "{code}");
    }
}

#[test]
fn parameters_keep_their_order_and_say_whether_they_may_be_left_out() {
    let front = front(
        "# --- tool\n# [parameters]\n# z = \"last letter\"\n# a = { type = \"integer\", default = 3 }\n# m = { type = \"number\", optional = true, x-mcp-header = \"M\" }\n# ---\n",
    );
    assert_eq!(
        front.listing["inputSchema"].to_string(),
        r#"{"type":"object","properties":{"z":{"type":"string","description":"last letter"},"a":{"type":"integer","default":3},"m":{"type":"number","x-mcp-header":"M"}},"required":["z"]}"#
    );
}

#[test]
fn a_schema_is_listed_as_it_was_written() {
    let schema = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"b":{"$anchor":"x"}},"properties":{"z":{"$ref":"#/$defs/b"},"a":true},"if":{},"additionalProperties":false}"##;
    let front = front(&format!(
        "# --- tool\n# schema = '''\n# {schema}\n# '''\n# ---\n"
    ));
    assert_eq!(front.listing["inputSchema"].to_string(), schema);
}

#[test]
fn prompts_and_resources_have_their_own_entries() {
    let prompt = front(
        "# --- prompt\n# name = \"greet\"\n# [parameters]\n# who = \"Whom\"\n# how = { optional = true }\n# [complete]\n# who = [\"Ada\"]\n# ---\n",
    );
    assert_eq!(
        prompt.listing,
        json!({ "name": "greet", "arguments": [
            { "name": "who", "required": true, "description": "Whom" },
            { "name": "how", "required": false },
        ]})
    );
    assert_eq!(prompt.complete["who"], ["Ada"]);
    let resource = front("# --- resource\n# uri = \"a://{b}\"\n# mime = \"text/x\"\n# ---\n");
    assert_eq!(
        resource.listing,
        json!({ "name": "my_script", "uriTemplate": "a://{b}", "mimeType": "text/x" })
    );
}

#[test]
fn a_file_without_front_matter_is_not_published() {
    for code in [
        "",
        "print(1)",
        "# --- sketch\n# ---",
        "x = a--- tool",
        &("\n".repeat(20) + "# --- tool\n# ---"),
    ] {
        assert_eq!(read(code), Ok(None), "{code}");
    }
}

#[test]
fn what_is_wrong_with_front_matter_is_said() {
    let wrong = |matter: &str| read(&format!("# --- tool\n{matter}\n# ---\n")).unwrap_err();
    assert!(wrong("# colour = 1").contains("unknown field `colour`"));
    assert!(wrong("print(1)").contains("has no end"));
    assert!(wrong("# name = \"a b\"").contains("is not a name for a tool"));
    assert!(wrong("# uri = \"a:b\"").contains("only a resource"));
    assert!(wrong("# schema = \"[]\"").contains("not a JSON object"));
    assert!(wrong("# timeout = \"soon\"").contains("not a duration"));
    assert!(wrong("# parameters.a = 1").contains("a text or a table"));
    assert!(
        read("# --- resource\n# ---\n")
            .unwrap_err()
            .contains("needs a `uri`")
    );
    assert!(
        read("# --- tool\n# name = \"a\"")
            .unwrap_err()
            .contains("has no end")
    );
}

#[test]
fn limits_can_be_asked_for() {
    let front =
        front("# --- tool\n# timeout = 90\n# memory = \"1g\"\n# needs = [\"sampling\"]\n# ---\n");
    assert_eq!(front.timeout, Some(Duration::from_secs(90)));
    assert_eq!(front.memory, Some(1 << 30));
    assert_eq!(front.needs, ["sampling"]);
}
