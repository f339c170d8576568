//! One session in several languages: its files are everywhere, and simple values by name.

use serde_json::{Value, json};

use super::{call_with, names, note, serve, sessions};
use crate::mcp::client::Client;
use crate::support::{anyone, everyone, has, has_heavy};

/// What a call in this language prints.
fn prints(client: &mut Client, language: &str, code: &str) -> String {
    let facts = call_with(client, json!({ "code": code, "language": language }));
    assert_eq!(facts["status"], "ok", "{language}: {code}: {facts}");
    facts["stdout"].as_str().unwrap_or_default().to_owned()
}

fn files(facts: &Value) -> Vec<&str> {
    let files = facts["files"].as_array().map_or(&[][..], Vec::as_slice);
    files.iter().filter_map(|it| it["name"].as_str()).collect()
}

#[test]
fn files_are_seen_by_each_language_in_turn_and_so_is_their_end() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let write = "import os\nos.makedirs('d')\nopen('d/a.txt', 'w').write('one')\nopen('gone', 'w').close()\nos.chmod('d/a.txt', 0o750)\nx = 5";
        prints(&mut client, "python", write);
        let facts = call_with(
            &mut client,
            json!({ "code": "cat d/a.txt; stat -c %a d/a.txt; echo two >> d/a.txt; rm gone; y=6", "language": "bash" }),
        );
        assert_eq!(facts["stdout"], "one750\n", "{}: {facts}", hotcell.name);
        assert_eq!(
            files(&facts),
            ["d/a.txt"],
            "only what this call changed: {facts}"
        );
        let sql = "select 1 as n;";
        assert_eq!(prints(&mut client, "sql", sql), "n\n1\n");
        // Lua is not kept: each call is a run of its own, with the files.
        let lua = "local f = io.open('d/a.txt', 'a'); f:write('three'); f:close(); print(io.open('gone') == nil)";
        let facts = call_with(&mut client, json!({ "code": lua, "language": "lua" }));
        assert_eq!(facts["stdout"], "true\n", "{}: {facts}", hotcell.name);
        assert_eq!(files(&facts), ["d/a.txt"], "{facts}");
        let read = "print(open('d/a.txt').read(), os.path.exists('gone'), x)";
        assert_eq!(
            prints(&mut client, "python", read),
            "onetwo\nthree False 5\n"
        );
        assert_eq!(prints(&mut client, "bash", "echo $y; ls"), "6\nd\n");
        assert_eq!(names(&mut client), ["s"]);
    }
}

#[test]
fn a_session_may_begin_in_a_language_that_is_not_kept() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let call = json!({ "code": "io.open(arg[0] == nil and 'a' or 'made', 'w'):write('x'):close()", "language": "lua", "files": { "given.txt": "g" } });
    assert_eq!(call_with(&mut client, call)["status"], "ok");
    assert_eq!(
        prints(
            &mut client,
            "python",
            "import os\nprint(len(os.listdir('.')), open('given.txt').read())"
        ),
        "3 g\n"
    );
    // A call that names no language is in that of the one before.
    let facts = call_with(&mut client, json!({ "code": "1 + 1" }));
    assert_eq!(
        (&facts["language"], &facts["value"]),
        (&json!("python"), &json!("2"))
    );
}

#[test]
fn a_compiler_sees_what_earlier_calls_left() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let header = "import os\nos.makedirs('include')\nopen('include/answer.h', 'w').write('#define ANSWER 42')";
    prints(&mut client, "python", header);
    let code = "#include <stdio.h>\n#include \"include/answer.h\"\nint main(void) { printf(\"%d\\n\", ANSWER); }";
    assert_eq!(prints(&mut client, "c", code), "42\n");
    prints(
        &mut client,
        "python",
        "open('include/answer.h', 'w').write('#define ANSWER 43')",
    );
    assert_eq!(
        prints(&mut client, "c", code),
        "43\n",
        "what was built of another header is not run"
    );
}

