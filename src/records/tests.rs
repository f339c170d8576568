use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;
use crate::spool::Spool;

fn keeping(folder: &TempDir) -> Keeping {
    Keeping {
        folder: folder.path().join("state/records"),
        time: Duration::from_secs(3600),
        bytes: 1 << 30,
    }
}

fn record(id: &str, caller: Caller) -> Record {
    Record {
        id: id.to_owned(),
        caller,
        started: SystemTime::now(),
        ended: Some(SystemTime::now()),
        status: "ok".to_owned(),
        language: Some("python".to_owned()),
        session: None,
        request: "{}".to_owned(),
        result: Some("{}".to_owned()),
        contents: vec![("code".to_owned(), b"print(1)".to_vec())],
    }
}

fn running(id: &str) -> Record {
    Record {
        ended: None,
        result: None,
        status: "running".to_owned(),
        ..record(id, Caller::local())
    }
}

#[test]
fn a_record_is_found_by_its_own_caller_and_by_the_owner_alone() {
    let folder = TempDir::new().unwrap();
    let records = Records::start(keeping(&folder));
    records.write(10, || record("abcd", Caller::token()));
    let of = |caller: Caller| {
        let found = records.look_up(|reader| reader.of_caller(&caller, "abcd"));
        found.expect("there is a file").map(|kept| kept.status)
    };
    assert_eq!(of(Caller::token()), Some("ok".to_owned()));
    assert_eq!((of(Caller::local()), of(Caller::anonymous())), (None, None));
    let reader = Reader::open(&records.keeping().folder).unwrap();
    assert_eq!(reader.beginning("ab").unwrap().len(), 1);
    assert_eq!(reader.beginning("b").unwrap(), []);
    assert_eq!(reader.newest(5).unwrap().len(), 1);
    let code = reader.content("abcd", "code").unwrap();
    assert_eq!(code, Some(b"print(1)".to_vec()));
}

#[test]
fn nobody_else_can_read_the_file_or_its_folder() {
    let folder = TempDir::new().unwrap();
    let keeping = keeping(&folder);
    fs::create_dir_all(&keeping.folder).unwrap();
    let records = Records::start(keeping.clone());
    records.write(10, || record("a", Caller::local()));
    records.flush();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keeping.folder), 0o700);
    let files: Vec<_> = fs::read_dir(&keeping.folder).unwrap().flatten().collect();
    assert!(files.len() > 1, "the file and its log");
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.path());
    }
}

#[test]
fn a_link_in_the_place_of_the_file_is_not_followed() {
    let folder = TempDir::new().unwrap();
    let keeping = keeping(&folder);
    fs::create_dir_all(&keeping.folder).unwrap();
    let target = folder.path().join("target");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, keeping.folder.join("records.db")).unwrap();
    assert!(Database::open(&keeping).is_err());
    assert_eq!(fs::read(&target).unwrap(), b"");
}

#[test]
fn what_is_too_old_goes_and_of_too_much_the_oldest() {
    let folder = TempDir::new().unwrap();
    let keeping = Keeping {
        bytes: 400_000,
        ..keeping(&folder)
    };
    let mut database = Database::open(&keeping).unwrap();
    let now = SystemTime::now();
    let one = |at: u64, age: Duration| Record {
        started: now - age,
        contents: vec![("code".to_owned(), vec![at as u8; 20_000])],
        ..record(&format!("run{at}"), Caller::local())
    };
    let old = one(99, Duration::from_secs(4000));
    database.insert(&old, None).unwrap();
    for at in 0..40 {
        let record = one(at, Duration::from_secs(1000 - at));
        database.insert(&record, None).unwrap();
    }
    database.prune(&keeping).unwrap();
    let reader = Reader::open(&keeping.folder).unwrap();
    let left = reader.newest(100).unwrap();
    assert!((5..20).contains(&left.len()), "{}", left.len());
    assert_eq!(left[0].id, "run39");
    assert_eq!(reader.content("run99", "code").unwrap(), None);
    assert_eq!(reader.content("run0", "code").unwrap(), None);
    assert!(reader.content("run39", "code").unwrap().is_some());
    drop((reader, database));
    let size = fs::metadata(keeping.folder.join("records.db"))
        .unwrap()
        .len();
    assert!(size < 600_000, "{size}");
}

#[test]
fn a_run_that_goes_on_is_lost_when_its_process_ends() {
    let folder = TempDir::new().unwrap();
    let records = Records::start(keeping(&folder));
    let progress: Progress = Box::new(|offset| Some((b"so far"[offset as usize..].to_vec(), 6)));
    records.follow(|| running("job"), progress);
    let status = |records: &Records| {
        let found = records.look_up(|reader| reader.of_caller(&Caller::local(), "job"));
        found.flatten().expect("a record").status
    };
    assert_eq!(status(&records), "running");
    records.close();
    assert_eq!(status(&records), "lost");
    let printed = records.look_up(|reader| reader.progress("job"));
    assert_eq!(printed, Some((b"so far".to_vec(), 6)));
    // Once it has a result, that counts.
    let records = Records::start(keeping(&folder));
    records.write(10, || record("job", Caller::local()));
    assert_eq!(status(&records), "ok");
}

#[test]
fn an_output_is_there_for_its_caller_until_its_time_is_over() {
    let folder = TempDir::new().unwrap();
    let records = Records::start(keeping(&folder));
    let mut spool = Spool::default();
    spool.add(b"1,2");
    let output = Arc::new(spool.finish().unwrap());
    for (name, until) in [
        ("files/a.csv", SystemTime::now() + Duration::from_secs(60)),
        ("files/b.csv", SystemTime::now()),
    ] {
        records.save(Saved {
            caller: Caller::token(),
            run: "r".to_owned(),
            name: name.to_owned(),
            output: output.clone(),
            until,
        });
    }
    let find = |caller: Caller, name: &str| {
        records
            .look_up(|reader| reader.output(&caller, "r", name))
            .flatten()
    };
    assert_eq!(find(Caller::token(), "files/a.csv"), Some(b"1,2".to_vec()));
    assert_eq!(find(Caller::local(), "files/a.csv"), None);
    assert_eq!(find(Caller::token(), "files/b.csv"), None);
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_and_nobody_waits() {
    let folder = TempDir::new().unwrap();
    let records = Records::start(keeping(&folder));
    records.write(1 << 40, || record("large", Caller::local()));
    assert_eq!(records.dropped(), 1);
    records.write(10, || record("small", Caller::local()));
    records.flush();
    let reader = Reader::open(&records.keeping().folder).unwrap();
    assert_eq!(reader.newest(9).unwrap().len(), 1);
    assert_eq!(reader.dropped().unwrap(), 1);
}

#[test]
fn two_writers_share_one_file() {
    let folder = TempDir::new().unwrap();
    let both = [(); 2].map(|()| Records::start(keeping(&folder)));
    for at in 0..200 {
        both[at % 2].write(10, move || record(&format!("run{at}"), Caller::local()));
    }
    both.iter().for_each(|records| records.close());
    let reader = Reader::open(&both[0].keeping().folder).unwrap();
    assert_eq!(reader.newest(1000).unwrap().len(), 200);
    assert_eq!((both[0].dropped(), both[1].dropped()), (0, 0));
}
