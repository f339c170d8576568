//! Runtimes that are fetched: whole or not at all, from registries of the test's own and from the real ones.

mod hostile;
mod packed;
mod real;
pub mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::support::{
    Answer, Hotcell, PATIENCE, Running, anyone, eventually, everyone, open_to_all,
};
use packed::{deb, file, sha256, tgz, wheel};
use server::Server;

/// A language that nothing on this machine runs, and its runtime: a shell by another name.
const LANGUAGE: &str = "name = \"Tiny\"\n[runtime]\ncommands = [\"tinysh\"]\n\
    [source]\nfile = \"main.tiny\"\n[run]\nargv = [\"{runtime}\", \"{file}\", \"{args...}\"]\n";

fn shell() -> Vec<u8> {
    fs::read("/bin/dash")
        .or_else(|_| fs::read("/bin/sh"))
        .expect("a shell")
}

/// A recipe of one archive whose program is `bin/tinysh`.
fn recipe(from: &str, name: &str, file: &str, bytes: &[u8]) -> String {
    format!(
        "version = \"1.0\"\nlanguages = [\"tiny\"]\nprograms = {{ tinysh = \"bin/tinysh\" }}\n\
         [[archive]]\nfrom = \"{from}\"\nname = \"{name}\"\nfile = \"{file}\"\nsize = {}\nsha256 = \"{}\"\n",
        bytes.len(),
        sha256(bytes)
    )
}

/// Writes the language and its recipe where this user's hotcell finds them.
fn define(hotcell: &Hotcell, recipe: &str) {
    for (path, text) in [("languages/tiny", LANGUAGE), ("recipes/tiny", recipe)] {
        let path = format!("home/.config/hotcell/{path}.toml");
        open_to_all(&hotcell.write(&path, text));
    }
}

fn command(hotcell: &Hotcell, server: &Server, arguments: &[&str]) -> Command {
    let mut command = hotcell.command();
    command
        .env("NPM_CONFIG_REGISTRY", &server.address)
        .env(
            "UV_PYTHON_INSTALL_MIRROR",
            format!("{}/builds", server.address),
        )
        .env("PIP_INDEX_URL", format!("{}/simple/", server.address))
        .env(
            "HOTCELL_DEBIAN_MIRROR",
            format!("{}/debian", server.address),
        )
        .args(arguments);
    command
}

fn told(hotcell: &Hotcell, server: &Server, arguments: &[&str]) -> Answer {
    Running::start(&mut command(hotcell, server, arguments)).finish()
}

const ADD: &[&str] = &["languages", "add", "tiny"];
const HELLO: &[&str] = &["run", "-l", "tiny", "-c", "echo hello $1", "--", "you"];

fn runtimes(hotcell: &Hotcell) -> PathBuf {
    hotcell.place("home/.local/share/hotcell/runtimes")
}

