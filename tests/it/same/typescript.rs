//! TypeScript by node: a program that was prepared in a sandbox of its own and goes on in a node that waited says the same as one that was
//! prepared where it runs.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::difference;
use super::ours::of_output;
use super::program::Program;
use crate::mcp::client::Client;
use crate::raw::record;
use crate::support::{Hotcell, PATIENCE, eventually, everyone, has};

/// Time for a node to start and wait for the next program.
const PACE: Duration = Duration::from_millis(100);
/// How often one is looked for: some programs never get one.
const TRIES: usize = 8;

/// What only programs with types have, and what becomes of ones that fail.
const TYPED: [(&str, &str); 12] = [
    (
        "types",
        "enum Colour { Red, Green = 5 }\nnamespace N { export const x: number = 1 }\nclass P { constructor(private readonly a: number) {} get(): number { return this.a } }\nconsole.log(Colour[5], N.x, new P(3).get(), <any>1 as unknown)",
    ),
    (
        "module",
        "import fs, { type PathLike } from 'node:fs';\nconst path: PathLike = '/workspace';\nconsole.log(fs.readdirSync(path), import.meta.url, await Promise.resolve(1));\nexport {};",
    ),
    (
        "common",
        "const path: string = require('path').basename(__filename);\nconsole.log(path, __dirname, process.argv.slice(1), process.execArgv, require.main === module)",
    ),
    (
        "environment",
        "console.log(JSON.stringify(Object.entries(process.env).sort()), process.cwd(), process.title, process.pid, process.ppid)",
    ),
    (
        "thrown",
        "interface A { b: number }\n\nfunction f(a: A): never {\n  throw new TypeError('on line four ' + a.b)\n}\nf({ b: 1 })",
    ),
    (
        "rejected",
        "type A = number;\nconst a: A = await 1;\nawait Promise.reject(new Error('later'));\nexport {};",
    ),
    ("syntax", "const a: number = ;\n"),
    (
        "caught",
        "type T = string;\ntry { JSON.parse('{' as T) } catch (error: any) { console.log(error.name, error.stack.split('\\n')[1]) }",
    ),
    ("exit", "const code: number = 7;\nprocess.exitCode = code"),
    (
        "written",
        "import { writeFileSync } from 'fs';\nwriteFileSync('left.txt', 'x' as string);\nexport {};",
    ),
    (
        "value",
        "const xs: number[] = [1, 2];\nxs.map((x: number) => x * 2)",
    ),
    (
        "shown",
        "display({ 'text/html': '<p>' as string });\nconst x: number = 4;\nx",
    ),
];

#[test]
fn typescript_says_the_same_in_a_node_that_waited() {
    if !has("node") {
        return;
    }
    for hotcell in everyone() {
        let programs = TYPED.map(|(name, code)| (name.to_owned(), json!({ "code": code })));
        compare(&hotcell, programs.to_vec(), TYPED.len() - 1);
    }
}

#[test]
fn programs_of_node_say_the_same_as_typescript_in_a_node_that_waited() {
    if !has("node") {
        return;
    }
    let Some(hotcell) = everyone().into_iter().next() else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/same/node");
    let programs = Program::read_all(&folder, &["js", "mjs", "cjs"]);
    let is_alone = |program: &Program| program.args.is_empty() && program.files.is_empty();
    let arguments = |program: Program| {
        let mut ask = json!({ "code": program.code });
        if let Some(stdin) = program.stdin {
            ask["stdin"] = stdin.into();
        }
        (program.name, ask)
    };
    let programs = programs.into_iter().filter(is_alone).map(arguments);
    let programs: Vec<_> = programs.collect();
    // Others look at what shows how long they waited, or are no programs.
    let at_least = programs.len() * 3 / 4;
    assert!(programs.len() > 40, "{}", programs.len());
    compare(&hotcell, programs, at_least);
}

