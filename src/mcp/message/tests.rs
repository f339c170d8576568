use super::*;

fn fault(text: &str) -> Garbled {
    match parse(text.as_bytes()) {
        Err(garbled) => garbled,
        Ok(message) => panic!("{text} was understood as {message:?}"),
    }
}

fn id_of(text: &str) -> Id {
    match parse(text.as_bytes()).unwrap() {
        Message::Request(request) => request.id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_id_goes_back_byte_for_byte() {
    for id in [
        "0",
        "-0",
        "7",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""""#,
        r#""a""#,
        r#""\u0061\n""#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(id_of(&text).to_string(), id);
    }
}

#[test]
fn two_spellings_of_one_string_are_one_id_and_a_number_is_no_string() {
    let id = |id: &str| id_of(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
    assert_eq!(id(r#""a""#), id(r#""\u0061""#));
    assert_ne!(id("1"), id(r#""1""#));
}

#[test]
fn what_is_no_string_or_integer_is_no_id() {
    for id in [
        "null",
        "true",
        "[]",
        "{}",
        "1.5",
        "1e3",
        "1e400",
        r#""\ud800""#,
    ] {
        let garbled = fault(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert!(garbled.id.is_none(), "{id}");
        assert!(
            [Fault::INVALID_REQUEST, Fault::PARSE].contains(&garbled.fault.code),
            "{id}"
        );
    }
    let long = "x".repeat(1 << 20);
    let garbled = fault(&format!(
        r#"{{"jsonrpc":"2.0","id":"{long}","method":"ping"}}"#
    ));
    assert_eq!(garbled.fault.code, Fault::INVALID_REQUEST);
}

#[test]
fn a_key_that_occurs_twice_is_refused_at_any_depth() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[{"b":1,"b":2}]}}"#,
    ] {
        assert_eq!(fault(text).fault.code, Fault::INVALID_REQUEST, "{text}");
    }
}

#[test]
fn what_is_not_json_is_a_parse_error_and_what_is_no_message_is_not() {
    for text in [
        "{",
        "not json",
        r#"{"jsonrpc":"2.0","id":1,"method":"p"} x"#,
        "{\"a\":\u{1}}",
    ] {
        assert_eq!(fault(text).fault.code, Fault::PARSE, "{text}");
    }
    for text in [
        "[]",
        r#""x""#,
        "42",
        "null",
        "{}",
        r#"{"jsonrpc":"2.0","id":1}"#,
    ] {
        assert_eq!(fault(text).fault.code, Fault::INVALID_REQUEST, "{text}");
    }
    let wrong = fault(r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#);
    assert_eq!(wrong.id.unwrap().to_string(), "5");
}

#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{deep}}}}}"#);
        assert!(parse(text.as_bytes()).is_err());
        assert!(parse(open.repeat(1_000_000).as_bytes()).is_err());
    }
}