/// Every file that is there of a runtime or of an attempt to get one.
fn left(hotcell: &Hotcell) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["downloads", "staging", "store", "bin", "first"] {
        let entries = fs::read_dir(runtimes(hotcell).join(folder));
        for entry in entries.into_iter().flatten().flatten() {
            found.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

fn one_archive(bytes: &[u8]) -> Server {
    Server::start([("/tiny/-/tiny-1.0.tgz".to_owned(), bytes.to_vec())])
}

fn npm(bytes: &[u8]) -> String {
    recipe("npm", "tiny", "tiny-1.0.tgz", bytes)
}

#[test]
fn a_runtime_is_fetched_from_each_kind_of_registry_runs_in_a_cell_and_goes_again() {
    let package = tgz(&[
        file("package/bin/tinysh", shell()),
        file("package/README", "x"),
    ]);
    let whl = wheel(&[
        ("tiny/bin/tinysh", &shell()),
        ("tiny-1.0.dist-info/RECORD", b"x"),
    ]);
    let debian = deb(&[
        file("./usr/bin/tinysh", shell()),
        file("./etc/tiny.conf", "x"),
    ]);
    let page = "<a href=\"../../files/tiny-1.0-py3-none-any.whl#sha256=0\">tiny</a>";
    let server = Server::start([
        ("/tiny/-/tiny-1.0.tgz".to_owned(), package.clone()),
        ("/simple/tiny/".to_owned(), page.into()),
        ("/files/tiny-1.0-py3-none-any.whl".to_owned(), whl.clone()),
        (
            "/debian/pool/t/tiny_1%2Bb_all.deb".to_owned(),
            debian.clone(),
        ),
        ("/anywhere/tiny.tgz".to_owned(), package.clone()),
    ]);
    let python = tgz(&[file("python/bin/tinysh", shell())]);
    server.with(|state| {
        let path = "/builds/20260101/tiny-1%2B2.tar.gz".to_owned();
        state.files.insert(path, python.clone())
    });
    let address = format!("{}/anywhere/tiny.tgz", server.address);
    // Of uv's builds only the hash is known.
    let build = recipe("python-builds", "tiny", "20260101/tiny-1+2.tar.gz", &python);
    let build = build.replace(&format!("size = {}\n", python.len()), "");
    let take = "take = { \"tiny\" = \"\" }\n";
    let recipes = [
        npm(&package),
        recipe("pypi", "tiny", "tiny-1.0-py3-none-any.whl", &whl) + take,
        recipe("debian", "tiny", "pool/t/tiny_1+b_all.deb", &debian),
        recipe("url", "tiny", &address, &package) + "take = { package = \"\" }\n",
        build,
    ];
    for hotcell in everyone() {
        for recipe in &recipes {
            define(&hotcell, recipe);
            // Control: nothing runs it yet.
            assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));

            let added = told(&hotcell, &server, ADD);
            assert_eq!(added.code, Some(0), "{}", added.err());
            assert!(
                added.err().contains("fetching tiny 1.0 from "),
                "{}",
                added.err()
            );
            let ran = told(&hotcell, &server, HELLO);
            assert_eq!(
                ran.whole(),
                (Some(0), "hello you\n".to_owned(), String::new())
            );

            let listed = told(&hotcell, &server, &["languages", "--json"]).json();
            let rows = listed.as_array().unwrap();
            let row = rows.iter().find(|row| row["id"] == "tiny").unwrap();
            let program = PathBuf::from(row["path"].as_str().unwrap());
            assert!(
                program.starts_with(runtimes(&hotcell).join("store")),
                "{row}"
            );
            let mode = fs::metadata(&program).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o755, "it may be run and nothing else");

            let again = told(&hotcell, &server, ADD);
            assert!(again.out().contains("runs already"), "{}", again.out());
            let removed = told(&hotcell, &server, &["languages", "remove", "tiny"]);
            assert_eq!(
                removed.out(),
                "removed tiny 1.0 (for tiny)\n",
                "{}",
                removed.err()
            );
            assert_eq!(left(&hotcell), [""; 0]);
            assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));
        }
    }
}

#[test]
fn a_damaged_runtime_is_not_run_and_is_repaired() {
    let package = tgz(&[
        file("package/bin/tinysh", shell()),
        file("package/lib/more", "as it was"),
    ]);
    let server = one_archive(&package);
    for hotcell in everyone() {
        define(&hotcell, &npm(&package));
        told(&hotcell, &server, ADD);
        let tree = fs::read_dir(runtimes(&hotcell).join("store"))
            .expect("a store")
            .flatten()
            .next()
            .expect("a runtime")
            .path()
            .join("tree");
        // The control: untouched, and touched without a change, it runs.
        assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
        let more = tree.join("lib/more");
        fs::write(&more, "as it was").expect("ours");
        assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
        type Damage<'a> = &'a dyn Fn();
        let damages: [Damage<'_>; 3] = [
            &|| fs::write(&more, "as it is!").expect("ours"),
            &|| fs::write(tree.join("lib/another"), "").expect("ours"),
            &|| fs::remove_file(&more).expect("ours"),
        ];
        for (at, damage) in damages.iter().enumerate() {
            damage();
            let refused = told(&hotcell, &server, HELLO);
            assert_eq!(
                (refused.code, refused.out()),
                (Some(2), String::new()),
                "{at}"
            );
            let err = refused.err();
            assert!(
                err.contains("is damaged: it is not as it was fetched"),
                "{err}"
            );
            assert!(err.contains("`hotcell languages add tiny`"), "{err}");
            let added = told(&hotcell, &server, ADD);
            assert_eq!(added.code, Some(0), "{}", added.err());
            assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n", "{at}");
        }
        // Where that is allowed, a run repairs it by itself, and says so.
        damages[0]();
        hotcell.write("home/.config/hotcell/config.toml", "auto_install = true\n");
        let repaired = told(&hotcell, &server, HELLO);
        assert_eq!(repaired.out(), "hello you\n", "{}", repaired.err());
        assert_eq!(fs::read_to_string(&more).expect("a file"), "as it was");
    }
}

