//! What a session has besides its own: packages, and tools of other servers.

use serde_json::json;

use super::{call, call_with};
use crate::mcp::client::Client;
use crate::packages::registry::{Registry, tarball, wheel};
use crate::packages::{OLD, command, installer};
use crate::servers;
use crate::support::{anyone, everyone, has};

#[test]
fn packages_may_come_with_any_call() {
    let Some(folder) = installer() else { return };
    for hotcell in everyone() {
        let registry = Registry::start();
        for name in ["firstthing", "secondthing"] {
            let text = format!("NAME = '{name}'\n");
            let files = [(&*format!("{name}/__init__.py"), &*text)];
            registry.add(name, "1.0", OLD, &wheel(name, "1.0", &files, &[]));
        }
        let mut server = command(&hotcell, &registry, Some(folder));
        server.arg("serve");
        let mut client = Client::of(server);
        client.begin();
        call(&mut client, "x = 1");
        for name in ["firstthing", "secondthing"] {
            let code = format!("import {name}\n{name}.NAME, x");
            let facts = call_with(&mut client, json!({ "code": code, "packages": [name] }));
            assert_eq!(facts["value"], format!("('{name}', 1)"), "{facts}");
        }
        let facts = call(&mut client, "firstthing.NAME + secondthing.NAME");
        assert_eq!(facts["value"], "firstthingsecondthing", "{facts}");
    }
}

#[test]
fn javascript_gets_packages_with_any_call_too() {
    let Some(hotcell) = anyone().filter(|_| has("node") && has("npm")) else {
        return;
    };
    let registry = Registry::start();
    for name in ["firstthing", "secondthing"] {
        let about = json!({ "name": name, "version": "1.0.0" });
        let files = [
            ("package/package.json", about.to_string()),
            ("package/index.js", format!("exports.NAME = '{name}';")),
        ];
        registry.publish(name, "1.0.0", json!({}), &tarball(&files));
    }
    for language in ["javascript@node", "javascript@embedded"] {
        let mut server = command(&hotcell, &registry, None);
        server.arg("serve");
        let mut client = Client::of(server);
        client.begin();
        let mut value = |code: &str| {
            let facts = call_with(&mut client, json!({ "code": code, "language": language }));
            assert_eq!(facts["status"], "ok", "{language}: {facts}");
            facts["value"].clone()
        };
        value("var x = 1");
        assert_eq!(
            value("import first from 'firstthing';\nfirst.NAME"),
            "firstthing"
        );
        assert_eq!(
            value("import { NAME } from 'secondthing';\nNAME + x"),
            "secondthing1"
        );
        assert_eq!(
            value("(await import('firstthing')).NAME + first.NAME"),
            "firstthingfirstthing"
        );
    }
}

#[test]
fn the_tools_of_servers_are_there_in_every_call_and_only_those_of_the_first() {
    for hotcell in everyone() {
        servers::configure(&hotcell);
        let mut client = servers::serve(&hotcell);
        let call = json!({ "code": "first = clock.echo_back(value=1)\nfirst", "language": "python", "session": "s", "servers": ["clock"] });
        let facts = call_with(&mut client, call);
        assert_eq!(facts["status"], "ok", "{facts}");
        let again = json!({ "code": "clock.echo_back(value=2) == first" });
        assert_eq!(call_with(&mut client, again)["value"], "false");
        let more = json!({ "code": "1", "servers": ["clock", "Other Clock"] });
        let facts = call_with(&mut client, more);
        assert_eq!(facts["error"]["kind"], "invalid_request", "{facts}");
        let javascript = json!({ "code": "JSON.stringify(await clock.echo_back({ value: 3 }))", "language": "javascript", "session": "js" });
        let facts = call_with(&mut client, javascript.clone());
        assert_eq!(facts["status"], "ok", "{facts}");
        assert_eq!(call_with(&mut client, javascript)["value"], facts["value"]);
    }
}
