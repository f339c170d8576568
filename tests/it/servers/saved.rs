//! Saved tools: a function of one program is there for later programs, servers and languages; what cannot be kept is refused, and what is
//! broken says so.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{serve, structured};
use crate::mcp::client::Client;
use crate::support::{Hotcell, Running, everyone, has};

const TOOLS: &str = "home/.local/share/hotcell/tools";

const SAVE: &str = r#"
import math
from collections import Counter
FACTOR = 2

def helper(n):
    return math.floor(n) * FACTOR

def count(words: list[str], least: int = 1) -> dict:
    """Counts words.

    Args:
        words: The words
        least: How often a word must be there
    """
    print("this is not the answer")
    return {word: helper(many) for word, many in Counter(words).items() if many >= least}

print(save_tool(count, words=["a", "b", "a"]))
"#;

fn python(client: &mut Client, code: &str) -> Value {
    let ran = client.run(json!({ "language": "python", "code": code }));
    structured(&ran).clone()
}

fn saved(hotcell: &Hotcell, arguments: &[&str]) -> (String, Option<i32>) {
    let mut command = hotcell.command();
    let ended = Running::start(command.arg("saved").args(arguments)).finish();
    (ended.out(), ended.code)
}

#[test]
fn a_function_is_saved_by_one_program_and_called_by_others_in_other_servers_and_languages() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let mut client = serve(&hotcell);
    let ran = python(&mut client, SAVE);
    let said = "Tool 'count' saved. It will be available in future sessions.\n";
    assert_eq!(ran["stdout"], said, "{ran}");
    // The client is told, and so is a model.
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    let listed = client.request("tools/list", json!({})).to_string();
    let line = "saved.count({words:string[], least?:number}) → object // Counts words";
    assert!(listed.contains(line), "{listed}");

    let file = fs::read_to_string(hotcell.place(TOOLS).join("count.py")).expect("a file");
    let front = "# --- tool\n# description = \"Counts words.\"\n# output_schema = \"{\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"result\\\":{\\\"type\\\":\\\"object\\\"}},\\\"required\\\":[\\\"result\\\"]}\"\n# [parameters]\n# words = { type = \"array\", items = { type = \"string\" }, description = \"The words\" }\n# least = { type = \"integer\", description = \"How often a word must be there\", default = 1 }\n# ---\n";
    assert!(file.starts_with(front), "{file}");
    assert!(
        file.contains("FACTOR = 2\n") && file.contains("import math\n"),
        "{file}"
    );
    let mode = fs::metadata(hotcell.place(TOOLS))
        .expect("a folder")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);

    // Another server has it from the start.
    drop(client);
    let mut client = serve(&hotcell);
    let listed = client.request("tools/list", json!({})).to_string();
    assert!(listed.contains(line), "{listed}");
    let call = "print(saved.count(words=['x', 'x', 'y'], least=2), saved.list_tools()[0]['version'])\ntry:\n    saved.count(least='many')\nexcept ToolError as error:\n    print(error)";
    let ran = python(&mut client, call);
    let expected = "{'x': 4} 1\nsaved.count: missing 'words'; 'least': value is not of type \"integer\". Parameters: {words:string[], least?:number}\n";
    assert_eq!(ran["stdout"], expected, "{ran}");
    let code =
        "saved.count({words: ['x', 'x', 'y']}).then((it) => console.log(JSON.stringify(it)))";
    let mut ways = vec!["javascript@embedded"];
    if has("node") {
        ways.push("javascript@node");
    }
    for language in ways {
        let ran = client.run(json!({ "language": language, "code": code }));
        assert_eq!(
            structured(&ran)["stdout"],
            "{\"x\":4,\"y\":2}\n",
            "{language}: {ran}"
        );
    }
}

#[test]
fn a_function_of_javascript_is_saved_too() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    if !has("node") {
        println!("SKIP: there is no node");
        return;
    }
    let mut client = serve(&hotcell);
    let code = r#"
