//! Archives that want to write elsewhere, in pairs with ones that do not.

use std::fs;

use tar::EntryType;

use super::packed::{Entry, deb, file, link, other, tgz};
use super::{ADD, HELLO, Server, define, left, npm, one_archive, recipe, shell, told};
use crate::support::{anyone, everyone};

fn honest() -> Entry {
    file("package/bin/tinysh", shell())
}

#[test]
fn an_archive_that_leads_out_of_its_folder_is_refused_whole() {
    let cases: Vec<(&str, Vec<Entry>)> = vec![
        (
            "leads out of its folder",
            vec![file("package/../../../escaped", "x")],
        ),
        (
            "leads out of its folder",
            vec![file("/tmp/hotcell-escaped", "x")],
        ),
        ("leads out of its folder", vec![file("../package/x", "x")]),
        (
            "leads out of its folder",
            vec![link("package/a", "/etc/passwd")],
        ),
        (
            "leads out of its folder",
            vec![link("package/a", "../../..")],
        ),
        (
            "leads out of its folder",
            vec![link("package/b/a", "../../x")],
        ),
        // Each says something harmless; together they lead out.
        (
            "leads out of its folder",
            vec![
                link("package/x/up", "."),
                link("package/out", "x/up/up/up/../.."),
                file("package/x/f", "x"),
            ],
        ),
        // Written through a link that the archive itself made.
        (
            "is a file and a folder",
            vec![file("package/a", "x"), file("package/a/b", "x")],
        ),
        (
            "is in it twice",
            vec![file("package/a", "x"), file("package/a", "y")],
        ),
        (
            "leads out of its folder",
            vec![other("package/a", EntryType::Link, "../../../etc/passwd")],
        ),
        (
            "neither a file nor",
            vec![other("package/a", EntryType::Char, "")],
        ),
        (
            "neither a file nor",
            vec![other("package/a", EntryType::Fifo, "")],
        ),
        ("control character", vec![file("package/a\nb", "x")]),
    ];
    for hotcell in everyone() {
        for (why, entries) in &cases {
            let all: Vec<Entry> = entries.iter().map(copy).chain([honest()]).collect();
            let archive = tgz(&all);
            let server = one_archive(&archive);
            define(&hotcell, &npm(&archive));
            let answer = told(&hotcell, &server, ADD);
            let name = entries[0].name;
            assert_eq!(answer.code, Some(125), "{name}: {}", answer.err());
            assert!(answer.err().contains(why), "{name}: {}", answer.err());
            assert_eq!(left(&hotcell), [""; 0], "{name}");
            assert_eq!(told(&hotcell, &server, HELLO).code, Some(2));
        }
        assert!(!fs::exists("/tmp/hotcell-escaped").unwrap());
    }
}

#[test]
fn links_inside_are_kept_and_those_to_nowhere_are_not() {
    let Some(hotcell) = anyone() else { return };
    let archive = tgz(&[
        honest(),
        link("package/lib/here", "../bin/tinysh"),
        link("package/lib/nowhere", "none"),
        other("package/bin/same", EntryType::Link, "package/bin/tinysh"),
    ]);
    let server = one_archive(&archive);
    define(&hotcell, &npm(&archive));
    let added = told(&hotcell, &server, ADD);
    assert_eq!(added.code, Some(0), "{}", added.err());
    let ask = "cd /opt/tiny; ls bin lib; readlink lib/here";
    let ran = told(&hotcell, &server, &["run", "-l", "tiny", "-c", ask]);
    assert_eq!(
        ran.out(),
        "bin:\nsame\ntinysh\n\nlib:\nhere\n../bin/tinysh\n",
        "{}",
        ran.err()
    );
}

#[test]
fn a_system_package_s_absolute_links_lead_into_the_tree_or_are_left_out() {
    let Some(hotcell) = anyone() else { return };
    let archive = deb(&[
        file("./usr/bin/tinysh", shell()),
        link("./usr/lib/x/into", "/usr/bin/tinysh"),
        link("./usr/lib/x/out", "/etc/passwd"),
        link("./usr/lib/x/up", "../../../../../../etc/passwd"),
    ]);
    let server = Server::start([("/debian/pool/tiny.deb".to_owned(), archive.clone())]);
    define(
        &hotcell,
        &recipe("debian", "tiny", "pool/tiny.deb", &archive),
    );
    let added = told(&hotcell, &server, ADD);
    assert_eq!(added.code, Some(0), "{}", added.err());
    let ask = "cd /opt/tiny/lib/x; ls; readlink into";
    let ran = told(&hotcell, &server, &["run", "-l", "tiny", "-c", ask]);
    assert_eq!(ran.out(), "into\n../../bin/tinysh\n", "{}", ran.err());
}

#[test]
fn an_archive_that_is_broken_though_pinned_leaves_nothing() {
    let Some(hotcell) = anyone() else { return };
    let whole = tgz(&[honest()]);
    let without = tgz(&[file("package/other", "x")]);
    for (archive, why) in [
        (whole[..whole.len() / 2].to_vec(), "cannot be unpacked"),
        (b"no archive".to_vec(), "cannot be unpacked"),
        (without, "has no bin/tinysh"),
    ] {
        let server = one_archive(&archive);
        define(&hotcell, &npm(&archive));
        let answer = told(&hotcell, &server, ADD);
        assert_eq!(answer.code, Some(125));
        assert!(answer.err().contains(why), "{}", answer.err());
        let kept = left(&hotcell);
        assert!(
            kept.iter().all(|it| it.starts_with("downloads/")),
            "{kept:?}"
        );
    }
}

fn copy(entry: &Entry) -> Entry {
    Entry {
        bytes: entry.bytes.clone(),
        ..*entry
    }
}
