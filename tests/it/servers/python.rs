//! What Python programs have of upstream servers: names, modules, `mcp.runtime`, signatures, values.

use serde_json::{Value, json};

use super::{run, serve, structured, studio};
use crate::support::{Hotcell, PATIENCE, eventually, everyone};

/// What a program prints, line by line.
fn says(hotcell: &Hotcell, code: &str) -> Vec<String> {
    let result = run(hotcell, &["-l", "python", "-c", code]);
    assert_eq!(result["status"], "ok", "{result}");
    let said = result["stdout"].as_str().unwrap_or_default();
    said.lines().map(str::to_owned).collect()
}

fn prepared() -> Option<Hotcell> {
    let hotcell = everyone().pop()?;
    studio(&hotcell);
    Some(hotcell)
}

#[test]
fn c7_modules_of_servers_are_ours_and_nothing_is_installed_for_them() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import asyncio, json
import mcp, mcp_studio, mcp.servers.studio
from mcp.servers.studio import add, TOOLS, TOOL_MAP
from mcp.servers.my_studio import *
import mcp.runtime as runtime_too
from mcp import runtime as again
async def main():
    whole = await add(first=1)
    print(whole["structuredContent"], whole["content"][0]["text"])
    print((await mcp_studio.say(text="x"))["content"], (await mcp_servers["My Studio"].say(text="y"))["content"][0]["text"])
    print((await say(text="star"))["content"][0]["text"], (await mcp.servers.studio.from_())["content"][0]["text"])
    print([it["name"] for it in await mcp_studio.list_tools()][:2])
asyncio.run(main())
# Without an event loop the same are plain calls, and may still be given to one.
print(add(first=2)["structuredContent"]["sum"], asyncio.run(add({"first": 3}))["structuredContent"], json.dumps(mcp_studio.say(text="z")["content"]))
print(TOOLS[:2], TOOL_MAP["all_kinds"], runtime_too is again, runtime.MCPError is mcp.MCPError, sorted(LOADED_MCP_SERVERS))
try:
    mcp_studio.refuse()
except RuntimeError as error:
    print(type(error).__name__, error.kind, error, error.details)
"#;
    let expected = [
        "{'sum': 2} ignored",
        "[{'type': 'text', 'text': 'x'}] y",
        "star here",
        "['draw', 'all-kinds']",
        r#"3 {'sum': 4} [{"type": "text", "text": "z"}]"#,
        "['draw', 'all-kinds'] all-kinds True True ['My Studio', 'studio']",
        "ToolError tool studio.refuse: no paper {'code': 7}",
    ];
    // The keyword in the middle is written with a line below it.
    let found = code.replace(
        "asyncio.run(add({\"first\": 3}))[\"structuredContent\"]",
        "asyncio.run(add({\"first\": 3}))['structuredContent']",
    );
    assert_eq!(says(&hotcell, &found), expected);
    // A file of the program's own wins, and the predefined names stay.
    hotcell.write("mcp.py", "mine = 5\n");
    let result = run(
        &hotcell,
        &[
            "-l",
            "python",
            "--file",
            hotcell.place("mcp.py").to_str().expect("a path"),
            "-c",
            "import mcp\nprint(mcp.mine, studio.say(text='t'))",
        ],
    );
    assert_eq!(result["stdout"], "5 t\n", "{result}");
}

