//! Packages of npm in the engine: which file an import or a `require` means, without a registry.

use std::path::Path;

use super::{run, well};
use crate::support::{Answer, Hotcell, anyone};

/// What lies in `node_modules`.
const FILES: &[(&str, &str)] = &[
    (
        "both/package.json",
        r##"{ "name": "both", "version": "1.2.3", "imports": { "#own": { "node": "./node.js", "default": "./own.cjs" } },
            "exports": { ".": { "types": "./t.d.ts", "node": "./node.js", "import": "./m.mjs", "require": "./c.cjs" },
                "./parts/*": "./lib/*.js", "./only": { "node": "./only.mjs" }, "./package.json": "./package.json", "./hidden/*": null } }"##,
    ),
    (
        "both/m.mjs",
        "import own from '#own'; export const how = 'import'; export default own; export const seen = import.meta.url.slice(-11);",
    ),
    (
        "both/c.cjs",
        "exports.how = 'require'; exports.main = require.main === module; exports.name = require('both/package.json').name;",
    ),
    ("both/own.cjs", "module.exports = 'own';"),
    ("both/lib/one.js", "exports.one = 1;"),
    ("both/only.mjs", "export default 'only';"),
    ("both/secret.js", "exports.secret = 1;"),
    (
        "esm/package.json",
        r#"{ "type": "module", "main": "lib", "exports": null }"#,
    ),
    (
        "esm/lib/index.js",
        "export * from './more.js'; export { default } from '../data.json';",
    ),
    (
        "esm/lib/more.js",
        "export let count = 0; export const add = () => ++count;",
    ),
    ("esm/data.json", r#"{ "from": "json" }"#),
    (
        "bundled/package.json",
        r#"{ "main": "old.js", "module": "new.js", "type": "commonjs" }"#,
    ),
    ("bundled/old.js", "module.exports = { age: 'old' };"),
    ("bundled/new.js", "export const age = 'new';"),
    (
        "@s/outer/package.json",
        r#"{ "name": "@s/outer", "main": "./main" }"#,
    ),
    (
        "@s/outer/main.js",
        "#!/usr/bin/env node\nconst inner = require('inner'); module.exports = { inner, dir: __dirname.split('/').pop(), file: __filename.split('/').pop() };",
    ),
    (
        "@s/outer/node_modules/inner/index.js",
        "module.exports = 'nested';",
    ),
    ("inner/index.js", "module.exports = 'top';"),
    ("loop/package.json", r#"{ "main": "a.js" }"#),
    (
        "loop/a.js",
        "exports.a = 1; const b = require('./b'); exports.b = b.b; exports.early = b.early;",
    ),
    (
        "loop/b.js",
        "const a = require('./a'); exports.early = Object.keys(a).join(); exports.b = 2;",
    ),
    (
        "shape/index.js",
        "Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 'd'; exports.$a = 1; exports._b = 2; exports['c-d'] = 3; exports.class = 4;",
    ),
    (
        "call/index.js",
        "module.exports = (x) => x + 1; module.exports.twice = (x) => 2 * x;",
    ),
    ("fails/index.js", "throw new Error('it fails');"),
    ("needs/index.js", "require('zlib');"),
    ("broken/package.json", "{ \"main\": 7, \"exports\": "),
    ("broken/index.js", "module.exports = 'index';"),
    (
        "sloppy/index.js",
        "with ({ a: 'with' }) { module.exports = a; } // import export ",
    ),
    (
        "later/index.mjs",
        "export default await Promise.resolve('later');",
    ),
    ("later/package.json", r#"{ "exports": "./index.mjs" }"#),
    (
        "slow/index.mjs",
        "export default await new Promise((done) => setTimeout(done, 1, 'slow'));",
    ),
    ("slow/package.json", r#"{ "exports": "./index.mjs" }"#),
    ("small/index.js", "var a=1;export{a as one,a as default}"),
    (
        "circle/package.json",
        r##"{ "main": "../circle", "imports": { "#a": "#a", "#b": "circle", "#c": ["#a", {}, null, 7] } }"##,
    ),
    (
        "circle/index.js",
        "const tried = ['#a', '#b', '#c', '#d', './circle', '..'].map((name) => { try { return typeof require(name) } catch (error) { return error.code } }); module.exports = tried;",
    ),
    ("deep/package.json", "{{DEEP}}"),
    ("deep/index.js", "module.exports = 'deep';"),
];

fn with_packages(hotcell: &Hotcell) -> String {
    let folder = hotcell.make_folder("home/node_modules");
    for (path, text) in FILES {
        let path = Path::new("home/node_modules").join(path);
        // More than any reader takes.
        let text = text.replace("{{DEEP}}", &"{\"exports\":".repeat(100_000));
        hotcell.write(path.to_str().expect("a plain name"), text);
    }
    format!("{}:node_modules", folder.display())
}

fn say(hotcell: &Hotcell, files: &str, language: &str, code: &str) -> Answer {
    let arguments = ["--no-packages", "--file", files, "-l", language, "-c", code];
    run(hotcell, "", &arguments)
}

#[test]
fn imports_and_requires_find_the_file_that_node_would() {
    let Some(hotcell) = anyone() else { return };
    let files = with_packages(&hotcell);
    for (code, says) in [
        (
            "import own, { how, seen } from 'both'; import only from 'both/only'; import { one } from 'both/parts/one'; console.log(own, how, seen, only, one)",
            "own import /both/m.mjs only 1\n",
        ),
        (
            "console.log(require('both'), require('both/parts/one').one, require('both/package.json').version)",
            "{ how: 'require', main: false, name: 'both' } 1 1.2.3\n",
        ),
        (
            "import json, { add, count } from 'esm'; add(); console.log(count, json.from)",
            "1 json\n",
        ),
        (
            "const { add } = require('esm'); add(); console.log(require('esm').count, require('later').default)",
            "1 later\n",
        ),
        (
            "import { age } from 'bundled'; import old from 'bundled/old'; console.log(age, old.age)",
            "new old\n",
        ),
        ("console.log(require('bundled').age)", "old\n"),
        (
            "import outer from '@s/outer'; import inner from 'inner'; console.log(outer, inner)",
            "{ inner: 'nested', dir: 'outer', file: 'main.js' } top\n",
        ),
        (
            "console.log(require('loop'), require('loop') === require('loop/a.js'))",
            "{ a: 1, b: 2, early: 'a' } true\n",
        ),
        (
            "import shape, { $a, _b, class as c } from 'shape'; console.log(shape.default, $a, _b, c, shape['c-d'])",
            "d 1 2 4 3\n",
        ),
        (
            "import call, { twice } from 'call'; import * as all from 'call'; console.log(call(1), twice(2), all.default === call)",
            "2 4 true\n",
        ),
        (
            "import a from 'npm:inner@^1'; import b from 'npm:/@s/outer@2.0.0'; const c = await import('npm:both@1/parts/one'); console.log(a, b.inner, c.one)",
            "top nested 1\n",
        ),
        (
            "console.log(require('broken'), require('sloppy'))",
            "index with\n",
        ),
        (
            "import slow from 'slow'; import one, { one as two } from 'small'; console.log(slow, one, two)",
            "slow 1 1\n",
        ),
        (
            "try { require('slow') } catch (error) { console.log(error.message) }",
            "require() cannot be used on an ESM graph with top-level await. Use import() instead.\n",
        ),
        (
            "console.log(require('circle').join(), require('deep'))",
            "MODULE_NOT_FOUND,object,MODULE_NOT_FOUND,MODULE_NOT_FOUND,MODULE_NOT_FOUND,MODULE_NOT_FOUND deep\n",
        ),
        (
            "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url); console.log(require('inner'), require.resolve('path'))",
            "top path\n",
        ),
        (
            "for (let i = 0; i < 2; i++) try { require('fails') } catch (error) { console.log(error.message) }\nimport('fails').catch((error) => console.log(error.message))",
            "it fails\nit fails\nit fails\n",
        ),
    ] {
        for language in ["js", "ts"] {
            let answer = say(&hotcell, &files, language, code);
            assert_eq!(answer.whole(), well(says), "{language}: {code}");
        }
    }
}

#[test]
fn what_is_not_there_is_named_with_what_has_it() {
    let Some(hotcell) = anyone() else { return };
    let asked = run(&hotcell, "", &["--json", "-l", "ts@deno", "-c", "1"]).json();
    let hint = "Install it: `hotcell languages add typescript --recipe deno`.";
    assert_eq!(asked["error"]["hint"], hint, "{asked}");
    let files = with_packages(&hotcell);
    let deno = "`hotcell languages add deno` brings deno.";
    for (code, module, hint) in [
        ("import 'nowhere'", "nowhere", "`--package`"),
        ("require('nowhere/x')", "nowhere/x", "`--package`"),
        ("import 'both/secret.js'", "both/secret.js", "`--package`"),
        ("require('both/hidden/x')", "both/hidden/x", "`--package`"),
        ("import 'node:zlib'", "node:zlib", deno),
        ("import 'zlib'", "node:zlib", deno),
        ("require('node:http')", "node:http", deno),
        ("require('needs')", "node:zlib", deno),
        (
            "import 'jsr:@std/assert'",
            "jsr:@std/assert",
            "`--network HOST`",
        ),
        (
            "import 'https://deno.test/x.ts'",
            "https://deno.test/x.ts",
            deno,
        ),
    ] {
        let arguments = [
            "--no-packages",
            "--json",
            "--file",
            &files,
            "-l",
            "js",
            "-c",
            code,
        ];
        let record = run(&hotcell, "", &arguments).json();
        let error = &record["error"];
        assert_eq!(
            (&error["kind"], &error["module"]),
            (&"missing_module".into(), &module.into()),
            "{code}: {record}"
        );
        let said = error["hint"].as_str().unwrap_or_default();
        assert!(said.contains(hint), "{code}: {said}");
        // It is said at the command line too, behind what the program says itself.
        let err = say(&hotcell, &files, "js", code).err();
        assert!(err.contains("hint: "), "{err}");
    }
}
