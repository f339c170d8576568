//! Controls of the verdict: each clause is shown an answer it must refuse.

use super::*;

#[test]
fn a_good_answer_passes_every_clause() {
    assert_eq!(
        judged("never:BREACH; outcome:exited 0; within:3s", &good()),
        Vec::<String>::new()
    );
    assert_eq!(
        leaks(&answer(&good(), 0), "sbx-canary-1"),
        Vec::<String>::new()
    );
}

#[test]
fn each_clause_refuses_the_answer_that_breaks_it() {
    let with = |name: &str, value: Value| {
        let mut result = good();
        result[name] = value;
        result
    };
    let refused = |expect: &str, result: &Value, word: &str| {
        let failed = judged(expect, result);
        assert!(
            failed.iter().any(|text| text.contains(word)),
            "{word}: {failed:?}"
        );
    };
    refused("outcome:timeout", &good(), "outcome");
    refused(
        "never:BREACH",
        &with("status", "timeout".into()),
        "by itself",
    );
    refused("outcome:oom", &with("status", "lost".into()), "no outcome");
    refused(
        "never:BREACH",
        &with("stdout", "SAFE\nBREACH x\n".into()),
        "BREACH x",
    );
    refused(
        "never:BREACH",
        &with("stderr", "BREACH y".into()),
        "BREACH y",
    );
    refused("never:BREACH", &with("stdout", "".into()), "no sign");
    refused(
        "never:BREACH",
        &with("stderr", "Traceback (most recent call last)".into()),
        "ended before",
    );
    refused(
        "never:BREACH",
        &with("status", "timeout".into()),
        "exit code",
    );

    let mut late = answer(&good(), 0);
    late.elapsed = Duration::from_secs(6) + NOISE;
    let failed = judge(&case("within:wall+2s"), Duration::from_secs(3), &late);
    assert!(failed[0].contains("within"), "{failed:?}");
}

#[test]
fn a_second_frame_on_the_stream_is_refused() {
    let mut spoofed = answer(&good(), 0);
    spoofed
        .stdout
        .extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"SPOOF\"}\n");
    assert!(!judge(&case("never:BREACH"), Duration::from_secs(3), &spoofed).is_empty());
}

#[test]
fn a_secret_or_a_raw_escape_in_an_answer_is_a_leak() {
    let leaky = |bytes: &[u8]| {
        let mut answer = answer(&good(), 0);
        answer.stderr = bytes.to_vec();
        leaks(&answer, "sbx-canary-1").len()
    };
    assert_eq!(leaky(b"fine\n"), 0);
    assert_eq!(leaky(b"found sbx-canary-1"), 1);
    assert_eq!(leaky(b"/x/sbx-canary-argv/main.py"), 1);
    assert_eq!(leaky(b"\x1b[2J"), 1);
    assert_eq!(leaky(b"thread 'main' panicked at src"), 1);
}

fn judged(expect: &str, result: &Value) -> Vec<String> {
    judge(&case(expect), Duration::from_secs(3), &answer(result, 0))
}

fn good() -> Value {
    serde_json::json!({"status": "ok", "exit_code": 0, "signal": null, "stdout": "SAFE\n", "stderr": "", "error": null})
}

fn answer(result: &Value, code: i32) -> Answer {
    Answer {
        code: Some(code),
        stdout: format!("{result}\n").into_bytes(),
        stderr: Vec::new(),
        elapsed: Duration::from_millis(50),
        peak: 0,
        traces: witness::Traces::default(),
    }
}

fn case(expect: &str) -> Case {
    let mut case = super::super::case::all().remove(0);
    case.id = "XXX-01-made-up".to_owned();
    case.expect = expect.to_owned();
    case
}