const path = require('node:path');
/**
 * Joins words.
 * @param {string} first The first of them
 */
async function join(first, more = 'b') {
  return path.posix.join(first, tidy(more));
}
const LETTERS = {
  upper: 'B',
};
function tidy(text) {
  return text.replace(LETTERS.upper, '}');
}
saveTool(join, { first: 'a' }).then(console.log);
"#;
    let ran = client.run(json!({ "language": "javascript", "code": code }));
    let said = "Tool 'join' saved. It will be available in future sessions.\n";
    assert_eq!(structured(&ran)["stdout"], said, "{ran}");
    let call = "print(saved.join(first='x'), saved.join(first='x', more='y/zB'))";
    let ran = python(&mut client, call);
    assert_eq!(ran["stdout"], "x/b x/y/z}\n", "{ran}");
    let listed = client.request("tools/list", json!({})).to_string();
    assert!(
        listed.contains("saved.join({first:string, more?:string}) // Joins words"),
        "{listed}"
    );
}

#[test]
fn a_function_of_typescript_is_saved_with_its_types() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    if !has("node") {
        println!("SKIP: there is no node");
        return;
    }
    let mut client = serve(&hotcell);
    let code = r#"
import path from 'node:path';
const LAST: string = 'z';
function tidy(text: string): string {
  return text.toUpperCase() + LAST;
}
/** Joins words. @param first The first of them */
async function join(first: string, more?: string[], options: Record<string, number> = {}): Promise<string> {
  return path.posix.join(first, ...(more ?? []), tidy('x'));
}
console.log(await saveTool(join, { first: 'a' }));
"#;
    let ran = client.run(json!({ "language": "typescript@node", "code": code }));
    let said = "Tool 'join' saved. It will be available in future sessions.\n";
    assert_eq!(structured(&ran)["stdout"], said, "{ran}");
    let ran = python(
        &mut client,
        "print(saved.join(first='a'), saved.join(first='a', more=['b', 'c']))",
    );
    assert_eq!(ran["stdout"], "a/Xz a/b/c/Xz\n", "{ran}");
    let listed = client.request("tools/list", json!({})).to_string();
    let line =
        "saved.join({first:string, more?:string[], options?:object}) → string // Joins words";
    assert!(listed.contains(line), "{listed}");
    // In the engine of ours, which has no other text of it.
    let code = "/** Doubles a number. @param {number} n */\nfunction double(n: number): number { return 2 * n; }\nconsole.log(await saveTool(double, { n: 1 }));\nexport {};";
    let ran = client.run(json!({ "language": "typescript@embedded", "code": code }));
    assert_eq!(
        structured(&ran)["stdout"],
        said.replace("join", "double"),
        "{ran}"
    );
    let listed = client.request("tools/list", json!({})).to_string();
    let line = "saved.double({n:number}) → number // Doubles a number";
    assert!(listed.contains(line), "{listed}");
}

