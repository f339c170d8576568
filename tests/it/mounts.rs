//! Folders of the host that a caller grants, and the variables of its environment.

mod owned;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{Hotcell, everyone};

/// A folder of this user's, with a file in it.
fn folder(hotcell: &Hotcell, name: &str) -> String {
    hotcell.write(&format!("{name}/in.txt"), "from the host\n");
    let path = hotcell.place(name);
    // Root's cells have an id of nobody's, which the folder's own permissions hold.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("a mode can be set");
    path.display().to_string()
}

#[test]
fn a_mounted_folder_is_seen_and_only_written_to_if_that_was_granted() {
    for hotcell in everyone() {
        let host = folder(&hotcell, "data");
        let code = "cat in.txt; echo new > out.txt && cat out.txt";
        let run = |mount: &str, place: &str| {
            let mount = format!("{host}:{mount}");
            let code = format!("cd {place} && {{ {code}; }} 2>&1; true");
            hotcell
                .run(&["--mount", &mount, "-l", "sh", "-c", &code])
                .out()
        };
        for (mount, place) in [
            ("/data:ro", "/data"),
            ("data:ro", "/workspace/data"),
            ("/tmp/x:ro", "/tmp/x"),
        ] {
            let out = run(mount, place);
            assert!(
                out.contains("from the host") && out.contains("Read-only file system"),
                "{mount}: {out}"
            );
            assert!(!hotcell.place("data/out.txt").exists(), "{mount}");
        }
        for (mount, place) in [
            ("/data", "/data"),
            ("deep/er", "deep/er"),
            ("/tmp/x:rw", "/tmp/x"),
        ] {
            assert_eq!(
                run(mount, place),
                "from the host\nnew\n",
                "{mount} as {}",
                hotcell.name
            );
            assert_eq!(
                fs::read_to_string(hotcell.place("data/out.txt")).expect("it is there"),
                "new\n"
            );
            fs::remove_file(hotcell.place("data/out.txt")).expect("it can be removed");
        }
        // Control: nothing of it is there without the grant.
        let out = hotcell.run(&[
            "-l",
            "sh",
            "-c",
            &format!("ls {host} /data 2>&1 | grep -c 'No such file'"),
        ]);
        assert_eq!(out.out(), "2\n");
    }
}

#[test]
fn nothing_beside_a_mounted_folder_is_in_reach() {
    for hotcell in everyone() {
        let host = folder(&hotcell, "inside");
        hotcell.write("outside/secret.txt", "not for you");
        let link = hotcell.place("inside/link");
        std::os::unix::fs::symlink(hotcell.place("outside/secret.txt"), &link).expect("a link");
        std::os::unix::fs::symlink("../outside/secret.txt", hotcell.place("inside/near"))
            .expect("a link");
        let code = "cat /data/link /data/near /data/../outside/secret.txt; ls /data/..; \
            chmod u+s /data/in.txt; cd /data && mknod dev c 1 3; cat in.txt";
        for mode in ["", ":ro"] {
            let mount = format!("{host}:/data{mode}");
            let answer = hotcell.run(&["--mount", &mount, "-l", "sh", "-c", code]);
            assert!(!answer.out().contains("not for you"), "{}", answer.out());
            assert!(
                answer.out().ends_with("from the host\n"),
                "{}",
                answer.out()
            );
        }
        assert!(!hotcell.place("inside/dev").exists());
    }
}

#[test]
fn what_cannot_be_mounted_is_refused_before_anything_runs() {
    for hotcell in everyone() {
        let host = folder(&hotcell, "data");
        for (mounts, word) in [
            (vec![format!("{host}:/etc")], "taken"),
            (vec![format!("{host}:/workspace")], "taken"),
            (vec![format!("{host}:../x")], "`..`"),
            (vec!["/proc:/data".to_owned()], "system folders"),
            (vec!["/:/data".to_owned()], "system folders"),
            (vec![format!("{host}/in.txt:/data")], "not a folder"),
            (vec![format!("{host}/none:/data")], "cannot read"),
            (
                vec![format!("{host}:/data"), format!("{host}:/data/x")],
                "another folder",
            ),
            (vec![host.clone()], "HOST:PATH"),
        ] {
            let mut call: Vec<&str> = mounts
                .iter()
                .flat_map(|mount| ["--mount", mount.as_str()])
                .collect();
            call.extend(["-l", "sh", "-c", "echo ran"]);
            let answer = hotcell.run(&call);
            assert_eq!(
                (answer.code, answer.out()),
                (Some(2), String::new()),
                "{mounts:?}"
            );
            assert!(answer.err().contains(word), "{mounts:?}: {}", answer.err());
        }
    }
}

