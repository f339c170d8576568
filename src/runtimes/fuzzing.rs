//! The fuzz target `archive`: a file that the first byte says the kind of, unpacked.

use std::fs;
use std::path::Path;

use super::archive::unpack;
use super::recipe::Recipe;

pub fn archive(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let (from, file) = match kind % 4 {
        0 => ("pypi", "a.whl"),
        1 => ("npm", "a.tgz"),
        2 => ("debian", "a.deb"),
        _ => ("python-builds", "a.tar.gz"),
    };
    let text = format!(
        "version = '1'\nlanguages = []\nprograms = {{ a = 'a' }}\n[[archive]]\nfrom = '{from}'\nname = 'a'\nfile = '{file}'\nsha256 = '{}'\n",
        "0".repeat(64)
    );
    let recipe = Recipe::parse("a", &text, Path::new("a.toml"), |_| None).expect("a recipe");
    let folder = Folder::new();
    let (file, tree) = (folder.0.join("file"), folder.0.join("tree"));
    fs::write(&file, bytes).expect("room");
    fs::create_dir(&tree).expect("room");
    let unpacked = unpack(&recipe.archives[0], &file, &tree);
    // SECURITY: nothing is beside the tree, and what was written to before is as it was.
    let beside = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(beside, 2, "{unpacked:?}");
    assert_eq!(fs::read(&file).expect("it is there"), bytes);
    if unpacked.is_ok() {
        stays_inside(&tree, &tree);
    }
}

fn stays_inside(root: &Path, folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let found = fs::symlink_metadata(&path).expect("it is there");
        if found.is_symlink() {
            let real = fs::canonicalize(&path).expect("it leads somewhere");
            assert!(real.starts_with(root), "{real:?}");
        } else if found.is_dir() {
            stays_inside(root, &path);
        }
    }
}

/// In memory, and gone when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("/dev/shm/hotcell-fuzz-{}", crate::random::random_name());
        fs::create_dir(&name).expect("room");
        Self(name.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
