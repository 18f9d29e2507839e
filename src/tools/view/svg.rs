//! A picture of a module: boxes for ops, lines for values with their types, frames for blocks.

use super::labels::{Labels, Wish};
use super::layers::{Item, Layers, layers};
use super::model::Model;
use super::place::{self, LINE, PAD, Placed, Rect, TITLE, place};
use std::collections::BTreeMap;
use std::fmt::Write;

const STYLE: &str = "\
text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1c2128}\
.t{font-weight:600}.s{fill:#57606a}.l{font-size:10px;fill:#57606a;paint-order:stroke;stroke:#fff;stroke-width:3px}\
.r{text-anchor:end}.n{fill:#fff;stroke:#8c959f}.b{fill:#f6f8fa;stroke:#d0d7de}.e{fill:none;stroke:#8c959f}\
.bar{stroke:none}.compute{fill:#0969da}.control{fill:#8250df}.call,.scope{fill:#9a6700}.data{fill:#1a7f37}.fused{fill:#bc4c00}\
.foreign{fill:#cf222e}.constant,.edge{fill:#6e7781}\
@media (prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.s,.l{fill:#9198a1}.l{stroke:#0d1117}\
.n{fill:#161b22;stroke:#6e7681}.b{fill:#0d1117;stroke:#3d444d}.e{stroke:#6e7681}\
.compute{fill:#4493f8}.control{fill:#ab7df8}.call,.scope{fill:#d29922}.data{fill:#3fb950}.fused{fill:#db6d28}.foreign{fill:#f85149}}";

/// All functions below each other.
pub fn svg(model: &Model) -> String {
    let layers = layers(model);
    let placed = place(model, &layers);
    let (out, labels) = (String::new(), Labels::default());
    let mut picture = Picture { model, layers: &layers, placed: &placed, out, labels };
    let (mut y, mut width) = (10.0, 0.0f64);
    for function in &model.functions {
        let block = function.block;
        let title = if function.name.is_empty() { "graph" } else { &function.name };
        picture.frame(block, 10.0, y, title);
        y += placed[block].height + TITLE + 20.0;
        width = width.max(placed[block].width);
    }
    picture.labels();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{y:.0}\" viewBox=\"0 0 {w:.0} {y:.0}\" \
         role=\"img\" aria-label=\"graph of {count} ops\"><style>{STYLE}</style>\n{}</svg>\n",
        picture.out,
        w = width + 20.0,
        count = model.ops.len(),
    )
}

struct Picture<'a> {
    model: &'a Model,
    layers: &'a [Layers],
    placed: &'a [Placed],
    out: String,
    labels: Labels,
}

