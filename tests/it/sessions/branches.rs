//! Checkpoints, forks, undo: states of one session that never see each other's changes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{call, call_with, names, note, serve, sessions};
use crate::mcp::client::Client;
use crate::support::left::Before;
use crate::support::{anyone, eventually, everyone};

/// A Python call in a session of this name.
fn call_in(client: &mut Client, session: &str, code: &str) -> Value {
    let call = json!({ "session": session, "language": "python", "code": code });
    call_with(client, call)
}

/// An action on the session `s`.
fn act(client: &mut Client, action: &str, mut more: Value) -> Value {
    more["action"] = action.into();
    if more["name"].is_null() {
        more["name"] = "s".into();
    }
    sessions(client, more)
}

fn fork(client: &mut Client, to: &str) {
    let forked = act(client, "fork", json!({ "to": to }));
    assert_eq!(forked, json!({ "forked": to }));
}

fn value(facts: &Value) -> &str {
    facts["value"]
        .as_str()
        .unwrap_or_else(|| panic!("no value: {facts}"))
}

#[test]
fn branches_never_see_each_others_variables_or_files() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        let begin = "import os\nx = ['s']\nos.makedirs('d/e')\nos.chdir('d')\nopen('f', 'w').write('begin')\nopen('../top', 'w').write('begin')";
        assert_eq!(call(&mut client, begin)["status"], "ok");
        fork(&mut client, "t");
        assert_eq!(names(&mut client), ["s", "t"]);
        let look = "x, os.getcwd(), open('f').read(), open('/workspace/top').read(), sorted(os.listdir('/workspace'))";
        let same = "(['s'], '/workspace/d', 'begin', 'begin', ['.home', 'd', 'top'])";
        assert_eq!(value(&call_in(&mut client, "t", look)), same);
        let change = |own: &str| {
            format!(
                "x.append('{own}')\nopen('f', 'a').write('{own}')\nopen('/workspace/{own}', 'w').write('{own}')\nopen(os.path.expanduser('~/{own}'), 'w')\nos.remove('/workspace/top') if '{own}' == 't1' else None"
            )
        };
        for round in 1..3 {
            for session in ["s", "t"] {
                let own = format!("{session}{round}");
                call_in(&mut client, session, &change(&own));
            }
        }
        let look = "x, open('f').read(), sorted(os.listdir('/workspace')), sorted(os.listdir(os.path.expanduser('~')))";
        assert_eq!(
            value(&call(&mut client, look)),
            "(['s', 's1', 's2'], 'begins1s2', ['.home', 'd', 's1', 's2', 'top'], ['.hotcell', 's1', 's2'])"
        );
        assert_eq!(
            value(&call_in(&mut client, "t", look)),
            "(['s', 't1', 't2'], 'begint1t2', ['.home', 'd', 't1', 't2'], ['.hotcell', 't1', 't2'])"
        );
        // No search finds what another branch has.
        let search =
            "import pathlib\nsorted(p.name for p in pathlib.Path('/workspace').rglob('t?'))";
        assert_eq!(value(&call(&mut client, search)), "[]");
    }
}

#[test]
fn a_checkpoint_is_restored_as_often_as_it_is_wanted() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        call(&mut client, "x = 1\nopen('f', 'w').write('one')");
        let kept = act(&mut client, "checkpoint", json!({ "to": "a" }));
        assert_eq!(kept, json!({ "checkpoint": "a" }));
        for _ in 0..2 {
            let change = "x += 1\nopen('f', 'a').write('two')\nopen('g', 'w').write('new')\nx";
            assert_eq!(value(&call(&mut client, change)), "2");
            let restored = act(&mut client, "restore", json!({ "to": "a" }));
            assert_eq!(restored, json!({ "restored": "a" }));
        }
        let look = "import os\nx, open('f').read(), os.path.exists('g')";
        let facts = call(&mut client, look);
        assert_eq!(
            (value(&facts), note(&facts)),
            ("(1, 'one', False)", String::new())
        );
        let missing = act(&mut client, "restore", json!({ "to": "b" }));
        assert_eq!(missing["error"]["message"], "there is no checkpoint `b`");
        let missing = act(&mut client, "restore", json!({ "to": "a", "name": "z" }));
        assert_eq!(missing["error"]["message"], "there is no session `z`");
    }
}

