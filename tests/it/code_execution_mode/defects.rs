//! Each defect of mcp-server-code-execution-mode (T-C1 to T-C18), as a test that we pass.
//!
//! In the order of the design's own list of defects: 1 is T-C1; 2 is T-C2 and T-C3; 3 to 11 are T-C4 to T-C12; 12 is T-C13 and T-C14; 13 and 14 have
//! tests of that name; 15 is T-C17; 16 is `places::c9`.

use std::fs;

use serde_json::{Value, json};

use super::{open, python, text};
use crate::mcp::client::{Client, marker, wait_until_running};
use crate::support::left::Before;
use crate::support::{Hotcell, PATIENCE, anyone, eventually, has};

/// The mode in a home that stays when the server ends.
pub fn serve(hotcell: &Hotcell, variables: &[(&str, &str)]) -> Client {
    let mut command = hotcell.command();
    command.args(["serve", "--as", "code-execution-mode"]);
    command.envs(variables.iter().copied());
    let mut client = Client::of(command);
    client.begin();
    client
}

pub fn said(client: &mut Client, code: &str) -> String {
    let params = json!({ "name": "run_python", "arguments": { "code": code } });
    let answer = client.request("tools/call", params);
    let said = answer["result"]["content"][0]["text"].as_str();
    said.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn t_c1_a_function_is_saved_and_is_there_after_a_restart() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let saved = "Tool 'f' saved. It will be available in future sessions.\n";
    let code = "def f():\n    return 1\nprint(save_tool(f))";
    assert_eq!(said(&mut client, code), saved);
    let code = "def g(n: int):\n    return n + 1\nprint(runtime.save_tool(g))";
    assert_eq!(said(&mut client, code), saved.replace("'f'", "'g'"));
    // In the next run, and after a restart: by its own name, from the module, and as a tool of a server.
    let use_it = "from user_tools import g\nimport user_tools\nprint(f(), g(n=1), user_tools.f(), saved.g(n=2), 'f' in user_tools.__all__, g(3))";
    assert_eq!(said(&mut client, use_it), "1 2 1 3 True 4\n");
    drop(client);
    let mut client = serve(&hotcell, &[]);
    assert_eq!(said(&mut client, use_it), "1 2 1 3 True 4\n");
    // A function of the program's own comes first, and a broken one is told of.
    let own = "def f():\n    return 'own'\nprint(f())";
    assert_eq!(said(&mut client, own), "own\n");
    let file = hotcell.place("home/.local/share/hotcell/tools/f.py");
    fs::write(file, "nonsense").expect("a broken file");
    let broken = said(&mut client, "print(f())");
    assert!(broken.contains("f.py is broken"), "{broken}");
    let not_one = "try:\n    runtime.save_tool(5)\nexcept ValueError as error:\n    print(error)";
    assert_eq!(said(&mut client, not_one), "save_tool expects a function\n");
}

#[test]
fn t_c7_an_entry_with_an_address_is_served_and_a_broken_one_is_told_of_by_name_and_reason() {
    let Some(hotcell) = anyone() else { return };
    let web = crate::servers::remote::Web::start(&hotcell, "home/web");
    let entries = json!({ "mcpServers": {
        "web": { "url": format!("http://127.0.0.1:{}/mcp", web.port), "headers": { "Authorization": "Bearer ${OWN_CLOCK_KEY}" } },
        "broken": { "url": "no address" },
    } });
    hotcell.write("home/MCPs/servers.json", entries.to_string());
    let mut client = serve(&hotcell, &[("OWN_CLOCK_KEY", crate::servers::KEY)]);
    let code = "print(web.say(text='over HTTP'))\ntry:\n    broken.any()\nexcept MCPError as error:\n    print(error)";
    let expected = "over HTTP\nbroken.any: the server is not available: its entry has a mistake; run `hotcell servers` to see its messages\n";
    assert_eq!(said(&mut client, code), expected);
    let mut command = hotcell.command();
    let listed =
        crate::support::Running::start(command.args(["servers", "--discover", "list"])).finish();
    let shown = listed.out() + &listed.err();
    assert!(
        shown.contains("servers.json: `broken`: its `url` is not one: "),
        "{shown}"
    );
}

