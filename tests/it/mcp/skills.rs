//! The Skills extension: saved tools and published scripts as skills, where that is asked for.

use serde_json::{Value, json};

use super::client::{Client, modern};
use crate::support::{Hotcell, anyone};

const SAVED: &str = "# --- tool\n# description = \"Counts words.\\n\\nAll of them.\"\n# [parameters]\n# words = { type = \"array\", items = { type = \"string\" } }\n# ---\nprint(1)\n";

fn serve(hotcell: &Hotcell, flags: &[&str]) -> Client {
    let mut command = hotcell.command();
    command.arg("serve").args(flags);
    Client::of(command)
}

fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    client.request(method, modern(params))
}

#[test]
fn saved_and_published_tools_are_skills_where_that_is_asked_for() {
    let Some(hotcell) = anyone() else { return };
    hotcell.write("home/.local/share/hotcell/tools/count_words.py", SAVED);
    hotcell.write("home/.local/share/hotcell/tools/broken.py", "nonsense");
    hotcell.write(
        "scripts/hello.sh",
        "# --- tool\n# description = \"Says hello\"\n# ---\necho hello\n",
    );
    let scripts = hotcell.place("scripts");
    let flags = ["--skills", "--publish", scripts.to_str().expect("a path")];
    let mut client = serve(&hotcell, &flags);
    let found = ask(&mut client, "server/discover", json!({}));
    let extensions = &found["result"]["capabilities"]["extensions"];
    assert_eq!(
        extensions["io.modelcontextprotocol/skills"],
        json!({}),
        "{found}"
    );

    let listed = ask(&mut client, "skills/list", json!({}));
    let result = &listed["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"]),
        (&json!("complete"), &json!(0))
    );
    let skills = result["skills"].as_array().expect("a list");
    let uris: Vec<&Value> = skills.iter().map(|it| &it["uri"]).collect();
    assert_eq!(
        uris,
        [
            "skill://saved/count-words/SKILL.md",
            "skill://published/hello/SKILL.md"
        ]
    );
    let first = &skills[0];
    let about = "Counts words. All of them. Call it in a program of the tool `run`, as `saved.count_words`.";
    assert_eq!(
        first["frontmatter"],
        json!({ "name": "count-words", "description": about })
    );
    let one = ask(&mut client, "skills/get", json!({ "uri": first["uri"] }));
    assert_eq!(one["result"]["skill"], *first);

    // Every file is there, with the size and the digest that the entry has.
    let files = first["resources"].as_array().expect("files");
    assert_eq!(files.len(), 2, "{first}");
    let mut texts = Vec::new();
    for file in files {
        let read = ask(&mut client, "resources/read", json!({ "uri": file["uri"] }));
        let content = &read["result"]["contents"][0];
        let text = content["text"].as_str().expect("a text").to_owned();
        assert_eq!(file["size"], text.len(), "{read}");
        assert_eq!(file["digest"], format!("sha256:{}", sha256(&text)));
        texts.push((content["mimeType"].clone(), text));
    }
    assert_eq!(texts[0].0, "text/markdown");
    let start = format!(
        "---\nname: count-words\ndescription: {}\n---\n",
        json!(about)
    );
    assert!(texts[0].1.starts_with(&start), "{}", texts[0].1);
    assert!(
        texts[0]
            .1
            .contains("\n    saved.count_words({words:string[]})\n"),
        "{}",
        texts[0].1
    );
    assert_eq!(texts[1], (json!("text/plain"), SAVED.to_owned()));

    for uri in [
        "skill://saved/nothing/SKILL.md",
        "skill://saved/count-words",
        "skill://saved/../x",
        "skill://",
    ] {
        let none = ask(&mut client, "skills/get", json!({ "uri": uri }));
        assert_eq!(none["error"]["code"], -32602, "{none}");
        let none = ask(&mut client, "resources/read", json!({ "uri": uri }));
        assert_eq!(none["error"]["code"], -32602, "{none}");
    }
    let bad = ask(&mut client, "skills/get", json!({}));
    assert_eq!(bad["error"]["code"], -32602, "{bad}");

    // Control: who does not ask for it has none of it.
    let mut client = serve(&hotcell, &[]);
    let found = ask(&mut client, "server/discover", json!({}));
    assert!(!found.to_string().contains("skills"), "{found}");
    let none = ask(&mut client, "skills/list", json!({}));
    assert_eq!(none["error"]["code"], -32601, "{none}");
}

fn sha256(text: &str) -> String {
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("sha256sum");
    let mut pipe = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut pipe, text.as_bytes()).expect("a write");
    drop(pipe);
    let output = child.wait_with_output().expect("an end").stdout;
    String::from_utf8_lossy(&output)[..64].to_owned()
}
