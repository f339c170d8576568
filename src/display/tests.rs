use super::*;
use crate::request::CellPath;

fn file(name: &str, bytes: &[u8]) -> InputFile {
    let path = CellPath::parse(&format!(".home/.hotcell/display/{name}")).expect("a path");
    InputFile::from_bytes(path, bytes)
}

fn shown(files: &[(&str, &[u8])]) -> Shown {
    let files = files.iter().map(|(name, bytes)| file(name, bytes));
    Shown::read(Some(files.collect()))
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nx";

#[test]
fn what_is_shown_comes_in_the_order_of_its_numbers() {
    let shown = shown(&[
        ("010.txt", b"ten"),
        ("002.png", PNG),
        ("value.json", b"[1, 2]"),
        ("001.svg", b"<svg/>"),
    ]);
    let kinds: Vec<Kind> = shown.displays.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Svg, Kind::Png, Kind::Text]);
    assert_eq!(shown.value, Some(serde_json::json!([1, 2])));
    assert_eq!(shown.displays[2].text.as_deref(), Some("ten"));
    assert_eq!(shown.left_out, 0);
}

#[test]
fn bytes_decide_what_a_thing_is_and_a_name_that_lies_leaves_it_out() {
    let lies: &[(&str, &[u8])] = &[
        ("001.png", b"<svg/>"),
        ("002.svg", PNG),
        ("003.html", b"\xff\xfe"),
        ("004.json", b"{"),
        ("005.exe", PNG),
        ("1.png", PNG),
        ("abc.png", PNG),
        ("-01.png", PNG),
        ("value.png", PNG),
        ("no-extension", PNG),
    ];
    let told = shown(lies);
    assert!(told.displays.is_empty(), "{:?}", told.displays);
    assert_eq!(told.left_out, lies.len());
    assert_eq!(told.value, None);
    // Control: a picture of another kind is what its bytes say.
    let told = shown(&[("001.png", b"GIF89a....")]);
    assert_eq!(told.displays[0].kind, Kind::Gif);
}

#[test]
fn too_much_is_left_out_and_counted() {
    let large = vec![b'x'; LARGEST + 1];
    let names: Vec<String> = (1..=30).map(|number| format!("{number:03}.png")).collect();
    let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), PNG)).collect();
    files[0].1 = &large;
    let shown = shown(&files);
    assert_eq!((shown.displays.len(), shown.left_out), (MOST, 10));
    assert_eq!(Shown::read(None).left_out, 1);
}

#[test]
fn a_value_is_bounded_and_what_is_no_json_is_text() {
    let text = |bytes: &[u8]| shown(&[("value.json", bytes)]).value;
    assert_eq!(text(b"{\"a\": NaN}"), Some("{\"a\": NaN}".into()));
    assert_eq!(text(b"\"\\ud800\""), Some("\"\\ud800\"".into()));
    let deep = [vec![b'['; 5000], vec![b']'; 5000]].concat();
    assert!(text(&deep).expect("text").is_string());
    let long = text(&vec![b'x'; 1 << 20]).expect("text");
    assert!(long.as_str().expect("text").len() < LONGEST + 100);
}