/// A name, a program, and the files beside it.
type Beside = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Programs whose imports lead to files beside them.
const BESIDE: [Beside; 7] = [
    (
        "imports",
        "import { twice, type Pair } from './lib/twice';\nimport { name } from './names.js';\nconst pair: Pair = [1, 2];\nconsole.log(twice(pair), name, import.meta.url)",
        &[
            (
                "lib/twice.ts",
                "import { two } from '../two';\nexport type Pair = [number, number];\nexport const twice = (it: Pair) => it.map((n) => n * two);",
            ),
            ("two.ts", "export const two: number = 2;"),
            ("names.js", "export const name = 'n';"),
            ("package.json", "{\"type\": \"module\"}"),
        ],
    ),
    (
        "which of two",
        "import { one } from './one';\nimport { other } from './other.js';\nconsole.log(one as string, other)",
        &[
            ("one.js", "exports.one = 'js';"),
            ("one.ts", "export const one: string = 'ts';"),
            ("other.js", "exports.other = 'js';"),
            ("other.ts", "export const other: string = 'ts';"),
        ],
    ),
    (
        "data",
        "import { readFileSync, readdirSync } from 'node:fs';\nconsole.log(readFileSync('in/data.txt', 'utf8') as string, readdirSync('.').sort(), readdirSync('in'))",
        &[("in/data.txt", "text"), ("in/more.ts", "unused(")],
    ),
    (
        "a circle",
        "import { b } from './b';\nexport const a = (): number => 1;\nconsole.log(b())",
        &[(
            "b.ts",
            "import { a } from './main';\nexport const b = (): number => a() + 1;",
        )],
    ),
    (
        "thrown",
        "import { f } from './f';\n\nf(1 as number)",
        &[(
            "f.ts",
            "type A = number;\n\nexport function f(a: A): never {\n  throw new Error('on line four ' + a)\n}",
        )],
    ),
    (
        "broken",
        "import { f } from './f';\nf()",
        &[("f.ts", "export const f: number = ;")],
    ),
    (
        "what an engine leaves",
        "import { f } from './f';\nconsole.log(f as number)",
        &[
            ("f.ts", "export const f: number = 1;"),
            (".build/main.txt", "the caller's"),
        ],
    ),
];

#[test]
fn typescript_with_files_beside_it_says_the_same_in_a_node_that_waited() {
    if !has("node") {
        return;
    }
    for hotcell in everyone() {
        let programs = BESIDE.map(|(name, code, files)| {
            let files: serde_json::Map<_, _> = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).into()))
                .collect();
            (name.to_owned(), json!({ "code": code, "files": files }))
        });
        // One is broken, and one has a folder where the engine leaves what it made.
        compare(&hotcell, programs.to_vec(), BESIDE.len() - 2);
    }
}

/// Runs each on a server with sandboxes that wait and on one without; so many of them find one.
fn compare(hotcell: &Hotcell, programs: Vec<(String, Value)>, at_least: usize) {
    let client = |pool: &str| {
        let mut command = hotcell.command();
        command.args(["serve", "--pool", pool]);
        let mut client = Client::of(command);
        client.begin();
        client
    };
    let (mut warm, mut cold) = (client("4"), client("0"));
    let start = |result: &Value| result["_meta"]["dev.hotcell/run"]["runtime"]["start"].clone();
    let mut told = Vec::new();
    let mut waited = 0;
    for (name, mut ask) in programs {
        ask["language"] = "typescript@node".into();
        let expected = cold.run(ask.clone());
        assert_eq!(start(&expected), "cold", "{name}: {expected}");
        // Control: the first of its kind finds none.
        let mut found = warm.run(ask.clone());
        for _ in 0..TRIES {
            if start(&found) == "warm" {
                break;
            }
            thread::sleep(PACE);
            found = warm.run(ask.clone());
        }
        waited += usize::from(start(&found) == "warm");
        let [one, other] = [&expected, &found].map(|result| {
            let mut record = record(result);
            for file in record["files"].as_array_mut().into_iter().flatten() {
                // Each run has addresses of its own.
                file["uri"] = Value::Null;
            }
            record
        });
        let different = difference(&of_output(&one), &of_output(&other));
        told.extend(different.map(|it| format!("=== {name}\n{it}")));
        for part in ["status", "error", "value", "files", "images"] {
            if one[part] != other[part] {
                told.push(format!("=== {name} {part}: {} {}", one[part], other[part]));
            }
        }
    }
    assert!(told.is_empty(), "{} as {}", told.join("\n"), hotcell.name);
    assert!(waited >= at_least, "{waited} as {}", hotcell.name);
    // And the last one's runtime waits for both kinds of input.
    for stdin in ["", "text"] {
        let ask = json!({ "language": "typescript@node", "code": "const a: string = require('fs').readFileSync(0, 'utf8');\nconsole.log(a)", "stdin": stdin });
        let mut result = Value::Null;
        let came = eventually(PATIENCE, || {
            result = warm.run(ask.clone());
            start(&result) == "warm"
        });
        assert!(came, "{result}");
        assert_eq!(record(&result)["stdout"], format!("{stdin}\n"));
    }
}
