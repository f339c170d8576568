//! The libraries that people draw with, as they come from their registries and from Debian.

use serde_json::{Value, json};

use super::{blocks, size};
use crate::packages::installer;
use crate::raw;
use crate::support::{PATH, has, ordinary, skip};

/// A server of an ordinary user that can install packages.
fn server() -> Option<raw::Stdio> {
    let hotcell = ordinary().filter(|_| has("python3") && installer().is_some())?;
    let path = format!("{}/bin:{PATH}", installer()?.display());
    let (home, uid) = (hotcell.home(), hotcell.uid);
    let client = raw::Stdio::open_as(&[], |command, _| {
        use std::os::unix::process::CommandExt;
        command
            .env("HOME", &home)
            .env("TMPDIR", hotcell.temporary())
            .env("PATH", &path)
            .current_dir(&home);
        if rustix::process::getuid().is_root() {
            command.uid(uid).gid(uid);
        }
    });
    // Its folders live as long as it does.
    std::mem::forget(hotcell);
    Some(client)
}

fn run(client: &mut raw::Stdio, code: &str) -> Value {
    call(
        client,
        json!({ "code": code, "language": "python", "timeout": 120 }),
    )
}

fn call(client: &mut raw::Stdio, arguments: Value) -> Value {
    let id = client.begin_call("run", arguments);
    client.answer_within(&id, std::time::Duration::from_secs(300))["result"].clone()
}

#[test]
fn figures_and_pictures_are_shown_once_each_without_a_warning() {
    let Some(mut client) = server() else {
        return;
    };
    let first = run(
        &mut client,
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('drawn')",
    );
    if first["structuredContent"]["error"]["kind"] == "package" {
        return skip("no package index");
    }
    for (code, printed, pictures) in [
        // Still open at the end.
        (
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('drawn')",
            "drawn\n",
            1,
        ),
        ("import matplotlib.pyplot as plt\nplt.plot([1, 2])", "", 1),
        // Shown, closed by that, and another one drawn.
        (
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint(plt.get_fignums())\nplt.plot([2, 1])\nplt.show()",
            "[]\n",
            2,
        ),
        (
            "import matplotlib\nmatplotlib.use('Agg')\nfrom matplotlib import pyplot\nfigure, axes = pyplot.subplots()\naxes.bar(['a'], [1])\npyplot.show()\nfigure",
            "",
            1,
        ),
        // Of two, one is shown by hand; saved ones are still open.
        (
            "import matplotlib.pyplot as plt\na = plt.figure()\nb = plt.figure()\ndisplay(a)\nb.savefig('b.png')\nprint(1)",
            "1\n",
            2,
        ),
        // Closed ones are not wanted.
        (
            "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.close()\nprint(1)",
            "1\n",
            0,
        ),
        (
            "from PIL import Image\nImage.new('RGB', (30, 20), 'red').show()\nImage.new('CMYK', (3, 2))",
            "",
            2,
        ),
        (
            "import os, matplotlib\nprint('MPLBACKEND' in os.environ, matplotlib.get_backend().lower())",
            "False agg\n",
            0,
        ),
    ] {
        let result = run(&mut client, code);
        let facts = &result["structuredContent"];
        assert_eq!(facts["status"], "ok", "{code}: {facts}");
        assert_eq!(facts["stdout"], printed, "{code}");
        let said = facts["stderr"].as_str().unwrap_or_default();
        assert!(
            !said.contains("Warning") && !said.contains("non-"),
            "{code}: {said}"
        );
        assert_eq!(blocks(&result).len(), pictures, "{code}: {facts}");
        assert!(facts.get("value").is_none(), "{code}: {}", facts["value"]);
        for block in blocks(&result) {
            let (width, height) = size(block);
            assert!(width > 1 && height > 1);
        }
    }
    let failed = run(
        &mut client,
        "import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0",
    );
    assert_eq!(failed["structuredContent"]["exit_code"], 1);
    assert_eq!(blocks(&failed).len(), 1, "{failed}");
}

