use super::*;
use crate::request::CellPath;

fn key(text: &str) -> Key {
    Key::for_test(text)
}

fn file(path: &str, bytes: &[u8]) -> InputFile {
    InputFile::from_bytes(CellPath::parse(path).unwrap(), bytes)
}

#[test]
fn what_is_kept_is_found_whole_and_nothing_is_left_aside() {
    let folder = tempfile::TempDir::new().unwrap();
    let cache = Cache::new(folder.path().join("a/b"), 1 << 20);
    assert_eq!(cache.find(&key("1")), None);
    let files = [file(".build/main", b"x"), file(".build/sub/more", b"yy")];
    for _ in 0..2 {
        let entry = cache.store(&key("1"), ".build", &files).unwrap();
        assert_eq!(cache.find(&key("1")), Some(entry.clone()));
        assert_eq!(fs::read(entry.join("sub/more")).unwrap(), b"yy");
    }
    let left = fs::read_dir(folder.path().join("a/b")).unwrap();
    assert_eq!(
        left.filter(|it| is_entry(&it.as_ref().unwrap().path()))
            .count(),
        1
    );
    assert_eq!(cache.verify(), (1, Vec::new()));
}

#[test]
fn what_is_not_as_it_was_stored_is_thrown_away_and_can_be_stored_again() {
    let files = [file(".build/main", b"x"), file(".build/sub/more", b"yy")];
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |it| fs::write(it.join("files/main"), "y").unwrap(),
        |it| fs::write(it.join("files/sub/new"), "y").unwrap(),
        |it| fs::remove_dir_all(it.join("files")).unwrap(),
        |it| fs::write(it.join("inventory"), "").unwrap(),
        |it| fs::remove_file(it.join("inventory")).unwrap(),
    ];
    for change in changes {
        let folder = tempfile::TempDir::new().unwrap();
        let place = folder.path().join("c");
        Cache::new(place.clone(), 1 << 20)
            .store(&key("1"), ".build", &files)
            .unwrap();
        change(&place.join("1"));
        // Another process, which has not used it before.
        let cache = Cache::new(place.clone(), 1 << 20);
        assert_eq!(cache.find(&key("1")), None);
        assert!(!place.join("1").exists());
        cache.store(&key("1"), ".build", &files).unwrap();
        assert!(cache.find(&key("1")).is_some());

        change(&place.join("1"));
        assert_eq!(cache.verify(), (1, vec!["1".to_owned()]));
        assert_eq!(cache.verify(), (0, Vec::new()));
    }
}

#[test]
fn the_oldest_goes_when_there_is_no_room_but_nothing_in_use() {
    let folder = tempfile::TempDir::new().unwrap();
    let cache = Cache::new(folder.path().join("c"), 25);
    for name in ["1", "2"] {
        cache
            .store(&key(name), ".build", &[file(".build/main", &[0; 10])])
            .unwrap();
    }
    let entry = |name: &str| folder.path().join("c").join(name);
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::open(entry("1")).unwrap().set_modified(old).unwrap();
    cache
        .store(&key("3"), ".build", &[file(".build/main", &[0; 10])])
        .unwrap();
    assert_eq!(cache.find(&key("1")), None);
    assert!(cache.find(&key("2")).is_some() && cache.find(&key("3")).is_some());
    // All are in use now, so that there is no room for more.
    let refused = cache.store(&key("4"), ".build", &[file(".build/main", &[0; 10])]);
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(cache.find(&key("2")).is_some());
    assert_eq!(cache.find(&key("4")), None);
}

#[test]
fn a_cache_that_has_room_is_not_walked() {
    let folder = tempfile::TempDir::new().unwrap();
    let place = folder.path().join("c");
    let file = [file(".build/main", &[0; 10])];
    let store = |name: &str| Cache::new(place.clone(), 35).store(&key(name), ".build", &file);
    store("1").unwrap();
    // A walk would remove this; and one is due when the count says so.
    let left = place.join("old-left");
    fs::create_dir(&left).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::open(&left).unwrap().set_modified(old).unwrap();
    store("2").unwrap();
    assert!(left.exists(), "it was walked");
    store("3").unwrap();
    let _ = store("4");
    assert!(!left.exists(), "it was not walked");
}

#[test]
fn what_a_killed_process_left_is_removed_when_it_is_old() {
    let folder = tempfile::TempDir::new().unwrap();
    let cache = Cache::new(folder.path().join("c"), 1 << 20);
    let file = [file(".build/main", b"x")];
    cache.store(&key("1"), ".build", &file).unwrap();
    let left = ["new-old", "old-old", "new-young"].map(|name| folder.path().join("c").join(name));
    for path in &left {
        fs::create_dir(path).unwrap();
    }
    let old = SystemTime::now() - Duration::from_secs(3600);
    for path in &left[..2] {
        File::open(path).unwrap().set_modified(old).unwrap();
    }
    cache.trim(1 << 20);
    assert_eq!(left.map(|path| path.exists()), [false, false, true]);
    assert!(cache.find(&key("1")).is_some());
}

#[test]
fn a_folder_that_others_can_write_to_is_not_believed() {
    let folder = tempfile::TempDir::new().unwrap();
    let cache = Cache::new(folder.path().join("c"), 1 << 20);
    cache
        .store(&key("1"), ".build", &[file(".build/main", b"x")])
        .unwrap();
    assert!(cache.find(&key("1")).is_some());
    let loose = std::os::unix::fs::PermissionsExt::from_mode(0o770);
    fs::set_permissions(folder.path().join("c"), loose).unwrap();
    assert_eq!(cache.find(&key("1")), None);
}
