//! What deno imports by address: only from a host that the run was granted.

use super::stage::Stage;
use crate::support::{Hotcell, anyone, skip};

/// Fetches deno by our own recipe, which needs the real network.
fn with_deno() -> Option<Hotcell> {
    let hotcell = anyone()?;
    let added = hotcell
        .command()
        .args(["languages", "add", "deno"])
        .output();
    let added = added.expect("it can be started");
    let bin = hotcell
        .home()
        .join(".local/share/hotcell/runtimes/bin/deno");
    if !bin.exists() {
        skip(&format!(
            "no deno: {}",
            String::from_utf8_lossy(&added.stderr)
        ));
        return None;
    }
    Some(hotcell)
}

const BY_ADDRESS: &str = "import facts from 'http://allowed.test/x.json' with { type: 'json' };\n\
    import { basename } from 'node:path'; console.log(basename(facts.path))";
const FROM_JSR: &str = "import { greet } from 'jsr:@stage/greet@^1'; console.log(greet('you'))";

#[test]
fn imports_by_address_and_of_jsr_need_their_host_granted() {
    let Some(stage) = Stage::set() else { return };
    let Some(hotcell) = with_deno() else { return };
    let jsr = ["--env", "JSR_URL=http://allowed.test/"];
    for language in ["typescript", "javascript"] {
        for (code, says) in [(BY_ADDRESS, "x.json\n"), (FROM_JSR, "hello you\n")] {
            let run = |flags: &[&str]| {
                let call = [&jsr, flags, &["-l", language, "-c", code]].concat();
                stage.json(&hotcell, &call)
            };
            stage.log();
            // Without a grant nobody is asked, and the hint is what grants it.
            let denied = run(&[]);
            let error = &denied["error"];
            assert_eq!(
                (&error["kind"], &denied["stdout"]),
                (&"denied".into(), &"".into()),
                "{denied}"
            );
            assert_eq!(error["hint"], "Grant `allowed.test` with `--network`.");
            let other = run(&["--network", "port.test:5432"]);
            assert_eq!(
                other["network"]["denied"][0]["grant"], "allowed.test",
                "{other}"
            );
            assert_eq!(stage.dialled(), Vec::<String>::new());
            // Control.
            let granted = run(&["--network", "allowed.test"]);
            assert_eq!(granted["stdout"], says, "{language}: {granted}");
            assert_eq!(granted["runtime"]["name"], "deno");
        }
    }
}