#[test]
fn a_file_that_is_not_the_pinned_one_is_refused_and_leaves_nothing() {
    let Some(hotcell) = anyone() else { return };
    let good = tgz(&[file("package/bin/tinysh", shell())]);
    let mut other = good.clone();
    *other.last_mut().unwrap() ^= 1;
    let longer = [good.as_slice(), b"x"].concat();
    define(&hotcell, &npm(&good));
    for (served, why) in [(&other, "its SHA-256 is"), (&longer, "it has more than")] {
        let server = one_archive(served);
        let answer = told(&hotcell, &server, ADD);
        assert_eq!(answer.code, Some(125), "{}", answer.err());
        assert!(answer.err().contains(why), "{}", answer.err());
        assert!(
            answer.err().contains("hint: Use another mirror"),
            "{}",
            answer.err()
        );
        assert_eq!(left(&hotcell), [""; 0]);
        assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));
    }
    // Control: the pinned one is taken.
    let server = one_archive(&good);
    assert_eq!(told(&hotcell, &server, ADD).code, Some(0));
    assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
}

#[test]
fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let half = archive.len() / 2;
    server.with(|state| state.cut = Some(half));
    let broken = told(&hotcell, &server, ADD);
    assert_eq!(broken.code, Some(125));
    let said = format!("stopped at {half} of {} bytes", archive.len());
    assert!(broken.err().contains(&said), "{}", broken.err());
    assert!(
        broken.err().contains("continues where it stopped"),
        "{}",
        broken.err()
    );
    assert_eq!(left(&hotcell), [format!("downloads/{}", sha256(&archive))]);
    assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));

    server.with(|state| (state.cut, state.bytes_sent) = (None, 0));
    let added = told(&hotcell, &server, ADD);
    assert_eq!(added.code, Some(0), "{}", added.err());
    server.with(|state| {
        let last = state.asked.last().unwrap();
        assert_eq!(last.1, Some(format!("bytes={half}-")));
        assert_eq!(state.bytes_sent, archive.len() - half);
    });
    assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
    assert!(left(&hotcell).iter().all(|it| !it.starts_with("downloads")));
}

#[test]
fn a_server_that_cannot_go_on_in_the_middle_is_asked_for_everything() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    server.with(|state| (state.cut, state.ranges) = (Some(1000), false));
    assert_eq!(told(&hotcell, &server, ADD).code, Some(125));
    server.with(|state| (state.cut, state.bytes_sent) = (None, 0));
    assert_eq!(told(&hotcell, &server, ADD).code, Some(0));
    assert_eq!(server.with(|state| state.bytes_sent), archive.len());
    assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
}

#[test]
fn a_download_that_is_interrupted_leaves_no_runtime_and_goes_on_later() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let half = archive.len() / 2;
    // The rest does not come, and the line stays open.
    server.with(|state| (state.cut, state.stalls) = (Some(half), true));
    let adding = Running::start(&mut command(&hotcell, &server, ADD));
    let kept = format!("downloads/{}", sha256(&archive));
    let partial = runtimes(&hotcell).join(&kept);
    let arrived = || fs::metadata(&partial).is_ok_and(|it| it.len() == half as u64);
    assert!(eventually(PATIENCE, arrived));
    adding.signal(Signal::INT);
    let answer = adding.finish();
    assert_ne!(answer.code, Some(0));
    assert_eq!(left(&hotcell), [kept]);
    assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));

    server.with(|state| (state.cut, state.stalls, state.bytes_sent) = (None, false, 0));
    let added = told(&hotcell, &server, ADD);
    assert_eq!(added.code, Some(0), "{}", added.err());
    assert_eq!(server.with(|state| state.bytes_sent), archive.len() - half);
    assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
}