#[test]
fn files_that_come_with_the_first_call_in_a_language_are_there() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    prints(&mut client, "python", "open('main.sh', 'w').write('mine')");
    let call = json!({ "code": "cat main.sh given/x", "language": "bash", "files": { "given/x": "given" } });
    assert_eq!(call_with(&mut client, call)["stdout"], "minegiven");
    let facts = call_with(
        &mut client,
        json!({ "code": "echo $z; false", "language": "bash" }),
    );
    assert_eq!(facts["exit_code"], 1);
    assert_eq!(facts["error"]["kind"], "exception", "{facts}");
    let facts = call_with(
        &mut client,
        json!({ "code": "1 / 0", "language": "python" }),
    );
    let trace = facts["stderr"].as_str().unwrap();
    assert!(
        trace.contains("/tmp/call-4.py"),
        "calls are counted together: {trace}"
    );
    assert_eq!(facts["error"]["file"], "call-4.py", "{facts}");
}

#[test]
fn a_link_that_a_program_plants_is_followed_by_nobody_outside() {
    for hotcell in everyone() {
        let secret = hotcell.write("home/secret", "untouched");
        let outside = hotcell.make_folder("home/outside");
        let mut client = serve(&hotcell, &[]);
        // Control: a plain file comes along.
        let plant = format!(
            "import os\nopen('plain', 'w').write('plain')\nos.symlink({0:?}, 'file')\nos.symlink({1:?}, 'folder')\nos.symlink('/proc/self/root', 'root')\nos.mkfifo('pipe')",
            secret.display().to_string(),
            outside.display().to_string(),
        );
        prints(&mut client, "python", &plant);
        let look = "cat plain; cat file 2>/dev/null || echo none; readlink file; ls root/workspace/plain; [ -e pipe ] || echo no pipe";
        let expected = format!(
            "plainnone\n{}\nroot/workspace/plain\nno pipe\n",
            secret.display()
        );
        assert_eq!(
            prints(&mut client, "bash", look),
            expected,
            "{}",
            hotcell.name
        );
        // What is written at their names stays in the workspace.
        prints(
            &mut client,
            "bash",
            "rm file folder; mkdir folder; echo mine > folder/mine; echo mine > file",
        );
        prints(
            &mut client,
            "python",
            "assert open('file').read() == open('folder/mine').read() == 'mine\\n'",
        );
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "untouched");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}

#[test]
fn an_interpreter_that_ends_takes_its_variables_and_not_the_files() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    prints(&mut client, "bash", "kept=1");
    let facts = call_with(
        &mut client,
        json!({ "code": "import os\nx = 1\nopen('left', 'w').write('text')\nos._exit(3)", "language": "python" }),
    );
    assert!(note(&facts).contains("variables are lost"), "{facts}");
    assert_eq!(
        prints(&mut client, "bash", "cat left; echo $kept"),
        "text1\n"
    );
    let facts = call_with(
        &mut client,
        json!({ "code": "print('x' in globals(), open('left').read())", "language": "python" }),
    );
    assert_eq!(facts["stdout"], "False text\n", "{facts}");
    assert!(note(&facts).contains("started anew"), "{facts}");
}

