use std::fs;

use super::*;

struct Two {
    from: tempfile::TempDir,
    to: tempfile::TempDir,
}

fn workspace(folder: &tempfile::TempDir) -> Workspace {
    let folder = File::open(folder.path()).unwrap();
    let except = [".home", "main.go"].map(PathBuf::from);
    Workspace::new(folder.into(), None).except(except)
}

impl Two {
    fn new() -> Self {
        let folder = || tempfile::TempDir::new().unwrap();
        Self {
            from: folder(),
            to: folder(),
        }
    }

    fn carry(&self) -> (Vec<String>, usize) {
        let carried = workspace(&self.to).carry(&workspace(&self.from));
        let mut names: Vec<String> = carried.files.iter().map(|it| it.0.to_string()).collect();
        names.sort();
        (names, carried.left_out.len())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.from.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.to.path().join(path)).ok()
    }
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn what_is_new_or_changed_is_copied_once_and_what_is_gone_is_removed() {
    let two = Two::new();
    two.write("a.txt", "one");
    two.write("d/e/b.txt", "two");
    let program = Permissions::from_mode(0o750);
    fs::set_permissions(two.from.path().join("a.txt"), program).unwrap();
    assert_eq!(two.carry(), (vec!["a.txt".into(), "d/e/b.txt".into()], 0));
    let found = fs::metadata(two.to.path().join("a.txt")).unwrap();
    let source = fs::metadata(two.from.path().join("a.txt")).unwrap();
    assert_eq!(found.mode() & 0o777, 0o750);
    assert_eq!(found.modified().unwrap(), source.modified().unwrap());
    assert_eq!(two.carry(), (none(), 0), "nothing has changed");
    assert_eq!(
        workspace(&two.from).versions(),
        workspace(&two.to).versions()
    );
    two.write("a.txt", "ONE");
    assert_eq!(two.carry(), (vec!["a.txt".into()], 0));
    assert_eq!(two.read("a.txt").as_deref(), Some("ONE"));
    fs::remove_dir_all(two.from.path().join("d")).unwrap();
    fs::write(two.to.path().join("d/e/own"), "x").unwrap();
    assert_eq!(two.carry(), (none(), 0));
    assert!(!two.to.path().join("d").exists());
}

#[test]
fn a_write_right_after_is_seen_as_a_change() {
    let two = Two::new();
    for round in 0..20 {
        two.write("a", &format!("{round:02}"));
        two.carry();
        // Of the same size, and as soon as one can.
        fs::write(two.to.path().join("a"), "xx").unwrap();
        assert_eq!(two.carry(), (vec!["a".into()], 0), "{round}");
    }
}

#[test]
fn what_is_not_the_programs_own_stays_apart_but_for_its_values() {
    let two = Two::new();
    two.write(".home/secret", "x");
    two.write("main.go", "x");
    two.write("d/__pycache__/x.pyc", "x");
    two.write(".home/.hotcell/vars/n", "1");
    fs::create_dir(two.to.path().join(".home")).unwrap();
    fs::write(two.to.path().join(".home/own"), "x").unwrap();
    assert_eq!(two.carry(), (vec![".home/.hotcell/vars/n".into()], 0));
    assert_eq!(two.read(".home/own").as_deref(), Some("x"));
    assert_eq!(two.read(".home/secret"), None);
    assert!(!two.to.path().join("d/__pycache__").exists());
}

#[test]
fn no_link_is_followed_on_either_side() {
    let (two, outside) = (Two::new(), tempfile::TempDir::new().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "untouched").unwrap();
    let link = |at: &tempfile::TempDir, name: &str, to: &Path| {
        std::os::unix::fs::symlink(to, at.path().join(name)).unwrap();
    };
    // In the source: the link comes along as what it is.
    link(&two.from, "file", &secret);
    link(&two.from, "folder", outside.path());
    // In the target: nothing is written or removed through it.
    two.write("a/secret", "mine");
    two.write("secret", "mine");
    link(&two.to, "a", outside.path());
    link(&two.to, "secret", &secret);
    link(&two.to, "gone", outside.path());
    assert_eq!(two.carry(), (vec!["a/secret".into(), "secret".into()], 0));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "untouched");
    assert_eq!(fs::read_link(two.to.path().join("file")).unwrap(), secret);
    assert!(
        fs::symlink_metadata(two.to.path().join("folder"))
            .unwrap()
            .is_symlink()
    );
    assert!(
        fs::symlink_metadata(two.to.path().join("a"))
            .unwrap()
            .is_dir()
    );
    assert!(fs::symlink_metadata(two.to.path().join("gone")).is_err());
    // And where a folder of ours leads elsewhere, its values stay behind.
    two.write(".home/.hotcell/vars/n", "1");
    link(&two.to, ".home", outside.path());
    assert_eq!(two.carry(), (none(), 1));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn something_of_another_kind_is_replaced_and_a_pipe_is_not_waited_for() {
    let two = Two::new();
    two.write("a", "file");
    two.write("b/inner", "file");
    fs::create_dir_all(two.to.path().join("a/inner")).unwrap();
    fs::write(two.to.path().join("b"), "file").unwrap();
    let at = two.from.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, at, FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(two.carry(), (vec!["a".into(), "b/inner".into()], 0));
    assert_eq!(two.read("a").as_deref(), Some("file"));
}

#[test]
fn what_is_too_deep_or_too_much_is_counted_and_ends() {
    let two = Two::new();
    let mut deep = PathBuf::new();
    for _ in 0..=MOST_FOLDERS_DEEP {
        deep.push("d");
    }
    two.write(deep.join("x").to_str().unwrap(), "x");
    two.write("control", "x");
    let (files, left_out) = two.carry();
    assert_eq!((files, left_out), (vec!["control".to_owned()], 1));
}

#[test]
fn what_was_left_out_is_not_removed_on_the_way_back_whatever_the_way() {
    let (two, third) = (Two::new(), tempfile::TempDir::new().unwrap());
    two.write("kept/large", "x");
    two.write("small", "x");
    let large = PathBuf::from("kept/large");
    let small = workspace(&two.to).without([large.clone()]);
    // It is not here, which says nothing, and so it is with the next.
    fs::create_dir(two.to.path().join("kept")).unwrap();
    let carried = workspace(&third).carry(&small);
    assert_eq!(carried.left_out, std::slice::from_ref(&large));
    let next = workspace(&third).without(carried.left_out);
    let back = workspace(&two.from).carry(&next);
    assert_eq!(back.left_out.len(), 0, "it is where it was");
    assert!(two.from.path().join(large).exists());
    assert!(!two.from.path().join("small").exists(), "the control");
}
