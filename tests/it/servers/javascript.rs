//! What JavaScript and TypeScript programs have of upstream servers, in pre-started sandboxes too.

use serde_json::{Value, json};

use super::{data, run, serve, structured, studio};
use crate::mcp::client::Client;
use crate::support::{Hotcell, PATIENCE, eventually, everyone, has, skip};

/// Whoever tests has deno at home.
fn is_own(hotcell: &Hotcell) -> bool {
    hotcell.uid == rustix::process::getuid().as_raw()
}

fn prepared() -> Option<Hotcell> {
    let mut all = everyone();
    let own = all.iter().position(is_own).filter(|_| !data().is_empty());
    let hotcell = match own {
        Some(own) => all.swap_remove(own),
        None => all.pop()?,
    };
    studio(&hotcell);
    Some(hotcell)
}

/// The runtimes that are here.
fn ways(hotcell: &Hotcell) -> Vec<&'static str> {
    let mut ways = vec!["javascript@embedded", "typescript@embedded"];
    if has("node") {
        ways.push("javascript@node");
        ways.push("typescript@node");
    }
    if !data().is_empty() && is_own(hotcell) {
        ways.push("javascript@deno");
        ways.push("typescript@deno");
    }
    ways
}

const VALUES: &str = r#"
(async () => {
    const [picture] = await studio.draw();
    console.log(picture.mime, picture.size, (await picture.bytes()).length, await picture.save('a.png'));
    const [first, image, sound, note, blob, link] = await studio.allKinds();
    console.log(first, image.kind, sound.mime, await note.text(), (await blob.bytes()).length, await link.text());
    console.log(JSON.stringify(await studio.say({ text: '{"a": 1}' })), await studio.say({ text: '[1' }), (await studio.add({ first: 1 })).sum);
    console.log((await mcp.resources('studio')).length, (await mcp.read('studio', 'studio://one'))[0]);
    console.log((await mcp.prompt('studio', 'greet', { who: 'me' })).messages[0].content.text, (await mcp.callRaw('studio.refuse')).isError);
    console.log((await mcp.search('adds numbers'))[0].name, (await mcp.help('studio.add')).split('\n')[0]);
    console.log((await mcp.types('studio')).includes('add(args: {first:number, second?:number}): Promise<{sum?:number}>;'));
    for (const bad of [() => studio.refuse(), () => studio.add(1), () => studio.nothing()]) {
        await bad().catch((error) => console.log(error.name, error.kind, JSON.stringify(error.details ?? null), error.message.split(';')[0]));
    }
    const begin = Date.now();
    await Promise.all([0, 1, 2].map(() => studio.sleep({ seconds: 0.5 })));
    // One after the other they would take 1500.
    console.log(Date.now() - begin < 1400, (await studio.fill({ bytes: 1000000 })).length);
})();
"#;

const SAYS: [&str; 11] = [
    "image/png 70 70 a.png",
    "first image audio/wav a note 3 what is at studio://large",
    r#"{"a":1} [1 2"#,
    "2 what is at studio://one",
    "Greet me true",
    "add studio.add({first:number, second?:number}) → {sum?:number}",
    "true",
    r#"ToolError tool {"code":7} studio.refuse: no paper"#,
    "TypeError undefined null studio.add takes its arguments as one object: studio.add({first:number, second?:number}) → {sum?:number}",
    "ToolError unknown_tool null studio.nothing: unknown tool",
    "true 1000000",
];

#[test]
fn values_handles_and_errors_are_the_same_in_every_runtime() {
    let Some(hotcell) = prepared() else { return };
    for language in ways(&hotcell) {
        let result = run(&hotcell, &["-l", language, "-c", VALUES]);
        let said: Vec<&str> = result["stdout"]
            .as_str()
            .unwrap_or_default()
            .lines()
            .collect();
        assert_eq!(said, SAYS, "{language}: {result}");
        assert_eq!(result["stderr"], "", "{language}");
    }
}

#[test]
fn servers_can_be_imported_and_nothing_is_installed_for_that() {
    let Some(hotcell) = prepared() else { return };
    let module = "import mcp, { studio, call, ToolError } from 'mcp';\nconsole.log(await studio.say({ text: 'module' }), await call('my_studio.say', { text: 'by name' }), mcp.ToolError === ToolError);";
    let common = "const { studio } = require(\"mcp\");\nstudio.say({ text: 'required' }).then((it) => console.log(it));";
    for language in ways(&hotcell) {
        let result = run(&hotcell, &["-l", language, "-c", module]);
        assert_eq!(
            result["stdout"], "module by name true\n",
            "{language}: {result}"
        );
        assert!(result["artifacts"].is_null(), "{language}: {result}");
        if language == "typescript@deno" {
            // It has no `require`.
            continue;
        }
        let result = run(&hotcell, &["-l", language, "-c", common]);
        assert_eq!(result["stdout"], "required\n", "{language}: {result}");
    }
}

