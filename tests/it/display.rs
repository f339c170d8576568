//! What a program shows beside what it prints: pictures in blocks of their own, and the value of its last expression.

mod hostile;
mod javascript;
mod languages;
mod libraries;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::raw;
use crate::support::{anyone, has};

/// Programs of Python that make a picture without any library: `png(width, height)`.
pub const MAKES_PNG: &str = r#"
import struct, zlib
def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
def png(width, height):
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    rows = (b'\0' + bytes([200, 30, 30]) * width) * height
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b'')
class Picture:
    def __init__(self, width, height):
        self.data = png(width, height)
    def _repr_png_(self):
        return self.data
"#;

fn run(client: &mut raw::Stdio, language: &str, code: &str) -> Value {
    client.call("run", json!({ "code": code, "language": language }))
}

fn blocks(result: &Value) -> Vec<&Value> {
    let content = result["content"].as_array().expect("blocks");
    content.iter().filter(|it| it["type"] == "image").collect()
}

/// Width and height of a PNG in an image block.
fn size(block: &Value) -> (u32, u32) {
    assert_eq!(block["mimeType"], "image/png");
    let data = STANDARD
        .decode(block["data"].as_str().expect("data"))
        .expect("base64");
    assert!(data.starts_with(b"\x89PNG"), "no PNG");
    let number = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

#[test]
fn the_value_of_a_last_expression_comes_beside_what_was_printed() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let deep = format!("{}1{}", "[".repeat(50), "]".repeat(50));
    for (code, printed, value) in [
        ("print('a')\n6 * 7", "a\n", json!(42)),
        (
            "x = {'a': [1, 2.5, None, True], 'b': 'é\\n'}\nx",
            "",
            json!({ "a": [1, 2.5, null, true], "b": "é\n" }),
        ),
        (
            "'text'  # with a comment\n\n# and another\n",
            "",
            json!("text"),
        ),
        ("import math; math.pi", "", json!(std::f64::consts::PI)),
        ("def f():\n    return (1, 2)\nf()", "", json!("(1, 2)")),
        ("2 ** 70", "", json!("1180591620717411303424")),
        ("float('nan')", "", json!("nan")),
        ("{1: 2}", "", json!("{1: 2}")),
        ("[\n    1,\n    2,\n]", "", json!([1, 2])),
        ("[]", "", json!([])),
        ("''", "", json!("")),
        (&deep, "", serde_json::from_str(&deep).expect("JSON")),
        (
            "class A:\n    def __repr__(self):\n        return 'an A'\nA()",
            "",
            json!("an A"),
        ),
        // There is none.
        ("x = 1", "", Value::Null),
        ("print('a')", "a\n", Value::Null),
        ("None", "", Value::Null),
        ("[].append(1)", "", Value::Null),
        ("if True:\n    5", "", Value::Null),
        (
            "class A:\n    def __repr__(self):\n        raise ValueError\nA()",
            "",
            Value::Null,
        ),
        ("import sys\nsys.exit(0)\n5", "", Value::Null),
    ] {
        // In a pre-started interpreter and in a new one.
        for args in [json!([]), json!(["word"])] {
            let result = client.call(
                "run",
                json!({ "code": code, "language": "python", "args": args }),
            );
            let facts = &result["structuredContent"];
            assert_eq!(facts["status"], "ok", "{code}: {facts}");
            assert_eq!(facts["stdout"], printed, "{code}");
            assert_eq!(facts["stderr"], Value::Null, "{code}");
            assert_eq!(facts["value"], value, "{code}");
        }
    }
    let text = run(&mut client, "python", "print('a')\n[1, 'b']")["content"][0]["text"].clone();
    assert_eq!(text, "a\n[value]\n[1,\"b\"]");
}

