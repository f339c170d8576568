//! The command `mcp`, by which programs of any other language call tools.

use serde_json::{Value, json};

use super::{run, serve, structured, studio};
use crate::support::{Hotcell, everyone, has, has_heavy};

fn prepared() -> Option<Hotcell> {
    let hotcell = everyone().pop()?;
    studio(&hotcell);
    Some(hotcell)
}

fn bash(hotcell: &Hotcell, code: &str) -> Value {
    run(hotcell, &["-l", "bash", "-c", code])
}

#[test]
fn a_shell_lists_searches_and_calls_tools() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
mcp list
mcp list studio | head -n 2
mcp search adds numbers | head -n 1
mcp help studio.add
mcp call studio.add '{"first": 1, "second": 2}'
mcp call studio.add first=5
echo '{"text": "from stdin"}' | mcp call studio.say -
mcp call -r studio.say text=plain
mcp call studio.say text=12
mcp call --raw studio.refuse; echo "status $?"
"#;
    let result = bash(&hotcell, code);
    let expected = "\
my_studio (8 tools)
studio (8 tools)
studio.draw() // Draws a picture
studio.all_kinds() // Gives a part of each kind
studio.add({first:number, second?:number}) → {sum?:number} // Adds two numbers
studio.add({first:number, second?:number}) → {sum?:number}
    Adds two numbers.
    The second is 1 if it is left out.
{\"sum\":3}
{\"sum\":6}
\"from stdin\"
plain
12
{\"content\":[{\"type\":\"text\",\"text\":\"no paper\"}],\"isError\":true,\"structuredContent\":{\"code\":7}}
status 1
";
    // Which of two equal servers is found first is theirs to say.
    let said = result["stdout"].as_str().unwrap_or_default();
    assert_eq!(said.replace("my_studio.", "studio."), expected, "{result}");
    assert_eq!(result["stderr"], "studio.refuse: no paper\n", "{result}");
}

#[test]
fn the_exit_status_says_why_there_is_no_value() {
    let Some(hotcell) = prepared() else { return };
    hotcell.write(
        "home/.config/hotcell/config.toml",
        std::fs::read_to_string(hotcell.place("home/.config/hotcell/config.toml")).expect("it")
            + "[servers.gone]\ncommand = 'no-such-program'\n",
    );
    let code = r#"
mcp call studio.say text=x > /dev/null; echo $?
mcp call studio.refuse 2> /dev/null; echo $?
mcp call studio.nothing 2> /dev/null; echo $?
mcp call nobody.say 2> /dev/null; echo $?
mcp call studio.say '{"text"' 2> /dev/null; echo $?
mcp call 2> /dev/null; echo $?
mcp wrong 2> /dev/null; echo $?
mcp call gone.any 2> /dev/null; echo $?
mcp --help > /dev/null; echo $?
"#;
    let result = bash(&hotcell, code);
    assert_eq!(result["stdout"], "0\n1\n2\n2\n2\n2\n2\n4\n0\n", "{result}");
}

#[test]
fn pictures_are_saved_and_their_paths_printed() {
    let Some(hotcell) = prepared() else { return };
    let code = r#"
out=$(mcp call studio.draw)
echo "$out" | sed 's/mcp-[0-9]*/mcp-N/'
path=$(echo "$out" | sed 's/.*"path":"\([^"]*\)".*/\1/')
head -c 4 "$path" | tail -c 3; echo
mcp call studio.all_kinds | sed 's/mcp-[0-9]*/mcp-N/g'
mcp call studio.fill bytes=5000000 | wc -c
"#;
    let result = bash(&hotcell, code);
    let expected = r#"[{"path":"/tmp/mcp-N-1.png","mime":"image/png","size":70,"uri":null}]
PNG
["first",{"path":"/tmp/mcp-N-1.png","mime":"image/png","size":70,"uri":null},{"path":"/tmp/mcp-N-2.wav","mime":"audio/wav","size":4,"uri":null},{"path":"/tmp/mcp-N-3.txt","mime":"text/plain","size":6,"uri":"studio://note"},{"path":"/tmp/mcp-N-4.bin","mime":"application/x-thing","size":3,"uri":"studio://blob"},{"type":"resource_link","uri":"studio://large","name":"large","mimeType":"text/plain"}]
5000003
"#;
    assert_eq!(result["stdout"], expected, "{result}");
}

#[test]
fn every_other_language_has_the_command() {
    let Some(hotcell) = prepared() else { return };
    let programs = [
        ("ruby", "ruby", "print `mcp call studio.add first=41`"),
        ("perl", "perl", "print `mcp call studio.add first=41`;"),
        (
            "php",
            "php",
            "<?php echo shell_exec('mcp call studio.add first=41');",
        ),
        (
            "Rscript",
            "r",
            "cat(system('mcp call studio.add first=41', intern = TRUE), '\\n', sep = '')",
        ),
        (
            "awk",
            "awk",
            "BEGIN { \"mcp call studio.add first=41\" | getline line; print line }",
        ),
        (
            "embedded",
            "lua",
            "io.write(io.popen('mcp call studio.add first=41'):read('*a'))",
        ),
        (
            "luajit",
            "luajit",
            "io.write(io.popen('mcp call studio.add first=41'):read('*a'))",
        ),
        (
            "go",
            "go",
            "package main\nimport (\"fmt\"; \"os/exec\")\nfunc main() {\n\tout, err := exec.Command(\"mcp\", \"call\", \"studio.add\", \"first=41\").Output()\n\tfmt.Print(string(out))\n\tif err != nil { fmt.Println(err) }\n}\n",
        ),
    ];
    let mut called = 0;
    for (program, language, code) in programs {
        let is_there = match program {
            "Rscript" | "go" => has_heavy(program),
            // Lua is in hotcell itself.
            "embedded" => true,
            _ => has(program),
        };
        if !is_there {
            continue;
        }
        let result = run(&hotcell, &["-l", language, "-c", code]);
        assert_eq!(result["stdout"], "{\"sum\":42}\n", "{language}: {result}");
        called += 1;
    }
    assert!(called > 1, "none of these languages is installed");
}

#[test]
fn a_sandbox_without_servers_has_no_command_and_a_session_has_it_in_every_call() {
    for hotcell in everyone() {
        studio(&hotcell);
        let mut client = serve(&hotcell);
        let mut call = |arguments: Value| {
            let result = client.run(arguments);
            structured(&result)["stdout"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let look = "command -v mcp || echo none";
        let none = json!({ "language": "bash", "code": look, "servers": [] });
        assert_eq!(call(none), "none\n");
        // Control: it is there for who may call one, and narrowed to what was given.
        let given =
            "command -v mcp; mcp call studio.say text=x; mcp call my_studio.say text=y 2>&1";
        let said = call(json!({ "language": "bash", "code": given, "servers": ["studio"] }));
        assert_eq!(
            said,
            "/workspace/.home/.hotcell/bin/mcp\n\"x\"\nmy_studio.say: unknown server; known are: studio\n"
        );
        call(json!({ "language": "bash", "code": "x=later", "session": "s" }));
        let later =
            json!({ "language": "bash", "code": "mcp call -r studio.say text=$x", "session": "s" });
        assert_eq!(call(later), "later\n");
    }
}

/// A program in each language that has a function for it: a call with a value, and one that fails.
const CALLS: [(&str, &str, &str); 9] = [
    (
        "bash",
        "bash",
        "source hotcell.sh\nhotcell_call studio.add first=5\nhotcell_call studio.refuse",
    ),
    (
        "perl",
        "perl",
        "use hotcell;\nprint hotcell::call('studio.add', { first => 5 })->{sum}, qq(\\n);\nhotcell::call('studio.refuse');",
    ),
    (
        "ruby",
        "ruby",
        "require 'hotcell'\np Hotcell.call('studio.add', first: 5)['sum']\nHotcell.call('studio.refuse')",
    ),
    (
        "lua",
        "sh",
        "local hotcell = require('hotcell')\nprint(hotcell.call('studio.add', '{\"first\": 5}'))\nhotcell.call('studio.refuse')",
    ),
    (
        "lua@lua5.4",
        "lua5.4",
        "local hotcell = require('hotcell')\nprint(hotcell.call('studio.add', '{\"first\": 5}'))\nhotcell.call('studio.refuse')",
    ),
    (
        "php",
        "php",
        "<?php require 'hotcell.php';\necho \\hotcell\\call('studio.add', ['first' => 5])['sum'], \"\\n\";\n\\hotcell\\call('studio.refuse');",
    ),
    (
        "r",
        "Rscript",
        "source('hotcell.R')\ncat(hotcell$call('studio.add', '{\"first\": 5}'), '\\n')\nhotcell$call('studio.refuse')",
    ),
    (
        "go",
        "go",
        "package main\nimport (\n\"fmt\"\n\"hotcell\"\n)\nfunc main() {\nsum, err := hotcell.Call(\"studio.add\", map[string]any{\"first\": 5})\nfmt.Println(sum, err)\n_, err = hotcell.Call(\"studio.refuse\", map[string]any{})\npanic(err)\n}",
    ),
    (
        "rust",
        "rustc",
        "fn main() {\nprintln!(\"{}\", hotcell::call(\"studio.add\", \"{\\\"first\\\": 5}\").unwrap());\nhotcell::call(\"studio.refuse\", \"{}\").unwrap();\n}",
    ),
];

#[test]
fn the_module_hotcell_calls_tools_in_every_language_that_has_it() {
    let Some(hotcell) = prepared() else { return };
    for (language, runtime, code) in CALLS {
        let is_light = matches!(runtime, "bash" | "perl" | "php" | "ruby" | "sh");
        if !(if is_light {
            has(runtime)
        } else {
            has_heavy(runtime)
        }) {
            continue;
        }
        let result = run(&hotcell, &["--timeout", "60", "-l", language, "-c", code]);
        let [out, err] = ["stdout", "stderr"].map(|it| result[it].as_str().unwrap_or_default());
        assert!(out.contains('6'), "{language}: {result}");
        assert!(err.contains("no paper"), "{language}: {result}");
        assert_eq!(result["status"], "failed", "{language}: {result}");
    }
}
