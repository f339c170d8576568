//! The example of `docs/codemode.md`: what it costs a model with direct tools, and with one program.

use serde_json::{Value, json};

use super::{serve, structured};
use crate::support::everyone;

/// About as many as a model's tokenizer makes of JSON and code.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The program of its section of the page.
fn program() -> String {
    let page = include_str!("../../../docs/codemode.md");
    let section = page.split("## One program").nth(1).expect("a section");
    let code = section.split("```python\n").nth(1).expect("a program");
    code.split("```").next().expect("its end").to_owned()
}

#[test]
fn one_program_costs_a_fraction_of_ten_calls() {
    let Some(hotcell) = everyone().pop() else {
        return;
    };
    let script = hotcell.write("shop.py", include_str!("../../servers/shop.py"));
    let config = format!(
        "[servers.shop]\ncommand = 'python3'\nargs = [{script:?}]\nexpose = ['list_customers', 'list_orders']\n"
    );
    hotcell.write("home/.config/hotcell/config.toml", config);
    let mut client = serve(&hotcell);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.wait(|message| message["method"] == "notifications/tools/list_changed");

    let (mut calls, mut direct) = (0, 0);
    let mut call = |name: &str, arguments: Value| {
        let asked = json!({ "name": name, "arguments": arguments });
        let answer = client.request("tools/call", asked.clone())["result"].clone();
        let text = answer["content"][0]["text"].as_str().expect("a text");
        (calls, direct) = (
            calls + 1,
            direct + tokens(&asked.to_string()) + tokens(text),
        );
        serde_json::from_str::<Value>(text).expect("JSON")
    };
    let customers = call("list_customers", json!({}));
    let mut spent: Vec<(u64, String)> = Vec::new();
    for customer in customers.as_array().expect("customers") {
        let orders = call("list_orders", json!({ "customer": customer["id"] }));
        let orders = orders.as_array().expect("orders").iter();
        let shipped = orders.filter(|order| order["status"] == "shipped");
        let total = shipped.filter_map(|order| order["total"].as_u64()).sum();
        spent.push((
            total,
            customer["name"].as_str().unwrap_or_default().to_owned(),
        ));
    }
    let (total, best) = spent.iter().max().expect("somebody");
    assert_eq!(calls, 10);

    let asked = json!({ "language": "python", "code": program() });
    let ran = client.run(asked.clone());
    let said = structured(&ran)["stdout"].as_str().unwrap_or_default();
    assert_eq!(said, format!("{best} {total}\n"), "{ran}");
    let once = tokens(&asked.to_string()) + tokens(&ran["content"].to_string());
    println!("{direct} tokens by ten calls, {once} by one program");
    assert!(once * 20 < direct, "{once} against {direct}");
    let page = include_str!("../../../docs/codemode.md");
    assert!(
        page.contains(&format!("    {best} {total}\n")),
        "the page says something else"
    );
}
