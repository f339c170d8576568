use super::*;
use std::time::SystemTime;

fn stored() -> (tempfile::TempDir, Inventory, PathBuf) {
    let place = tempfile::TempDir::new().unwrap();
    let folder = place.path().join("a");
    fs::create_dir_all(folder.join("sub dir")).unwrap();
    fs::write(folder.join("main"), "one").unwrap();
    fs::write(folder.join("sub dir/mo\nre%"), "two").unwrap();
    std::os::unix::fs::symlink("main", folder.join("link")).unwrap();
    let noted = place.path().join("noted");
    Inventory::of(&folder).unwrap().write(&noted).unwrap();
    (place, Inventory::read(&noted).unwrap(), folder)
}

/// Without a new time, as a failing disk does it.
fn alter(inventory: &mut Inventory, folder: &Path, path: &str) {
    fs::write(folder.join(path), "six").unwrap();
    let now = Entry::of(folder, Path::new(path)).unwrap();
    let entry = inventory.0.iter_mut().find(|it| it.path == Path::new(path));
    entry.unwrap().changed = now.changed;
}

#[test]
fn what_is_as_it_was_is_good_wherever_it_is_moved() {
    let (place, inventory, folder) = stored();
    assert_eq!(inventory.bytes(), 6);
    assert!(inventory.is_still_in(&folder, Look::Cheap));
    let moved = place.path().join("b");
    fs::rename(&folder, &moved).unwrap();
    assert!(inventory.is_still_in(&moved, Look::Cheap));
    // A touched file is read, and is the same.
    let touched = File::open(moved.join("main")).unwrap();
    touched.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert!(inventory.is_still_in(&moved, Look::Cheap));
    assert!(inventory.is_still_in(&moved, Look::Whole));
}

#[test]
fn whatever_was_changed_is_seen() {
    type Change = fn(&Path);
    let changes: [Change; 7] = [
        |it| fs::write(it.join("main"), "six").unwrap(),
        |it| fs::write(it.join("main"), "").unwrap(),
        |it| fs::write(it.join("more"), "").unwrap(),
        |it| fs::write(it.join("sub dir/more"), "").unwrap(),
        |it| fs::remove_file(it.join("sub dir/mo\nre%")).unwrap(),
        |it| {
            fs::remove_file(it.join("link")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", it.join("link")).unwrap();
        },
        |it| fs::remove_dir_all(it).unwrap(),
    ];
    for (at, change) in changes.iter().enumerate() {
        let (_place, inventory, folder) = stored();
        change(&folder);
        assert!(!inventory.is_still_in(&folder, Look::Cheap), "{at}");
        assert!(!inventory.is_still_in(&folder, Look::Whole), "{at}");
    }
}

#[test]
fn only_the_whole_look_sees_what_no_time_tells() {
    let (_place, mut inventory, folder) = stored();
    alter(&mut inventory, &folder, "main");
    assert!(inventory.is_still_in(&folder, Look::Cheap));
    assert!(!inventory.is_still_in(&folder, Look::Whole));
}

#[test]
fn a_note_that_leads_elsewhere_is_none() {
    for text in [
        "",
        "100644 1 2 aa",
        "100644 1 2 aa %2fetc",
        "100644 1 2 aa a/%2e%2e/b",
        "100644 1 2 aa a b",
        "x 1 2 aa a",
        "100644 1 2 aa a%2",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("{text}\n")).unwrap();
        assert!(Inventory::read(file.path()).is_err(), "{text}");
    }
}
