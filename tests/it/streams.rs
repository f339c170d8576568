//! Output on its way: live, whole, byte for byte, and over when the run is over.

use std::io::Write;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::left::{Before, mark, processes};
use crate::support::{Hotcell, PATIENCE, eventually, every_provider, everyone};

/// Long enough that nothing here ends by itself.
const FOREVER: &str = "import time\nprint('up', flush=True)\ntime.sleep(600)";
const FLOOD: &str = "while :; do echo y; done";

#[test]
fn output_comes_while_the_program_still_runs() {
    // It waits for our word, so what comes before that word has not been kept back.
    let code = "import sys\nprint('first')\nprint('problem', file=sys.stderr)\n\
                print('heard', sys.stdin.readline().strip())";
    for hotcell in every_provider() {
        let mut running = hotcell.start_with_input(&["-l", "python", "-c", code]);
        assert_eq!(running.stdout.until("first\n"), "first\n");
        assert_eq!(running.stderr.until("problem\n"), "problem\n");
        assert!(!running.has_ended());
        let stdin = running.stdin.as_mut().unwrap();
        stdin.write_all(b"you\nmore").unwrap();
        let answer = running.finish();
        assert_eq!(
            (answer.code, answer.out()),
            (Some(0), "first\nheard you\n".to_owned())
        );
    }
}

#[test]
fn a_signal_ends_the_cell_at_once_and_leaves_nothing() {
    for hotcell in everyone() {
        for signal in [Signal::TERM, Signal::HUP] {
            let before = Before::look(&hotcell);
            let mut running = hotcell.start(&[&mark(&hotcell), "-l", "python", "-c", FOREVER]);
            let pid = running.pid();
            running.stdout.until("up\n");
            // Control: there is something to leave behind.
            assert!(processes(&hotcell).len() > 1);

            running.signal(signal);
            let answer = running.finish();
            let told = "hotcell: the run was cancelled\n".to_owned();
            assert_eq!(answer.whole(), (Some(130), "up\n".to_owned(), told));
            before.expect_nothing_left(pid);
        }
        // One that cannot even be asked.
        let marked = mark(&hotcell);
        let running = hotcell.start(&["--json", &marked, "-l", "sh", "-c", "kill -STOP $$"]);
        let pid = running.pid();
        assert!(eventually(PATIENCE, || is_stopped(&hotcell)));
        running.signal(Signal::TERM);
        let result = running.finish().json();
        assert_eq!(
            [&result["status"], &result["error"]["kind"]],
            ["cancelled", "cancelled"]
        );
        Before::look(&hotcell).expect_nothing_left(pid);
    }
}

#[test]
fn an_interrupt_is_the_programs_first_and_ends_it_the_second_time() {
    let stubborn = "trap 'echo heard' INT; echo up; while :; do sleep 0.1; done";
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut running = hotcell.start(&[&mark(&hotcell), "-l", "bash", "-c", stubborn]);
        let pid = running.pid();
        running.stdout.until("up\n");
        running.signal(Signal::INT);
        running.stdout.until("heard\n");
        running.signal(Signal::INT);
        let answer = running.finish();
        assert_eq!(answer.code, Some(130));
        assert_eq!(answer.err(), "hotcell: the run was cancelled\n");
        before.expect_nothing_left(pid);

        // One that does nothing about it ends with the first.
        let mut running = hotcell.start(&["-l", "python", "-c", FOREVER]);
        running.stdout.until("up\n");
        running.signal(Signal::INT);
        assert_eq!(running.finish().code, Some(130));
    }
}

#[test]
fn a_signal_ends_a_run_whose_output_nobody_reads() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut running = hotcell.start(&[&mark(&hotcell), "-l", "sh", "-c", FLOOD]);
        let pid = running.pid();
        // From here on the pipe fills and every writer before it waits.
        running.stdout.until("y\n");
        running.signal(Signal::TERM);
        let answer = running.finish_unread();
        assert_eq!(answer.code, Some(130));
        assert!(answer.took < Duration::from_secs(20), "{:?}", answer.took);
        before.expect_nothing_left(pid);
    }
}

#[test]
fn a_run_ends_when_its_reader_is_gone() {
    for hotcell in every_provider() {
        let before = Before::look(&hotcell);
        let mut running = hotcell.start(&[&mark(&hotcell), "-l", "sh", "-c", FLOOD]);
        let pid = running.pid();
        running.stdout.until("y\n");
        running.stdout.close();
        let answer = running.finish();
        // As of any program that a pipe broke under, and without a word.
        assert_eq!((answer.code, answer.err()), (Some(141), String::new()));
        before.expect_nothing_left(pid);
    }
}

#[test]
fn a_slow_reader_gets_everything() {
    // Just what all pipes and queues on the way hold: the program can end and leave its
    // output behind, but not all of it has come through.
    let code = "import sys\nfor n in range(122880): sys.stdout.write(f'{n:09}\\n')";
    let expected: String = (0..122_880).map(|n| format!("{n:09}\n")).collect();
    for hotcell in every_provider() {
        let mut running = hotcell.start(&["-l", "python", "-c", code]);
        let left = eventually(Duration::from_secs(1), || running.has_ended());
        assert!(!left, "it did not wait for its reader");
        let answer = running.finish();
        assert_eq!(answer.code, Some(0), "{}", answer.err());
        assert!(
            answer.out() == expected,
            "{} bytes came",
            answer.stdout.len()
        );
    }
}