#[test]
fn undo_goes_back_by_a_call_at_a_time() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 0\nopen('f', 'w').write('0')");
    let refused = act(&mut client, "undo", json!({}));
    let error = refused["error"]["message"].as_str().unwrap();
    assert!(error.starts_with("nothing was kept"), "{error}");
    assert_eq!(
        act(&mut client, "checkpoint", json!({})),
        json!({ "undo": true })
    );
    for n in 1..4 {
        call(
            &mut client,
            &format!("x = {n}\nopen('f', 'w').write('{n}')"),
        );
    }
    let look = "x, open('f').read()";
    for n in ["2", "1"] {
        assert_eq!(
            act(&mut client, "undo", json!({})),
            json!({ "undone": "s" })
        );
        let listed = sessions(&mut client, json!({ "action": "list" }));
        let calls = n.parse::<u64>().unwrap() + 1;
        assert_eq!(listed["sessions"][0]["calls"], calls, "{listed}");
    }
    assert_eq!(value(&call(&mut client, look)), "(1, '1')");
    // That looked, and was a call too.
    for _ in 0..2 {
        act(&mut client, "undo", json!({}));
    }
    assert_eq!(value(&call(&mut client, look)), "(0, '0')");
    act(&mut client, "undo", json!({}));
    assert!(act(&mut client, "undo", json!({}))["error"]["message"].is_string());
    // A call that ends its interpreter is undone by itself.
    let facts = call(&mut client, "x = 9\nimport os\nos._exit(3)");
    assert_eq!(facts["exit_code"], 3, "{facts}");
    assert!(
        note(&facts).contains("as it was before this call"),
        "{facts}"
    );
    assert_eq!(value(&call(&mut client, look)), "(0, '0')");
}

#[test]
fn a_call_and_a_diff_say_what_is_different_in_the_files() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let facts = call(
        &mut client,
        "open('a', 'w').write('1\\n2\\n3\\n')\nopen('b', 'w').write('b')\nopen('c', 'wb').write(b'\\0')",
    );
    assert!(
        facts["files"][0].get("diff").is_none(),
        "a new file has none: {facts}"
    );
    act(&mut client, "checkpoint", json!({ "to": "begun" }));
    let change = "import os\nopen('a', 'w').write('1\\n2!\\n3\\n')\nos.remove('b')\nopen('c', 'ab').write(b'\\0')\nopen('d', 'w').write('d')";
    let result = client.run(json!({ "session": "s", "language": "python", "code": change }));
    let facts = &result["structuredContent"];
    let diff = "@@ -1 +1 @@\n 1\n-2\n+2!\n 3";
    assert_eq!(
        (&facts["files"][0]["diff"], &facts["deleted"]),
        (&json!(diff), &json!(["b"])),
        "{facts}"
    );
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains(diff) && text.contains("[deleted b]"),
        "{text}"
    );
    let since = act(&mut client, "diff", json!({ "to": "begun" }));
    let expected = json!({ "files": [
        { "name": "a", "change": "changed", "diff": diff },
        { "name": "b", "change": "deleted" },
        { "name": "c", "change": "changed" },
        { "name": "d", "change": "new" },
    ] });
    assert_eq!(since, expected);
    act(&mut client, "restore", json!({ "to": "begun" }));
    assert_eq!(
        act(&mut client, "diff", json!({ "to": "begun" })),
        json!({ "files": [] })
    );
    let all = act(&mut client, "diff", json!({}));
    assert_eq!(all["files"].as_array().unwrap().len(), 3, "{all}");
    let facts = call(&mut client, "1");
    assert_eq!(facts.get("files"), None, "{facts}");
}

