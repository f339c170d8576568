use std::time::Duration;

use super::strings::LONGEST_STRING;
use super::*;

fn request() -> RunRequest {
    RunRequest::new("print(1)").unwrap()
}

#[test]
fn a_language_may_say_what_shall_run_it() {
    let asked = |name: &str| {
        let request = RunRequest::new("x").unwrap().language(name);
        let engine = request.asked_engine().map(str::to_owned);
        (request.asked_language().unwrap().to_owned(), engine)
    };
    assert_eq!(asked("lua"), ("lua".to_owned(), None));
    let both = ("lua".to_owned(), Some("embedded".to_owned()));
    assert_eq!(asked("lua@embedded"), both);
}

#[test]
fn code_has_something_in_it_and_no_nul() {
    for empty in ["", " \n\t\r\n", "\u{feff}", "\u{feff}\n"] {
        assert!(
            matches!(RunRequest::new(empty), Err(RequestError::EmptyCode)),
            "{empty:?}"
        );
    }
    let error = RunRequest::new("a\0b").unwrap_err();
    assert_eq!(error.to_string(), "the code has a NUL byte");
    assert_eq!(error.hint(), Some("Save the program as UTF-8 text.".into()));
}

#[test]
fn code_is_bytes_and_only_its_file_keeps_a_byte_order_mark() {
    let bytes = b"\xef\xbb\xbfecho \xe9".to_vec();
    let request = RunRequest::new(bytes.clone()).unwrap();
    assert_eq!(request.code(), b"echo \xe9");
    assert_eq!(request.into_parts().code, bytes);
}

#[test]
fn of_a_file_only_a_usable_last_part_is_kept() {
    let name = |file: &str| {
        request()
            .named(file)
            .file_name()
            .map(|name| name.to_string())
    };
    assert_eq!(name("examples/hello.py").as_deref(), Some("hello.py"));
    assert_eq!(name("/").as_deref(), None);
    assert_eq!(name(&"x".repeat(300)).as_deref(), None);
}

#[test]
fn variables_have_names_that_every_shell_could_use() {
    for name in ["", "1A", "A=B", "A-B", "é", "A\0", "A B"] {
        let error = request().env([(name, "x")]).unwrap_err();
        assert!(
            matches!(error, RequestError::BadVariable(_)),
            "{name:?}: {error}"
        );
    }
    assert!(request().env([("_a1", ""), ("PATH", "=x\n")]).is_ok());
    let error = request().env([("A", "x\0y")]).unwrap_err();
    assert_eq!(error.to_string(), "variable `A` has a NUL byte");
}

#[test]
fn arguments_fit_what_the_kernel_takes() {
    let error = request().args(["a", "b\0"]).unwrap_err();
    assert_eq!(error.to_string(), "argument 2 has a NUL byte");

    let long = "x".repeat(LONGEST_STRING);
    assert!(request().args([long.clone()]).is_ok());
    assert!(matches!(
        request().args([format!("{long}x")]),
        Err(RequestError::TooLong { .. })
    ));
    assert!(matches!(
        request().args(vec![long.clone(); 8]),
        Err(RequestError::TooLong { .. })
    ));
    assert!(matches!(
        request().env([("A", long)]),
        Err(RequestError::TooLong { .. })
    ));
}

#[test]
fn no_two_files_have_one_path() {
    let file = |path| InputFile::from_bytes(CellPath::parse(path).unwrap(), "x");
    assert!(request().files([file("a"), file("b")]).is_ok());
    let error = request()
        .files([file("a")])
        .unwrap()
        .files([file("./a")])
        .unwrap_err();
    assert_eq!(error.to_string(), "two files have the path `a`");
}

#[test]
fn limits_are_above_zero() {
    let zero = [
        AskedLimits {
            timeout: Some(Duration::ZERO),
            ..Default::default()
        },
        AskedLimits {
            memory: Some(0),
            ..Default::default()
        },
        AskedLimits {
            tasks: Some(0),
            ..Default::default()
        },
        AskedLimits {
            cpus: Some(f64::NAN),
            ..Default::default()
        },
        AskedLimits {
            output: Some(0),
            ..Default::default()
        },
    ];
    for limits in zero {
        assert!(
            matches!(
                request().limits(limits),
                Err(RequestError::BadNumber { .. })
            ),
            "{limits:?}"
        );
    }
    assert!(request().limits(AskedLimits::default()).is_ok());
}
