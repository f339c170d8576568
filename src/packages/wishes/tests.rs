use super::*;
use crate::request::CellPath;

fn how() -> How {
    toml::from_str("from = \"pypi\"\nlist = \"requirements.txt\"\nwith = []").unwrap()
}

fn there<F: Fn(&str) -> bool>(present: F) -> Modules<'static, F> {
    Modules { ours: &[], present }
}

fn wanted(code: &str, asked: &AskedPackages) -> Wishes {
    wishes(
        &how(),
        &[code],
        &[],
        asked,
        there(|module| module == "here"),
    )
    .unwrap()
}

fn names(found: &[Found]) -> Vec<String> {
    let name = |it: &Found| format!("{}={}", it.module, it.package);
    found.iter().map(name).collect()
}

#[test]
fn what_is_there_already_is_not_wanted() {
    let code = "import os, sys, json.decoder\nfrom asyncio import run\nimport here\nfrom . import a\nimport tomllib";
    assert!(wanted(code, &AskedPackages::Detect).is_empty());
    let files = [
        InputFile::from_bytes(CellPath::parse("helper.py").unwrap(), ""),
        InputFile::from_bytes(CellPath::parse("pkg/a.py").unwrap(), ""),
    ];
    let own = wishes(
        &how(),
        &["import helper, pkg.a"],
        &files,
        &AskedPackages::Detect,
        there(|_| false),
    );
    assert!(own.unwrap().is_empty());
}

#[test]
fn a_program_that_changes_the_path_is_not_guessed_about() {
    let found = wanted(
        "import sys\nsys.path.append('made')\nimport late, rich",
        &AskedPackages::Detect,
    );
    assert_eq!(
        (names(&found.known), found.guessed.len()),
        (vec!["rich=rich".to_owned()], 0)
    );
    let files = [InputFile::from_bytes(
        CellPath::parse("lib/late.py").unwrap(),
        "",
    )];
    let own = wishes(
        &how(),
        &["import late"],
        &files,
        &AskedPackages::Detect,
        there(|_| false),
    );
    assert!(own.unwrap().is_empty());
}

#[test]
fn what_is_there_is_installed_too_if_anything_is() {
    let here = |module: &str| module == "numpy";
    let wishes =
        |code| super::wishes(&how(), &[code], &[], &AskedPackages::Detect, there(here)).unwrap();
    assert!(wishes("import numpy").is_empty());
    assert_eq!(
        names(&wishes("import numpy, sklearn").known),
        ["sklearn=scikit-learn", "numpy=numpy"]
    );
}

#[test]
fn an_import_is_mapped_or_else_a_guess() {
    let found = wanted(
        "import sklearn.svm, cv2\nfrom PIL import Image\nimport some_thing",
        &AskedPackages::Detect,
    );
    assert_eq!(
        names(&found.known),
        [
            "sklearn=scikit-learn",
            "cv2=opencv-python-headless",
            "PIL=Pillow"
        ]
    );
    assert_eq!(names(&found.guessed), ["some_thing=some-thing"]);
    let found = wanted(
        "from google.cloud import storage, bigquery",
        &AskedPackages::Detect,
    );
    assert_eq!(
        names(&found.known),
        [
            "google.cloud.bigquery=google-cloud-bigquery",
            "google.cloud.storage=google-cloud-storage"
        ]
    );
    assert!(wanted("import js\nfrom js import Deno", &AskedPackages::Detect).is_empty());
}

#[test]
fn a_second_choice_is_wanted_only_if_the_first_cannot_be_had() {
    let code =
        |first: &str| format!("try:\n    import {first}\nexcept ImportError:\n    import tomli\n");
    for first in ["tomllib", "here", "rich"] {
        let found = wanted(&code(first), &AskedPackages::Detect);
        assert!(
            !names(&found.optional).contains(&"tomli=tomli".to_owned()),
            "{first}"
        );
        assert!(found.known.is_empty());
    }
    assert_eq!(
        names(&wanted(&code("nobodys"), &AskedPackages::Detect).optional),
        ["tomli=tomli"]
    );
    assert_eq!(
        names(&wanted(&code("rich"), &AskedPackages::Detect).optional),
        ["rich=rich"]
    );
}

