use super::*;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::new(folder.path().join("packages"));
    store.trees().unwrap();
    (folder, store)
}

fn add(store: &Store, key: &str, bytes: u64, age: u64) -> Set {
    let staged = store.stage().unwrap();
    fs::write(staged.join("a.py"), "1").unwrap();
    let set = Set {
        language: "python".into(),
        asked: vec![key.into()],
        installed: vec![format!("{key}==1")],
        lock: String::new(),
        tree: store.settle(&staged).unwrap(),
        bytes,
    };
    store.note(key, &set).unwrap();
    let old = SystemTime::now() - Duration::from_secs(age);
    File::open(store.set_file(key))
        .unwrap()
        .set_modified(old)
        .unwrap();
    set
}

#[test]
fn a_set_is_found_by_each_of_its_keys_and_its_folder_cannot_be_listed() {
    let (_folder, store) = store();
    let set = add(&store, "one", 1, 0);
    store.note("two", &set).unwrap();
    assert_eq!(store.find("one"), Some(set.clone()));
    assert_eq!(store.find("two"), Some(set.clone()));
    assert_eq!(store.find("three"), None);
    assert_eq!(store.list().len(), 1);
    let mode = fs::metadata(store.trees().unwrap()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o311);
    store.remove(&set.tree).unwrap();
    assert_eq!((store.find("one"), store.find("two")), (None, None));
}

#[test]
fn what_was_used_longest_ago_goes_first_and_nothing_in_use() {
    let (_folder, store) = store();
    add(&store, "old", 10, 9000);
    add(&store, "older", 10, 9900);
    add(&store, "new", 10, 0);
    assert!(store.trim(30).is_empty());
    assert_eq!(store.trim(25)[0].asked, ["older"]);
    assert_eq!(store.trim(5)[0].asked, ["old"]);
    assert!(store.find("new").is_some());
    assert_eq!(store.trim(0).len(), 1, "nothing is kept by nobody's wish");
}

#[test]
fn a_folder_that_others_can_write_to_is_not_believed() {
    let (_folder, store) = store();
    add(&store, "one", 1, 0);
    assert!(store.find("one").is_some());
    fs::set_permissions(store.folder(), Permissions::from_mode(0o770)).unwrap();
    assert_eq!(store.find("one"), None);
    assert!(store.trees().is_err());
}

#[test]
fn a_set_that_was_changed_is_not_used_again() {
    type Change = fn(&Path);
    let changes: [Change; 3] = [
        |it| fs::write(it.join("a.py"), "2").unwrap(),
        |it| fs::write(it.join("sitecustomize.py"), "2").unwrap(),
        |it| fs::remove_file(it.join("a.py")).unwrap(),
    ];
    for change in changes {
        let (_folder, store) = store();
        let set = add(&store, "one", 1, 0);
        let other = add(&store, "two", 1, 0);
        change(&store.tree(&set.tree));
        assert_eq!(store.find("one"), None);
        assert!(!store.tree(&set.tree).exists());
        // Control: its neighbour is whole; and a full look finds what comes later.
        assert_eq!(store.find("two"), Some(other.clone()));
        change(&store.tree(&other.tree));
        assert_eq!(store.verify(), (1, vec![other]));
        assert_eq!(store.verify(), (0, Vec::new()));
    }
}

#[test]
fn sets_share_the_files_that_they_have_in_common_and_each_stays_whole() {
    let (_folder, store) = store();
    let large = "x = 1\n".repeat(2000);
    let add = |key: &str, text: &str| {
        let staged = store.stage().unwrap();
        fs::create_dir(staged.join("common")).unwrap();
        fs::write(staged.join("common/large.py"), text).unwrap();
        fs::write(staged.join("small.py"), "1").unwrap();
        fs::write(staged.join(key), key.repeat(2000)).unwrap();
        let set = Set {
            language: "python".into(),
            asked: vec![key.into()],
            installed: vec![format!("{key}==1")],
            lock: String::new(),
            tree: store.settle(&staged).unwrap(),
            bytes: 1,
        };
        store.note(key, &set).unwrap();
        set
    };
    let sets = [
        add("one", &large),
        add("two", &large),
        add("other", &large.replace('1', "2")),
    ];
    let file = |set: &Set, name: &str| store.tree(&set.tree).join(name);
    let node = |set: &Set, name: &str| fs::metadata(file(set, name)).unwrap().ino();
    let [one, two, other] = &sets;
    assert_eq!(node(one, "common/large.py"), node(two, "common/large.py"));
    assert_ne!(node(one, "common/large.py"), node(other, "common/large.py"));
    assert_ne!(node(one, "small.py"), node(two, "small.py"));
    // Nothing else is left where they were made.
    assert_eq!(
        fs::read_dir(store.tree(&two.tree).join("common"))
            .unwrap()
            .count(),
        1
    );
    for set in &sets {
        assert_eq!(store.find(&set.asked[0]).as_ref(), Some(set));
        // Noted anew: a look at the times is enough from now on.
        let noted = Inventory::read(&store.inventory(&set.tree)).unwrap();
        let found = fs::metadata(file(set, "common/large.py")).unwrap();
        let ctime = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
        assert!(
            fs::read_to_string(store.inventory(&set.tree))
                .unwrap()
                .contains(&ctime.to_string()),
            "{noted:?}"
        );
    }
    store.remove(&one.tree).unwrap();
    let fresh = Store::new(store.folder().to_owned());
    assert_eq!(fresh.find("two").as_ref(), Some(two));
    // What was changed is not passed on, and not believed of any that has it.
    fs::write(file(two, "common/large.py"), large.replace('1', "9")).unwrap();
    let later = add("later", &large);
    assert_ne!(
        node(two, "common/large.py"),
        node(&later, "common/large.py")
    );
    let fresh = Store::new(store.folder().to_owned());
    assert_eq!(fresh.find("two"), None);
    assert_eq!(fresh.find("later").as_ref(), Some(&later));
}

#[test]
fn a_tree_that_no_note_leads_to_is_removed_when_it_is_old() {
    let (_folder, store) = store();
    let old = add(&store, "old", 1, 0);
    let young = add(&store, "young", 1, 0);
    let kept = add(&store, "kept", 1, 0);
    for key in ["old", "young"] {
        fs::remove_file(store.set_file(key)).unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_secs(9000);
    for set in [&old, &kept] {
        let file = File::open(store.inventory(&set.tree)).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    store.trim(1 << 20);
    let is_there = [&old, &young, &kept].map(|set| store.tree(&set.tree).exists());
    assert_eq!(is_there, [false, true, true]);
}
