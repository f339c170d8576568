//! Engines are programs in cells like any other: they end at their limits and reach nothing.

use super::run;
use crate::support::{anyone, everyone};

#[test]
fn an_endless_program_is_ended_and_what_it_printed_is_kept() {
    let Some(hotcell) = anyone() else { return };
    for (language, code) in [
        ("javascript", "console.log('before'); for (;;);"),
        // No call is made in there, so nothing inside could stop it.
        ("javascript", "console.log('before'); new Array(3e8) + ''"),
        ("lua", "print('before') while true do end"),
        (
            "sql",
            ".headers off\nselect 'before'; with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n;",
        ),
        ("jq", "\"before\", last(repeat(1))"),
        ("wat", "(module (func (export \"f\") (loop br 0)))"),
    ] {
        let arguments = ["--json", "--timeout", "1", "-l", language, "-c", code];
        let record = run(&hotcell, "null", &arguments).json();
        assert_eq!(record["status"], "timeout", "{language}: {record}");
        let kept = record["stdout"].as_str().unwrap_or_default();
        assert!(
            language == "wat" || language == "jq" || kept.contains("before"),
            "{language}: {record}"
        );
    }
}

#[test]
fn a_program_that_takes_all_memory_is_out_of_it() {
    let Some(hotcell) = anyone() else { return };
    for (language, code) in [
        (
            "javascript",
            "const all = []; for (;;) all.push(new Array(1000).fill(1))",
        ),
        (
            "lua",
            "local all = {} while true do all[#all + 1] = string.rep('x', 100000) .. #all end",
        ),
        (
            "sql",
            "create table t(a); with recursive n(i) as (select 1 union all select i + 1 from n) insert into t select zeroblob(100000) from n;",
        ),
    ] {
        let arguments = ["--json", "--memory", "96m", "-l", language, "-c", code];
        let record = run(&hotcell, "", &arguments).json();
        assert_eq!(record["status"], "memory", "{language}: {record}");
    }
}

#[test]
fn nothing_that_an_engine_starts_can_reach_our_binary() {
    for hotcell in everyone() {
        // Control: what it starts can read its own program, by the same kind of path.
        let code = "os.execute('/bin/head -c 4 /proc/self/exe | /usr/bin/od -An -c')\n\
                    print(os.execute('/bin/head -c 4 /proc/' .. io.open('/proc/self/stat'):read('n') .. '/exe'))\n\
                    print(io.open('/proc/self/exe', 'r+'))";
        let answer = run(&hotcell, "", &["-l", "lua", "-c", code]);
        let lines: Vec<String> = answer.out().lines().map(str::to_owned).collect();
        assert!(
            lines[0].contains("E   L   F"),
            "{} {}",
            answer.out(),
            answer.err()
        );
        assert_eq!(
            lines[1],
            "nil\texit\t1",
            "{} {}",
            answer.out(),
            answer.err()
        );
        assert!(
            lines[2].starts_with("nil\t/proc/self/exe: "),
            "{}",
            answer.out()
        );
        assert!(answer.err().contains("/exe"), "{}", answer.err());
        // A cell whose program is another has no descriptor of it.
        let open = hotcell.run(&["-l", "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"]);
        assert_eq!(open.out(), "0 1 2 3 ", "{}", open.err());
    }
}