#[test]
fn what_a_function_returns_is_told_where_its_annotation_says_so() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let mut client = serve(&hotcell);
    let save = "def sizes(words: list[str]) -> dict:\n    return {word: len(word) for word in words}\n\
        def letters(word: str) -> set[str]:\n    return set(word[:1])\n\
        def plain(word):\n    return word\n\
        def wrong(deep: bool) -> int:\n    return 'no' if deep else 1\n\
        for tool, example in [(sizes, {'words': ['ab']}), (letters, {'word': 'ab'}), (plain, {'word': 1}), (wrong, {'deep': False})]:\n    save_tool(tool, **example)\n\
        try:\n    save_tool(wrong, deep=True)\nexcept ToolError as error:\n    print(error)";
    let ran = python(&mut client, save);
    let said = "saved.save_tool: `wrong` was not saved, for its trial failed: what it returned is not what it says: value is not of type \"integer\"\n";
    assert_eq!(ran["stdout"], said, "{ran}");
    if has("node") {
        let code = "/** Doubles.\n * @param {number} n\n * @returns {Promise<number[]>} both\n */\n\
            async function double(n) { return [n, 2 * n]; }\nsaveTool(double, { n: 1 }).then(console.log)";
        let ran = client.run(json!({ "language": "javascript", "code": code }));
        assert!(ran.to_string().contains("'double' saved"), "{ran}");
    }
    let listed = client.request("tools/list", json!({})).to_string();
    assert!(
        listed.contains("saved.sizes({words:string[]}) → object"),
        "{listed}"
    );
    assert!(listed.contains("saved.plain({word:any})\\n"), "{listed}");
    drop(client);

    let mut command = hotcell.command();
    command
        .args(["serve", "--publish"])
        .arg(hotcell.place(TOOLS));
    let mut client = Client::of(command);
    client.begin();
    let listed = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let listed = listed.as_array().expect("a list");
    let output = |name: &str| {
        let tool = listed.iter().find(|tool| tool["name"] == name);
        tool.expect(name)["outputSchema"].clone()
    };
    let result = |of: Value| json!({ "type": "object", "properties": { "result": of }, "required": ["result"] });
    assert_eq!(output("sizes"), result(json!({ "type": "object" })));
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(output("letters"), result(strings));
    assert_eq!(output("plain"), Value::Null);
    if has("node") {
        let numbers = json!({ "type": "array", "items": { "type": "number" } });
        assert_eq!(output("double"), result(numbers));
    }
    let mut call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        client.request("tools/call", params)["result"].clone()
    };
    let good = call("letters", json!({ "word": "xy" }));
    assert_eq!(
        good["structuredContent"],
        json!({ "result": ["x"] }),
        "{good}"
    );
    let good = call("wrong", json!({ "deep": false }));
    assert_eq!(good["structuredContent"], json!({ "result": 1 }), "{good}");
    // A client would throw such a result away.
    let bad = call("wrong", json!({ "deep": true }));
    assert_eq!(bad["isError"], true, "{bad}");
    let why = "the result does not fit the `output_schema` of wrong.py: 'result': value is not of type \"integer\"";
    assert_eq!(bad["content"][0]["text"], why, "{bad}");
}

#[test]
fn versions_are_kept_and_a_tool_can_be_deleted_and_restored() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    assert_eq!(
        saved(&hotcell, &[]),
        (
            "No tools are saved (see `hotcell help codemode`).\n".to_owned(),
            Some(0)
        )
    );
    let mut client = serve(&hotcell);
    for answer in [1, 2, 3] {
        let code = format!("def f():\n    return {answer}\nsave_tool(f)");
        assert_eq!(python(&mut client, &code)["status"], "ok");
    }
    assert_eq!(python(&mut client, "print(saved.f())")["stdout"], "3\n");
    assert_eq!(saved(&hotcell, &[]).0, "f (version 3)  \n");
    assert_eq!(saved(&hotcell, &["restore", "f", "1"]).1, Some(0));
    assert_eq!(python(&mut client, "print(saved.f())")["stdout"], "1\n");
    let gone = "print(saved.delete_tool(name='f'))\ntry:\n    saved.f()\nexcept ToolError as error:\n    print(error.kind)";
    let ran = python(&mut client, gone);
    assert_eq!(ran["stdout"], "Tool 'f' deleted.\nunknown_tool\n", "{ran}");
    assert_eq!(
        saved(&hotcell, &["delete", "f"]).1,
        Some(1),
        "it is deleted already"
    );
    assert_eq!(saved(&hotcell, &["restore", "f", "2"]).1, Some(0));
    assert_eq!(python(&mut client, "print(saved.f())")["stdout"], "2\n");
    let (shown, _) = saved(&hotcell, &["show", "f"]);
    assert!(shown.contains("def f():\n    return 2\n"), "{shown}");
}