#[test]
fn what_cannot_be_added_is_told_with_what_to_do_instead() {
    let Some(hotcell) = anyone() else { return };
    let said = |arguments: &[&str]| {
        let mut command = hotcell.command();
        let answer = Running::start(command.args(["languages", "add"]).args(arguments)).finish();
        assert_ne!(answer.code, Some(0), "{arguments:?}");
        answer.err()
    };
    let err = said(&["vbscript"]);
    assert!(
        err.contains("runs only on Windows (needs cscript)"),
        "{err}"
    );
    let err = said(&["julia"]);
    assert!(err.contains("there is no recipe for `julia`"), "{err}");
    assert!(
        err.contains("hint: Julia is not in this system's packages"),
        "{err}"
    );
    let err = said(&["--apt", "julia"]);
    assert!(err.contains("hint: Julia is not in"), "{err}");
    // The name of a recipe is understood as what it runs.
    let err = said(&["--recipe", "nope", "bun"]);
    assert!(err.contains("`typescript` has no recipe `nope`"), "{err}");
    let err = said(&["--recipe", "nope", "python"]);
    assert!(err.contains("`python` has no recipe `nope`"), "{err}");
    assert!(
        err.contains("hint: Choose one of: python, python-debian."),
        "{err}"
    );
}

#[test]
fn two_at_once_install_once() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let start = || Running::start(&mut command(&hotcell, &server, ADD));
    let both: Vec<Running> = (0..4).map(|_| start()).collect();
    for one in both {
        let answer = one.finish();
        assert_eq!(answer.code, Some(0), "{}", answer.err());
    }
    assert_eq!(server.count("tiny-1.0.tgz"), 1);
    assert_eq!(told(&hotcell, &server, HELLO).out(), "hello you\n");
}

#[test]
fn without_a_network_it_says_so_and_leaves_nothing() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let mut nowhere = command(&hotcell, &server, ADD);
    // Nobody listens there: ports this low are root's, and none of them is used.
    nowhere.env("NPM_CONFIG_REGISTRY", "http://me:secret@127.0.0.1:1");
    let answer = Running::start(&mut nowhere).finish();
    assert_eq!(answer.code, Some(125));
    let said = "hotcell: cannot reach http://127.0.0.1:1/tiny/-/tiny-1.0.tgz: ";
    assert!(answer.err().contains(said), "{}", answer.err());
    assert!(!answer.err().contains("secret"), "{}", answer.err());
    assert!(
        answer.err().contains("hint: Check the network"),
        "{}",
        answer.err()
    );
    assert!(answer.took.as_secs() < 20);
    assert_eq!(left(&hotcell), [""; 0]);
    // Control.
    assert_eq!(told(&hotcell, &server, ADD).code, Some(0));
}

#[test]
fn a_proxy_of_the_environment_is_used() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let with = |proxy: &[(&str, &str)]| {
        let mut command = command(&hotcell, &server, ADD);
        // Reserved for examples: no machine has it.
        command.env("NPM_CONFIG_REGISTRY", "http://192.0.2.1:9");
        command.envs(proxy.iter().copied());
        Running::start(&mut command).finish()
    };
    let proxy = ("HTTP_PROXY", server.address.as_str());
    let direct = with(&[proxy, ("NO_PROXY", "192.0.2.1")]);
    assert_eq!((direct.code, server.count("tgz")), (Some(125), 0));
    let through = with(&[proxy]);
    assert_eq!(through.code, Some(0), "{}", through.err());
    let asked = server.with(|state| state.asked[0].0.clone());
    assert_eq!(asked, "http://192.0.2.1:9/tiny/-/tiny-1.0.tgz");
}