#[test]
fn t_c15_nothing_is_left_of_a_run_that_timed_out_with_children() {
    let Some(hotcell) = anyone() else { return };
    let before = Before::look(&hotcell);
    let mut client = serve(&hotcell, &[]);
    let mark = &marker("t-c15");
    let code = format!(
        "import subprocess, sys, time\nfor _ in range(3):\n    subprocess.Popen([sys.executable, '-c', 'import os, time; os.setsid(); time.sleep(300)', '{mark}'])\nprint('begun', flush=True)\ntime.sleep(300)"
    );
    let params = json!({ "name": "run_python", "arguments": { "code": code, "timeout": 5 } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "late", "method": "tools/call", "params": params }));
    // Control: they are seen from outside while they run.
    wait_until_running(mark, true);
    let answer = client.wait(|message| message["id"] == "late");
    let result = &answer["result"];
    assert_eq!(result["structuredContent"]["status"], "timeout", "{answer}");
    assert_eq!(result["structuredContent"]["stdout"], json!(["begun"]));
    wait_until_running(mark, false);
    let pid = client.child.id();
    drop(client);
    before.expect_nothing_left(pid);
}

#[test]
fn t_c17_an_entry_that_was_removed_is_gone() {
    let Some(hotcell) = anyone() else { return };
    let script = hotcell.write("studio.py", include_str!("../../servers/studio.py"));
    let entry = |name: &str| json!({ "command": "python3", "args": [script, name] });
    let write = |entries: Value| {
        let text = json!({ "mcpServers": entries }).to_string();
        hotcell.write("home/MCPs/a.json", text);
    };
    write(json!({ "stays": entry("stays"), "goes": entry("goes") }));
    let mut client = serve(&hotcell, &[]);
    let list = "print(tuple(sorted(runtime.discovered_servers())), await runtime.list_servers())";
    assert_eq!(
        said(&mut client, list),
        "('goes', 'stays') ('goes', 'stays')\n"
    );
    write(json!({ "stays": entry("stays") }));
    let mut last = String::new();
    let is_gone = eventually(PATIENCE, || {
        last = said(&mut client, list);
        last == "('stays',) ('stays',)\n"
    });
    assert!(is_gone, "{last}");
    let params = json!({ "name": "run_python", "arguments": { "code": "1", "servers": ["goes"] } });
    let answer = client.request("tools/call", params);
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error, "Unknown MCP server: goes", "{answer}");
}

#[test]
fn t_c2_to_t_c14_what_was_wrong_there_is_right_here() {
    if !has("python3") {
        return;
    }
    let mut client = open(&[]);
    for (what, code, expected) in [
        (
            "T-C3: a result of 10 MB",
            "value = studio.fill(bytes=10_000_000)\nprint(len(value))",
            "10000000\n",
        ),
        (
            "T-C4: calls overlap",
            "import asyncio, time\nstudio.say(text='up')\nbegin = time.monotonic()\nasync def main():\n    await asyncio.gather(*[studio.sleep(seconds=0.5) for _ in range(3)])\nasyncio.run(main())\nprint(time.monotonic() - begin < 1.4)",
            "True\n",
        ),
        (
            "the names in the environment",
            "import json, os\nprint(json.loads(os.environ['MCP_AVAILABLE_SERVERS']), os.environ['MCP_DISCOVERED_SERVERS'])",
            "['other', 'studio'] [\"other\",\"studio\"]\n",
        ),
        (
            "T-C5: runtime is predefined",
            "print(runtime.discovered_servers())",
            "('other', 'studio')\n",
        ),
        (
            "T-C6: search finds tools of every server",
            "print(sorted({it['server'] for it in await runtime.search_tool_docs('draw picture')}))",
            "['other', 'studio']\n",
        ),
        (
            "T-C8: every line is there",
            "print('a'); print(); print('()'); print('b')",
            "a\n\n()\nb\n",
        ),
        (
            "T-C9: a failed tool raises",
            "try:\n    await mcp_studio.refuse()\nexcept runtime.MCPError as error:\n    print(error, (await runtime.call_tool('studio', 'refuse'))['isError'])",
            "studio.refuse: no paper True\n",
        ),
        (
            "T-C10: positional arguments",
            "try:\n    await mcp_studio.add(1)\nexcept TypeError as error:\n    print('add({first:number' in str(error), (await mcp_studio.add({'first': 1}))['structuredContent'])",
            "True {'sum': 2}\n",
        ),
        (
            "T-C11: asyncio.run",
            "import asyncio\nasync def main():\n    return 5\nprint(asyncio.run(main()))",
            "5\n",
        ),
        (
            "T-C12: stdin is no protocol",
            "import sys\nprint(repr(sys.stdin.read()), studio.say(text='after'))",
            "'' after\n",
        ),
        (
            "T-C13: real streams and modules",
            "import sys, subprocess, pickle\nclass C:\n    pass\nprint(type(pickle.loads(pickle.dumps(C()))).__name__, flush=True)\nsys.stdout.buffer.write(b'raw\\n')\nsys.stdout.flush()\nsubprocess.run(['echo', 'hi'])",
            "C\nraw\nhi\n",
        ),
        ("T-C14: the last expression", "1 + 1", "value: 2"),
    ] {
        let result = python(&mut client, code);
        assert_eq!(text(&result), expected, "{what}: {result}");
    }
    // T-C2: a long line is cut for the reader, and all of it is kept.
    let long = python(&mut client, "print('x' * 70_000)");
    let link = &long["content"][1];
    assert_eq!(
        (&link["type"], &link["size"]),
        (&json!("resource_link"), &json!(70_001)),
        "{link}"
    );
    assert_eq!(long["isError"], false);
    let line = python(&mut client, "print('x' * 5_000_000)");
    assert_eq!(line["content"][1]["size"], 5_000_001);
}