#[test]
fn a_program_that_awaits_at_its_top_level_shows_and_has_a_value_too() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let start = "import asyncio\nawait asyncio.sleep(0)\nprint('a')\n";
    for (end, value, shown) in [
        ("await asyncio.sleep(0, 5)", json!(5), 0),
        ("display('x')\n[1]", json!([1]), 1),
        ("display('x')\nx = 1", Value::Null, 1),
        ("x = 1", Value::Null, 0),
    ] {
        let facts =
            run(&mut client, "python", &format!("{start}{end}"))["structuredContent"].clone();
        assert_eq!(
            (&facts["status"], &facts["stdout"]),
            (&json!("ok"), &json!("a\n")),
            "{facts}"
        );
        assert_eq!(facts["value"], value, "{end}");
        let displays = facts["displays"].as_array().map_or(0, Vec::len);
        assert_eq!(displays, shown, "{end}");
    }
    let failed = run(
        &mut client,
        "python",
        &format!("{start}display('x')\n1 / 0"),
    );
    let stderr = &failed["structuredContent"]["stderr"];
    assert_eq!(
        stderr,
        "Traceback (most recent call last):\n  File \"/workspace/main.py\", line 5, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n"
    );
}

#[test]
fn progress_has_no_bytes_of_pictures() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!(
        "{MAKES_PNG}import sys, time, random
noise = random.Random(1).randbytes(5000)
for n in range(6):
    sys.stdout.buffer.write(b'step %d\\n' % n + png(9, 9)[:-12] + chunk(b'noIs', noise) + png(9, 9)[-12:] + b'\\nend %d\\n' % n)
    sys.stdout.flush()
    time.sleep(0.3)"
    );
    let arguments = json!({ "code": code, "language": "python" });
    let params =
        json!({ "name": "run", "arguments": arguments, "_meta": { "progressToken": "t" } });
    let id = client.begin("tools/call", params);
    let answer = client.answer(&id);
    let stdout = answer["result"]["structuredContent"]["stdout"]
        .as_str()
        .expect("text");
    assert!(
        stdout.starts_with("step 0\n[image/png, ") && stdout.ends_with("]\nend 5\n"),
        "{stdout}"
    );
    let said: Vec<String> = client
        .lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .filter(|line| line.contains("notifications/progress"))
        .collect();
    assert!(
        said.iter()
            .any(|line| line.contains("end ") && line.contains("[binary data]")),
        "{said:?}"
    );
    assert!(
        !said
            .iter()
            .any(|line| line.contains('\u{fffd}') || line.contains("IHDR")),
        "{said:?}"
    );
}

#[test]
fn a_value_is_bounded() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for code in [
        "'x' * 10_000_000",
        "list(range(1_000_000))",
        "b'x' * 10_000_000",
    ] {
        let result = run(&mut client, "python", code);
        let value = result["structuredContent"]["value"].as_str().expect("text");
        assert!((1_000..25_000).contains(&value.len()), "{}", value.len());
        assert!(value.contains("left out"), "{code}");
    }
}

#[test]
fn values_of_javascript_come_too() {
    if anyone().is_none() || !has("node") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for (code, printed, value) in [
        (
            "console.log('a');\n[1, 2, 3].map((x) => x * 2)",
            "a\n",
            json!([2, 4, 6]),
        ),
        ("const a = { b: 'é' };\na;", "", json!({ "b": "é" })),
        ("new Date(0).getTime() + 1", "", json!(1)),
        ("const f = (n) => n * 2; f(4)", "", json!(8)),
        (
            "function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }\nf(10)",
            "",
            json!(55),
        ),
        ("({ a: 1 })", "", json!({ "a": 1 })),
        ("await Promise.resolve([5])", "", json!([5])),
        ("const f = async () => 3;\nf()", "", Value::Null),
        ("const s = '[1]'\nJSON.parse(s) // one", "", json!([1])),
        (
            "setTimeout(() => console.log('late'), 1)",
            "late\n",
            Value::Null,
        ),
        (
            "async function main() { console.log('m'); return 5 }\nmain()",
            "m\n",
            Value::Null,
        ),
        (
            "const m = new Map([[1, 2]]);\nm",
            "",
            json!("Map(1) { 1 => 2 }"),
        ),
        (
            "import os from 'node:os';\nimport {\n  sep,\n} from \"path\"\nexport const a = await 20;\n[a, sep, typeof os]",
            "",
            json!([20, "/", "object"]),
        ),
        ("console.log(5)", "5\n", Value::Null),
        ("const x = 5", "", Value::Null),
    ] {
        let facts = run(&mut client, "javascript", code)["structuredContent"].clone();
        assert_eq!(
            (&facts["status"], &facts["stdout"]),
            (&json!("ok"), &json!(printed)),
            "{code}: {facts}"
        );
        assert_eq!(facts["value"], value, "{code}");
    }
    let typed = run(
        &mut client,
        "typescript",
        "const a: number[] = [1, 2];\na as any;\n// end",
    );
    assert_eq!(
        typed["structuredContent"]["value"],
        json!([1, 2]),
        "{typed}"
    );
    let failed = run(&mut client, "javascript", "const a = 1;\nnothing.b + a");
    let stderr = failed["structuredContent"]["stderr"]
        .as_str()
        .expect("text");
    assert!(stderr.starts_with("/workspace/main.js:2\n"), "{stderr}");
}

