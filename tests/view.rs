//! The page of `translate --to html`, used by a browser: headless Chromium drives it by events and tells what it
//! shows. Without a Chromium the tests are skipped, and listed as such.

use flambeau::tools::{cli, io::Io};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const GRAPH: &str = include_str!("view/graph.ir");
const DRIVER: &str = include_str!("view/driver.js");

/// The tests of the page.
pub fn trials() -> Vec<Trial> {
    let browser = chromium();
    let skip = browser.is_none();
    let name = browser.unwrap_or_default();
    let other = name.clone();
    vec![
        Trial::test("view::a_person_can_use_the_page", move || page_is_usable(&name)).with_ignored_flag(skip),
        Trial::test("view::ten_thousand_ops_are_usable", move || large_graph(&other)).with_ignored_flag(skip),
    ]
}

/// A Chromium of this machine.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"];
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// The page of a graph, with our driver behind it.
fn page(folder: &Path, text: &str) -> Result<String, Failed> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("graph.ir"), text)?;
    let words = ["flambeau", "translate", "--to", "html", "graph.ir"].map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { directory: folder, stdin: &mut std::io::empty(), out: &mut out, err: &mut err };
    let status = cli::main_in(words, &mut io);
    if status != 0 {
        return Err(format!("status {status}: {}", String::from_utf8_lossy(&err)).into());
    }
    Ok(String::from_utf8(out)?)
}

/// What the page shows after the driver has used it.
fn drive(browser: &Path, name: &str, text: &str) -> Result<Value, Failed> {
    let folder = crate::scratch::folder(&format!("view-{name}"));
    let page = page(&folder, text)?.replace("</body>", &format!("<script>{DRIVER}</script></body>"));
    let file = folder.join("page.html");
    fs::write(&file, page)?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"])
        .args(["--virtual-time-budget=60000", "--timeout=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()?;
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    // What a browser leaves behind is of no use.
    let _ = fs::remove_dir_all(&folder);
    let seen = dom.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((seen, _)) = seen else {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("the driver did not come to its end\n{error}").into());
    };
    let seen =
        seen.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    let seen: Value = serde_json::from_str(&seen)?;
    match seen.get("error") {
        None => Ok(seen),
        Some(error) => Err(format!("{error}\n{seen}").into()),
    }
}

/// Compares, and tells all that is different.
struct Wanted<'a>(&'a Value, Vec<String>);

impl Wanted<'_> {
    fn is(&mut self, key: &str, wanted: impl Into<Value>) {
        let wanted = wanted.into();
        if self.0[key] != wanted {
            self.1.push(format!("{key}: {} is not {wanted}", self.0[key]));
        }
    }

    fn holds(&mut self, key: &str, parts: &[&str]) {
        let text = self.0[key].to_string();
        self.1
            .extend(parts.iter().filter(|p| !text.contains(**p)).map(|p| format!("{key} lacks {p}: {text}")));
    }

    fn done(self) -> Result<(), Failed> {
        if self.1.is_empty() { Ok(()) } else { Err(self.1.join("\n").into()) }
    }
}

fn page_is_usable(browser: &Path) -> Result<(), Failed> {
    let seen = drive(browser, "small", GRAPH)?;
    let mut wanted = Wanted(&seen, Vec::new());
    wanted.is("title", "graph.ir");
    wanted.holds("legend", &["computes", "control flow", "subgraph", "undeclared"]);
    wanted.is("zoom", "100%");
    // Closed blocks hide what is in them; open ones show it, fused groups too.
    wanted.is(
        "closed",
        vec![
            "aten::tanh",
            "prim::If",
            "aten::chunk",
            "prim::ListUnpack",
            "aten::mul",
            "aten::add",
            "prim::FusionGroup",
            "foreign::op !",
            "prim::Print !",
        ],
    );
    wanted.holds("open", &["aten::sigmoid", "prim::Loop", "aten::relu"]);
    // Types stand on edges, and constants where they are used.
    wanted.holds("labels", &["%h : Tensor", "%p : Tensor[]", "%p3 : Tensor"]);
    wanted.holds("text", &["(%y, 4, 1)", "%x : Float(2, 3, strides=[3, 1]", "(%h, %x, 1)"]);
    wanted.is("count", "1 match");
    wanted.is("hiddenBefore", false);
    wanted.is("shownAfter", true);
    wanted.is("position", "1 of 1");
    wanted.is("kind", "aten::sigmoid");
    wanted.is("hit", 1);
    wanted.holds(
        "details",
        &["%s : Tensor", "Inside of", "prim::Loop", "aten::sigmoid(Tensor self) -> Tensor"],
    );
    wanted.is("linked", "prim::Loop");
    wanted.is("byValue", "prim::ListUnpack");
    wanted.is("user", "aten::mul");
    wanted.is("giver", "prim::ListUnpack");
    wanted.is("after", "aten::mul");
    wanted.holds("said", &["aten::mul (%p0, %p1) gives %m : Tensor"]);
    for key in ["enterCloses", "clickOpens", "buttonCloses", "wheel", "drag", "dialog"] {
        wanted.is(key, true);
    }
    wanted.is("none", "0 matches");
    wanted.is("function", "branches");
    wanted.is("theme", "dark");
    wanted.is("unnamed", 0);
    wanted.done()
}

fn large_graph(browser: &Path) -> Result<(), Failed> {
    let mut text = String::from("graph @large(%v0 : Tensor, %p2 : Tensor):\n");
    for i in 1..=10_000 {
        let (a, b) = (i - 1, i - 1 - (i * 31) % i.min(9));
        text.push_str(&format!("  %v{i} : Tensor = aten::mul(%v{a}, %v{b})\n"));
        if i == 5_000 {
            text.push_str("  %s : Tensor = aten::sigmoid(%p2)\n");
        }
    }
    text.push_str("  return (%v10000, %s)\n");
    let folder = crate::scratch::folder("view-size");
    let size = page(&folder, &text)?.len();
    fs::remove_dir_all(&folder)?;
    if size > 8 << 20 {
        return Err(format!("the page has {size} bytes").into());
    }
    // The driver looks for more than this graph has; what matters is that it gets there and draws little.
    let seen = drive(browser, "large", &text)?;
    let mut wanted = Wanted(&seen, Vec::new());
    wanted.is("count", "1 match");
    wanted.is("kind", "aten::sigmoid");
    wanted.is("shownAfter", true);
    if seen["elements"].as_u64().is_none_or(|n| n > 12_000) {
        wanted.1.push(format!("too much is drawn: {}", seen["elements"]));
    }
    wanted.done()
}
