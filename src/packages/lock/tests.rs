use super::*;

fn hash(digit: &str) -> String {
    digit.repeat(64)
}

#[test]
fn a_lock_is_read_in_any_layout_and_written_in_one() {
    let (a, b) = (hash("a"), hash("b"));
    let text = format!(
        "# made by x\nnumpy==2.1.0 \\\n    --hash=sha256:{a} \\\n    --hash=sha256:{b}\nabc==1 --hash=sha256:{a}\n"
    );
    let lock = Lock::read(&text, Ecosystem::Pypi).unwrap();
    assert_eq!(lock.installed, ["abc==1", "numpy==2.1.0"]);
    assert_eq!(
        lock.text,
        format!("abc==1 --hash=sha256:{a}\nnumpy==2.1.0 --hash=sha256:{a} --hash=sha256:{b}\n")
    );
    assert_eq!(Lock::read(&lock.text, Ecosystem::Pypi).unwrap(), lock);
}

#[test]
fn a_tree_is_locked_to_the_files_that_it_was_made_from() {
    let folder = tempfile::TempDir::new().unwrap();
    for name in [
        "Foo_Bar-1.0+cpu.dist-info",
        "numpy-2.1.0.dist-info",
        "numpy",
        "bin",
    ] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let (a, b) = (hash("a"), hash("b"));
    let fetch = |file: &str, sha256: &String| Fetched {
        file: file.to_owned(),
        sha256: sha256.clone(),
        sha512: None,
    };
    let mut fetched = vec![
        fetch("foo_bar-1.0%2Bcpu-py3-none-any.whl", &a),
        fetch("numpy-2.0.0-x.whl", &hash("c")),
        fetch("numpy-2.1.0.tar.gz", &b),
    ];
    let lock = Lock::of_tree(folder.path(), Ecosystem::Pypi, &fetched).unwrap();
    assert_eq!(
        lock.text,
        format!("foo-bar==1.0+cpu --hash=sha256:{a}\nnumpy==2.1.0 --hash=sha256:{b}\n")
    );
    fetched.pop();
    assert!(lock.is_verified);
    assert!(Lock::of_tree(folder.path(), Ecosystem::Pypi, &fetched).is_err());
}

#[test]
fn a_lock_of_npm_is_verified_only_by_bytes_that_the_server_has_seen() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("node_modules/left")).unwrap();
    let lock = r#"{"lockfileVersion": 3, "packages": {
        "": {"dependencies": {"left": "1.0.0"}},
        "node_modules/left": {"version": "1.0.0", "integrity": "sha512-AAAA"},
        "node_modules/elsewhere": {"version": "1.0.0", "integrity": "sha512-BBBB", "optional": true}
    }}"#;
    fs::write(folder.path().join("package-lock.json"), lock).unwrap();
    let fetch = |sha512: &str| Fetched {
        file: "left-1.0.0.tgz".to_owned(),
        sha256: String::new(),
        sha512: Some(sha512.to_owned()),
    };
    let of = |fetched: &[Fetched]| Lock::of_tree(folder.path(), Ecosystem::Npm, fetched).unwrap();
    assert!(of(&[fetch("AAAA")]).is_verified);
    assert!(!of(&[fetch("CCCC")]).is_verified);
    assert!(!of(&[]).is_verified);
}

#[test]
fn a_lock_of_go_has_modules_and_hashes_and_nothing_else() {
    let hash = format!("h1:{}=", "A".repeat(43));
    let good = format!(
        "go 1.26.1\nb.c/d v1.0.0 {hash}\na.b/c v0.1.0-x+incompatible/go.mod {hash}\nb.c/d v1.0.0/go.mod {hash}\n"
    );
    let lock = Lock::read(&good, Ecosystem::Go).unwrap();
    assert_eq!(lock.installed, ["b.c/d==v1.0.0"]);
    assert!(lock.text.starts_with("go 1.26.1\na.b/c "), "{}", lock.text);
    assert_eq!(Lock::read(&lock.text, Ecosystem::Go).unwrap(), lock);
    for (from, to) in [
        ("go 1.26.1", "module x"),
        ("go 1.26.1", "go 1.26.1 ("),
        ("b.c/d v1.0.0 ", "b.c/d v1.0.0/go.mod "),
        ("b.c/d v1.0.0 ", "../d v1.0.0 "),
        ("b.c/d v1.0.0 ", "b.c/d latest "),
        ("b.c/d v1.0.0 ", "b.c/d v1.0.0 => ../x "),
        ("h1:", "h2:"),
        ("A=", "="),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(Lock::read(&bad, Ecosystem::Go).is_err(), "{bad}");
    }
}