#[test]
fn a_last_value_that_has_a_page_and_no_words_is_shown_as_that_page() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let class = "class Page:\n    def _repr_html_(self):\n        return '<b>page</b>'\n";
    let worded = "    def __repr__(self):\n        return 'words'\n";
    let mut run = |words: &str, arguments: Value| {
        let mut arguments = arguments;
        arguments["code"] = format!("{class}{words}Page()").into();
        arguments["language"] = "python".into();
        client.call("run", arguments)["structuredContent"].clone()
    };
    for arguments in [json!({}), json!({ "session": "s" })] {
        let facts = run("", arguments.clone());
        assert_eq!(facts["displays"][0]["text"], "<b>page</b>", "{facts}");
        assert_eq!(facts["value"], Value::Null, "{facts}");
        // The control: its own words are its value.
        let facts = run(worded, arguments);
        assert_eq!(facts["value"], "words", "{facts}");
        assert_eq!(facts["displays"], Value::Null, "{facts}");
    }
}

#[test]
fn what_is_displayed_comes_in_order_and_pictures_in_blocks() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!(
        "{MAKES_PNG}
class Drawing:
    def _repr_svg_(self):
        return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"><rect width=\"30\" height=\"20\" fill=\"red\"/></svg>'
class Page:
    def _repr_html_(self):
        return '<b>page</b>'
class Facts:
    def _repr_json_(self):
        return {{'a': 1}}
print('before')
display(Picture(40, 10), Drawing())
display(Page())
display(Facts(), 'words')
print('after')
"
    );
    for args in [json!([]), json!(["word"])] {
        let result = client.call(
            "run",
            json!({ "code": code, "language": "python", "args": args }),
        );
        let facts = &result["structuredContent"];
        assert_eq!(facts["stdout"], "before\nafter\n", "{facts}");
        let kinds: Vec<&str> = facts["displays"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["type"].as_str().expect("a type"))
            .collect();
        assert_eq!(
            kinds,
            [
                "image/png",
                "image/svg+xml",
                "text/html",
                "application/json",
                "text/plain"
            ]
        );
        assert_eq!(facts["displays"][4]["text"], "words");
        let sizes: Vec<(u32, u32)> = blocks(&result).into_iter().map(size).collect();
        assert_eq!(sizes, [(40, 10), (30, 20)]);
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(
            text.contains("[display 4]\n{\"a\": 1}\n[display 5]\nwords"),
            "{text}"
        );
    }
    // Control: a program that shows nothing has nothing of it.
    let result = run(
        &mut client,
        "python",
        "print('display' in dir(__builtins__))",
    );
    assert_eq!(result["structuredContent"]["stdout"], "False\n");
    assert!(result["structuredContent"].get("displays").is_none());
}

#[test]
fn a_program_that_fails_has_shown_what_it_showed() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!("{MAKES_PNG}display(Picture(3, 4))\n1 / 0");
    let result = run(&mut client, "python", &code);
    assert_eq!(
        result["structuredContent"]["error"]["kind"], "exception",
        "{result}"
    );
    assert_eq!(size(blocks(&result)[0]), (3, 4));
    let code = format!("{MAKES_PNG}display(Picture(3, 4))\nwhile True: pass");
    let result = client.call(
        "run",
        json!({ "code": code, "language": "python", "timeout": 2 }),
    );
    assert_eq!(result["structuredContent"]["status"], "timeout");
    assert_eq!(size(blocks(&result)[0]), (3, 4));
}