#[test]
fn a_fork_shares_its_memory() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = bytearray(b'x') * (200 << 20)");
    let memory = |client: &mut Client| {
        let listed = sessions(client, json!({ "action": "list" }));
        listed["sessions"][0]["memory_bytes"].as_u64().unwrap()
    };
    let before = memory(&mut client);
    assert!(before > 190 << 20, "{before}");
    let begun = std::time::Instant::now();
    fork(&mut client, "t");
    println!("a fork with 200 MB took {:?}", begun.elapsed());
    let facts = call_in(&mut client, "t", "len(x), x[1], x[-1]");
    assert_eq!(value(&facts), "(209715200, 120, 120)");
    let after = memory(&mut client);
    assert!(after < before + (60 << 20), "{before} and then {after}");
    call_in(&mut client, "t", "x[0] = 7");
    assert_eq!(value(&call(&mut client, "x[0]")), "120");
}

#[test]
fn open_files_tasks_and_random_numbers_go_with_their_branch() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let begin = "import asyncio, os, random, tempfile\nf = open('log', 'w+')\n_ = f.write('begin '), f.flush()\nt = tempfile.TemporaryFile()\n_ = t.write(b'begin '), t.flush()\nrandom.seed(5)\ndone = []\nasync def later():\n    await asyncio.sleep(0.01)\n    done.append(1)\ntask = asyncio.get_event_loop().create_task(later()) if False else None\nawait asyncio.sleep(0)\ntask = asyncio.create_task(later())";
    let facts = call(&mut client, begin);
    assert_eq!(facts["status"], "ok", "{facts}");
    fork(&mut client, "t");
    for session in ["s", "t", "s", "t"] {
        let code = format!("_ = f.write('{session}'), f.flush(), t.write(b'{session}'), t.flush()");
        call_in(&mut client, session, &code);
    }
    let look = "await task\n_ = f.seek(0), t.seek(0)\nf.read(), open('log').read(), t.read(), done, random.random()";
    let numbers: Vec<String> = ["s", "t"].into_iter().map(|session| {
        let facts = call_in(&mut client, session, look);
        let text = value(&facts).to_owned();
        let own = format!("('begin {session}{session}', 'begin {session}{session}', b'begin {session}{session}', [1], ");
        assert!(text.starts_with(&own), "{text}");
        text[own.len()..].to_owned()
    }).collect();
    assert_eq!(numbers[0], numbers[1], "the same state of the generator");
    assert_eq!(
        value(&call(
            &mut client,
            "try:\n    os.wait()\nexcept ChildProcessError:\n    x = 'no children'\nx"
        )),
        "no children"
    );
}

#[test]
fn threads_and_children_of_a_branch_stand_still_while_another_runs() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let busy = "import subprocess, threading, time\nticks = 0\ndef tick():\n    global ticks\n    while True:\n        ticks += 1\n        time.sleep(0.01)\nthreading.Thread(target=tick, daemon=True).start()\nchild = subprocess.Popen(['python3', '-c', 'import time\\nwhile True:\\n    open(\"/tmp/child\", \"a\").write(\"x\")\\n    time.sleep(0.01)'])\nwhile True:\n    try:\n        open('/tmp/child')\n        break\n    except OSError:\n        time.sleep(0.01)";
    let facts = call(&mut client, busy);
    assert_eq!(facts["status"], "ok", "{facts}");
    fork(&mut client, "t");
    let look = "import os\nbefore = os.path.getsize('/tmp/child'), ticks\ntime.sleep(0.5)\nbefore == (os.path.getsize('/tmp/child'), ticks)";
    assert_eq!(
        value(&call_in(&mut client, "t", look)),
        "true",
        "they are not its own"
    );
    let facts = call(&mut client, look);
    assert_eq!(value(&facts), "false", "they go on with their own: {facts}");
    let facts = call(
        &mut client,
        "child.poll() is None, threading.active_count()",
    );
    assert_eq!(value(&facts), "(True, 2)", "{facts}");
}

