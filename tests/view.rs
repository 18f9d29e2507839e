//! The page of `translate --to html`, used by a browser: headless Chromium drives it by events and reports what it
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
const MODEL_DRIVER: &str = include_str!("view/model.js");

/// The tests of the page.
pub fn trials() -> Vec<Trial> {
    let browser = chromium();
    let skip = browser.is_none();
    let name = browser.unwrap_or_default();
    let (other, third) = (name.clone(), name.clone());
    vec![
        Trial::test("view::a_person_can_use_the_page", move || page_is_usable(&name)).with_ignored_flag(skip),
        Trial::test("view::ten_thousand_ops_are_usable", move || large_graph(&other)).with_ignored_flag(skip),
        Trial::test("view::a_model_opens_at_its_entry", move || model(&third)).with_ignored_flag(skip),
    ]
}

/// A Chromium of this machine.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"];
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    all.into_iter().find(|file| file.is_file())
}

/// What a command prints in a folder.
fn command(folder: &Path, words: &[&str]) -> Result<String, Failed> {
    let words = std::iter::once("flambeau").chain(words.iter().copied()).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut stdin = std::io::empty();
    let toolkit = flambeau::toolkit::Toolkit::default();
    let mut io = Io::new(&toolkit, folder, &mut stdin, &mut out, &mut err);
    let status = cli::main_in(words, &mut io);
    if status != 0 {
        return Err(format!("status {status}: {}", String::from_utf8_lossy(&err)).into());
    }
    Ok(String::from_utf8(out)?)
}

/// The page of a graph.
fn page(folder: &Path, text: &str) -> Result<String, Failed> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("graph.ir"), text)?;
    command(folder, &["translate", "--to", "html", "graph.ir"])
}

/// What the page of a graph shows after the driver has used it.
fn drive(browser: &Path, name: &str, text: &str) -> Result<Value, Failed> {
    let folder = crate::scratch::folder(&format!("view-{name}"));
    let page = page(&folder, text)?;
    drive_page(browser, &folder, &page, DRIVER)
}

/// What a page shows after a driver has used it. The folder goes.
fn drive_page(browser: &Path, folder: &Path, page: &str, driver: &str) -> Result<Value, Failed> {
    let page = page.replace("</body>", &format!("<script>{driver}</script></body>"));
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
    let _ = fs::remove_dir_all(folder);
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

/// The page of a model: it opens at the entry, calls open in their place, sizes stand on edges, labels lie apart, and a profile
/// is shown as heat.
fn model(browser: &Path) -> Result<(), Failed> {
    let folder = crate::scratch::folder("view-model");
    fs::create_dir_all(&folder)?;
    fs::copy("examples/small.pt", folder.join("small.pt"))?;
    command(&folder, &["bench", "small.pt", "--seconds", "0", "--passes", "cse", "--profile=trace.json"])?;
    let words = ["--profile", "trace.json", "--input", "input=float32[2,3,16,16]"];
    let page = command(&folder, &[&["translate", "small.pt", "--to", "html"], &words[..]].concat())?;
    let seen = drive_page(browser, &folder, &page, MODEL_DRIVER)?;
    let mut wanted = Wanted(&seen, Vec::new());
    wanted.is("function", "__torch__.torch.nn.modules.container.Sequential.forward");
    wanted.is("inlineHidden", false);
    wanted.holds("first", &["self.0", "self.9"]);
    wanted.is("pressed", "true");
    wanted.holds("inlined", &["aten::_convolution", "aten::silu"]);
    wanted.holds("text", &["float32[2,8,8,8]", "self.4.weight"]);
    wanted.holds("labels", &["float32[2,16,8,8]"]);
    wanted.is("overlaps", 0);
    wanted.is("covered", 0);
    wanted.is("heats", vec!["time", "memory", ""]);
    wanted.is("cold", 0);
    if seen["hot"].as_u64().is_none_or(|n| n == 0) {
        wanted.1.push("no op is hot".to_string());
    }
    if seen["closed"].to_string().contains("aten::silu") {
        wanted.1.push(format!("calls are still open: {}", seen["closed"]));
    }
    wanted.done()
}

/// Compares, and reports all differences.
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
