//! A program may put anything into the folder of what it shows. Nothing of it is believed, and nothing outside is reached.

use serde_json::{Value, json};

use super::{MAKES_PNG, blocks, run, size};
use crate::raw;
use crate::support::{anyone, has};

/// Where displays are; `display(` in the text has the folder collected.
const FOLDER: &str = "import os\nos.chdir('/workspace/.home/.hotcell/display')\nif 0: display()\n";

fn displays(result: &Value) -> usize {
    let list = &result["structuredContent"]["displays"];
    list.as_array().map_or(0, Vec::len)
}

#[test]
fn links_and_pipes_among_what_is_shown_lead_nowhere() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    // Control: the same folder with a file in it.
    let result = run(
        &mut client,
        "python",
        &format!("{FOLDER}open('001.txt', 'w').write('mine')"),
    );
    assert_eq!(result["structuredContent"]["displays"][0]["text"], "mine");
    for hostile in [
        "os.symlink('/etc/passwd', '001.txt')",
        "os.symlink('/proc/self/environ', '001.txt')",
        "os.symlink('../value.py', '001.txt')",
        "os.mkfifo('001.txt')",
        "import socket; socket.socket(socket.AF_UNIX).bind('001.txt')",
        "os.chdir('..'); os.rmdir('display'); os.symlink('/etc', 'display')",
        "os.chdir('..'); os.rmdir('display'); os.symlink('/workspace', 'display')",
        "os.chdir('..'); os.rmdir('display'); open('display', 'w').write('x')",
        "os.chdir('..'); os.rmdir('display'); os.mkfifo('display')",
        "import shutil; os.chdir('/'); shutil.rmtree('/workspace/.home'); os.symlink('/etc', '/workspace/.home')",
    ] {
        let result = run(&mut client, "python", &format!("{FOLDER}{hostile}"));
        let facts = &result["structuredContent"];
        assert_eq!(facts["status"], "ok", "{hostile}: {facts}");
        assert_eq!(displays(&result), 0, "{hostile}: {facts}");
        assert!(!facts.to_string().contains("root:"), "{hostile}");
    }
    client.ping();
}

#[test]
fn too_many_and_too_large_things_are_left_out() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for (hostile, kept) in [
        (
            "for n in range(1, 100): open(f'{n:03}.txt', 'w').write('x')",
            20,
        ),
        (
            "open('001.txt', 'w').write('x'); open('002.txt', 'w').truncate(9 << 20)",
            1,
        ),
        // More than all of them may have.
        (
            "open('001.txt', 'w').write('x'); open('002.txt', 'w').truncate(60 << 20)",
            0,
        ),
        ("for n in range(11_000): open(f'{n}.txt', 'w')", 0),
        ("for n in range(500): os.mkdir('a'); os.chdir('a')", 0),
        ("open('value.txt', 'w').write('x' * (5 << 20))", 0),
        (
            "open('a\\nb.txt', 'w'); open('é.png', 'w'); open('..txt', 'w')",
            0,
        ),
    ] {
        let result = run(&mut client, "python", &format!("{FOLDER}{hostile}"));
        let facts = &result["structuredContent"];
        assert_eq!(facts["status"], "ok", "{hostile}");
        assert_eq!(displays(&result), kept, "{hostile}: {}", facts["notes"]);
        assert!(facts.to_string().len() < 60_000, "{hostile}");
    }
    let result = run(
        &mut client,
        "python",
        &format!("{FOLDER}for n in range(1, 100): open(f'{{n:03}}.txt', 'w').write('x')"),
    );
    let notes = result["structuredContent"]["notes"].to_string();
    assert!(
        notes.contains("79 things that it showed are left out"),
        "{notes}"
    );
    client.ping();
}

#[test]
fn bytes_that_are_not_what_their_name_says_are_no_pictures() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    let code = format!(
        "{MAKES_PNG}{FOLDER}
open('001.png', 'wb').write(b'#!/bin/sh')
open('002.svg', 'wb').write(png(1, 1))
# Larger than any memory, by its head; and one that ends too early.
open('003.png', 'wb').write(png(1, 1)[:16] + b'\\x7f\\xff\\xff\\xff' * 2 + b'\\x08\\x06\\0\\0\\0')
open('004.png', 'wb').write(png(2000, 2000)[:200])
open('005.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1e9\" height=\"1e9\"/>')
open('006.svg', 'w').write('<svg')
open('007.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:x=\"http://www.w3.org/1999/xlink\" width=\"5\" height=\"5\"><image x:href=\"/etc/passwd\" width=\"5\" height=\"5\"/></svg>')
open('008.png', 'wb').write(png(6, 7))
"
    );
    let result = run(&mut client, "python", &code);
    let facts = &result["structuredContent"];
    assert_eq!(facts["status"], "ok", "{facts}");
    // What cannot be drawn is a file like any other.
    assert_eq!(displays(&result), 6, "{facts}");
    let shown: Vec<(u32, u32)> = blocks(&result).into_iter().map(size).collect();
    assert_eq!(shown, [(1568, 1568), (5, 5), (6, 7)]);
    assert!(!result.to_string().contains("root:"));
    client.ping();
}

#[test]
fn a_program_cannot_forge_more_than_its_own_value() {
    if anyone().is_none() || !has("python3") {
        return;
    }
    let mut client = raw::Stdio::open(&[]);
    for (written, value) in [
        ("b'{\"a\": '", json!("{\"a\": ")),
        ("b'\\xff\\xfe'", json!("\u{fffd}\u{fffd}")),
        ("b'[' * 100_000", Value::Null),
        ("b'1e999'", json!("1e999")),
    ] {
        let code = format!("{FOLDER}open('value.json', 'wb').write({written})\n5");
        let facts = run(&mut client, "python", &code)["structuredContent"].clone();
        assert_eq!(facts["status"], "ok", "{written}");
        match value {
            Value::Null => assert!(facts["value"].is_string(), "{written}"),
            value => assert_eq!(facts["value"], value, "{written}"),
        }
    }
    client.ping();
}
