use super::*;
use crate::caller::Caller;
use crate::store::Store;
use serde_json::json;

fn read(arguments: Value) -> Result<Params, BadArguments> {
    let Value::Object(arguments) = arguments else {
        panic!("not an object");
    };
    let store = Store::default();
    Params::read(arguments, store.of(&Caller::local()))
}

fn message(arguments: Value) -> String {
    match read(arguments) {
        Err(bad) => bad.message,
        Ok(_) => panic!("was taken"),
    }
}

#[test]
fn a_wrong_type_is_named_with_its_parameter() {
    for (arguments, expected) in [
        (json!({ "code": 5 }), "`code` must be a string"),
        (json!({ "code": ["x"] }), "`code` must be a string"),
        (json!({ "code": null }), "there is no code to run"),
        (json!({}), "there is no code to run"),
        (
            json!({ "code": "x", "language": 1 }),
            "`language` must be a string",
        ),
        (
            json!({ "code": "x", "args": "a b" }),
            "`args` must be a list of strings",
        ),
        (
            json!({ "code": "x", "files": ["a"] }),
            "`files` must be an object from path to content",
        ),
        (
            json!({ "code": "x", "sesion": "s" }),
            "unknown parameter \"sesion\"",
        ),
        (
            json!({ "code": "x", "args": ["\0"] }),
            "argument 1 has a NUL byte",
        ),
    ] {
        assert_eq!(message(arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn a_timeout_is_a_number_above_zero() {
    for bad in [json!(-1), json!(0), json!(true), json!([]), json!("soon")] {
        assert_eq!(
            message(json!({ "code": "x", "timeout": bad })),
            "`timeout` must be a number of seconds above zero"
        );
    }
    for (good, millis) in [(json!(5), 5000), (json!(0.25), 250), (json!("5"), 5000)] {
        let params = read(json!({ "code": "x", "timeout": good })).unwrap();
        let asked = params.request.asked_limits().timeout;
        assert_eq!(asked, Some(Duration::from_millis(millis)));
    }
    assert!(read(json!({ "code": "x", "timeout": 1e308 })).is_ok());
}

#[test]
fn limits_are_numbers_or_texts_as_on_the_command_line() {
    let asked = |arguments: Value| *read(arguments).unwrap().request.asked_limits();
    let limits = asked(json!({ "code": "x", "memory": "2g", "cpus": 1.5, "processes": 7 }));
    assert_eq!(limits.memory, Some(2 << 30));
    assert_eq!((limits.cpus, limits.tasks), (Some(1.5), Some(7)));
    let limits = asked(json!({ "code": "x", "memory": 1 << 20, "cpus": "2", "processes": "7" }));
    assert_eq!(limits.memory, Some(1 << 20));
    assert_eq!((limits.cpus, limits.tasks), (Some(2.0), Some(7)));
    let limits = asked(json!({ "code": "x", "memory": 1e300, "processes": 1e18 }));
    assert_eq!(
        (limits.memory, limits.tasks),
        (Some(u64::MAX), Some(u32::MAX))
    );
    for (key, expected) in [
        ("memory", "a size, as in \"2g\""),
        ("cpus", "a number above zero"),
        ("processes", "a whole number above zero"),
    ] {
        for bad in [json!(0), json!(-1), json!("much"), json!(true), json!({})] {
            assert_eq!(
                message(json!({ "code": "x", key: bad })),
                format!("`{key}` must be {expected}")
            );
        }
    }
    assert_eq!(
        message(json!({ "code": "x", "processes": 1.5 })),
        "`processes` must be a whole number above zero"
    );
}

#[test]
fn files_are_text_or_base64_or_an_earlier_output_and_stay_in_the_workspace() {
    let good = json!({ "code": "x", "files": { "a.txt": "text", "b.bin": { "base64": "/wA=" } } });
    assert!(read(good).is_ok());
    for bad in [
        json!({ "../a": "text" }),
        json!({ "/etc/a": "text" }),
        json!({ "a": 5 }),
        json!({ "a": { "base64": "%" } }),
        json!({ "a": { "uri": "file:///etc/passwd" } }),
        json!({ "a": { "uri": "run://nothing/stdout" } }),
    ] {
        assert!(read(json!({ "code": "x", "files": bad })).is_err(), "{bad}");
    }
}
