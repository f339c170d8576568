//! JavaScript and TypeScript in the binary: what programs expect around them.

use super::{run, said, well};
use crate::support::{anyone, has};

const TYPES: &str = "enum Color { Red = 1, Green }\n\
    namespace Geo { export const origin: number = 0; export namespace Deep { export const x = 'deep' } }\n\
    class Point { constructor(private a: number, public b = 2) {} sum(): number { return this.a + this.b } }\n\
    const settings = { a: 1 } satisfies Record<string, number>;\n\
    console.log(Color.Green, Color[1], Geo.origin, Geo.Deep.x, new Point(1).sum(), settings as unknown);\n";
const TYPES_SAY: &str = "2 Red 0 deep 3 { a: 1 }\n";

#[test]
fn enums_namespaces_and_parameter_properties_are_rewritten() {
    let Some(hotcell) = anyone() else { return };
    assert_eq!(said(&hotcell, "typescript", TYPES), well(TYPES_SAY));
    if has("node") {
        let answer = hotcell.run(&["-l", "typescript@node", "-c", TYPES, "--", "x"]);
        assert_eq!(answer.whole(), well(TYPES_SAY));
        let code =
            "interface A {\n  x: number\n}\nimport { sep } from 'node:path';\nthrow new Error(sep)";
        let record = hotcell.json(&["-l", "typescript@node", "-c", code]);
        assert_eq!(record["error"]["line"], 5, "{record}");
    }
}

#[test]
fn elements_become_calls() {
    let Some(hotcell) = anyone() else { return };
    let code = "/** @jsx h */\n\
        const h = (tag: string, props: object | null, ...inside: string[]): string =>\n\
          `<${tag}${Object.entries(props ?? {}).map(([k, v]) => ` ${k}=${v}`)}>${inside.join('')}</${tag}>`;\n\
        console.log(<p id=\"1\">{['a', 'b'].map((x) => <i>{x}</i>).join('')} c</p>);";
    assert_eq!(
        said(&hotcell, "typescript", code),
        well("<p id=1><i>a</i><i>b</i> c</p>\n")
    );
    let typeless = code.replace(
        ": string, props: object | null, ...inside: string[]): string",
        ", props, ...inside)",
    );
    assert_eq!(
        said(&hotcell, "javascript", &typeless),
        well("<p id=1><i>a</i><i>b</i> c</p>\n")
    );
}

#[test]
fn timers_and_promises_come_in_their_order() {
    let Some(hotcell) = anyone() else { return };
    let code = "setTimeout(() => console.log('later'), 20);\n\
        setTimeout((word) => console.log(word), 1, 'soon');\n\
        Promise.resolve().then(() => console.log('promise'));\n\
        process.nextTick(() => console.log('tick'));\n\
        queueMicrotask(() => console.log('microtask'));\n\
        let left = 2; const every = setInterval(() => { if (!--left) clearInterval(every) }, 2);\n\
        console.log('now')";
    let order = "now\ntick\npromise\nmicrotask\nsoon\nlater\n";
    assert_eq!(said(&hotcell, "javascript", code), well(order));
    let lost = run(
        &hotcell,
        "",
        &["-l", "js", "-c", "Promise.reject(new Error('lost'))"],
    );
    assert_eq!(lost.code, Some(1));
    assert!(lost.err().contains("Error: lost"), "{}", lost.err());
}

#[test]
fn the_usual_globals_are_there() {
    let Some(hotcell) = anyone() else { return };
    for (code, says) in [
        (
            "const u = new URL('../x?a=1#h', 'http://me@example.com:8080/p/q/'); u.searchParams.append('b', 'é &'); console.log(u.href, u.host)",
            "http://me@example.com:8080/p/x?a=1&b=%C3%A9+%26#h example.com:8080\n",
        ),
        (
            "try { new URL('nope') } catch (e) { console.log(e.code) }",
            "ERR_INVALID_URL\n",
        ),
        (
            "const b = new TextEncoder().encode('é日😀'); console.log(b.length, new TextDecoder().decode(b))",
            "9 é日😀\n",
        ),
        (
            "const a = { d: new Date(0), m: new Map([[1, new Set([2])]]) }; a.self = a; const b = structuredClone(a); console.log(b !== a, b.self === b, b.d.getTime(), b.m.get(1).has(2))",
            "true true 0 true\n",
        ),
        (
            "console.log(atob(btoa('hi')), Buffer.from('hi').toString('hex'), typeof crypto.randomUUID(), typeof performance.now())",
            "hi 6869 string number\n",
        ),
        (
            "console.log([1, , 'a'], { a: { b: { c: {} } } }, new Map([['k', [1]]]), null, undefined, -0, 1n, Symbol('s'))",
            "[ 1, <1 empty item>, 'a' ] { a: { b: { c: {} } } } Map(1) { 'k' => [ 1 ] } null undefined -0 1n Symbol(s)\n",
        ),
        (
            "function f() { f() } try { f() } catch (e) { console.log(e instanceof RangeError) }",
            "true\n",
        ),
        (
            "const fs = require('fs'); fs.writeFileSync('x', 'y'); console.log(fs.readFileSync('x', 'utf8'), require('path').join('a', '..', 'b')); fs.unlinkSync('x')",
            "y b\n",
        ),
        (
            "import { basename } from 'node:path'; console.log(basename(import.meta.url), await Promise.resolve(1))",
            "main.js 1\n",
        ),
    ] {
        assert_eq!(said(&hotcell, "javascript", code), well(says), "{code}");
    }
}

#[test]
fn files_of_the_workspace_can_be_imported() {
    let Some(hotcell) = anyone() else { return };
    let lib = hotcell.write(
        "home/lib.ts",
        "export const one: number = 1;\nexport default class Two { two = 2 }",
    );
    let old = hotcell.write("home/old.js", "exports.three = 3;");
    let files = [lib, old].map(|file| file.to_str().expect("a plain name").to_owned());
    let code = "import Two, { one } from './lib';\nimport old from './old.js';\nconsole.log(one, new Two(), old)";
    let arguments = [
        "-l",
        "typescript",
        "--file",
        &files[0],
        "--file",
        &files[1],
        "-c",
        code,
    ];
    assert_eq!(
        run(&hotcell, "", &arguments).whole(),
        well("1 Two { two: 2 } { three: 3 }\n")
    );
}