#[test]
fn c6_every_helper_of_the_runtime_does_what_it_did() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import asyncio
async def main():
    print(runtime.discovered_servers(), runtime.discovered_servers(detailed=True)[1])
    print(await runtime.list_servers(), runtime.list_servers_sync())
    print((await runtime.list_tools("studio"))[2]["inputSchema"]["required"], sorted(runtime.list_tools_sync("studio")[0]))
    about = runtime.describe_server("My Studio")
    print(sorted(about), about["alias"], about["cwd"], len(about["tools"]), len(runtime.list_loaded_server_metadata()))
    print(await runtime.query_tool_docs("studio", "ALL_KINDS"))
    print(sorted((await runtime.query_tool_docs("studio", "add", detail="full"))), len(await runtime.query_tool_docs("studio", detail="what")))
    print(runtime.query_tool_docs_sync("studio", "add")[0]["toolAlias"])
    print([it["tool"] for it in await runtime.search_tool_docs("draws a picture", limit=1)], runtime.search_tool_docs_sync(" "), len(runtime.search_tool_docs_sync("studio", limit="x")))
    print(await runtime.call_tool("studio", "refuse"))
    print((await runtime.call_tool("studio", "say", {"text": "t"}))["content"], "search_tool_docs" in runtime.capability_summary())
    for bad in [runtime.list_tools("x"), runtime.call_tool("x", "y"), runtime.call_tool("studio", ""), runtime.call_tool("studio", "say", [1]),
                runtime.query_tool_docs("x"), runtime.query_tool_docs("studio", 5), runtime.query_tool_docs("studio", "t"),
                runtime.search_tool_docs(""), runtime.search_tool_docs("a", limit="b")]:
        try:
            await bad
        except runtime.MCPError as error:
            print(error)
    for bad in [lambda: runtime.list_tools_sync(), lambda: runtime.describe_server("x")]:
        try:
            bad()
        except RuntimeError as error:
            print(error)
asyncio.run(main())
"#;
    let expected = [
        "('My Studio', 'studio') {'name': 'studio', 'description': ''}",
        "('My Studio', 'studio') ('My Studio', 'studio')",
        "['first'] ['alias', 'description', 'input_schema', 'name']",
        "['alias', 'cwd', 'name', 'tools'] my_studio None 8 2",
        "{'server': 'studio', 'serverAlias': 'studio', 'tool': 'all-kinds', 'toolAlias': 'all_kinds', 'description': 'Gives a part of each kind'}",
        "['description', 'inputSchema', 'server', 'serverAlias', 'tool', 'toolAlias'] 8",
        "add",
        "['draw'] [] 5",
        "{'content': [{'type': 'text', 'text': 'no paper'}], 'isError': True, 'structuredContent': {'code': 7}}",
        "[{'type': 'text', 'text': 't'}] True",
        "Server 'x' is not available",
        "Server 'x' is not available",
        "Missing tool name",
        "Arguments must be an object",
        "Server x is not loaded",
        "'tool' must be a string when provided",
        "Tool 't' not found for server studio",
        "Missing 'query' value",
        "'limit' must be an integer",
        "list_tools_sync(server) requires a server name",
        "Server 'x' is not loaded",
    ];
    assert_eq!(says(&hotcell, code), expected);
}

#[test]
fn a_tool_has_a_signature_and_documentation() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import inspect
print(inspect.signature(studio.add), dir(studio)[:3])
help(studio.add)
print(mcp.help("studio.add").strip())
print([it["signature"].replace("my_", "") for it in mcp.search("adds numbers")][:1])
stubs = mcp.stubs("studio")
compile(stubs, "studio.pyi", "exec")
print([line for line in stubs.splitlines() if "def add" in line or "def from" in line])
for bad in [lambda: studio.add(1), lambda: studio.add({"first": 1}, 2)]:
    try:
        bad()
    except TypeError as error:
        print(error)
"#;
    let said = says(&hotcell, code);
    let text = said.join("\n");
    assert_eq!(
        said[0],
        "(*, first: int, second: int = 1) ['add', 'all_kinds', 'draw']"
    );
    assert!(
        text.contains("add(*, first: int, second: int = 1)"),
        "{text}"
    );
    assert!(
        text.contains("The second is 1 if it is left out."),
        "{text}"
    );
    let line = "studio.add({first:number, second?:number}) → {sum?:number} // Adds two numbers";
    assert!(text.contains(&format!("['{line}']")), "{text}");
    assert!(
        text.contains("['    def add(*, first: int, second: int = ...) -> dict[str, Any]:', '    def from_() -> Any:']"),
        "{text}"
    );
    let wrong = format!("studio.add takes its arguments by name, or as one dict: {line}");
    assert_eq!(said[said.len() - 2..], [wrong.clone(), wrong]);
}