#[test]
fn pictures_of_other_kinds_are_made_smaller_too() {
    let Some(mut client) = server() else {
        return;
    };
    let code = "from PIL import Image\nimport os\nnoise = Image.effect_noise((1200, 1000), 90)\n\
        for name, options in (('a.jpg', {'quality': 95}), ('b.webp', {'lossless': True}), ('c.gif', {})):\n    \
        noise.convert('RGB').save(name, **options)\n    assert os.path.getsize(name) > 1 << 20, name\n\
        noise.resize((40, 20)).save('d.jpg')";
    let result = run(&mut client, code);
    if result["structuredContent"]["error"]["kind"] == "package" {
        return skip("no package index");
    }
    let blocks = blocks(&result);
    assert_eq!(blocks.len(), 4, "{}", result["structuredContent"]);
    for block in &blocks[..3] {
        let (width, height) = size(block);
        let is_whole = (10 * width).abs_diff(12 * height) <= 12;
        assert!(width > 400 && is_whole, "{width} x {height}");
        assert!(block["data"].as_str().map_or(0, str::len) <= 1_400_000);
    }
    // Control: one that fits is as it was.
    assert_eq!(blocks[3]["mimeType"], "image/jpeg");
}

#[test]
fn a_figure_of_plotly_is_a_page_and_says_what_it_is() {
    let Some(mut client) = server() else {
        return;
    };
    for end in ["fig.show()", "fig", "display(fig)"] {
        let code = format!(
            "import plotly.graph_objects as go\nfig = go.Figure(go.Bar(x=[1, 2], y=[3, 5]), layout={{'title': 'Sales'}})\n{end}"
        );
        let result = run(&mut client, &code);
        let facts = &result["structuredContent"];
        if facts["error"]["kind"] == "package" {
            return skip("no package index");
        }
        assert_eq!(facts["status"], "ok", "{end}: {facts}");
        let displays = facts["displays"].as_array().expect("a list");
        assert_eq!(displays.len(), 2, "{end}: {facts}");
        assert_eq!(displays[0]["type"], "text/html");
        assert!(displays[0]["uri"].is_string(), "{end}: {facts}");
        let text = displays[1]["text"].as_str().expect("text");
        assert!(
            text.starts_with("plotly figure \"Sales\": bar (2 points)") && text.contains("kaleido"),
            "{text}"
        );
    }
}

#[test]
fn a_figure_of_plotly_is_a_picture_where_kaleido_can_draw_it() {
    let Some(mut client) = server() else {
        return;
    };
    let code = "import plotly.graph_objects as go\ngo.Figure(go.Bar(x=[1, 2], y=[3, 5])).show()";
    // The last version that brings what it draws with.
    let arguments = json!({
        "code": code, "language": "python", "packages": ["plotly<6", "kaleido==0.2.1"], "memory": "2g", "timeout": 300,
    });
    let result = call(&mut client, arguments);
    let facts = &result["structuredContent"];
    if facts["error"]["kind"] == "package" {
        return skip("no package index");
    }
    assert_eq!(facts["status"], "ok", "{facts}");
    assert_eq!(blocks(&result).len(), 1, "{facts}");
}

#[test]
fn tables_are_compact_with_their_shape_and_types() {
    let Some(mut client) = server() else {
        return;
    };
    let code = "import pandas as pd\ndf = pd.DataFrame({'a': range(1000), 'b': ['x'] * 1000})\ndf";
    let facts = run(&mut client, code)["structuredContent"].clone();
    if facts["error"]["kind"] == "package" {
        return skip("no package index");
    }
    let value = facts["value"].as_str().expect("text");
    assert!(
        value.starts_with("DataFrame, 1000 rows x 2 columns: a int64, b "),
        "{value}"
    );
    assert!(
        value.contains("999") && value.lines().count() < 30,
        "{value}"
    );
    let series = run(
        &mut client,
        "import pandas as pd\npd.Series([1.5, 2], name='x')",
    )["structuredContent"]["value"]
        .clone();
    assert_eq!(series, "Series 'x', 2 rows, float64\n0    1.5\n1    2.0");
}