#[test]
fn on_a_full_disk_nothing_is_half_installed_and_a_later_try_goes_on() {
    for hotcell in everyone() {
        // Cannot be packed, so that there is room for the archive and not for what is in it.
        let noise: Vec<u8> = (0..3_000_000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let archive = tgz(&[
            file("package/bin/tinysh", shell()),
            file("package/noise", noise),
        ]);
        let server = one_archive(&archive);
        define(&hotcell, &npm(&archive));
        let data = hotcell.make_folder("home/.local/share/hotcell");
        // A disk of its own, in a mount namespace of its own, that something else fills.
        let script = format!(
            "mount -t tmpfs -o size=64m,mode=777 none {data} || exit 99\n\
             head -c {filled} /dev/zero > {data}/filled\n\
             $1 languages add tiny; echo $?; ls {data}/runtimes/store {data}/runtimes/bin {data}/runtimes/staging\n\
             rm {data}/filled\n\
             $1 languages add tiny; echo $?; ls {data}/runtimes/bin",
            filled = (64 << 20) - archive.len() - (2 << 20),
            data = data.display()
        );
        let mut command = Command::new("unshare");
        let namespaces = if hotcell.uid == 0 { "-m" } else { "-rm" };
        hotcell.dress(&mut command);
        command
            .env("NPM_CONFIG_REGISTRY", &server.address)
            .args([namespaces, "sh", "-c", &script, "sh"])
            .arg(hotcell.binary());
        let answer = Running::start(&mut command).finish();
        let (out, err) = (answer.out(), answer.err());
        assert!(err.contains("No space left on device"), "{out} {err}");
        assert!(err.contains("hint: Make room in "), "{err}");
        let lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 7, "{out} {err}");
        assert_eq!(lines[0], "125");
        assert!(lines[1..4].iter().all(|line| line.ends_with(':')), "{out}");
        assert_eq!(lines[4].split(' ').next(), Some("`tiny`"), "{out}");
        assert_eq!(lines[5..], ["0", "tinysh"]);
        assert_eq!(server.count("tiny-1.0.tgz"), 1, "it was fetched again");
    }
}

#[test]
fn a_fetched_runtime_comes_after_path_unless_it_is_preferred() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let own = hotcell.make_folder("opt/tiny/bin").join("tinysh");
    fs::write(&own, shell()).unwrap();
    open_to_all(&own);
    let run = |arguments: &[&str]| {
        let mut command = command(&hotcell, &server, arguments);
        let path = format!("{}:/usr/bin:/bin", own.parent().unwrap().display());
        command.env("PATH", path);
        Running::start(&mut command).finish()
    };
    let path =
        || run(&["run", "--json", "-l", "tiny", "-c", "true"]).json()["runtime"]["path"].clone();
    let refused = run(ADD);
    assert!(refused.out().contains("runs already"), "{}", refused.out());
    assert_eq!(server.count("tgz"), 0);
    assert_eq!(path(), own.to_str().unwrap());
    let preferred = run(&["languages", "add", "tiny", "--prefer"]);
    assert_eq!(preferred.code, Some(0), "{}", preferred.err());
    assert!(Path::new(path().as_str().unwrap()).starts_with(runtimes(&hotcell)));
}

#[test]
fn a_missing_runtime_is_fetched_unasked_only_if_the_configuration_says_so_and_never_in_silence() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[file("package/bin/tinysh", shell())]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    // Control: without it nothing is even asked for.
    assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));
    assert_eq!(server.count(""), 0);

    hotcell.write("home/.config/hotcell/config.toml", "auto_install = true\n");
    // A plan downloads nothing, and says what is missing.
    let planned = told(
        &hotcell,
        &server,
        &[&HELLO[..1], &["--plan"], &HELLO[1..]].concat(),
    );
    assert_eq!((planned.code, server.count("")), (Some(2), 0));
    assert!(
        planned.err().contains("no runtime for"),
        "{}",
        planned.err()
    );

    let ran = told(&hotcell, &server, HELLO);
    assert_eq!(
        (ran.code, ran.out()),
        (Some(0), "hello you\n".to_owned()),
        "{}",
        ran.err()
    );
    assert!(
        ran.err().contains("fetching tiny 1.0 from "),
        "{}",
        ran.err()
    );
    assert!(
        ran.err().contains("fetched tiny 1.0 for this run"),
        "{}",
        ran.err()
    );
    let quiet = told(&hotcell, &server, HELLO);
    assert_eq!(
        quiet.whole(),
        (Some(0), "hello you\n".to_owned(), String::new())
    );
}