#[test]
fn values_by_name_are_shared_by_all_languages() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        prints(
            &mut client,
            "python",
            "from hotcell import vars\nvars['x'] = {'a': [1, None, 'é\"']}\nvars['n'] = 7",
        );
        assert_eq!(
            prints(
                &mut client,
                "bash",
                "hotcell_var get n; hotcell_var set t $'a \"b\"\\\\\nc'; hotcell_var list"
            ),
            "7\nn\nt\nx\n"
        );
        let embedded = "import { vars } from 'hotcell';\nvars.n += 1; console.log(JSON.stringify(vars.x), vars.t, Object.keys(vars).join())";
        assert_eq!(
            prints(&mut client, "javascript@embedded", embedded),
            "{\"a\":[1,null,\"é\\\"\"]} a \"b\"\\\nc n,t,x\n"
        );
        assert_eq!(
            prints(
                &mut client,
                "python",
                "print(vars['n'], 't' in vars, vars.get('none'))\ndel vars['x']"
            ),
            "8 True None\n"
        );
        // They are no files of the session's, though they are carried like those.
        let left = json!({ "code": "open('left', 'w').close()", "language": "python" });
        let facts = call_with(&mut client, left);
        assert_eq!((files(&facts), facts.get("deleted")), (vec!["left"], None));
        let facts = call_with(
            &mut client,
            json!({ "code": "vars['../x'] = 1", "language": "python" }),
        );
        assert!(
            facts["stderr"]
                .as_str()
                .unwrap()
                .contains("not a name for a value"),
            "{facts}"
        );
        if has("ruby") {
            let ruby = "require 'hotcell'\nHotcell.vars['r'] = Hotcell.vars['n'] + 1\nputs Hotcell.vars.keys.join(',')";
            assert_eq!(prints(&mut client, "ruby", ruby), "n,r,t\n");
            assert_eq!(prints(&mut client, "bash", "hotcell_var get r"), "9\n");
        }
    }
}

#[test]
fn the_module_is_whole_in_a_session() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let python = "import hotcell\nprint(hotcell.args)\nhotcell.display('shown')\nhotcell.vars['x'] = 1\n\
                      try: hotcell.tools.nobody\nexcept AttributeError as error: print(error)";
        let said = prints(&mut client, "python", python);
        assert!(
            said.starts_with("[]\n") && said.contains("there is no server"),
            "{said}"
        );
        let javascript = "import { args, display, tools, vars } from 'hotcell';\nconsole.log(args, typeof display, vars.x);\n\
                          try { tools.nobody } catch (error) { console.log(error.message) }";
        let engines = ["javascript@embedded", "javascript@node"];
        for engine in engines.into_iter().take(1 + usize::from(has("node"))) {
            let said = prints(&mut client, engine, javascript);
            assert!(
                said.starts_with("[] function 1\nthere is no server nobody"),
                "{engine}: {said}"
            );
        }
        let bash = "hotcell_display one two; hotcell_call nobody.tool 2>&1 || echo $?";
        assert_eq!(
            prints(&mut client, "bash", bash),
            "one\ntwo\nthis run was given no servers: see `hotcell servers`\n4\n"
        );
        if has("ruby") {
            let ruby = "require 'hotcell'\np Hotcell.args, Hotcell.vars['x']\nHotcell.display('x')\n\
                        begin; Hotcell.call('nobody.tool'); rescue => error; puts error.message; end";
            let said = prints(&mut client, "ruby", ruby);
            assert!(
                said.starts_with("[]\n1\n\"x\"\nthis run was given no servers"),
                "{said}"
            );
        }
        if has_heavy("Rscript") {
            // A session holds four languages, so this is another one.
            let mut client = serve(&hotcell, &[]);
            let r = "hotcell$display(length(hotcell$args), hotcell$vars$x)\n\
                     tryCatch(hotcell$call('nobody.tool'), error = function(error) cat(conditionMessage(error)))";
            let said = prints(&mut client, "r", r);
            assert!(said.contains("this run was given no servers"), "{said}");
        }
    }
}

#[test]
fn node_has_the_same_values() {
    let Some(hotcell) = anyone().filter(|_| has("node")) else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    prints(&mut client, "bash", "hotcell_var json x '{\"a\":[1]}'");
    let code = "import { vars } from 'hotcell';\nvars.y = [vars.x.a[0] + 1]; console.log(vars, require('hotcell').vars === vars)";
    assert_eq!(
        prints(&mut client, "javascript@node", code),
        "{ x: { a: [ 1 ] }, y: [ 2 ] } true\n"
    );
    assert_eq!(prints(&mut client, "bash", "hotcell_var get y"), "[2]\n");
}

