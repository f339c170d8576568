//! What is no plain text: rows and pictures.

use super::{run, said, well};
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
    let answer = run(&hotcell, "", &["-l", "svg", "-c", code, "--", "-"]);
    assert_eq!(answer.code, Some(0), "{}", answer.err());
    let (signature, rest) = answer.stdout.split_at(8);
    assert_eq!(signature, b"\x89PNG\r\n\x1a\n");
    // The first chunk holds width and height.
    assert_eq!(&rest[4..16], b"IHDR\0\0\0\x0c\0\0\0\x07");
    assert_eq!(
        said(&hotcell, "svg", code),
        well(""),
        "else it is a file beside it"
    );
}
