//! What the tool `run` answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, is_running, marker, sleeper, wait_until_running};

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn text_and_data_each_tell_the_whole_result() {
    let mut client = Client::open(&[]);
    let result = client.run(json!({
        "code": "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint(sys.argv[1:], sys.stdin.read(), open('in/a.txt').read())",
        "language": "python",
        "args": ["a", "b c"],
        "stdin": "input",
        "files": { "in/a.txt": "file" },
    }));
    assert_eq!(result["isError"], false, "stderr alone is no error");
    let facts = &result["structuredContent"];
    assert_eq!(facts["status"], "ok");
    assert_eq!(facts["stdout"], "out\n['a', 'b c'] input file\n");
    assert_eq!(facts["stderr"], "err\n");
    let run = &result["_meta"]["dev.hotcell/run"];
    assert_eq!(run["language"], "python");
    assert_eq!(run["isolation"]["walls"], json!([]), "{run}");
    assert_eq!(
        text(&result),
        "out\n['a', 'b c'] input file\n[stderr]\nerr\n"
    );
}

#[test]
fn a_program_that_prints_nothing_is_said_to() {
    let mut client = Client::open(&[]);
    let result = client.run(json!({ "code": "x = 1", "language": "python" }));
    assert_eq!(result["isError"], false);
    assert!(
        text(&result).contains("printed nothing"),
        "{}",
        text(&result)
    );
}

#[test]
fn a_failure_keeps_what_was_printed_and_says_what_went_wrong() {
    let mut client = Client::open(&[]);
    let result = client.run(json!({
        "code": "print('before')\nraise SystemExit(3)", "language": "python",
    }));
    assert_eq!(result["isError"], true);
    let facts = &result["structuredContent"];
    assert_eq!(
        (&facts["status"], &facts["exit_code"]),
        (&json!("failed"), &json!(3))
    );
    assert!(
        text(&result).starts_with("before\n[failed: "),
        "{}",
        text(&result)
    );
}

#[test]
fn arguments_that_do_not_fit_are_an_answer_and_an_unknown_tool_is_a_fault() {
    let mut client = Client::open(&[]);
    for arguments in [
        json!({}),
        json!({ "code": 5 }),
        json!({ "code": "x", "nonsense": 1 }),
        json!({ "code": "x", "language": "klingon" }),
        json!({ "code": "x", "language": "python", "timeout": -1 }),
    ] {
        let result = client.run(arguments.clone());
        assert_eq!(result["isError"], true, "{arguments}");
        assert_eq!(result["structuredContent"]["status"], "rejected");
        assert!(text(&result).contains("nothing was executed"));
    }
    for params in [
        json!({ "name": "no_such_tool", "arguments": {} }),
        json!({ "name": 5 }),
        json!({ "name": "run", "arguments": [] }),
    ] {
        let answer = client.request("tools/call", params.clone());
        assert_eq!(answer["error"]["code"], -32602, "{params}");
    }
}