impl Picture<'_> {
    /// A block with everything in it, its corner at the given point.
    fn frame(&mut self, block: usize, x: f64, y: f64, title: &str) {
        let mut work = vec![(block, x, y, title.to_string())];
        while let Some((block, x, y, title)) = work.pop() {
            let Placed { width, height, items } = &self.placed[block];
            self.rect("b", Rect { x, y, width: *width, height: height + TITLE });
            self.labels.take(Rect { x, y, width: *width, height: TITLE });
            self.text("s", x + PAD, y + 14.0, &place::shortened(&title));
            let y = y + TITLE;
            self.edges(block, x, y);
            for (item, rect) in self.layers[block].items.iter().zip(items) {
                let rect = Rect { x: rect.x + x, y: rect.y + y, ..*rect };
                let is_open = matches!(item, Item::Op(op) if !self.model.ops[*op].blocks.is_empty());
                let height = if is_open { 2.0 * LINE + 2.0 * PAD } else { rect.height };
                if *item != Item::Way {
                    self.labels.take(Rect { height, ..rect });
                }
                match item {
                    Item::Way => {}
                    Item::Input(value) => self.edge_of_block(rect, &place::input_text(self.model, *value)),
                    Item::Return => self.edge_of_block(rect, &place::return_text(self.model, block)),
                    Item::Op(op) => {
                        self.op(*op, rect);
                        let mut inner = rect.x + PAD;
                        for nested in &self.model.ops[*op].blocks {
                            let top = rect.y + 2.0 * LINE + 2.0 * PAD;
                            work.push((*nested, inner, top, self.model.blocks[*nested].name.clone()));
                            inner += self.placed[*nested].width + PAD;
                        }
                    }
                }
            }
        }
    }

    fn op(&mut self, op: usize, rect: Rect) {
        let [first, second] = place::lines(self.model, op);
        let own = &self.model.ops[op];
        let results: Vec<String> = own.results.iter().map(|v| place::input_text(self.model, *v)).collect();
        let place = own.location.as_ref().map(|l| format!("\n{l}")).unwrap_or_default();
        let _ = write!(
            self.out,
            "<g id=\"op{op}\"><title>{}{}</title>",
            escaped(&format!("{first}{second} -> {}", results.join(", "))),
            escaped(&place)
        );
        self.rect("n", rect);
        self.rect(&format!("bar {}", place::class(own.part)), Rect { width: 4.0, ..rect });
        self.text("t", rect.x + PAD, rect.y + PAD + 11.0, &first);
        self.text("s", rect.x + PAD, rect.y + PAD + LINE + 11.0, &second);
        self.out.push_str("</g>\n");
    }

    fn edge_of_block(&mut self, rect: Rect, text: &str) {
        self.rect("n", rect);
        self.rect("bar edge", Rect { width: 4.0, ..rect });
        self.text("", rect.x + PAD, rect.y + PAD + 11.0, text);
        self.out.push('\n');
    }

    /// Lines between the items of a block, each value's type at its first one.
    fn edges(&mut self, block: usize, x: f64, y: f64) {
        let (layers, items) = (&self.layers[block], &self.placed[block].items);
        let mut labelled = None;
        let mut tips = BTreeMap::new();
        for edge in &layers.edges {
            let from = items[edge.from];
            let (part, many) = self.port(layers.items[edge.from], edge.value);
            let (mut px, mut py) = (from.x + from.width * part + x, from.y + from.height + y);
            let start = (px, py);
            let mut path = format!("M{px:.1} {py:.1}");
            let mut first = None;
            for next in edge.via.iter().chain([&edge.to]) {
                let to = items[*next];
                let (nx, ny) = (to.x + to.width / 2.0 + x, to.y + y);
                let middle = (py + ny) / 2.0;
                let _ = write!(path, "C{px:.1} {middle:.1} {nx:.1} {middle:.1} {nx:.1} {ny:.1}");
                first.get_or_insert((nx, ny));
                (px, py) = (nx, ny);
                if *next != edge.to {
                    py = ny + to.height;
                    let _ = write!(path, "V{py:.1}");
                }
            }
            let _ = writeln!(self.out, "<path class=\"e\" d=\"{path}\"/>");
            // Inputs say their type themselves.
            if matches!(layers.items[edge.from], Item::Op(_)) && labelled != Some(edge.value) {
                labelled = Some(edge.value);
                let first = first.unwrap_or(start);
                let (lx, ly) = if many {
                    // Labels at one end are stacked.
                    let taken = tips.entry(edge.via.first().unwrap_or(&edge.to)).or_insert(0.0f64);
                    let place = (first.0, first.1 - 16.0 - 10.0 * *taken);
                    *taken = (*taken + 1.0).min(2.0);
                    place
                } else {
                    start
                };
                // The label is on the side that the line does not take.
                let left = !many && first.0 > start.0 + 4.0;
                let tip = (if left { lx - 5.0 } else { lx + 5.0 }, ly + 12.0, left);
                let text = place::input_text(self.model, edge.value);
                self.labels.wish(Wish { text, tip, start, first });
            }
        }
    }

    /// Types of values, over all that is drawn.
    fn labels(&mut self) {
        for label in std::mem::take(&mut self.labels).settle() {
            self.text(if label.left { "l r" } else { "l" }, label.x, label.y, &label.text);
        }
        self.out.push('\n');
    }

    /// Where along its lower side an item gives a value, and whether it gives several.
    fn port(&self, item: Item, value: usize) -> (f64, bool) {
        let Item::Op(op) = item else { return (0.5, false) };
        let results = &self.model.ops[op].results;
        let at = results.iter().position(|v| *v == value).unwrap_or(0);
        ((at as f64 + 1.0) / (results.len() as f64 + 1.0), results.len() > 1)
    }

    fn rect(&mut self, class: &str, r: Rect) {
        let _ = write!(
            self.out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"/>",
            r.x, r.y, r.width, r.height
        );
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" xml:space=\"preserve\">{}</text>",
            escaped(text)
        );
    }
}

/// Text as XML holds it; characters that it cannot hold become a replacement.
pub(in crate::tools) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}
