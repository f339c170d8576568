use super::*;

const USER: &str = "entering a user namespace";

fn failed(step: &str, errno: Errno) -> CellError {
    CellError::Jail(JailError::Step {
        step: step.to_owned(),
        source: errno.into(),
    })
}

fn host(settings: &[(&'static str, &str)]) -> Host {
    let settings = settings.iter();
    Host {
        settings: settings
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
        is_weak_root: false,
        profile: None,
    }
}

#[test]
fn a_kernel_that_is_too_old_is_told_from_one_without_namespaces() {
    let of = |step| fix(&failed(step, Errno::NOSYS), &host(&[]));
    let old = of("opening the visible folders");
    assert_eq!(old, "Use a newer kernel, Linux 5.12 at least.");
    assert!(of(USER).contains("CONFIG_USER_NS"));
}

#[test]
fn a_profile_that_confines_us_is_named() {
    let host = Host {
        profile: Some("strict".to_owned()),
        ..host(&[(CLONE, "1"), (APPARMOR, "0")])
    };
    assert_eq!(
        fix(&failed(USER, Errno::ACCESS), &host),
        "As root of the host: the rule `userns,` in the AppArmor profile `strict`, which confines hotcell."
    );
}

#[test]
fn the_exact_setting_that_forbids_is_named_and_no_other() {
    let of = |settings: &[_]| fix(&failed(USER, Errno::PERM), &host(settings));
    assert_eq!(
        of(&[(CLONE, "0"), (APPARMOR, "0"), (MOST[0], "15000")]),
        "As root of the host: `sysctl -w kernel.unprivileged_userns_clone=1` (it is 0)."
    );
    let apparmor = of(&[(CLONE, "1"), (APPARMOR, "1")]);
    assert!(apparmor.contains("`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"));
    assert!(!apparmor.contains(CLONE), "{apparmor}");
    let neither = of(&[(CLONE, "1"), (APPARMOR, "0"), (MOST[0], "15000")]);
    assert!(!neither.contains("sysctl"), "{neither}");
    assert!(neither.contains("seccomp=unconfined"), "{neither}");
}

#[test]
fn a_restriction_of_apparmor_is_known_at_a_later_step_too() {
    // It lets the namespace be made and then gives no rights in it.
    let host = host(&[(APPARMOR, "1")]);
    let later = fix(&failed("mapping ids", Errno::PERM), &host);
    assert_eq!(later, fix(&failed(USER, Errno::PERM), &host));
}

#[test]
fn a_number_of_namespaces_that_is_zero_is_told_from_one_that_is_used_up() {
    let of = |settings: &[_]| fix(&failed("making namespaces", Errno::NOSPC), &host(settings));
    assert_eq!(
        of(&[(MOST[0], "9"), (MOST[2], "0")]),
        "As root of the host: `sysctl -w user.max_pid_namespaces=15000` (it is 0)."
    );
    let used_up = of(&[(MOST[0], "9")]);
    assert!(
        used_up.contains("user.max_user_namespaces (now 9)"),
        "{used_up}"
    );
}

#[test]
fn root_without_roots_rights_is_told_to_be_an_ordinary_user() {
    let host = Host {
        is_weak_root: true,
        ..host(&[(CLONE, "0")])
    };
    for error in [
        failed("opening the visible folders", Errno::PERM),
        failed("dropping root", Errno::INVAL),
        CellError::Jail(JailError::Talk(Errno::PERM.into())),
    ] {
        let told = fix(&error, &host);
        assert!(told.contains("as an ordinary user"), "{error}: {told}");
    }
}

#[test]
fn other_failures_keep_the_hint_they_have() {
    let none = host(&[]);
    let error = failed("forking", Errno::AGAIN);
    let own = error.hint().unwrap().words(Surface::CommandLine);
    assert_eq!(fix(&error, &none), own);
    assert_eq!(
        fix(&failed(USER, Errno::NOSYS), &none),
        "Use a kernel built with CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS."
    );
}