#[test]
fn a_branch_that_ends_is_interrupted_or_is_closed_leaves_the_others() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        call(&mut client, "import os, time\nx = 1");
        for to in ["t", "u", "v"] {
            fork(&mut client, to);
        }
        let endless = json!({ "session": "t", "code": "x = 2\nwhile True: pass", "timeout": 1 });
        let facts = call_with(&mut client, endless);
        assert!(note(&facts).contains("interrupted"), "{facts}");
        assert_eq!(value(&call_in(&mut client, "t", "x")), "2");
        let deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
        let facts = call_with(
            &mut client,
            json!({ "session": "u", "code": deaf, "timeout": 1 }),
        );
        assert_eq!(facts["status"], "timeout", "{facts}");
        assert!(note(&facts).contains("are lost"), "{facts}");
        let facts = call_in(&mut client, "v", "print('last', flush=True)\nos._exit(4)");
        assert_eq!(facts["stdout"], "last\n");
        assert!(note(&facts).contains("are lost"), "{facts}");
        assert_eq!(value(&call(&mut client, "x")), "1", "{}", hotcell.name);
        // The process that the sandbox was started with ends too, and the rest goes on.
        let facts = call(&mut client, "os._exit(5)");
        assert_eq!(facts["exit_code"], 5, "{facts}");
        assert_eq!(value(&call_in(&mut client, "t", "x")), "2");
        fork_of(&mut client, "t", "w");
        sessions(&mut client, json!({ "action": "close", "name": "t" }));
        assert_eq!(value(&call_in(&mut client, "w", "x")), "2");
        let facts = call(&mut client, "'x' in globals()");
        assert_eq!(value(&facts), "false");
        assert!(note(&facts).contains("started anew"), "{facts}");
    }
}

fn fork_of(client: &mut Client, name: &str, to: &str) {
    let forked = act(client, "fork", json!({ "name": name, "to": to }));
    assert_eq!(forked, json!({ "forked": to }));
}

#[test]
fn copies_are_bounded_and_nothing_is_left_of_them() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut client = serve(&hotcell, &[]);
        call(&mut client, "x = 1\nopen('f', 'w').write('f')");
        for n in 0..8 {
            let kept = act(&mut client, "checkpoint", json!({ "to": n.to_string() }));
            assert_eq!(kept, json!({ "checkpoint": n.to_string() }));
        }
        for more in ["checkpoint", "fork"] {
            let refused = act(&mut client, more, json!({ "to": "more" }));
            let error = refused["error"]["message"].as_str().unwrap();
            assert!(error.contains("8 copies"), "{error}");
        }
        assert_eq!(names(&mut client), ["s"]);
        assert_eq!(value(&call(&mut client, "x")), "1");
        let pid = client.child.id();
        client.close();
        before.expect_nothing_left(pid);
    }
}

