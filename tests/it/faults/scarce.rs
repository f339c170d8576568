//! Runs on a host that has run out of something.

use std::fs::File;
use std::process::Command;

use crate::support::left::Before;
use crate::support::{Answer, Hotcell, PATIENCE, Running, eventually, everyone, has, ordinary};

#[test]
fn a_program_sees_when_its_workspace_is_full() {
    let fill = "import os, sys
written = 0
try:
    with open(sys.argv[1], 'wb', 0) as file:
        while True: written += file.write(bytes(1 << 20))
except OSError as error:
    print(error.strerror, written > 10 << 20)
    os.unlink(sys.argv[1])
    with open(sys.argv[1], 'w') as file: print(file.write('fits again'))
    os.unlink(sys.argv[1])
    sys.exit(7)";
    for hotcell in everyone() {
        for file in ["/workspace/big", "/tmp/big", "/dev/shm/big"] {
            let asked = ["--memory", "128m", "-l", "python", "-c", fill, "--", file];
            let answer = hotcell.run(&asked);
            let told = "No space left on device True\n10\n".to_owned();
            assert_eq!(answer.whole(), (Some(7), told, String::new()), "{file}");
        }
        // One that does not look fails by itself, and its output until then is there.
        let careless =
            "print('partial')\nopen('big', 'wb').write(bytes(90 << 20) + bytes(9 << 20))";
        let result = hotcell.json(&["--memory", "120m", "-l", "python", "-c", careless]);
        assert_eq!(result["stdout"], "partial\n", "{result}");
        assert!(
            ["failed", "memory"].contains(&result["status"].as_str().unwrap()),
            "{result}"
        );
    }
}

#[test]
fn a_file_larger_than_the_workspace_is_an_error_of_ours_with_its_name() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let large = hotcell.write("home/large.bin", "");
        File::options()
            .write(true)
            .open(&large)
            .unwrap()
            .set_len(100 << 20)
            .unwrap();
        let asked = ["--memory", "64m", "-l", "sh", "-c", "echo ran", "--file"];
        let running = hotcell.start(&[&asked[..], &[large.to_str().unwrap()]].concat());
        let pid = running.pid();
        let answer = running.finish();
        let told = "hotcell: cannot write `large.bin` into the workspace: No space left on device (os error 28)\n";
        assert_eq!((answer.code, answer.out()), (Some(125), String::new()));
        let hint = "hint: Raise `--memory`: files in the workspace are a part of it.\n";
        assert_eq!(answer.err(), format!("{told}{hint}"));
        before.expect_nothing_left(pid);
    }
}

#[test]
fn without_free_descriptors_a_run_works_or_says_so() {
    for hotcell in everyone() {
        let before = Before::look(&hotcell);
        let mut worked = 0;
        for limit in 3..=60 {
            let (pid, answer) = limited(&hotcell, &format!("ulimit -n {limit}"));
            expect_reason(
                &answer,
                "Too many open files",
                &format!("{limit} descriptors"),
            );
            worked += u32::from(answer.code == Some(0));
            before.expect_nothing_left(pid);
        }
        assert!(worked > 0, "60 descriptors are enough");
    }
}

#[test]
fn a_folder_of_many_files_takes_few_descriptors() {
    for hotcell in everyone() {
        for at in 0..200 {
            hotcell.write(&format!("home/many/{at}.txt"), "x");
        }
        let folder = hotcell.place("home/many");
        let script = format!(
            "ulimit -n 60 && exec {} run --file {} -l sh -c 'ls many | wc -l'",
            hotcell.binary().display(),
            folder.display()
        );
        let mut command = Command::new("/bin/bash");
        hotcell.dress(command.args(["-c", &script]));
        let answer = Running::start(&mut command).finish();
        assert_eq!(
            answer.out().trim(),
            "200",
            "{}: {}",
            hotcell.name,
            answer.err()
        );
    }
}

#[test]
fn when_no_process_can_be_made_a_run_says_so() {
    if !has("bash") {
        return;
    }
    // The limit counts all processes of a user, and does not bind root.
    let Some(hotcell) = ordinary() else { return };
    let before = Before::look(&hotcell);
    let mut refused = 0;
    for limit in 1..=20 {
        let (pid, answer) = limited(&hotcell, &format!("ulimit -u {limit}"));
        let what = format!("{limit} processes");
        expect_reason(&answer, "Resource temporarily unavailable", &what);
        refused += u32::from(answer.code == Some(125));
        before.expect_nothing_left(pid);
    }
    assert!(refused > 0, "one process is not enough");
}

#[test]
fn limits_that_the_user_has_already_are_no_obstacle() {
    if !has("bash") {
        return;
    }
    for hotcell in everyone() {
        // Hard limits below ours: none can be raised again, nor need it be.
        for limit in [
            "-c 0", "-s 8192", "-f 1000", "-t 20", "-u 100", "-n 256", "-i 100",
        ] {
            let whole = (Some(0), "ran\n".to_owned(), String::new());
            let run = || limited(&hotcell, &format!("ulimit {limit}")).1;
            let mut answer = run();
            // Processes are counted by user, and the servers of other tests are root's too: they pass.
            if limit.starts_with("-u") && hotcell.uid == 0 {
                eventually(PATIENCE, || {
                    let refused = answer.err().contains("Resource temporarily unavailable");
                    if refused {
                        answer = run();
                    }
                    !refused
                });
            }
            assert_eq!(answer.whole(), whole, "ulimit {limit} as {}", hotcell.name);
        }
    }
}

/// A run below a limit that the shell sets.
fn limited(hotcell: &Hotcell, limit: &str) -> (u32, Answer) {
    let mut command = Command::new("/bin/bash");
    let binary = hotcell.binary();
    let script = format!(
        "{limit} && exec {} run -l sh -c 'echo ran'",
        binary.display()
    );
    hotcell.dress(command.args(["-c", &script]));
    let running = Running::start(&mut command);
    (running.pid(), running.finish())
}

/// It ran, or it says what was missing and what to do.
fn expect_reason(answer: &Answer, reason: &str, context: &str) {
    let said = answer.err();
    match answer.code {
        Some(0) => assert_eq!(answer.out(), "ran\n", "{context}"),
        // Too few to even look for the interpreter.
        Some(2) => assert!(said.contains(reason), "{context}: {said}"),
        code => {
            assert_eq!(
                (code, answer.out()),
                (Some(125), String::new()),
                "{context}: {said}"
            );
            assert!(
                said.starts_with("hotcell: ") && said.contains(reason),
                "{context}: {said}"
            );
            assert!(
                said.contains("\nhint: Raise the limit"),
                "{context}: {said}"
            );
        }
    }
}