#[test]
fn pictures_and_files_are_handles_and_resources_and_prompts_are_read() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import os
picture, = studio.draw()
print(picture.mime, picture.size, picture.bytes()[:4], picture.save("a.png"), os.path.getsize("a.png"), picture)
first, image, sound, note, blob, link = studio.all_kinds()
print(first, image.kind, sound.kind, sound.mime, sound.bytes(), note.text(), note.uri, blob.bytes(), blob.mime)
print(link.uri, link.name, link.size, link.text(), link.size)
print(studio.say(text='{"a": 123456789012345678901234567890}'), studio.say(text="NaN"), studio.say(text="[1"), studio.add(first=1))
print([it["uri"] for it in mcp.resources("studio")], mcp.read("studio", "studio://one"), mcp.read("studio", "studio://blob")[0].bytes())
print(mcp.prompts("studio"), mcp.prompt("studio", "greet", who="me")["messages"][0]["content"]["text"])
print(mcp.call_raw("studio.refuse")["isError"], len(studio.fill(bytes=1_000_000)), len(studio.fill(bytes=50_000_000)))
"#;
    let expected = [
        "image/png 70 b'\\x89PNG' a.png 70 <image image/png, 70 bytes>",
        "first image audio audio/wav b'RIFF' a note studio://note b'\\x00\\x01\\x02' application/x-thing",
        "studio://large large None what is at studio://large 25",
        "{'a': 123456789012345678901234567890} NaN [1 {'sum': 2}",
        "['studio://one', 'studio://two'] ['what is at studio://one'] b'\\x00\\x01\\x02'",
        "[{'name': 'greet'}] Greet me",
        "True 1000000 50000000",
    ];
    assert_eq!(says(&hotcell, code), expected);
}

#[test]
fn calls_overlap_in_tasks_and_in_threads_and_errors_show_the_programs_own_lines() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import asyncio, threading, time
studio.say(text="started")
def took(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin
async def gather():
    await asyncio.gather(*[studio.sleep(seconds=0.5) for _ in range(3)])
def threads():
    all = [threading.Thread(target=studio.sleep, kwargs={"seconds": 0.5}) for _ in range(3)]
    [it.start() for it in all], [it.join() for it in all]
# One after the other they would take 1.5.
print(all(took(work) < 1.4 for work in [lambda: asyncio.run(gather()), threads]))
def inner():
    return studio.refuse()
inner()
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    assert_eq!(result["stdout"], "True\n", "{result}");
    let err = result["stderr"].as_str().unwrap_or_default();
    assert!(
        err.ends_with("ToolError: studio.refuse: no paper\n") && err.contains("in inner"),
        "{err}"
    );
    assert!(!err.contains(".hotcell"), "{err}");
}

#[test]
fn a_later_call_of_a_session_and_a_name_made_at_run_time_reach_servers() {
    let Some(hotcell) = prepared() else { return };
    let mut client = serve(&hotcell);
    let mut call = |arguments: Value| {
        let result = client.run(arguments);
        structured(&result)["stdout"].clone()
    };
    let first = json!({ "language": "python", "code": "x = 'later'", "session": "s" });
    assert_eq!(call(first), "");
    let later =
        json!({ "language": "python", "code": "print(studio.say(text=x))", "session": "s" });
    assert_eq!(call(later), "later\n");
    let made = "name = 'stu' + 'dio'\nprint(eval(name).say(text='made'))";
    assert_eq!(
        call(json!({ "language": "python", "code": made })),
        "made\n"
    );
    // Where a program looks for names of its own, in interpreters that waited and in new ones.
    let own = "name = 'stu' + 'dio'\nprint(globals()[name].say(text='own'), vars()['mcp_' + name], locals().get('none'))";
    for more in [json!({}), json!({ "args": ["x"] })] {
        let mut asked = json!({ "language": "python", "code": own });
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        assert_eq!(call(asked), "own <server studio> None\n");
    }
    let given = json!({ "language": "python", "code": "import sys\nprint(eval(sys.argv[1]))", "args": ["studio.say(text='given')"] });
    assert_eq!(call(given), "given\n");
    // Control: who is given none has none.
    let none = json!({ "language": "python", "code": "print('studio' in dir(__builtins__))", "servers": [] });
    assert_eq!(call(none), "False\n");
}