#[test]
fn what_is_named_is_wanted_whether_it_is_imported_or_not() {
    let list = AskedPackages::List(vec!["Pillow>=10".into(), "openpyxl".into()]);
    let found = wanted("import PIL", &list);
    assert_eq!(
        (
            found
                .all(true)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            found.known.len()
        ),
        (vec!["Pillow>=10".to_owned(), "openpyxl".to_owned()], 0)
    );
    let map = AskedPackages::Map(BTreeMap::from([
        ("odd".to_owned(), "other".to_owned()),
        ("x".to_owned(), "openpyxl".to_owned()),
    ]));
    let found = wanted("import odd", &map);
    assert_eq!(found.all(true).len(), 2);
    assert!(found.guessed.is_empty());
    assert!(wanted("import odd", &AskedPackages::List(Vec::new())).is_empty());
    let lock = wanted("import odd", &AskedPackages::Lock("x".into()));
    assert_eq!((lock.lock.as_deref(), lock.guessed.len()), (Some("x"), 0));
}

#[test]
fn a_block_and_a_list_name_packages_too() {
    let found = wanted(
        "# /// script\n# dependencies = ['rich']\n# ///\nimport rich, odd",
        &AskedPackages::Detect,
    );
    assert_eq!(
        found
            .all(true)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["rich"]
    );
    let files = [InputFile::from_bytes(
        CellPath::parse("requirements.txt").unwrap(),
        "rich<14\n",
    )];
    let found = wishes(
        &how(),
        &["import rich, odd"],
        &files,
        &AskedPackages::Detect,
        there(|_| false),
    )
    .unwrap();
    assert_eq!(
        found
            .all(true)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["odd", "rich<14"]
    );
    let files = [InputFile::from_bytes(
        CellPath::parse("requirements.txt").unwrap(),
        "--index-url http://x\n",
    )];
    assert!(
        wishes(
            &how(),
            &[""],
            &files,
            &AskedPackages::Detect,
            there(|_| false)
        )
        .is_err()
    );
}

#[test]
fn too_many_packages_are_refused() {
    let many = AskedPackages::List((0..5000).map(|n| format!("p{n}")).collect());
    assert_eq!(
        wishes(&how(), &[""], &[], &many, there(|_| false)),
        Err(BadWish::TooMany(5000))
    );
}

#[test]
fn any_number_of_imports_is_read_once_and_bounded() {
    let many: String = (0..100_000).map(|at| format!("import m{at}\n")).collect();
    let looked = std::cell::Cell::new(0);
    let present = |_: &str| {
        looked.set(looked.get() + 1);
        false
    };
    let refused = wishes(
        &how(),
        &[many.as_str()],
        &[],
        &AskedPackages::Detect,
        there(present),
    );
    assert!(matches!(refused, Err(BadWish::TooMany(_))), "{refused:?}");
    assert!(looked.get() <= 1000, "{}", looked.get());
    let same = "import same\n".repeat(100_000);
    assert_eq!(
        names(&wanted(&same, &AskedPackages::Detect).guessed),
        ["same=same"]
    );
}

#[test]
fn nothing_is_installed_for_what_we_bring_unless_it_is_named() {
    let code = "import mcp, mcp_clock\nfrom mcp.servers.clock import text\nimport rich";
    let ours = ["mcp".to_owned(), "mcp_clock".to_owned()];
    let find = |ours, asked: &AskedPackages| {
        let modules = Modules {
            ours,
            present: |_: &str| false,
        };
        wishes(&how(), &[code], &[], asked, modules).unwrap()
    };
    let found = find(&ours, &AskedPackages::Detect);
    assert_eq!(names(&found.known), ["rich=rich"]);
    assert!(found.guessed.is_empty() && !found.names("mcp"));
    // Control: without servers they are packages like others.
    assert_eq!(
        names(&find(&[], &AskedPackages::Detect).guessed),
        ["mcp_clock=mcp-clock"]
    );
    let named = AskedPackages::List(vec!["mcp".to_owned()]);
    assert!(find(&ours, &named).names("mcp"));
}