#[test]
fn t_c16_a_time_may_have_a_unit() {
    for (written, seconds) in [("60s", 60), ("60", 60), ("1m", 60), ("1500ms", 2)] {
        let mut client = open(&[("MCP_BRIDGE_TIMEOUT", written)]);
        let listed = client.request("tools/list", json!({}));
        let timeout = &listed["result"]["tools"][0]["inputSchema"]["properties"]["timeout"];
        assert_eq!(timeout["default"], seconds, "{written}: {timeout}");
    }
}

#[test]
fn t_c18_nothing_that_is_installed_here_decides_whether_it_starts() {
    let Some(hotcell) = anyone() else { return };
    // As with the newest SDK: whoever imports `mcp` here fails.
    hotcell.write(
        "home/site/mcp/__init__.py",
        "raise ImportError('another mcp')\n",
    );
    let mut command = hotcell.command();
    command
        .args(["serve", "--as", "code-execution-mode"])
        .env("PYTHONPATH", hotcell.place("home/site"))
        .env("PATH", "/nowhere");
    let mut client = Client::of(command);
    client.begin();
    let listed = client.request("tools/list", json!({}));
    assert_eq!(
        listed["result"]["tools"][0]["name"], "run_python",
        "{listed}"
    );
    // Control: with programs to run, and that package in the way of them all, a program has our own `mcp`.
    if has("python3") {
        let site = hotcell.place("home/site");
        let site = site.to_str().expect("a path");
        let code = "import mcp\nfrom mcp import runtime\nprint(mcp.runtime.list_servers_sync())";
        let told = said(&mut serve(&hotcell, &[("PYTHONPATH", site)]), code);
        assert_eq!(told, "('saved',)\n");
        let plain = std::process::Command::new("python3")
            .args(["-c", "import mcp"])
            .env("PYTHONPATH", site)
            .output()
            .expect("it runs");
        assert!(String::from_utf8_lossy(&plain.stderr).contains("another mcp"));
    }
    // What it is built of is locked: every package of a registry by its checksum.
    let lock = include_str!("../../../Cargo.lock");
    let packages = lock.split("[[package]]").skip(1);
    let fetched = packages.filter(|it| it.contains("source = "));
    let unlocked: Vec<&str> = fetched.filter(|it| !it.contains("checksum = ")).collect();
    assert!(unlocked.is_empty(), "{unlocked:?}");
}

#[test]
fn defect_13_a_call_begins_anew_and_nothing_says_otherwise() {
    if !has("python3") {
        return;
    }
    let mut client = open(&[]);
    assert_eq!(text(&python(&mut client, "kept = 41\nprint(kept)")), "41\n");
    let again = python(&mut client, "print('kept' in globals())");
    assert_eq!(text(&again), "False\n");
    let uri = "resource://mcp-server-code-execution-mode/capabilities";
    let read = client.request("resources/read", json!({ "uri": uri }));
    let listed = client.request("tools/list", json!({}));
    let told = format!("{read}{listed}").to_lowercase();
    assert!(
        told.contains("run_python") && !told.contains("persistent"),
        "{told}"
    );
}

#[test]
fn defect_14_a_call_shows_progress_and_can_be_cancelled() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let mark = marker("defect-14");
    let code = format!(
        "import subprocess, sys\nprint('begun', flush=True)\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(300)', '{mark}'])"
    );
    let params = json!({ "name": "run_python", "arguments": { "code": code }, "_meta": { "progressToken": "p" } });
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params }));
    let progress = client.wait(|message| message["method"] == "notifications/progress");
    assert!(
        progress["params"]["message"].to_string().contains("begun"),
        "{progress}"
    );
    wait_until_running(&mark, true);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "long" } }));
    wait_until_running(&mark, false);
    // Control: the server goes on.
    assert_eq!(said(&mut client, "print(1)"), "1\n");
}
