//! Parts of the large suites behind other walls than hotcell's own; which, and the whole of them, [`isolation`](crate::support::isolation) says.

use super::{gvisor, podman};
use crate::support::{Hotcell, has};
use crate::{attacks, packages, proof, same};

/// Languages of every kind of start: interpreters that wait and that do not, one of ours, a compiler.
const LANGUAGES: [&str; 7] = ["python", "javascript", "bash", "perl", "lua", "c", "awk"];
/// Hostile programs that reach for what the outer walls hold: the network, files, processes, the kernel, limits.
const ATTACKS: [&str; 24] = [
    "RES-01", "RES-03", "RES-05", "RES-09", "PRC-01", "PRC-03", "PRC-04", "PRC-07", "FSE-01",
    "FSE-02", "FSE-05", "FSE-08", "INF-02", "INF-04", "NET-01", "NET-03", "NET-06", "KRN-01",
    "KRN-03", "KRN-06", "LEK-01", "LEK-03", "XRN-04", "OUT-05",
];

fn in_podman() -> Option<Hotcell> {
    podman().map(|hotcell| hotcell.within("podman"))
}

fn in_gvisor() -> Option<Hotcell> {
    gvisor::gvisor().map(|(hotcell, _)| hotcell.within("gvisor"))
}

fn is_attack(id: &str) -> bool {
    ATTACKS.iter().any(|it| id.starts_with(it))
}

#[test]
fn no_hostile_program_gets_out_of_a_container() {
    if podman().is_some() {
        attacks::nothing_gets_out_of("podman", is_attack);
    }
}

#[test]
fn no_hostile_program_gets_out_of_a_kernel_of_its_own() {
    if in_gvisor().is_some() {
        let is_small = |id: &str| is_attack(id) && !id.starts_with("RES");
        attacks::nothing_gets_out_of("gvisor", is_small);
    }
}

#[test]
fn languages_pass_their_cases_in_containers() {
    if podman().is_some() {
        proof::languages_pass(Some("podman"), |id| LANGUAGES.contains(&id), 5);
    }
}

#[test]
fn languages_pass_their_cases_in_gvisor() {
    if in_gvisor().is_some() {
        proof::languages_pass(Some("gvisor"), |id| ["python", "lua"].contains(&id), 2);
    }
}

#[test]
fn programs_say_the_same_in_a_container_as_without_hotcell() {
    let Some(hotcell) = in_podman() else { return };
    for (folder, at_least, of) in [("python", 150, 12), ("node", 40, 8), ("shell", 20, 6)] {
        same::compare_within(&hotcell, folder, at_least, of);
    }
}

#[test]
fn programs_say_the_same_in_gvisor_as_without_hotcell() {
    let Some(hotcell) = in_gvisor() else { return };
    same::compare_within(&hotcell, "python", 150, 20);
}

#[test]
fn packages_are_installed_once_in_containers_and_nobody_changes_them() {
    if !has("python3") || packages::installer().is_none() {
        return;
    }
    for hotcell in [in_podman(), in_gvisor()].into_iter().flatten() {
        packages::installs_once(&hotcell);
        packages::hostile::no_program_changes_what_others_import(&hotcell);
        packages::hostile::a_build_runs_only_in_a_cell(&hotcell);
    }
}