#[test]
fn what_is_too_long_for_an_answer_can_be_read_whole_and_in_ranges() {
    let mut client = Client::open(&[]);
    for code in [
        "for i in range(100_000): print(f'{i:049}')",
        "print('é' * 2_500_000)",
    ] {
        let result = client.run(json!({ "code": code, "language": "python" }));
        assert_eq!(result["isError"], false);
        let facts = &result["structuredContent"];
        let (link, shown) = (&result["content"][1], facts["stdout"].as_str().unwrap());
        assert_eq!(link["type"], "resource_link");
        let total = link["size"].as_u64().unwrap();
        assert_eq!(facts["truncated"], true);
        assert_eq!(facts["total_bytes"]["stdout"], total);
        assert!(shown.chars().count() < 24_200 && shown.chars().count() > 23_900);
        let uri = link["uri"].as_str().unwrap();
        assert!(text(&result).contains(uri) && shown.contains(&total.to_string()));
        let whole = client.request("resources/read", json!({ "uri": uri }));
        let whole = whole["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(whole.len() as u64, total);
        let ends = |text: &str| text.as_bytes()[text.len() - 1000..].to_vec();
        assert!(shown.starts_with(&whole[..1000]) && ends(shown) == ends(&whole));
        let mut pieces = String::new();
        while pieces.len() < whole.len() {
            let range = format!("{uri}?offset={}&length=1000001", pieces.len());
            let piece = client.request("resources/read", json!({ "uri": range }));
            pieces += piece["result"]["contents"][0]["text"].as_str().unwrap();
        }
        assert!(pieces == whole);
        // And a program can work on it.
        let counted = client.run(json!({
            "code": "print(len(open('out.txt', 'rb').read()))",
            "language": "python",
            "files": { "out.txt": { "uri": uri } },
        }));
        assert_eq!(counted["structuredContent"]["stdout"], format!("{total}\n"));
    }
}

#[test]
fn output_is_kept_no_longer_than_was_asked_for() {
    let mut client = Client::open(&["--keep-output", "200ms"]);
    let result = client.run(json!({ "code": "print('x' * 50_000)", "language": "python" }));
    let uri = result["content"][1]["uri"].as_str().unwrap().to_owned();
    std::thread::sleep(Duration::from_millis(250));
    let gone = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(gone["error"]["code"], -32602);
    assert_eq!(gone["error"]["data"]["uri"], uri);
}

#[test]
fn progress_brings_the_newest_output_and_only_to_who_asked() {
    let mut client = Client::open(&[]);
    let code =
        "import time\nfor i in range(4):\n    print('step', i, flush=True)\n    time.sleep(0.3)";
    let arguments = json!({ "code": code, "language": "python" });
    let mut params = json!({ "name": "run", "arguments": arguments });
    client.request("tools/call", params.clone());
    let unasked = |message: &Value| message["method"] == "notifications/progress";
    assert_eq!(client.wait_for(Duration::from_millis(50), unasked), None);
    params["_meta"] = json!({ "progressToken": "t" });
    let id = client.post("tools/call", params);
    let (mut last, mut told) = (f64::NEG_INFINITY, String::new());
    loop {
        let message = client.wait(|_| true);
        if message["id"] == id {
            break;
        }
        let progress = &message["params"];
        assert_eq!(progress["progressToken"], "t");
        assert!(progress["progress"].as_f64().unwrap() > last);
        last = progress["progress"].as_f64().unwrap();
        told += progress["message"].as_str().unwrap();
    }
    assert!(
        told.contains("step 0\n") && told.contains("step 2\n"),
        "{told}"
    );
    assert_eq!(client.wait_for(Duration::from_millis(300), unasked), None);
}

#[test]
fn a_ping_is_answered_while_programs_are_busy() {
    let mut client = Client::open(&[]);
    let markers: Vec<String> = (0..3).map(|at| marker(&format!("busy{at}"))).collect();
    for marker in &markers {
        client.post(
            "tools/call",
            json!({ "name": "run", "arguments": {
            "code": "while True: pass", "language": "python", "args": [marker] } }),
        );
    }
    markers.iter().for_each(|marker| {
        wait_until_running(marker, true);
    });
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert!(markers.iter().all(|marker| is_running(marker)));
}

#[test]
fn many_overlapping_calls_each_get_their_own_answer() {
    let mut client = Client::open(&[]);
    let calls: Vec<(u64, u32)> = (0..48)
        .map(|at| {
            let code = format!("print('number', {at} * {at})");
            let params =
                json!({ "name": "run", "arguments": { "code": code, "language": "python" } });
            (client.post("tools/call", params), at * at)
        })
        .collect();
    for (id, number) in calls {
        let answer = client.answer(id);
        let printed = &answer["result"]["structuredContent"]["stdout"];
        assert_eq!(printed, &format!("number {number}\n"));
    }
}

#[test]
fn beyond_the_queue_a_run_is_refused_clearly_and_leaving_it_makes_room() {
    let mut client = Client::open(&["--max-runs", "1", "--max-queue", "1"]);
    let (first, later) = (marker("queue1"), marker("queue2"));
    let call = |marker| json!({ "name": "run", "arguments": sleeper(marker) });
    let running = client.post("tools/call", call(&first));
    wait_until_running(&first, true);
    // One of the two finds room to wait, whichever is looked at first; the other does not.
    let both = [0; 2].map(|_| client.post("tools/call", call(&later)));
    let refused = client.wait(|message| both.iter().any(|id| message["id"] == *id));
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(error["kind"], "busy", "{refused}");
    for id in [both[0], both[1], running] {
        client.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        }));
    }
    wait_until_running(&first, false);
    let free = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(free["structuredContent"]["stdout"], "1\n");
}

#[test]
fn the_server_outlives_what_programs_do() {
    let mut client = Client::open(&[]);
    for (code, status) in [
        ("import sys; sys.exit(3)", "failed"),
        ("import os; os.kill(os.getpid(), 11)", "killed"),
        ("x = bytearray(4 << 30)", "memory"),
        ("import os\nwhile True: os.fork()", "timeout"),
    ] {
        let arguments = json!({ "code": code, "language": "python", "timeout": 5 });
        let result = client.run(arguments);
        let facts = &result["structuredContent"];
        if code.contains("fork") {
            assert!(
                ["failed", "timeout", "memory"].contains(&facts["status"].as_str().unwrap()),
                "{facts}"
            );
        } else {
            assert_eq!(facts["status"], status, "{code}: {facts}");
        }
    }
    let next = client.run(json!({ "code": "print('alive')", "language": "python" }));
    assert_eq!(next["structuredContent"]["stdout"], "alive\n");
}