#[test]
fn a_lock_of_cargo_has_crates_of_one_index_and_nothing_else() {
    let good = format!(
        "# rand@0.8\nversion = 4\n\n[[package]]\nname = \"main\"\nversion = \"0.0.0\"\ndependencies = [\n \"rand\",\n]\n\n[[package]]\nname = \"rand\"\nversion = \"0.8.5\"\nsource = \"registry+https://i.example\"\nchecksum = \"{}\"\n",
        hash("a")
    );
    let lock = Lock::read(&good, Ecosystem::Crates).unwrap();
    assert_eq!(
        (&lock.text, &lock.installed),
        (&good, &vec!["rand==0.8.5".to_owned()])
    );
    for (from, to) in [
        ("# rand@0.8", "# rand@../x"),
        ("# rand@0.8", "rand@0.8"),
        ("registry+", "git+"),
        ("source = ", "other = "),
        ("checksum = \"a", "checksum = \""),
        ("name = \"rand\"", "name = \"../rand\""),
        ("name = \"main\"", "name = \"other\""),
        ("\"0.8.5\"", "\"x\""),
        (" \"rand\",", " \"rand (path+file:///x)\","),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(Lock::read(&bad, Ecosystem::Crates).is_err(), "{bad}");
    }
}

#[test]
fn nothing_but_packages_and_hashes_is_a_lock() {
    let a = hash("a");
    for text in [
        String::new(),
        "abc".into(),
        "abc==1".into(),
        format!("abc --hash=sha256:{a}"),
        "abc==1 --hash=md5:0".into(),
        format!("abc==1 --hash=sha256:{a} --index-url=x"),
        format!("--index-url=http://x\nabc==1 --hash=sha256:{a}"),
        format!("abc @ http://x --hash=sha256:{a}"),
        format!("abc==1.* --hash=sha256:{a}"),
        format!("-r x\nabc==1 --hash=sha256:{a}"),
        "x".repeat(LONGEST + 1),
    ] {
        assert!(Lock::read(&text, Ecosystem::Pypi).is_err(), "{text:.80}");
    }
    let good = r#"{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"^1"}},"node_modules/a":{"version":"1.0.0","resolved":"http://127.0.0.1/a.tgz","integrity":"sha512-x","scripts":{"x":"y"}}}}"#;
    let lock = Lock::read(good, Ecosystem::Npm).unwrap();
    assert_eq!(lock.installed, ["a==1.0.0"]);
    assert!(
        !lock.text.contains("resolved") && !lock.text.contains("scripts"),
        "{}",
        lock.text
    );
    let tree = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(tree.path().join("node_modules/a")).expect("a folder");
    let both = good.replacen(
        "}}}",
        r#"}},"node_modules/b":{"version":"1.0.0","integrity":"sha512-x","optional":true}}"#,
        1,
    );
    let lock = package_lock(&both, Some(tree.path())).expect("it is right");
    assert_eq!(lock.installed, ["a==1.0.0"], "`b` is for another machine");
    assert!(lock.text.contains("node_modules/b"), "{}", lock.text);
    for (from, to) in [
        ("\"node_modules/a\"", "\"../a\""),
        ("\"node_modules/a\"", "\"node_modules/../a\""),
        ("sha512-x", ""),
        ("\"1.0.0\"", "\"file:../x\""),
        ("\"^1\"", "\"git+https://x\""),
        ("\"packages\"", "\"other\""),
    ] {
        assert!(
            Lock::read(&good.replacen(from, to, 1), Ecosystem::Npm).is_err(),
            "{from} {to}"
        );
    }
}