#[test]
fn the_configuration_mounts_for_every_run_and_passes_variables_by_name() {
    for hotcell in everyone() {
        let host = folder(&hotcell, "data");
        let config =
            format!("[env]\npass = ['TEAM', 'NONE']\n[[mount]]\nhost = '{host}'\ncell = '/data'\n");
        hotcell.write("home/.config/hotcell/config.toml", config);
        let run = |flags: &[&str]| {
            let mut command = hotcell.command();
            command
                .env("TEAM", "red")
                .env("OTHER", "blue")
                .arg("run")
                .args(flags);
            command.args([
                "--json",
                "-l",
                "sh",
                "-c",
                "cat /data/in.txt; env | grep -E '^(TEAM|OTHER|NONE)=' | sort",
            ]);
            crate::support::Running::start(&mut command).finish().json()
        };
        assert_eq!(run(&[])["stdout"], "from the host\nTEAM=red\n");
        assert_eq!(
            run(&["--env", "OTHER"])["stdout"],
            "from the host\nOTHER=blue\nTEAM=red\n"
        );
        assert_eq!(
            run(&["--env", "TEAM=own"])["stdout"],
            "from the host\nTEAM=own\n"
        );
        let unset = run(&["--env", "NONE"]);
        assert_eq!(unset["error"]["kind"], json!("invalid_request"), "{unset}");
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
    }
}

/// The programs of the hostile suite that attack the files around them.
#[test]
fn a_mounted_folder_opens_no_way_to_other_files() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../attacks/attacks.json")).expect("JSON");
    let cases = cases.as_array().expect("a list").iter().filter(|case| {
        case["category"] == "filesystem-escape"
            && ["python", "bash"].iter().any(|it| case["language"] == *it)
    });
    let cases: Vec<_> = cases.collect();
    assert!(cases.len() >= 8, "{}", cases.len());
    for hotcell in everyone() {
        let host = folder(&hotcell, "data");
        let mount = format!("{host}:/data");
        for case in &cases {
            let (code, language) = (case["code"].as_str(), case["language"].as_str());
            let call = [
                "--mount",
                &mount,
                "--json",
                "-l",
                language.expect("its language"),
                "-c",
                code.expect("its program"),
            ];
            let result = hotcell.run(&call).json();
            let out = result["stdout"].as_str().expect("text");
            // The root of a cell is its own, and gone with it.
            let breach = out
                .lines()
                .find(|line| line.starts_with("BREACH") && *line != "BREACH /");
            assert_eq!(breach, None, "{} as {}: {out}", case["id"], hotcell.name);
            assert!(
                !out.is_empty() || result["exit_code"].is_number(),
                "{}: {result}",
                case["id"]
            );
        }
    }
}

#[test]
fn a_cell_that_waited_sees_the_mounts_of_the_configuration_too() {
    for hotcell in everyone() {
        let host = folder(&hotcell, "data");
        let config = format!("[[mount]]\nhost = '{host}'\ncell = '/data'\nwrite = true\n");
        hotcell.write("home/.config/hotcell/config.toml", config);
        let mut command = hotcell.command();
        command.arg("serve");
        let mut client = crate::mcp::client::Client::of(command);
        client.begin();
        let code =
            "print(open('/data/in.txt').read(), end='')\nopen('/data/out.txt', 'a').write('x')\n";
        for turn in 1..=8 {
            let result = client.run(json!({ "code": code, "language": "python" }));
            assert_eq!(
                result["structuredContent"]["stdout"], "from the host\n",
                "{turn}: {result}"
            );
            let written = fs::read_to_string(hotcell.place("data/out.txt")).expect("it is there");
            assert_eq!(written.len(), turn);
            // Root's cells have different ids, and only the first one's file.
            let everybody = fs::Permissions::from_mode(0o666);
            fs::set_permissions(hotcell.place("data/out.txt"), everybody)
                .expect("a mode can be set");
        }
        fs::remove_file(hotcell.place("home/.config/hotcell/config.toml")).expect("it is there");
    }
}
