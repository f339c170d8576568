use std::collections::HashSet;

use serde_json::Value;

use super::*;

/// The tools and tasks of a public benchmark (`tests/data/NOTICE`).
const TOOLS: &str = include_str!("../../tests/data/tools.jsonl");
const TASKS: &str = include_str!("../../tests/data/tasks.jsonl");

fn lines(text: &str) -> Vec<Value> {
    let parsed = text.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("JSON lines")
}

fn index(tools: &[Value]) -> Index {
    let names = |tool: &Value| -> Vec<String> {
        let names = tool["parameters"].as_object().expect("an object").keys();
        names
            .map(|name| name.trim_end_matches('?').to_owned())
            .collect()
    };
    let names: Vec<Vec<String>> = tools.iter().map(names).collect();
    let names: Vec<Vec<&str>> = names
        .iter()
        .map(|it| it.iter().map(String::as_str).collect())
        .collect();
    Index::new(tools.iter().zip(&names).map(|(tool, parameters)| Document {
        server: tool["server"].as_str().expect("a text"),
        name: tool["name"].as_str().expect("a text"),
        description: tool["description"].as_str().expect("a text"),
        parameters,
    }))
}

/// The share of the tools of tasks that are among the first eight of one of their steps.
fn recall<'a>(index: &Index, tools: &[Value], tasks: impl Iterator<Item = &'a Value>) -> f64 {
    let (mut found, mut all) = (0, 0);
    for task in tasks {
        let steps = task["steps"].as_array().expect("steps").iter();
        let hits = steps.flat_map(|step| index.search(step.as_str().expect("a text"), 8).best);
        let hits: HashSet<&Value> = hits.map(|hit| &tools[hit.at]["name"]).collect();
        let wanted = task["tools"].as_array().expect("tools");
        all += wanted.len();
        found += wanted.iter().filter(|name| hits.contains(name)).count();
    }
    found as f64 / all as f64
}

/// Weights and synonyms were chosen with every other task; the rest was left aside, to see whether they hold for questions that nobody
/// had looked at.
#[test]
fn four_of_five_tools_are_among_the_first_eight() {
    let (tools, tasks) = (lines(TOOLS), lines(TASKS));
    let index = index(&tools);
    let all = recall(&index, &tools, tasks.iter());
    let chosen_with = recall(&index, &tools, tasks.iter().step_by(2));
    let left_aside = recall(&index, &tools, tasks.iter().skip(1).step_by(2));
    println!("recall@8: {all:.3}; chosen with {chosen_with:.3}, left aside {left_aside:.3}");
    assert!(all >= 0.78, "{all}");
    assert!(left_aside >= 0.76, "{left_aside}");
}

fn of(tools: &[(&str, &str, &str)]) -> Index {
    Index::new(tools.iter().map(|(server, name, description)| Document {
        server,
        name,
        description,
        parameters: &[],
    }))
}

fn first(index: &Index, query: &str) -> Option<usize> {
    index.search(query, 8).best.first().map(|hit| hit.at)
}

#[test]
fn words_are_found_in_every_spelling() {
    let index = of(&[
        ("github", "createIssue", "Opens an issue."),
        ("files", "list_directory", "What a directory holds."),
        ("wikipedia", "get_article", "An article."),
        ("trends", "get-weread-rank", "获取微信读书排行榜"),
    ]);
    for (query, expected) in [
        ("create an issue", Some(0)),
        ("CREATING ISSUES", Some(0)),
        ("what is in this folder", Some(1)),
        ("wiki", Some(2)),
        ("directroy", Some(1)),
        ("ranking of books to read", Some(3)),
        ("读书", Some(3)),
        ("", None),
        ("the of and", None),
        ("zzzzzz", None),
    ] {
        assert_eq!(first(&index, query), expected, "{query}");
    }
}

#[test]
fn tools_of_one_name_are_one_hit() {
    let index = of(&[
        ("bing", "search", "Searches the web."),
        ("notes", "search", "Searches notes."),
        ("notes", "search_tags", "Searches tags."),
    ]);
    let found = index.search("search notes", 1);
    let best = vec![Hit {
        at: 1,
        also: vec![0],
    }];
    assert_eq!(found, Ranking { best, more: 1 });
}

#[test]
fn hostile_texts_are_only_texts() {
    let long = "a ".repeat(1 << 20);
    let odd = "\u{0}\u{1b}[2J\u{202e}ÀÉß’s 日 本 🦀 ".repeat(1000);
    let index = of(&[(&long, &odd, &long), (&odd, "", ""), ("", "", "")]);
    for query in [long.as_str(), &odd, "日", "🦀"] {
        let found = index.search(query, 8);
        assert!(found.best.len() <= 3);
    }
    assert_eq!(Index::default().search("anything", 8).best, []);
}
