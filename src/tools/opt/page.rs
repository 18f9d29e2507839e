//! `opt --to html`: what each pass did, as one page: texts side by side, graphs before and after, the rules of `simplify` with their
//! chains. The page fetches nothing and runs no program. Knows no pass.

use crate::dialects::Registry;
use crate::ir::{Module, PrintOptions, Symbol};
use crate::passes::manager::{At, Observer, Report};
use crate::rewrite::{Explanations, Replacement};
use crate::tools::view::{self, escaped};
use similar::{DiffOp, TextDiff};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

const STYLE: &str = include_str!("page.css");
/// Graphs of more ops are not drawn: two of them side by side would be unreadable.
const MAX_DRAWN: usize = 200;
/// Lines around a change.
const CONTEXT: usize = 3;

/// Observes and writes the page.
pub(super) struct Page {
    registry: Arc<Registry>,
    explanations: Arc<Explanations>,
    form: PrintOptions,
    before: Module,
    sections: Vec<Section>,
    /// Explanations that stand on the page already.
    reported: usize,
}

struct Section {
    title: String,
    body: String,
    changed: bool,
    plus: usize,
    minus: usize,
}

impl Page {
    /// Observes passes over `module`.
    pub(super) fn new(
        registry: &Arc<Registry>,
        explanations: &Arc<Explanations>,
        form: PrintOptions,
        module: Module,
    ) -> Page {
        let (registry, explanations) = (Arc::clone(registry), Arc::clone(explanations));
        Page { registry, explanations, form, before: module, sections: Vec::new(), reported: 0 }
    }

    /// The page, with a title to show.
    pub(super) fn html(&self, title: &str, pipeline: &str) -> String {
        let title = escaped(title);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <nav aria-label=\"Passes\">\n<h1>{title}</h1>\n<ol>\n"
        );
        for (n, section) in self.sections.iter().enumerate() {
            let name = escaped(&section.title);
            let _ = match section.body.is_empty() {
                true => writeln!(out, "<li class=\"same\">{name}</li>"),
                false => writeln!(out, "<li><a href=\"#p{n}\">{name}</a> {}</li>", counts(section)),
            };
        }
        let changed = self.sections.iter().filter(|section| section.changed).count();
        let all = self.sections.len();
        let _ = write!(
            out,
            "</ol>\n</nav>\n<main>\n<h1>{title}</h1>\n<p>{changed} of {all} passes changed something: {}</p>\n",
            escaped(pipeline)
        );
        for (n, section) in self.sections.iter().enumerate().filter(|(_, section)| !section.body.is_empty()) {
            let (name, body) = (escaped(&section.title), &section.body);
            let _ = write!(
                out,
                "<section id=\"p{n}\">\n<h2>{}. {name} {}</h2>\n{body}</section>\n",
                n + 1,
                counts(section)
            );
        }
        out.push_str("</main>\n</html>\n");
        out
    }

    /// The functions that a pass changed, each with its texts and pictures.
    fn functions(&self, after: &Module, section: &mut Section) {
        let mut names: Vec<Symbol> = self.before.functions.keys().copied().collect();
        names.extend(after.functions.keys().filter(|name| !self.before.functions.contains_key(*name)));
        for name in names {
            let text = |module: &Module| {
                module
                    .functions
                    .get(&name)
                    .map_or(String::new(), |function| function.graph.to_text(&self.form))
            };
            let (old, new) = (text(&self.before), text(after));
            if old == new {
                continue;
            }
            let shown = if name == "" { "graph" } else { name.as_str() };
            let what = match (old.is_empty(), new.is_empty()) {
                (true, _) => " (new)",
                (_, true) => " (removed)",
                _ => "",
            };
            let _ = writeln!(section.body, "<h3>{}{what}</h3>", escaped(shown));
            difference(&old, &new, section);
            self.pictures(&[&self.before, after], name, &mut section.body);
        }
    }

    /// Both graphs as pictures, where they are small enough to be examined.
    fn pictures(&self, sides: &[&Module; 2], name: Symbol, out: &mut String) {
        let small = |module: &&Module| {
            let function = module.functions.get(&name);
            function.is_none_or(|function| function.graph.op_count() <= MAX_DRAWN)
        };
        if !sides.iter().all(small) {
            let _ = writeln!(out, "<p>graphs of more than {MAX_DRAWN} ops are not drawn</p>");
            return;
        }
        out.push_str("<details><summary>graphs before and after</summary>\n<div class=\"pictures\">\n");
        for module in sides {
            let mut only = Module::default();
            only.functions.extend(module.functions.get(&name).map(|function| (name, function.clone())));
            let _ = writeln!(out, "<div>{}</div>", view::svg(&view::model(&only, &self.registry)));
        }
        out.push_str("</div>\n</details>\n");
    }

    /// The rules that led to what the pass replaced.
    fn rules(&mut self, out: &mut String) {
        let gathered = self.explanations.gathered(self.reported);
        self.reported += gathered.len();
        let steps: Vec<&Replacement> = gathered.iter().flat_map(|(_, _, report)| &report.steps).collect();
        if steps.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "<details open><summary>{} ops replaced by rules</summary>\n<ul class=\"rules\">",
            steps.len()
        );
        for step in steps {
            let place = step.location.as_ref().map_or(String::new(), |at| format!(" at {}", escaped(at)));
            let (name, before, after) = (escaped(&step.name), escaped(&step.before), escaped(&step.after));
            let _ = writeln!(
                out,
                "<li>%{name}{place}: {before} → {after}, cost {} → {}\n<ol>",
                step.cost.0, step.cost.1
            );
            for link in &step.chain {
                let (before, after) = (escaped(&link.before), escaped(&link.after));
                let _ = writeln!(
                    out,
                    "<li><b>{}</b> ({}): {before} → {after}</li>",
                    escaped(&link.rule),
                    escaped(&link.place)
                );
            }
            out.push_str("</ol></li>\n");
        }
        out.push_str("</ul>\n</details>\n");
    }
}