#[test]
fn a_session_keeps_four_languages_at_most() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    for (language, code) in [
        ("python", "1"),
        ("bash", "true"),
        ("sql", "select 1;"),
        ("typescript", "1"),
    ] {
        prints(&mut client, language, code);
    }
    let fifth = json!({ "code": "1", "language": "javascript@embedded" });
    let facts = call_with(&mut client, fifth);
    assert_eq!(facts["status"], "rejected", "{facts}");
    assert!(
        facts["error"]["message"]
            .as_str()
            .unwrap()
            .contains("4 languages"),
        "{facts}"
    );
    assert_eq!(
        prints(&mut client, "lua", "print(1)"),
        "1\n",
        "that is not kept"
    );
    assert_eq!(prints(&mut client, "python", "print(1)"), "1\n");
}

#[test]
fn a_file_that_a_smaller_sandbox_has_no_room_for_is_not_lost() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let write =
            "open('large', 'wb').write(b'x' * (60 << 20))\nopen('small', 'w').write('small')";
        prints(&mut client, "python", write);
        for (language, code) in [
            ("lua", "io.open('small', 'a'):write('er'):close()"),
            ("bash", "[ ! -e large ] && printf ' yet' >> small"),
        ] {
            let call = json!({ "code": code, "language": language, "memory": "48M" });
            let facts = call_with(&mut client, call);
            assert_eq!(facts["status"], "ok", "{}: {facts}", hotcell.name);
            assert!(note(&facts).contains("1 of the session's files"), "{facts}");
        }
        let read = "import os\nprint(os.path.getsize('large') >> 20, open('small').read())";
        assert_eq!(prints(&mut client, "python", read), "60 smaller yet\n");
    }
}

#[test]
fn copies_of_a_session_have_what_other_languages_left_and_go_back_for_all_of_them() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let act = |client: &mut Client, arguments: Value| {
            let done = sessions(client, arguments);
            assert_eq!(done.get("error"), None, "{}: {done}", hotcell.name);
        };
        prints(
            &mut client,
            "python",
            "from hotcell import vars\nx = 1\nvars['v'] = 'a'",
        );
        prints(&mut client, "bash", "echo one > f");
        act(
            &mut client,
            json!({ "action": "fork", "name": "s", "to": "t" }),
        );
        let other = json!({ "session": "t", "language": "python", "code": "print(x, open('f').read(), vars['v'])\nvars['v'] = 'b'\nopen('f', 'w').write('other')" });
        assert_eq!(call_with(&mut client, other)["stdout"], "1 one\n a\n");
        // Whose turn it was last in the sandbox of both makes no difference.
        assert_eq!(
            prints(&mut client, "bash", "cat f; hotcell_var get v"),
            "one\na\n"
        );
        assert_eq!(
            prints(&mut client, "lua", "print(io.open('f'):read())"),
            "one\n"
        );
        act(
            &mut client,
            json!({ "action": "checkpoint", "name": "s", "to": "c" }),
        );
        prints(&mut client, "bash", "echo two > f; hotcell_var set v c");
        act(
            &mut client,
            json!({ "action": "restore", "name": "s", "to": "c" }),
        );
        assert_eq!(
            prints(&mut client, "bash", "cat f; hotcell_var get v"),
            "one\na\n"
        );
        act(&mut client, json!({ "action": "checkpoint", "name": "s" }));
        prints(&mut client, "bash", "echo three > f");
        act(&mut client, json!({ "action": "undo", "name": "s" }));
        assert_eq!(
            prints(&mut client, "python", "print(open('f').read(), x)"),
            "one\n 1\n"
        );
        let other =
            json!({ "session": "t", "language": "bash", "code": "cat f; hotcell_var get v" });
        assert_eq!(call_with(&mut client, other)["stdout"], "otherb\n");
    }
}
