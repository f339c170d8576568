//! A program that lies to the server in its worker's place: it deceives its own caller and nobody else.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{call, call_with, note, serve};
use crate::mcp::client::Client;
use crate::support::everyone;

/// Finds the worker's two ends of the channel, as any program can.
const FIND: &str = "
import os, stat
def ends():
    found = [int(name) for name in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{name}')]
    fifos = [fd for fd in found if fd > 2 and stat.S_ISFIFO(os.fstat(fd).st_mode)]
    modes = {fd: os.open for fd in fifos}
    import fcntl
    return {('r', 'w')[fcntl.fcntl(fd, fcntl.F_GETFL) & 3]: fd for fd in fifos}
found = ends()
";

/// The server goes on, and a new session has nothing of the old one.
fn still_serves(client: &mut Client) {
    let run = client.run(json!({ "code": "print(6 * 7)", "language": "python" }));
    assert_eq!(run["structuredContent"]["stdout"], "42\n");
    let call = json!({ "session": "other", "language": "python", "code": "6 * 7" });
    assert_eq!(call_with(client, call)["value"], "42");
}

#[test]
fn a_forged_answer_ends_its_own_call_and_is_bounded() {
    for hotcell in everyone() {
        let mut client = serve(&hotcell, &[]);
        assert_eq!(
            call(&mut client, &format!("{FIND}\nsorted(found)"))["value"],
            "['r', 'w']"
        );
        // Its own call ends with what it says; the true answer, which comes later, is nobody's.
        let facts = call(
            &mut client,
            "os.write(found['w'], b'done 2 9 6\\nforged')\nimport time\ntime.sleep(0.5)",
        );
        assert_eq!(
            (&facts["exit_code"], &facts["status"]),
            (&json!(9), &json!("failed")),
            "{facts}"
        );
        let facts = call(&mut client, "1 + 1");
        assert_eq!(facts["value"], "2", "{facts}");
        // What it says beforehand is not an answer to what comes.
        call(&mut client, "os.write(found['w'], b'done 5 7 0\\n' * 100)");
        let facts = call(&mut client, "2 + 2");
        assert_eq!(
            (&facts["value"], &facts["exit_code"]),
            (&json!("4"), &json!(0)),
            "{facts}"
        );
        still_serves(&mut client);
    }
}

#[test]
fn what_no_worker_says_ends_the_session_and_only_that() {
    for hotcell in everyone() {
        for lie in [
            "b'x' * 100_000",
            "b'done 99 0 0\\n'",
            "b'done 2 0 99999999999\\n'",
            "b'done 2 0 0 0\\n'",
            "b'\\xff\\n'",
            "b'done 1 0 0\\n' * 5000",
        ] {
            let mut client = serve(&hotcell, &[]);
            call(&mut client, FIND);
            let begun = Instant::now();
            let facts = call(
                &mut client,
                &format!(
                    "said = {lie}\nwhile said: said = said[os.write(found['w'], said):]\nwhile True: pass"
                ),
            );
            assert!(begun.elapsed() < Duration::from_secs(20), "{lie}");
            assert_eq!(facts["signal"], "SIGKILL", "{lie}: {facts}");
            assert!(note(&facts).contains("are lost"), "{facts}");
            still_serves(&mut client);
        }
    }
}

#[test]
fn a_channel_that_is_closed_drained_or_replaced_costs_the_session_and_touches_nothing_else() {
    for hotcell in everyone() {
        let secret = hotcell.write("home/secret", "untouched");
        for end in [
            "os.close(found['r'])",
            "os.close(found['w'])",
            "os.dup2(os.open('/dev/zero', os.O_RDONLY), found['r'])",
        ] {
            let mut client = serve(&hotcell, &[]);
            call(&mut client, FIND);
            let arguments = json!({ "code": end, "language": "python", "timeout": 2 });
            call_with(&mut client, arguments.clone());
            call_with(
                &mut client,
                json!({ "code": "1", "language": "python", "timeout": 2 }),
            );
            still_serves(&mut client);
        }
        // No path of the workspace is opened for the channel again, whatever is put there.
        let mut client = serve(&hotcell, &[]);
        let replaced = format!(
            "import os\nfor name in ('calls', 'answers', 'stdin'):\n    os.symlink({:?}, '/workspace/.home/.hotcell/' + name)\n",
            secret.display().to_string()
        );
        assert_eq!(call(&mut client, &replaced)["status"], "ok");
        let facts = call_with(
            &mut client,
            json!({ "code": "input()", "language": "python", "stdin": "given" }),
        );
        assert_eq!(facts["value"], "'given'", "{facts}");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "untouched");
        // And where a folder of ours was, a link leads nowhere outside.
        let folder = hotcell.make_folder("home/outside");
        let linked = format!(
            "import shutil\nshutil.rmtree('/workspace/.home/.hotcell')\nos.symlink({:?}, '/workspace/.home/.hotcell')",
            folder.display().to_string()
        );
        assert_eq!(call(&mut client, &linked)["status"], "ok");
        let facts = call_with(
            &mut client,
            json!({ "code": "1", "language": "python", "stdin": "given" }),
        );
        assert_eq!(facts["status"], "rejected", "{facts}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(call(&mut client, "1")["value"], "1");
        still_serves(&mut client);
    }
}

#[test]
fn endless_output_is_bounded_and_a_thread_that_goes_on_prints_into_the_next_answer() {
    let Some(hotcell) = crate::support::anyone() else {
        return;
    };
    let mut client = serve(&hotcell, &[]);
    let facts = call_with(
        &mut client,
        json!({ "code": "while True: print('x' * 1000)", "language": "python", "timeout": 2 }),
    );
    assert!(facts["stdout"].as_str().unwrap().len() < 30_000);
    assert!(note(&facts).contains("interrupted"), "{facts}");
    call(
        &mut client,
        "import threading, time\nthreading.Timer(0.2, lambda: print('later')).start()",
    );
    std::thread::sleep(Duration::from_millis(600));
    let facts = call(&mut client, "print('now')");
    assert_eq!(facts["stdout"], "later\nnow\n");
}
