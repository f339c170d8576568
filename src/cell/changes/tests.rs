use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use super::*;

fn wanted() -> WantedChanges {
    let except = vec![CellPath::parse(".home").unwrap()];
    WantedChanges {
        contents: true,
        except,
        known: HashMap::new(),
    }
}

fn paths(folder: &Path, placed: &[InputFile]) -> (Vec<String>, usize, bool) {
    let opened = File::open(folder).unwrap();
    let found = changes(opened.as_fd(), placed, &wanted());
    let paths = found.files.iter().map(|it| it.path.to_string()).collect();
    let untouched = is_untouched(opened.as_fd(), placed, &wanted());
    (paths, found.left_out, untouched)
}

#[test]
fn what_is_new_or_changed_is_found_and_what_was_placed_is_not() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let source = |text: &str| InputFile::from_bytes(CellPath::parse("main.py").unwrap(), text);
    fs::create_dir(at(".home")).unwrap();
    fs::write(at(".home/cache"), "x").unwrap();
    fs::write(at("main.py"), "print(1)").unwrap();
    let placed = [source("print(1)")];
    assert_eq!(paths(folder.path(), &placed), (vec![], 0, true));
    let changed = [source("print(2)")];
    let main = || "main.py".to_owned();
    assert_eq!(paths(folder.path(), &changed), (vec![main()], 0, false));
    fs::create_dir_all(at("a/b")).unwrap();
    fs::create_dir_all(at("a/__pycache__")).unwrap();
    fs::write(at("a/__pycache__/x.pyc"), "x").unwrap();
    fs::write(at("a/b/deep.txt"), "x").unwrap();
    fs::write(at("z.txt"), "x").unwrap();
    let found = vec!["z.txt".to_owned(), "a/b/deep.txt".to_owned()];
    assert_eq!(paths(folder.path(), &placed), (found, 0, false));
}

#[test]
fn no_link_is_followed_and_nothing_but_files_comes_back() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("/etc/passwd", at("passwd")).unwrap();
    std::os::unix::fs::symlink("/etc", at("etc")).unwrap();
    let fifo = rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    );
    fifo.unwrap();
    fs::write(at("control"), "x").unwrap();
    let found = vec!["control".to_owned()];
    assert_eq!(paths(folder.path(), &[]), (found, 0, false));
}

#[test]
fn more_than_may_be_brought_back_is_counted() {
    let folder = tempfile::TempDir::new().unwrap();
    for number in 0..MOST_FILES + 7 {
        fs::write(folder.path().join(format!("{number:04}")), "x").unwrap();
    }
    let mut deep = folder.path().to_owned();
    for _ in 0..=MOST_FOLDERS_DEEP {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let (files, left_out, _) = paths(folder.path(), &[]);
    assert_eq!((files.len(), left_out), (MOST_FILES, 8));
}
