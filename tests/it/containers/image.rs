//! Images: none is pulled, and one can be made.

use std::process::Command;

use super::{PATIENCE, podman};
use crate::support::{Running, eventually};

#[test]
fn an_image_that_is_not_there_is_told_and_never_pulled() {
    let Some(hotcell) = podman() else { return };
    hotcell.write(
        "home/.config/hotcell/config.toml",
        "isolation = \"podman\"\n[container]\nimage = \"localhost/no-such-image:1\"\n",
    );
    let answer = hotcell.run(&["-l", "sh", "-c", "echo 1"]);
    assert_ne!(answer.code, Some(0));
    assert!(answer.err().contains("no-such-image"), "{}", answer.err());
    assert!(answer.err().contains("leave that out"), "{}", answer.err());
    hotcell.write(
        "home/.config/hotcell/config.toml",
        "isolation = \"a virtual machine\"\n",
    );
    let answer = hotcell.run(&["-l", "sh", "-c", "echo 1"]);
    assert!(
        answer
            .err()
            .contains("auto, jail, container, podman, docker, gvisor"),
        "{}",
        answer.err()
    );
}

#[test]
fn an_image_is_made_of_a_folder_and_its_programs_are_run() {
    let Some(hotcell) = podman() else { return };
    // A shell and what it needs.
    let root = hotcell.make_folder("root");
    let script = "for file in $(readlink -f /bin/bash) $(ldd /bin/bash | grep -o '/[^ ]*'); do mkdir -p $0/usr$(dirname ${file#/usr}); \
        cp -L $file $0/usr${file#/usr}; done; for link in bin lib lib64; do ln -s usr/$link $0/$link; done; echo of the image > $0/usr/marker";
    let made = Command::new("sh").args(["-c", script]).arg(&root).status();
    assert!(made.unwrap().success());
    let name = format!("localhost/hotcell-test:{}", std::process::id());
    let build = |arguments: &[&str]| {
        let mut command = hotcell.command();
        Running::start(command.args(["image", "build"]).args(arguments)).finish()
    };
    let built = build(&["--root", root.to_str().unwrap(), &name]);
    assert_eq!(built.out(), format!("{name}\n"), "{}", built.err());
    // One that is here is taken as it is, and one that is not is pulled, where anybody has it.
    let other = format!("{name}-taken");
    let taken = build(&["--from", &name, &other]);
    assert_eq!(taken.out(), format!("{other}\n"), "{}", taken.err());
    let refused = build(&["--from", "localhost:1/no-such-image:1", "localhost/x:1"]);
    assert!(
        refused.err().contains("could not make the image"),
        "{}",
        refused.err()
    );
    for name in [&name, &other] {
        let config = format!("isolation = \"podman\"\n[container]\nimage = \"{name}\"\n");
        hotcell.write("home/.config/hotcell/config.toml", config);
        let answer = hotcell.run(&["-l", "bash", "-c", "read x < /usr/marker; echo \"$x\""]);
        assert_eq!(answer.out(), "of the image\n", "{}", answer.err());
    }
    // Its container may be on its way out.
    let remove = |name: &String| Command::new("podman").args(["rmi", name]).output();
    for name in [&other, &name] {
        assert!(eventually(PATIENCE, || remove(name)
            .unwrap()
            .status
            .success()));
    }
    for wrong in [&["--root", "/proc", "x"][..], &["--privileged"], &["a b"]] {
        let refused = build(wrong);
        assert_ne!(refused.code, Some(0), "{}", refused.err());
    }
}