#[test]
fn a_node_that_waited_calls_tools_too() {
    if !has("node") {
        return;
    }
    for hotcell in everyone() {
        studio(&hotcell);
        let mut client = serve(&hotcell);
        let mut run = |code: &str| {
            let result = client.run(json!({ "language": "javascript", "code": code }));
            structured(&result)["stdout"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let code = "const fs = require('fs');\n\
            console.log(fs.readFileSync('/proc/self/maps', 'utf8').includes('zygote'));\n\
            studio.say({ text: 'one' }).then(async (one) => {\n\
                console.log(one, await studio.say({ text: 'two' }), typeof ToolError);\n\
                const child = require('child_process').spawnSync(process.execPath, ['-e', 'studio.say({ text: \"child\" }).then(console.log)'], { encoding: 'utf8' });\n\
                console.log(child.stdout.trim(), child.stderr);\n\
            });";
        let mut said = String::new();
        // The first may come before one waits.
        let came = eventually(PATIENCE, || {
            said = run(code);
            said == "true\none two function\nchild \n"
        });
        assert!(came, "{said}");
        // More calls at a time than connections are kept, much that comes and much that goes.
        let much = "const texts = [...Array(40).keys()].map(String);\n\
            Promise.all(texts.map((text) => studio.say({ text }))).then(async (said) => {\n\
                console.log(said.join() === texts.join());\n\
                console.log((await studio.fill({ bytes: 50_000_000 })).length, (await studio.say({ text: 'ä€'.repeat(1e6) })) === 'ä€'.repeat(1e6));\n\
            });";
        assert_eq!(run(much), "true\n50000000 true\n");
        // What node calls deprecated is not used where a program wants to hear of that.
        let strict = "const { spawnSync } = require('child_process');\n\
            const env = { ...process.env, NODE_PENDING_DEPRECATION: '1' };\n\
            const { stdout, stderr } = spawnSync(process.execPath, ['-e', 'studio.say({ text: \"x\" }).then(console.log)'], { env, encoding: 'utf8' });\n\
            console.log([stdout, stderr]);";
        assert_eq!(run(strict), "[ 'x\\n', '' ]\n");
        // Control: one that names none has none, and nothing of what was prepared.
        assert_eq!(run("console.log(typeof stu"), "");
        assert_eq!(
            run("console.log(Object.keys(globalThis).length > 0, 'Tool' + 'Error' in globalThis)"),
            "true false\n"
        );
        assert_eq!(run("console.log(typeof $hotcell)"), "undefined\n");
        assert_eq!(
            run(
                "console.log(Reflect.ownKeys(globalThis).filter((key) => /cell/i.test(String(key))))"
            ),
            "[]\n"
        );
    }
}

#[test]
fn a_deno_that_waited_calls_tools_too() {
    let Some(hotcell) = prepared() else { return };
    if !ways(&hotcell).contains(&"typescript@deno") {
        return skip("no deno is here; scripts/test brings it");
    }
    let client = |pool: &str| {
        let mut command = hotcell.command();
        command
            .env("XDG_DATA_HOME", data())
            .args(["serve", "--pool", pool]);
        let mut client = Client::of(command);
        client.begin();
        client
    };
    let (mut warm, mut cold) = (client("2"), client("0"));
    let start = |result: &Value| result["_meta"]["dev.hotcell/run"]["runtime"]["start"].clone();
    let plain = "const said: string = await studio.say({ text: 'one' });\n\
        console.log(said, await studio.say({ text: 'two' }), typeof ToolError, JSON.stringify(Object.entries(Deno.env.toObject()).sort()), Deno.args.length);\n\
        console.log((await Array.fromAsync(Deno.readDir('/workspace'), (it) => it.name)).sort().join());";
    let module = "import { studio, ToolError } from 'mcp';\nconst text: string = 'module';\nconsole.log(await studio.say({ text }));\nconsole.log(ToolError.name);";
    let script = "studio.say({ text: 'script' }).then((said) => console.log(said));";
    for (language, code, begins) in [
        ("typescript@deno", plain, "one two function"),
        ("typescript@deno", module, "module\n"),
        ("javascript@deno", script, "script\n"),
    ] {
        let ask = json!({ "language": language, "code": code });
        let new = cold.run(ask.clone());
        assert_eq!(start(&new), "cold", "{new}");
        let expected = &structured(&new)["stdout"];
        assert!(expected.as_str().unwrap().starts_with(begins), "{new}");
        let mut result = Value::Null;
        // The first may come before one waits.
        let came = eventually(PATIENCE, || {
            result = warm.run(ask.clone());
            assert_eq!(&structured(&result)["stdout"], expected, "{result}");
            start(&result) == "warm"
        });
        assert!(came, "{language}: {result}");
    }
}

#[test]
fn a_worker_of_node_calls_tools_too() {
    if !has("node") {
        return;
    }
    let Some(hotcell) = prepared() else { return };
    let mut client = serve(&hotcell);
    // Control: node waits, and has the servers.
    let plain = json!({ "language": "javascript", "code": "studio.say({ text: 'main' }).then(console.log)" });
    let start = |result: &Value| result["_meta"]["dev.hotcell/run"]["runtime"]["start"].clone();
    let waits = eventually(PATIENCE, || start(&client.run(plain.clone())) == "warm");
    assert!(waits);
    let code = "const { Worker, isMainThread } = require('worker_threads');\n\
        if (isMainThread) new Worker(__filename);\n\
        else studio.say({ text: 'worker' }).then(console.log);";
    let result = client.run(json!({ "language": "javascript", "code": code }));
    assert_eq!(structured(&result)["stdout"], "worker\n", "{result}");
}

#[test]
fn a_node_that_waited_runs_typescript_that_calls_tools() {
    if !has("node") {
        return;
    }
    for hotcell in everyone() {
        studio(&hotcell);
        let client = |pool: &str| {
            let mut command = hotcell.command();
            command.args(["serve", "--pool", pool]);
            let mut client = Client::of(command);
            client.begin();
            client
        };
        let (mut warm, mut cold) = (client("2"), client("0"));
        let start = |result: &Value| result["_meta"]["dev.hotcell/run"]["runtime"]["start"].clone();
        let plain = "async function main(): Promise<void> {\n\
            const said: string = await studio.say({ text: 'one' });\n\
            console.log(said, await studio.say({ text: 'two' }), typeof ToolError, process.env.NODE_OPTIONS);\n\
            }\nmain();";
        let module = "import { studio, ToolError } from 'mcp';\nimport type { Server } from 'mcp';\n\
            const { sum }: { sum: number } = await studio.add({ first: 1, second: 2 });\n\
            try { await studio.refuse() } catch (error) { console.log(sum, error instanceof ToolError, (error as ToolError).kind) }";
        let uncaught = "interface Nothing {}\n\nexport const x: Nothing = await studio.refuse();";
        let value =
            "const { sum }: { sum: number } = await studio.add({ first: 20, second: 22 });\nsum";
        for (name, code) in [
            ("plain", plain),
            ("module", module),
            ("uncaught", uncaught),
            ("value", value),
        ] {
            let ask = json!({ "language": "typescript@node", "code": code });
            let new = cold.run(ask.clone());
            assert_eq!(start(&new), "cold", "{new}");
            let said = |result: &Value| {
                let of = |part: &str| structured(result)[part].clone();
                ["status", "stdout", "stderr", "exit_code", "error", "value"].map(of)
            };
            let expected = said(&new);
            let shown = expected.iter().map(Value::to_string).collect::<String>();
            let wanted = match name {
                "plain" => "one two function --require=",
                "module" => "3 true tool",
                "uncaught" => "main.ts:3",
                _ => "42",
            };
            assert!(shown.contains(wanted), "{name}: {new}");
            let mut result = Value::Null;
            // The first may come before one waits.
            let came = eventually(PATIENCE, || {
                result = warm.run(ask.clone());
                assert_eq!(said(&result), expected, "{name}: {result}");
                start(&result) == "warm"
            });
            assert!(came, "{name}: {result}");
        }
        // Control: a program that names no server has none.
        let none = json!({ "language": "typescript@node", "code": "const name: string = 'Tool' + 'Error';\nconsole.log(name in globalThis, typeof $hotcell)" });
        let result = warm.run(none);
        assert_eq!(
            structured(&result)["stdout"],
            "false undefined\n",
            "{result}"
        );
    }
}