#[test]
fn what_does_not_work_is_not_saved_and_says_why() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let mut client = serve(&hotcell);
    for (code, why) in [
        (
            "save_tool(print)",
            "ValueError: save_tool expects a function",
        ),
        (
            "save_tool(lambda: 1)",
            "ValueError: save_tool needs a function with a name",
        ),
        (
            "import threading\nlock = threading.Lock()\ndef f():\n    return lock\nsave_tool(f)",
            "`lock` cannot be kept with the function",
        ),
        (
            "def f(*words):\n    pass\nsave_tool(f)",
            "`words` cannot be given by name",
        ),
        (
            "def f(n):\n    return 1 / n\nsave_tool(f, n=0)",
            "was not saved, for its trial failed: ",
        ),
        (
            "def f(n: int):\n    return n\nsave_tool(f, n='x')",
            "invalid arguments: `n` must be integer",
        ),
        (
            "saved.save_tool(name='../../f', language='python', source='', description='', schema={'type': 'object'})",
            "is not a name for a saved tool",
        ),
        (
            "saved.save_tool(name='f', language='cobol', source='', description='', schema={'type': 'object'})",
            "functions of this language cannot be saved",
        ),
    ] {
        let ran = python(&mut client, code);
        let said = ran["stderr"].as_str().unwrap_or_default();
        assert!(said.contains(why), "{code}: {ran}");
    }
    assert!(!hotcell.place(TOOLS).join("f.py").exists());
    // Control: the same with nothing wrong.
    let ran = python(
        &mut client,
        "def f(n: int):\n    return n\nsave_tool(f, n=1)\nprint(saved.f(n=7))",
    );
    assert_eq!(ran["stdout"], "7\n", "{ran}");
}

#[test]
fn a_broken_tool_is_reported_and_one_that_a_person_wrote_is_there() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    hotcell.write(
        &format!("{TOOLS}/bad.py"),
        "# --- tool\n# colour = 1\n# ---\nprint(1)\n",
    );
    hotcell.write(&format!("{TOOLS}/greet.sh"), "#!/bin/sh\n# --- tool\n# description = \"Greets\"\n# [parameters]\n# who = \"Whom\"\n# ---\necho \"Hello, $(cat arguments.json)!\"\n");
    let (listed, code) = saved(&hotcell, &[]);
    assert_eq!(code, Some(1));
    assert!(
        listed.contains("bad is broken: unknown field `colour`"),
        "{listed}"
    );
    assert!(listed.contains("greet (version 1)  Greets\n"), "{listed}");
    let mut client = serve(&hotcell);
    let listed = client.request("tools/list", json!({})).to_string();
    assert!(
        listed.contains("saved.bad() // Cannot be used: bad.py is broken: unknown field `colour`"),
        "{listed}"
    );
    let code = "print(saved.greet(who='Ada'))\ntry:\n    saved.bad()\nexcept ToolError as error:\n    print(error)";
    let ran = python(&mut client, code);
    let said = ran["stdout"].as_str().unwrap_or_default();
    assert!(
        said.starts_with("Hello, {\"who\":\"Ada\"}!\nsaved.bad: Cannot be used: bad.py is broken"),
        "{ran}"
    );
    drop(client);

    // The folder can be published: then each is a tool of its own.
    let mut command = hotcell.command();
    command
        .args(["serve", "--publish"])
        .arg(hotcell.place(TOOLS));
    let mut client = Client::of(command);
    client.begin();
    let arguments = json!({ "name": "greet", "arguments": { "who": "Ada" } });
    let answer = client.request("tools/call", arguments)["result"].clone();
    assert_eq!(
        answer["content"][0]["text"], "Hello, {\"who\":\"Ada\"}!",
        "{answer}"
    );
}

#[test]
fn a_tool_that_calls_itself_without_end_ends() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let mut client = serve(&hotcell);
    let code = "def f(n=0):\n    return saved.f(n=n + 1)\nsave_tool(f)\nsaved.f()";
    let ran = python(&mut client, code);
    let said = ran["stderr"].as_str().unwrap_or_default();
    assert!(
        said.contains("more than 8 saved tools run at a time"),
        "{ran}"
    );
}