#[test]
fn a_branch_that_meddles_with_another_harms_its_own_family_alone() {
    for hotcell in everyone() {
        let outside = hotcell.make_folder("home/outside");
        let secret = hotcell.write("home/outside/secret", "untouched");
        let target = outside.display().to_string();
        for attack in [
            // The others' processes.
            "for pid in os.listdir('/proc'):\n    if pid.isdigit() and int(pid) not in (1, os.getpid()):\n        os.kill(int(pid), 9)".to_owned(),
            // Their files, or links in place of them.
            format!("import shutil\nbranches = '/workspace/.home/.hotcell/branches/'\nfor name in os.listdir(branches):\n    os.chmod(branches + name, 0o700)\n    shutil.rmtree(branches + name)\n    os.symlink({target:?}, branches + name)"),
            format!("branches = '/workspace/.home/.hotcell/branches'\nos.rename(branches, '/workspace/moved')\nos.symlink({target:?}, branches)"),
            format!("branches = '/workspace/.home/.hotcell/branches/'\nfor name in os.listdir(branches):\n    os.chmod(branches + name, 0o700)\n    for inner in ('top', 'home'):\n        os.rename(branches + name + '/' + inner, branches + name + '/x' + inner)\n        os.symlink({target:?}, branches + name + '/' + inner)"),
            // A copy that is none.
            "os.fork = lambda: 0".to_owned(),
            "os.getpid = lambda: 1".to_owned(),
            "os.getpid = lambda: 'no number'".to_owned(),
        ] {
            let mut client = serve(&hotcell, &[]);
            call(&mut client, "import os\nx = 1\nopen('f', 'w').write('f')");
            fork(&mut client, "t");
            let other = json!({ "session": "other", "language": "python", "code": "y = 6" });
            call_with(&mut client, other);
            call_in(&mut client, "t", &attack);
            for action in ["checkpoint", "fork", "restore", "undo"] {
                let more = json!({ "name": "t", "to": "u" });
                let _ = act(&mut client, action, more);
            }
            for session in ["s", "t", "u"] {
                let short = json!({ "session": session, "language": "python", "code": "1", "timeout": 2 });
                call_with(&mut client, short);
            }
            assert_eq!(value(&call_in(&mut client, "other", "y * 7")), "42", "{attack}");
            assert_eq!(std::fs::read_to_string(&secret).unwrap(), "untouched");
            let left = std::fs::read_dir(&outside).unwrap().count();
            assert_eq!(left, 1, "{attack}");
        }
    }
}

#[test]
fn of_a_runtime_that_cannot_be_copied_the_files_come_along_and_the_answer_says_so() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let script = |session: &str, code: &str| json!({ "session": session, "language": "javascript", "code": code });
    let begin =
        "const fs = require('fs'); fs.mkdirSync('d'); fs.writeFileSync('d/f', 'one'); x = 1";
    assert_eq!(call_with(&mut client, script("s", begin))["status"], "ok");
    let kept = act(&mut client, "checkpoint", json!({ "to": "a" }));
    assert!(
        kept["note"].as_str().unwrap().contains("only the files"),
        "{kept}"
    );
    let forked = act(&mut client, "fork", json!({ "to": "t" }));
    assert!(
        forked["note"].as_str().unwrap().contains("only the files"),
        "{forked}"
    );
    assert_eq!(names(&mut client), ["s", "t"]);
    let change = "fs.writeFileSync('d/f', 'two'); x";
    assert_eq!(call_with(&mut client, script("s", change))["value"], "1");
    let look =
        json!({ "session": "t", "code": "require('fs').readFileSync('d/f', 'utf8') + typeof x" });
    assert_eq!(call_with(&mut client, look)["value"], "oneundefined");
    act(&mut client, "restore", json!({ "to": "a" }));
    let look = json!({ "code": "require('fs').readFileSync('d/f', 'utf8') + typeof x" });
    assert_eq!(call_with(&mut client, look)["value"], "oneundefined");
    let refused = act(&mut client, "undo", json!({}));
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("only its files"),
        "{refused}"
    );
}