#[test]
fn a_program_that_awaits_at_its_top_level_runs_in_an_interpreter_that_waited() {
    for hotcell in everyone() {
        studio(&hotcell);
        let mut client = serve(&hotcell);
        let mut run = |code: &str| {
            let result = client.run(json!({ "language": "python", "code": code }));
            structured(&result).clone()
        };
        let waited = "print('zygote' in open('/proc/self/maps').read())\n";
        let facts = "import sys\nprint(__name__, __file__, sys.argv, await studio.say(text='x'))\n";
        let expected = "True\n__main__ /workspace/main.py ['main.py'] x\n";
        let mut said = Value::Null;
        // The first may come before one waits.
        let came = eventually(PATIENCE, || {
            said = run(&format!("{waited}{facts}await studio.add(first=1)"));
            said["stdout"] == expected && said["value"] == json!({ "sum": 2 })
        });
        assert!(came, "{said}");
        let failed = run(&format!(
            "{waited}def f():\n    1 / 0\nawait studio.say(text='x')\nf()"
        ));
        assert_eq!(failed["exit_code"], 1, "{failed}");
        let expected = "Traceback (most recent call last):\n  File \"/workspace/main.py\", line 5, in <module>\n    f()\n  File \"/workspace/main.py\", line 3, in f\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n";
        assert_eq!(failed["stderr"], expected, "{failed}");
        let left = run(&format!(
            "{waited}import sys\nawait studio.say(text='x')\nsys.exit(3)"
        ));
        assert_eq!(left["exit_code"], 3, "{left}");
        // What is no program at all is Python's to say.
        let wrong = run("await studio.say(text='x'\nprint(1)");
        assert_eq!(wrong["error"]["kind"], "syntax", "{wrong}");
        let own = run(
            "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('own loop')\nasyncio.run(main())",
        );
        assert_eq!(own["stdout"], "own loop\n", "{own}");
    }
}

#[test]
fn a_server_that_cannot_be_had_spoils_no_helper_and_no_frame_of_ours_is_shown() {
    let Some(hotcell) = prepared() else { return };
    let config = hotcell.place("home/.config/hotcell/config.toml");
    let own = std::fs::read_to_string(config).expect("it");
    let gone = "[servers.gone]\ncommand = 'no-such-program'\n";
    hotcell.write("home/.config/hotcell/config.toml", own + gone);
    let code = r#"
for it in runtime.list_loaded_server_metadata():
    print(it["name"], len(it["tools"]) > 0, "error" in it)
for wrong in ["stduio.add", "nothing.like.it"]:
    try:
        mcp.call(wrong, {})
    except ToolError as error:
        print(error.kind, error)
"#;
    let expected = [
        "My Studio True False",
        "gone False True",
        "studio True False",
        "unknown_server stduio.add: unknown server; known are: studio, my_studio, gone",
        "unknown_server nothing.like.it: unknown server; known are: my_studio, gone, studio",
    ];
    assert_eq!(says(&hotcell, code), expected);
    for (code, ends) in [
        (
            "def inner():\n    return runtime.describe_server('gone')\ninner()",
            "to see its messages\n",
        ),
        (
            "async def inner():\n    return await runtime.query_tool_docs('studio', 'nothing')\nawait inner()",
            "Tool 'nothing' not found for server studio\n",
        ),
        (
            "import asyncio\nasync def inner():\n    print(len(studio.say(text='x')))\nasyncio.run(inner())",
            "calls of tools are awaited too: await server.tool(name=value)\n",
        ),
    ] {
        let result = run(&hotcell, &["-l", "python", "-c", code]);
        let err = result["stderr"].as_str().unwrap_or_default();
        assert!(err.ends_with(ends) && err.contains("in inner"), "{err}");
        assert!(
            !err.contains(".hotcell") && !err.contains("futures"),
            "{err}"
        );
    }
}

#[test]
fn a_program_that_closes_connections_of_its_calls_goes_on_and_keeps_its_own_files() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
import os
print(studio.say(text='one'))
os.closerange(3, 256)
files = [os.open('/workspace/main.py', os.O_RDONLY) for _ in range(3)]
print(studio.say(text='two'), [os.read(file, 7) for file in files])
os.closerange(3, 256)
child = os.fork()
if child == 0:
    print(studio.say(text='child'), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(studio.say(text='three'))
"#;
    let result = run(&hotcell, &["-l", "python", "-c", code]);
    let expected = "one\ntwo [b'\\nimport', b'\\nimport', b'\\nimport']\nchild\nthree\n";
    assert_eq!(result["stdout"], expected, "{result}");
}