#[test]
fn bytes_that_are_no_text_pass_unchanged() {
    let code = "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 3)\n\
                sys.stderr.buffer.write(b'\\xff\\xfe')";
    for hotcell in every_provider() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        let all: Vec<u8> = (0..=255).collect::<Vec<u8>>().repeat(3);
        assert_eq!((answer.code, answer.stdout), (Some(0), all.clone()));
        assert_eq!(answer.stderr, b"\xff\xfe");

        let result = hotcell.json(&["-l", "python", "-c", code]);
        assert_eq!(result["stdout"], String::from_utf8_lossy(&all).as_ref());
        assert_eq!(result["stderr"], "\u{fffd}\u{fffd}");
    }
}

#[test]
fn a_line_of_100_megabytes_streams_through_whole() {
    let code = "import sys\nfor n in range(100): sys.stdout.write(chr(97 + n % 26) * 1000000)";
    for hotcell in every_provider() {
        let answer = hotcell.run(&["-l", "python", "-c", code]);
        assert_eq!((answer.code, answer.stdout.len()), (Some(0), 100_000_000));
        let pieces = answer.stdout.chunks(1_000_000).enumerate();
        for (n, piece) in pieces {
            assert!(piece.iter().all(|byte| *byte == b'a' + n as u8 % 26), "{n}");
        }
    }
}

#[test]
fn a_long_output_is_shown_by_its_beginning_its_end_and_its_size() {
    const KEPT: usize = 1 << 20;
    // 50 MB as lines and as one line, and a little less on the other stream.
    for (stream, each, size) in [
        ("stdout", "{n:09}\\n", 50_000_000),
        ("stdout", "{n:010}", 50_000_000),
        ("stderr", "{n:010}", 5_000_000),
    ] {
        let number = if stream == "stdout" { 1 } else { 2 };
        let code = format!(
            "out = open({number}, 'w', 1 << 20)\nfor n in range({}): out.write(f'{each}')",
            size / 10
        );
        for hotcell in every_provider() {
            let result = hotcell.json(&["-l", "python", "-c", &code]);
            assert_eq!(result["status"], "ok", "{}", result["error"]);
            assert_eq!(result["truncated"], true);
            assert_eq!(result["total_bytes"], json!({stream: size}));
            let text = result[stream].as_str().unwrap();
            let gap = format!("\n[... {} bytes left out ...]\n", size - KEPT);
            let (head, tail) = text.split_once(&gap).unwrap();
            assert_eq!((head.len(), tail.len()), (KEPT / 4 * 3, KEPT / 4));
            assert!(head.starts_with("000000000"), "{}", &head[..20]);
            let last = (size / 10 - 1).to_string();
            assert!(
                tail.trim_end().ends_with(&last),
                "{}",
                &tail[tail.len() - 20..]
            );
        }
    }
}

#[test]
fn a_program_that_closes_its_pipes_and_lives_on_meets_its_time_limit() {
    let code = "import os, time\nprint('before')\nfor fd in 0, 1, 2: os.close(fd)\ntime.sleep(600)";
    for hotcell in every_provider() {
        let answer = timed_out(&hotcell, code);
        assert_eq!(answer, "before\n");
    }
}

#[test]
fn a_program_that_stops_itself_meets_its_time_limit() {
    let code = "import os\nprint('before')\nos.kill(os.getpid(), 19)\nprint('after')";
    for hotcell in everyone() {
        assert_eq!(timed_out(&hotcell, code), "before\n");
    }
}

#[test]
fn the_answer_does_not_wait_for_children_that_stay() {
    // One leaves its session and keeps the pipes, one is stopped; both outlive the program.
    let daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        \
                  time.sleep(600)\n    os._exit(0)\nos.wait()\nprint('done')";
    let stopped = "import os\nchild = os.fork()\nif child == 0:\n    os.kill(os.getpid(), 19)\n\
                   os.waitpid(child, os.WUNTRACED)\nprint('done')";
    for hotcell in everyone() {
        for code in [daemon, stopped] {
            let before = Before::look(&hotcell);
            let marked = mark(&hotcell);
            let running = hotcell.start(&["--timeout", "50s", &marked, "-l", "python", "-c", code]);
            let pid = running.pid();
            let answer = running.finish();
            assert_eq!(
                answer.whole(),
                (Some(0), "done\n".to_owned(), String::new())
            );
            assert!(answer.took < Duration::from_secs(20), "{:?}", answer.took);
            before.expect_nothing_left(pid);
        }
    }
}

/// Whether a process of a run has been stopped.
fn is_stopped(hotcell: &Hotcell) -> bool {
    processes(hotcell).iter().any(|process| {
        let pid = process.split(' ').next().unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") T ")
    })
}

/// What a program printed that was ended at its time limit, with nothing left of it.
fn timed_out(hotcell: &Hotcell, code: &str) -> String {
    let before = Before::look(hotcell);
    let marked = mark(hotcell);
    let asked = [
        "--json",
        "--timeout",
        "1s",
        &marked,
        "-l",
        "python",
        "-c",
        code,
    ];
    let running = hotcell.start(&asked);
    let pid = running.pid();
    let answer = running.finish();
    let result = answer.json();
    assert_eq!(
        (answer.code, &result["status"]),
        (Some(124), &json!("timeout"))
    );
    before.expect_nothing_left(pid);
    result["stdout"].as_str().unwrap().to_owned()
}