#[test]
fn a_session_of_several_languages_is_copied_with_all_its_files_and_the_variables_of_python() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    let shell =
        |session: &str, code: &str| json!({ "session": session, "language": "bash", "code": code });
    call(
        &mut client,
        "from hotcell import vars\nx = 1\nvars['v'] = 'one'\nopen('p', 'w').write('p')",
    );
    call_with(&mut client, shell("s", "y=2; echo begin > b"));
    let forked = act(&mut client, "fork", json!({ "to": "t" }));
    assert_eq!(
        (&forked["forked"], forked["note"].as_str().unwrap()),
        (
            &json!("t"),
            "only the files of shellscript: a runtime that cannot be copied loses its variables"
        )
    );
    call_with(
        &mut client,
        shell("s", "echo more >> b; hotcell_var set v two"),
    );
    let look = "x, open('p').read(), open('b').read(), vars['v']";
    let facts = call_in(&mut client, "t", look);
    assert_eq!(value(&facts), "(1, 'p', 'begin\\n', 'one')", "{facts}");
    let facts = call(&mut client, look);
    assert_eq!(
        value(&facts),
        "(1, 'p', 'begin\\nmore\\n', 'two')",
        "{facts}"
    );
    let facts = call_with(&mut client, shell("t", "echo [$y]; cat b; echo t > t"));
    assert_eq!(facts["stdout"], "[]\nbegin\n", "{facts}");
    let look = "import os\nsorted(os.listdir('/workspace'))";
    assert_eq!(
        value(&call_in(&mut client, "t", look)),
        "[\".home\", \"b\", \"p\", \"t\"]"
    );
    assert_eq!(value(&call(&mut client, look)), "[\".home\", \"b\", \"p\"]");
    let facts = call_with(&mut client, shell("s", "echo [$y]"));
    assert_eq!(facts["stdout"], "[2]\n", "the original keeps all: {facts}");
}

#[test]
fn what_a_session_holds_is_in_large_pages_and_a_copy_has_them_too() {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if setting.is_ok_and(|it| it.contains("[never]")) {
        println!("SKIP: this kernel gives nobody large pages");
        return;
    }
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        // One that was started for this session alone has no library of ours.
        let is_warm = eventually(Duration::from_secs(60), || {
            let ran = client.run(json!({ "code": "print(1)", "language": "python" }));
            ran["_meta"]["dev.hotcell/run"]["runtime"]["start"] == "warm"
        });
        assert!(is_warm, "{}: nothing waits", hotcell.name);
        let count = "def large():\n    lines = open('/proc/self/smaps').read().splitlines()\n    return sum(int(it.split()[1]) for it in lines if it.startswith('AnonHugePages:')) >> 10\n";
        let begin = format!("{count}large()");
        let before: u64 = value(&call(&mut client, &begin)).parse().unwrap();
        assert_eq!(before, 0, "a session with little has none");
        let hold = "held = b'x' * (100 << 20)\nlarge()";
        let bytes: u64 = value(&call(&mut client, hold)).parse().unwrap();
        assert!(bytes >= 90, "{bytes} MiB of one large object");
        let hold = "many = [str(at) * 3 for at in range(1_000_000)]\nlarge()";
        let objects: u64 = value(&call(&mut client, hold)).parse().unwrap();
        assert!(
            objects >= bytes + 30,
            "{bytes} and then {objects} MiB of small objects"
        );
        // It grows and shrinks like any.
        let change = "grown = bytearray(8 << 20)\nfor _ in range(50):\n    grown += bytes(1 << 20)\ndel grown[1 << 20:]\ndel many\nmany = [str(at) for at in range(1_000_000)]\n(len(grown), many[-1], sum(held[::1 << 20]))";
        assert_eq!(
            value(&call(&mut client, change)),
            "(1048576, '999999', 12000)"
        );
        fork(&mut client, "t");
        let copied: u64 = value(&call_in(&mut client, "t", "large()"))
            .parse()
            .unwrap();
        assert!(copied >= 80, "{copied} MiB in the copy");
        let look = "(len(held), many[12345])";
        assert_eq!(
            value(&call_in(&mut client, "t", look)),
            "(104857600, '12345')"
        );
    }
}

/// A copy that answered before the process that made it was gone had that one stopped, and with it who waited for its end.
#[test]
fn copies_that_are_made_one_after_the_other_all_come_about() {
    let Some(hotcell) = anyone() else { return };
    let mut client = serve(&hotcell, &[]);
    call(&mut client, "x = 1");
    for _ in 0..150 {
        fork(&mut client, "t");
        act(&mut client, "close", json!({ "name": "t" }));
    }
    assert_eq!(value(&call(&mut client, "x + 1")), "2");
}