impl Observer for Page {
    fn after(&mut self, at: &At<'_>, module: &Module, report: &Report, _: &mut dyn Write) {
        let title = format!("{}{}", at.pass.name, at.options.to_text());
        let mut section = Section { title, body: String::new(), changed: report.changed, plus: 0, minus: 0 };
        self.functions(module, &mut section);
        let mut rules = String::new();
        self.rules(&mut rules);
        section.body.push_str(&rules);
        let counted: Vec<String> = report.statistics.iter().map(|(name, n)| format!("{name} {n}")).collect();
        // What passes count of work that changed nothing says nothing.
        if !section.body.is_empty() && !counted.is_empty() {
            section.body.insert_str(0, &format!("<p>{}</p>\n", escaped(&counted.join(", "))));
        }
        self.sections.push(section);
        self.before = module.clone();
    }
}

fn counts(section: &Section) -> String {
    match section.plus + section.minus {
        0 => String::new(),
        _ => format!(
            "<span class=\"count\"><span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></span>",
            section.plus, section.minus
        ),
    }
}

/// Two texts side by side, a few lines around each change.
fn difference(old: &str, new: &str, section: &mut Section) {
    let diff = TextDiff::from_lines(old, new);
    let (left, right): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let line = |lines: &[&str], n: usize| escaped(lines.get(n).copied().unwrap_or_default());
    section.body.push_str("<table>\n");
    for (n, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if n > 0 {
            section.body.push_str("<tr class=\"gap\"><td colspan=\"2\">⋯</td></tr>\n");
        }
        for op in group {
            let (from, to) = (op.old_range(), op.new_range());
            if !matches!(op, DiffOp::Equal { .. }) {
                section.minus += from.len();
                section.plus += to.len();
            }
            for n in 0..from.len().max(to.len()) {
                let equal = matches!(op, DiffOp::Equal { .. });
                let cell = |range: &std::ops::Range<usize>, lines: &[&str], class: &str| match range.start + n
                {
                    at if n < range.len() && !equal => {
                        format!("<td class=\"{class}\">{}</td>", line(lines, at))
                    }
                    at if n < range.len() => format!("<td>{}</td>", line(lines, at)),
                    _ => "<td></td>".to_string(),
                };
                let _ = writeln!(
                    section.body,
                    "<tr>{}{}</tr>",
                    cell(&from, &left, "old"),
                    cell(&to, &right, "new")
                );
            }
        }
    }
    section.body.push_str("</table>\n");
}