#[test]
fn a_large_picture_is_made_smaller_for_the_answer() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!("{MAKES_PNG}display(Picture(3000, 1500), Picture(1568, 10))");
    let result = run(&mut client, "python", &code);
    let sizes: Vec<(u32, u32)> = blocks(&result).into_iter().map(size).collect();
    assert_eq!(sizes, [(1568, 784), (1568, 10)]);
    // In full size it is a resource, for its caller and for a later run.
    let uri = &result["structuredContent"]["displays"][0]["uri"];
    let read = client.request("resources/read", json!({ "uri": uri }));
    let content = &read["result"]["contents"][0];
    let block = json!({ "mimeType": content["mimeType"], "data": content["blob"] });
    assert_eq!(size(&block), (3000, 1500), "{uri}");
    let code = "print(open('in.png', 'rb').read()[:4])";
    let files = json!({ "in.png": { "uri": uri } });
    let again = client.call(
        "run",
        json!({ "code": code, "language": "python", "files": files }),
    );
    assert_eq!(again["structuredContent"]["stdout"], "b'\\x89PNG'\n");
}

#[test]
fn a_picture_that_is_saved_is_shown_if_no_other_is() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let saves = "open('chart.png', 'wb').write(png(8, 9))\nopen('fake.png', 'w').write('x')\n";
    let result = run(
        &mut client,
        "python",
        &format!("{MAKES_PNG}{saves}print(1)"),
    );
    let sizes: Vec<(u32, u32)> = blocks(&result).into_iter().map(size).collect();
    assert_eq!(sizes, [(8, 9)]);
    assert!(
        result["structuredContent"].get("displays").is_none(),
        "{result}"
    );
    let result = run(
        &mut client,
        "python",
        &format!("{MAKES_PNG}{saves}display(Picture(3, 4))"),
    );
    let sizes: Vec<(u32, u32)> = blocks(&result).into_iter().map(size).collect();
    assert_eq!(sizes, [(3, 4)]);
}

#[test]
fn a_picture_among_printed_text_is_a_word_there_and_a_block() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!(
        "{MAKES_PNG}import sys\nsys.stdout.buffer.write(b'before\\n' + png(5, 6) + b'\\nafter\\n')"
    );
    let result = run(&mut client, "python", &code);
    let stdout = result["structuredContent"]["stdout"]
        .as_str()
        .expect("text");
    assert!(
        stdout.starts_with("before\n[image/png, ") && stdout.ends_with(" bytes]\nafter\n"),
        "{stdout}"
    );
    assert_eq!(size(blocks(&result)[0]), (5, 6));
    // Control: one that is nothing else is the answer itself.
    let code = format!("{MAKES_PNG}import sys\nsys.stdout.buffer.write(png(5, 6))");
    let result = run(&mut client, "python", &code);
    assert_eq!(result["structuredContent"]["stdout"], "");
    assert_eq!(
        result["structuredContent"]["image"]["mime_type"],
        "image/png"
    );
    assert_eq!(size(blocks(&result)[0]), (5, 6));
}

#[test]
fn at_the_command_line_output_is_what_was_printed_and_json_has_the_value() {
    let Some(hotcell) = anyone().filter(|_| has("python3")) else {
        return;
    };
    let answer = hotcell.run(&["-l", "python", "-c", "print(1)\n6 * 7"]);
    assert_eq!(
        (answer.out(), answer.err()),
        ("1\n".to_owned(), String::new())
    );
    let facts = hotcell.json(&["-l", "python", "-c", "print(1)\n6 * 7"]);
    assert_eq!(
        (&facts["stdout"], &facts["value"]),
        (&json!("1\n"), &json!(42))
    );
    let code = format!("{MAKES_PNG}display(Picture(3, 4))\nprint(1)");
    let answer = hotcell.run(&["-l", "python", "-c", &code]);
    assert_eq!(answer.out(), "1\n");
    assert!(
        answer.err().contains("shown: 1 image/png"),
        "{}",
        answer.err()
    );
    // Text follows what was printed at a terminal alone; elsewhere it is not lost either.
    let text = hotcell.run(&["-l", "python", "-c", "display('text')"]);
    assert_eq!(text.out(), "");
    assert!(text.err().contains("shown: 1 text/plain"), "{}", text.err());
    let answer = hotcell.run(&["-l", "python", "-c", &code, "--out", "shown"]);
    assert_eq!(
        (answer.out(), answer.err()),
        ("1\n".to_owned(), String::new())
    );
    let written = std::fs::read(hotcell.home().join("shown/display/1.png")).expect("it is written");
    assert!(written.starts_with(b"\x89PNG"));
}
