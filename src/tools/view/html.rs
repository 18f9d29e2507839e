//! One page that holds a module, its style and its program: nothing is fetched, and it works from a file.

use super::layers::layers;
use super::model::Model;
use serde::Serialize;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const PROGRAM: &str = include_str!("page.js");

/// What the page's program reads.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    model: &'a Model,
    layers: Vec<super::layers::Layers>,
}

/// The page, with a title to show.
pub fn html(model: &Model, title: &str) -> String {
    let data = Data { title, model, layers: layers(model) };
    // Tables of numbers and text cannot fail to be written. A script ends at the first `</`, whatever stands around.
    let data = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let mut out = String::with_capacity(data.len() + PAGE.len() + STYLE.len() + PROGRAM.len());
    let mut rest = PAGE;
    for (mark, text) in [
        ("{{title}}", super::svg::escaped(title)),
        ("{{style}}", STYLE.to_string()),
        ("{{data}}", data),
        ("{{program}}", PROGRAM.to_string()),
    ] {
        let (before, behind) = rest.split_once(mark).unwrap_or((rest, ""));
        out.push_str(before);
        out.push_str(&text);
        rest = behind;
    }
    out.push_str(rest);
    out
}
