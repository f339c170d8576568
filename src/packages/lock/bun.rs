//! Bun's lock in npm's words, so that a set is locked alike by whatever installed it.

use serde_json::{Map, Value, json};

/// What `bun.lock` says as a `package-lock.json`, if it is one; the reader of those checks it.
pub fn package_lock(text: &str) -> Option<String> {
    let lock: Value = serde_json::from_str(&without_last_commas(text)).ok()?;
    let wanted = &lock["workspaces"][""]["dependencies"];
    let mut packages = Map::from_iter([(String::new(), json!({ "dependencies": wanted }))]);
    for (key, entry) in lock["packages"].as_object()? {
        let (_, version) = entry[0].as_str()?.rsplit_once('@')?;
        // Of another kind of package these two are something else.
        let (about, hash) = (entry[2].as_object()?, entry[3].as_str()?);
        let mut entry = about.clone();
        // Written in a way that bun itself does not read in the other file; no set has them.
        entry.remove("bin");
        entry.insert("version".to_owned(), version.into());
        entry.insert("integrity".to_owned(), hash.into());
        for field in ["os", "cpu", "libc"] {
            if let Some(one @ Value::String(_)) = entry.get(field).cloned() {
                entry.insert(field.to_owned(), json!([one]));
            }
        }
        if let Some(Value::Array(names)) = entry.remove("optionalPeers") {
            let names = names.iter().filter_map(Value::as_str);
            let meta = names.map(|name| (name.to_owned(), json!({ "optional": true })));
            let meta: Map<String, Value> = meta.collect();
            entry.insert("peerDependenciesMeta".to_owned(), meta.into());
        }
        packages.insert(path(key), entry.into());
    }
    Some(json!({ "lockfileVersion": 3, "packages": packages }).to_string())
}

/// `a/@b/c` as the folder `node_modules/a/node_modules/@b/c`.
fn path(key: &str) -> String {
    let mut path = String::new();
    let mut in_scope = false;
    for part in key.split('/') {
        path += if in_scope { "/" } else { "/node_modules/" };
        path += part;
        in_scope = part.starts_with('@') && !in_scope;
    }
    path.trim_start_matches('/').to_owned()
}

/// JSON from what may have a comma after the last of a list.
fn without_last_commas(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let (mut in_text, mut is_escaped) = (false, false);
    for c in text.chars() {
        if !in_text && (c == '}' || c == ']') {
            let end = json.trim_end().trim_end_matches(',').len();
            json.truncate(end);
        }
        in_text ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        json.push(c);
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::lock::Lock;
    use crate::packages::requirement::Ecosystem;

    const LOCK: &str = r#"{
      "lockfileVersion": 2,
      "workspaces": { "": { "dependencies": { "a": "^1", }, }, },
      "packages": {
        "@s/b": ["@s/b@2.0.0", "", { "os": "linux", "bin": { "x": "y,}" } }, "sha512-b"],

        "a": ["a@1.0.0", "http://127.0.0.1/file/1/a.tgz", { "dependencies": { "@s/b": "^2" }, "optionalPeers": ["c"] }, "sha512-a"],

        "a/@s/b": ["@s/b@2.1.0", "", {}, "sha512-c"],
        "@s/b/a": ["a@3.0.0", "", {}, "sha512-d"],
      },
    }"#;

    #[test]
    fn it_says_the_same_in_npms_words() {
        let lock: Value = serde_json::from_str(&package_lock(LOCK).unwrap()).unwrap();
        let expected = json!({
            "": { "dependencies": { "a": "^1" } },
            "node_modules/@s/b": { "os": ["linux"], "version": "2.0.0", "integrity": "sha512-b" },
            "node_modules/a": { "dependencies": { "@s/b": "^2" }, "version": "1.0.0", "integrity": "sha512-a",
                "peerDependenciesMeta": { "c": { "optional": true } } },
            "node_modules/a/node_modules/@s/b": { "version": "2.1.0", "integrity": "sha512-c" },
            "node_modules/@s/b/node_modules/a": { "version": "3.0.0", "integrity": "sha512-d" },
        });
        assert_eq!(lock["packages"], expected);
        let read = Lock::read(&lock.to_string(), Ecosystem::Npm).unwrap();
        assert_eq!(
            read.installed,
            ["@s/b==2.0.0", "@s/b==2.1.0", "a==1.0.0", "a==3.0.0"]
        );
    }

    #[test]
    fn what_is_no_package_of_the_registry_or_no_lock_is_refused() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            "}}]]",
            "\"\\",
            r#"{"packages":{"a":["a@1.0.0","",{}]}}"#,
            r#"{"packages":{"a":["a@git+x","",{},7]}}"#,
            r#"{"packages":{"a":"a@1"}}"#,
            r#"{"packages":{"a":[]}}"#,
        ] {
            assert_eq!(package_lock(text), None, "{text}");
        }
        for (from, to) in [
            ("\"a/@s/b\"", "\"a/../../b\""),
            ("sha512-a", "x"),
            ("a@1.0.0", "a@file:../x"),
        ] {
            let text = package_lock(&LOCK.replacen(from, to, 1)).unwrap();
            assert!(Lock::read(&text, Ecosystem::Npm).is_err(), "{from} {to}");
        }
    }
}