#[test]
fn fifty_megabytes_are_counted_shown_and_kept() {
    let mut client = Client::open(&[]);
    for code in [
        "for i in range(1_000_000): print('a' * 49)",
        "print('b' * (50_000_000 - 1))",
    ] {
        let arguments = json!({ "code": code, "language": "python", "timeout": 60 });
        let result = client.run(arguments);
        assert_eq!(
            result["structuredContent"]["total_bytes"]["stdout"],
            50_000_000
        );
        let uri = result["content"][1]["uri"].as_str().unwrap().to_owned();
        assert_eq!(result["structuredContent"]["truncated"], true);
        let whole = client.request("resources/read", json!({ "uri": uri }));
        let whole = &whole["result"]["contents"][0]["text"];
        assert_eq!(whole.as_str().map(str::len), Some(50_000_000));
        let mut read = 0;
        while read < 50_000_000 {
            let range = format!("{uri}?offset={read}&length=15000000");
            let piece = client.request("resources/read", json!({ "uri": range }));
            read += piece["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .len();
        }
        assert_eq!(read, 50_000_000);
    }
    // Nothing is said of it where nothing was cut.
    let short = client.run(json!({ "code": "print(1)", "language": "python" }));
    assert_eq!(short["structuredContent"]["truncated"], Value::Null);
    // One read has its bound, and says how to read more.
    let code = "import sys\nfor _ in range(70): sys.stdout.write('x' * (1 << 20))";
    let result = client.run(json!({ "code": code, "language": "python", "timeout": 60 }));
    let uri = &result["content"][1]["uri"];
    let too_much = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(too_much["error"]["code"], -32602, "{too_much}");
}

#[test]
fn programs_that_only_wait_do_not_wait_for_each_other() {
    let mut client = Client::open(&["--max-runs", "8"]);
    let code = "import time; a = time.time(); time.sleep(2); print(a, time.time())";
    let params = json!({ "name": "run", "arguments": { "code": code, "language": "python" } });
    let calls: Vec<u64> = (0..8)
        .map(|_| client.post("tools/call", params.clone()))
        .collect();
    let times: Vec<(f64, f64)> = calls
        .into_iter()
        .map(|id| {
            let answer = client.answer(id);
            let printed = answer["result"]["structuredContent"]["stdout"]
                .as_str()
                .unwrap();
            let (start, end) = printed.trim().split_once(' ').unwrap();
            (start.parse().unwrap(), end.parse().unwrap())
        })
        .collect();
    let last_start = times.iter().map(|time| time.0).fold(0.0, f64::max);
    let first_end = times
        .iter()
        .map(|time| time.1)
        .fold(f64::INFINITY, f64::min);
    assert!(last_start < first_end, "{times:?}");
}

#[test]
fn a_quiet_program_is_said_to_be_running_every_five_seconds() {
    let mut client = Client::open(&[]);
    let code = "import time; print('started'); time.sleep(6)";
    client.post(
        "tools/call",
        json!({
            "name": "run",
            "arguments": { "code": code, "language": "python" },
            "_meta": { "progressToken": 1 },
        }),
    );
    let said = |text: &'static str| {
        move |message: &Value| {
            let said = message["params"]["message"].as_str();
            said.is_some_and(|said| said.contains(text))
        }
    };
    client.wait(said("started"));
    let beat = client.wait(|message| said("running for")(message) || message.get("id").is_some());
    assert!(said("last output: started")(&beat), "{beat}");
}

/// At least as many tokens as a model's tokenizer makes of a text: one for each sign, and for every four letters or three digits of a word.
fn tokens(text: &str) -> usize {
    let mut tokens = 0;
    let mut word = 0_usize;
    for character in text.chars().chain([' ']) {
        match character {
            'a'..='z' | 'A'..='Z' => word += 3,
            '0'..='9' => word += 4,
            _ => {
                tokens += word.div_ceil(12) + usize::from(character != ' ');
                word = 0;
            }
        }
    }
    tokens
}

#[test]
fn a_result_costs_few_tokens_beyond_what_was_printed() {
    let mut client = Client::open(&[]);
    let quiet = [
        ("python", "print(1)"),
        ("python", "print('hello')"),
        ("python", "for i in range(5): print(i, i * i)"),
        ("python", "import json; print(json.dumps({'a': [1, 2]}))"),
        ("python", "import sys; print(sys.version_info[0])"),
        ("sh", "echo one; echo two"),
        ("sh", "seq 3"),
        ("sh", "printf 'no line break'"),
        ("javascript", "console.log([1, 2, 3].map(x => x * 2))"),
        ("lua", "print(6 * 7)"),
        ("sql", "select 1 as a, 2 as b"),
    ];
    let telling = [
        ("python", "x = 1"),
        ("python", "raise ValueError('no')"),
        ("python", "import sys; print('e', file=sys.stderr)"),
        ("python", "import sys; sys.exit(3)"),
        ("python", "print(1"),
        ("python", "import no_such_module_of_anybody"),
        ("python", "open('a.csv', 'w').write('1,2')"),
        ("sh", "no-such-command"),
        ("sh", "kill -9 $$"),
    ];
    let cases = quiet.map(|case| (case, 25)).into_iter();
    let cases = cases.chain(telling.map(|case| (case, 180)));
    for ((language, code), most) in cases {
        let result = client.run(json!({ "language": language, "code": code }));
        let facts = &result["structuredContent"];
        let printed = |stream: &str| tokens(facts[stream].as_str().unwrap_or_default());
        let printed = printed("stdout") + printed("stderr");
        for said in [text(&result).to_owned(), facts.to_string()] {
            let cost = tokens(&said).saturating_sub(printed);
            assert!(cost <= most, "{code}: {cost} tokens in {said}");
        }
    }
}
