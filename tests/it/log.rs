//! What `HOTCELL_LOG` shows, and that nothing is shown without it.

use crate::support::{Answer, Hotcell, Running, anyone};

fn run(hotcell: &Hotcell, level: Option<&str>) -> Answer {
    let mut command = hotcell.command();
    command.envs(level.map(|level| ("HOTCELL_LOG", level)));
    let program = [
        "run",
        "--env=KEY=hidden-value",
        "-l",
        "sh",
        "-c",
        "echo out; echo err >&2",
    ];
    Running::start(command.args(program)).finish()
}

#[test]
fn the_log_is_off_unless_asked_for_and_goes_to_standard_error_alone() {
    let Some(hotcell) = anyone() else { return };
    for off in [None, Some(""), Some("off"), Some("error")] {
        let expected = (Some(0), "out\n".to_owned(), "err\n".to_owned());
        assert_eq!(run(&hotcell, off).whole(), expected, "{off:?}");
    }
    let answer = run(&hotcell, Some("trace"));
    assert_eq!((answer.code, answer.out()), (Some(0), "out\n".to_owned()));
    let told = answer.err();
    let ours = |line: &str| line.contains(" hotcell: starts version=");
    assert!(told.lines().any(ours), "{told}");
    for event in [
        "run starts language=",
        "sandbox started from=",
        "run ended how=",
    ] {
        assert!(told.contains(event), "{event}: {told}");
    }
    assert!(told.lines().any(|line| line == "err"), "{told}");
    // What a program is given and what it prints is no event of ours.
    let events = told.lines().filter(|line| *line != "err");
    for event in events {
        assert!(
            !event.contains("hidden-value") && !event.contains("out"),
            "{event}"
        );
        assert!(event.contains(" hotcell"), "a library speaks: {event}");
    }
}

#[test]
fn a_level_that_is_none_is_told_and_the_program_runs() {
    let Some(hotcell) = anyone() else { return };
    let told =
        "hotcell: HOTCELL_LOG is no level; there are off, error, warn, info, debug and trace\n";
    let expected = (Some(0), "out\n".to_owned(), format!("{told}err\n"));
    assert_eq!(run(&hotcell, Some("loud")).whole(), expected);
}