#[test]
fn a_program_that_saves_nothing_has_nothing_of_it() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let mut client = serve(&hotcell);
    // Control: with the word in it, the name is there; without it, it is not.
    assert_eq!(
        python(&mut client, "print(callable(save_tool))")["stdout"],
        "True\n"
    );
    let ran = python(
        &mut client,
        "import builtins\nprint([n for n in dir(builtins) if n.startswith('save') or n == 'mcp'], 'All is saved.')",
    );
    assert_eq!(ran["stdout"], "[] All is saved.\n", "{ran}");
    drop(client);
    hotcell.write("home/.config/hotcell/config.toml", "save_tools = false\n");
    let ran = python(&mut serve(&hotcell), "save_tool(print)");
    let said = ran["stderr"].as_str().unwrap_or_default();
    assert!(said.contains("NameError"), "{ran}");
}

#[test]
fn the_command_line_and_sessions_save_and_call_tools_too() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let run = |code: &str| {
        let mut command = hotcell.command();
        command.args(["run", "--json", "-l", "python", "-c", code]);
        Running::start(&mut command).finish().json()
    };
    let ran = run(SAVE);
    assert_eq!(ran["status"], "ok", "{ran}");
    let ran = run("print(saved.count(words=['z']))");
    assert_eq!(ran["stdout"], "{'z': 2}\n", "{ran}");

    // What a session has defined in several calls.
    let mut client = serve(&hotcell);
    let mut call = |code: &str| {
        let ran = client.run(json!({ "language": "python", "code": code, "session": "s" }));
        structured(&ran).clone()
    };
    let _ = call(
        "class Tally:\n    def __init__(self):\n        self.n = 0\n    def add(self, n):\n        self.n += n",
    );
    let _ = call("import math\ndef half(n: float) -> float:\n    return math.floor(n / 2)");
    let _ = call(
        "def quarter(n: float) -> float:\n    'A quarter of it.'\n    tally = Tally()\n    tally.add(half(half(n)))\n    return tally.n",
    );
    let ran = call("save_tool(quarter, n=16)");
    assert_eq!(ran["status"], "ok", "{ran}");
    let ran = python(&mut serve(&hotcell), "print(saved.quarter(n=17))");
    assert_eq!(ran["stdout"], "4\n", "{ran}");
}

#[test]
fn a_skill_is_installed_where_agents_look_and_not_over_another() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let install = |flags: &[&str]| {
        let mut command = hotcell.command();
        Running::start(command.args(["skill", "install"]).args(flags)).finish()
    };
    let common = hotcell.place("home/.agents/skills/hotcell/SKILL.md");
    assert_eq!(install(&[]).out(), format!("{}\n", common.display()));
    let text = fs::read_to_string(&common).expect("a skill");
    assert!(
        text.starts_with("---\nname: hotcell\ndescription: "),
        "{text}"
    );
    let about = text.lines().nth(2).unwrap_or_default();
    assert!(about.len() < 1024, "{about}");

    hotcell.write("home/.claude/settings.json", "{}");
    let own = hotcell.place("home/.claude/skills/hotcell/SKILL.md");
    hotcell.write(
        &format!("{TOOLS}/greet.sh"),
        "# --- tool\n# description = \"Greets\"\n# ---\necho hello\n",
    );
    let installed = install(&["--saved"]).out();
    assert!(
        installed.contains(&own.display().to_string()),
        "{installed}"
    );
    let text = fs::read_to_string(&own).expect("a skill");
    assert!(text.ends_with("- `greet`: Greets\n"), "{text}");
    assert!(own.with_file_name("scripts").join("greet.sh").exists());

    let other = hotcell.write("skills/hotcell/SKILL.md", "---\nname: other\n---\n");
    let refused = install(&["--to", &hotcell.place("skills").display().to_string()]);
    assert_eq!(refused.code, Some(125), "{}", refused.err());
    assert_eq!(
        fs::read_to_string(other).expect("it"),
        "---\nname: other\n---\n"
    );
}
