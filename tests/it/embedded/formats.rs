//! What is no plain text: rows and pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{run, well};
use crate::raw::Stdio;
use crate::support::anyone;

#[test]
fn rows_are_printed_as_a_list_a_table_or_json() {
    let Some(hotcell) = anyone() else { return };
    let code = "select 1 as n, 'two, three' as words, null as none_ union all select 2.0, 'é', 4;";
    let sql = |before: &str, args: &[&str]| {
        let code = format!("{before}{code}");
        run(
            &hotcell,
            "",
            &[&["-l", "sql", "-c", &code, "--"], args].concat(),
        )
        .whole()
    };
    assert_eq!(
        sql("", &[]),
        well("n|words|none_\n1|two, three|\n2.0|é|4\n")
    );
    let json = "[{\"n\":1,\"words\":\"two, three\",\"none_\":null},\n{\"n\":2.0,\"words\":\"é\",\"none_\":4}]\n";
    assert_eq!(sql("", &["--json"]), well(json));
    assert_eq!(sql(".mode json\n", &[]), well(json));
    assert_eq!(
        sql(".mode csv\n", &[]),
        well("n,words,none_\n1,\"two, three\",\n2.0,é,4\n")
    );
    let table = "+-----+------------+-------+\n| n   | words      | none_ |\n+-----+------------+-------+\n\
                 | 1   | two, three |       |\n| 2.0 | é          | 4     |\n+-----+------------+-------+\n";
    assert_eq!(sql(".mode table\n", &[]), well(table));
}

#[test]
fn a_drawing_becomes_a_png() {
    let Some(hotcell) = anyone() else { return };
    let code = "<svg xmlns='http://www.w3.org/2000/svg' width='12' height='7'><rect width='12' height='7' fill='red'/></svg>";
    let answer = run(&hotcell, "", &["-l", "svg", "-c", code]);
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    let (signature, rest) = answer.stdout.split_at(8);
    assert_eq!(signature, b"\x89PNG\r\n\x1a\n");
    // The first chunk holds width and height.
    assert_eq!(&rest[4..16], b"IHDR\0\0\0\x0c\0\0\0\x07");
    let record = run(&hotcell, "", &["--json", "-l", "svg", "-c", code]).json();
    let image = json!({ "mime_type": "image/png", "bytes": answer.stdout.len() });
    assert_eq!((&record["image"], &record["stdout"]), (&image, &json!("")));

    // Over MCP it is a block of its own, and nowhere in the text.
    let mut client = Stdio::start(&[]);
    client.initialize("2025-11-25");
    let answered = client.call("run", json!({ "code": code, "language": "svg@embedded" }));
    let content = answered["content"].as_array().expect("content");
    let picture = STANDARD.encode(&answer.stdout);
    let block = json!({ "type": "image", "mimeType": "image/png", "data": picture });
    assert_eq!(content[1], block);
    assert!(
        !content[0].to_string().contains(&picture[..40]),
        "{content:?}"
    );
    let facts = &answered["structuredContent"];
    assert_eq!(facts["image"], image);
    assert!(!facts.to_string().contains(&picture[..40]), "{facts}");

    // Control: what only mentions a picture is text.
    let text = client.call(
        "run",
        json!({ "code": "print('PNG')", "language": "lua@embedded" }),
    );
    assert_eq!(text["structuredContent"]["stdout"], "PNG\n");
    assert_eq!(text["content"].as_array().map(Vec::len), Some(1));
}
