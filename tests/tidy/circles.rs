//! Files use each other one way: none uses what another one defines that uses, in the end, what the first one defines. A name that a
//! file hands on (`pub use`) belongs to the file that defines it. Methods are their type's, whichever file they stand in: a call of one
//! is no use of that file.

use super::{sources, verdict};
use libtest_mimic::Failed;
use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Roots of crates that share `src/`, and the program: they say what belongs to them.
const ROOTS: &[&str] = &["base.rs", "lib.rs", "main.rs", "ops.rs", "reader.rs", "transforms.rs"];

/// The same folder under the names of these crates.
const CRATES: &[&str] =
    &["crate", "flambeau", "flambeau_base", "flambeau_ops", "flambeau_reader", "flambeau_transforms"];

pub(super) fn files_use_each_other_one_way() -> Result<(), Failed> {
    let circles = House::of(sources::rust_files("src"))?.circles();
    verdict("files that use each other in a circle", circles.iter().map(|circle| circle.join(" ")).collect())
}

/// What is looked for is found: through names that a third file hands on, in paths, in braces; tests and what is handed on do not
/// count.
pub(super) fn circles_are_found() -> Result<(), Failed> {
    let file = |path: &str, text: &str| (format!("src/{path}.rs"), text.to_string());
    let face =
        file("a/mod", "mod deep;\nmod high;\npub use deep::Deep;\npub use high::{high, others as more};\n");
    let deep = |use_of_high: &str| file("a/deep", &format!("pub struct Deep;\n{use_of_high}\n"));
    let high = file("a/high", "use super::Deep;\npub fn high(_: Deep) {}\npub fn others() {}\n");
    let house = |use_of_high: &str| House::of(vec![face.clone(), deep(use_of_high), high.clone()]);
    for use_of_high in [
        "use super::{\n    Deep as D,\n    high,\n};",
        "fn f() { super::more() }",
        "use crate::a;\nfn f() { a::high(Deep) }",
        "use super::*;\nfn f() { more() }",
        "const TEXT: &str = \"a \\\n b\";\nuse super::high::others;",
    ] {
        let circles = house(use_of_high)?.circles();
        if circles != [["src/a/deep.rs", "src/a/high.rs"]] {
            return Err(format!("{use_of_high}: {circles:?}").into());
        }
    }
    for other in
        ["", "pub use super::high::high;", "#[cfg(test)]\nmod tests {\n    use super::super::high;\n}"]
    {
        let circles = house(other)?.circles();
        if !circles.is_empty() {
            return Err(format!("{other}: {circles:?}").into());
        }
    }
    Ok(())
}

/// The path of a module.
type Place = Vec<String>;

/// A `use`: what is named, and by which name from then on.
struct Import {
    /// Whether it only hands the name on.
    is_public: bool,
    path: Vec<String>,
    name: String,
}

struct File {
    path: String,
    /// Names of items that it defines.
    defines: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths that stand in it outside of imports.
    paths: Vec<Vec<String>>,
    /// All words that stand in it outside of imports.
    words: BTreeSet<String>,
}

struct House {
    files: BTreeMap<Place, File>,
}

impl House {
    /// Of files with their paths and texts.
    fn of(all: Vec<(String, String)>) -> Result<House, Failed> {
        let words = Words::new()?;
        let mut files = BTreeMap::new();
        for (path, text) in all {
            let inner = path.strip_prefix("src/").unwrap_or(&path);
            let lines: Vec<&str> =
                sources::product_code(&path, &text).into_iter().map(|(_, line)| line).collect();
            if ROOTS.contains(&inner) || lines.is_empty() {
                continue;
            }
            let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
            let place = inner.split('/').map(str::to_string).collect();
            files.insert(place, words.file(path, &lines.join("\n")));
        }
        Ok(House { files })
    }

    /// Files that use each other, in order.
    fn circles(&self) -> Vec<Vec<String>> {
        let mut graph = DiGraph::<&str, ()>::new();
        let nodes: BTreeMap<&Place, _> =
            self.files.iter().map(|(place, file)| (place, graph.add_node(file.path.as_str()))).collect();
        for place in self.files.keys() {
            for other in self.used_by(place) {
                graph.add_edge(nodes[place], nodes[&other], ());
            }
        }
        let in_order = |circle: Vec<NodeIndex>| {
            let mut paths: Vec<String> = circle.into_iter().map(|node| graph[node].to_string()).collect();
            paths.sort_unstable();
            paths
        };
        let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
        let mut circles: Vec<Vec<String>> = circles.map(in_order).collect();
        circles.sort();
        circles
    }

    /// The other files of which a file uses what they define.
    fn used_by(&self, place: &Place) -> BTreeSet<Place> {
        let file = &self.files[place];
        let mut named = BTreeMap::new();
        let mut paths = Vec::new();
        for import in &file.imports {
            let Some(path) = self.absolute(place, &import.path) else { continue };
            if import.name == "*" {
                // Any word of the file may be a name that came so.
                let others = file.words.iter().filter(|word| !file.defines.contains(*word));
                paths.extend(others.map(|word| [path.as_slice(), std::slice::from_ref(word)].concat()));
                continue;
            }
            if !import.is_public || file.words.contains(&import.name) {
                paths.push(path.clone());
            }
            named.insert(import.name.as_str(), path);
        }
        for path in &file.paths {
            let through = || Some([named.get(path[0].as_str())?, &path[1..]].concat());
            paths.extend(self.absolute(place, path).or_else(through));
        }
        let mut used: BTreeSet<Place> =
            paths.iter().filter_map(|path| self.definer(path, &mut BTreeSet::new())).collect();
        used.remove(place);
        used
    }

    /// A path from the root; None for one that does not begin in this house.
    fn absolute(&self, place: &Place, path: &[String]) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            name if CRATES.contains(&name) => Some(rest.to_vec()),
            "self" => Some([place, rest].concat()),
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                Some([&place[..place.len().saturating_sub(up)], &path[up..]].concat())
            }
            _ => {
                let child = [place.as_slice(), std::slice::from_ref(first)].concat();
                self.files.contains_key(&child).then(|| [place, path].concat())
            }
        }
    }

    /// The file that defines what a path from the root names.
    fn definer(&self, path: &Place, seen: &mut BTreeSet<Place>) -> Option<Place> {
        if !seen.insert(path.clone()) {
            return None;
        }
        let mut depth = (1..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
        if depth == path.len() {
            // A module, unless what holds it has another thing of this name.
            depth = depth.checked_sub(1).filter(|depth| *depth > 0)?;
        }
        let (place, rest) = (path[..depth].to_vec(), &path[depth..]);
        let (name, after) = rest.split_first()?;
        let file = self.files.get(&place)?;
        if file.defines.contains(name) {
            return Some(place);
        }
        let through = |import: &Import, rest: &[String], seen: &mut BTreeSet<Place>| {
            let from = self.absolute(&place, &import.path)?;
            self.definer(&[&from, rest].concat(), seen)
        };
        let named = file.imports.iter().filter(|import| import.name == *name);
        let all = file.imports.iter().filter(|import| import.name == "*");
        let mut found = named.filter_map(|import| through(import, after, seen)).collect::<Vec<_>>();
        if found.is_empty() {
            found = all.filter_map(|import| through(import, rest, seen)).collect();
        }
        found.into_iter().next()
    }
}

/// What is looked for in a file.
struct Words {
    item: Regex,
    import: Regex,
    path: Regex,
    text: Regex,
}

impl Words {
    fn new() -> Result<Words, Failed> {
        Ok(Words {
            item: Regex::new(
                r#"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|extern\s+"[^"]*")\s+)*(?:fn|struct|enum|trait|type|static|union|const|macro_rules!)\s+(?:mut\s+)?(\w+)"#,
            )?,
            import: Regex::new(r"(?m)^[ \t]*(pub(?:\([^)]*\))?\s+)?use\s+([\w:{},\s*]+);")?,
            path: Regex::new(r"\b((?:crate|super|self|[a-z_]\w*)(?:::\w+)+)")?,
            text: Regex::new(r#"(?s)"(?:\\.|[^"\\])*""#)?,
        })
    }

    fn file(&self, path: String, text: &str) -> File {
        let imports = self.import.captures_iter(text).flat_map(|found| {
            let is_public = found.get(1).is_some();
            tree(&found[2]).into_iter().map(move |(path, name)| Import { is_public, path, name })
        });
        let imports = imports.collect();
        let body = self.text.replace_all(&self.import.replace_all(text, ""), "").into_owned();
        let paths = self.path.find_iter(&body);
        let paths = paths.map(|found| found.as_str().split("::").map(str::to_string).collect()).collect();
        let defines = self.item.captures_iter(&body).map(|found| found[1].to_string()).collect();
        let words = body.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_string).collect();
        File { path, defines, imports, paths, words }
    }
}

/// The paths of a tree of imports, and the name that each gets.
fn tree(text: &str) -> Vec<(Vec<String>, String)> {
    let mut out = Vec::new();
    let mut outer: Vec<Vec<String>> = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut renamed = None;
    let spaced = text.replace("::", " ").replace('{', " { ").replace('}', " } ").replace(',', " , ");
    let mut words = spaced.split_whitespace();
    let mut finish = |path: &mut Vec<String>, renamed: &mut Option<String>, base: usize| {
        if path.len() > base {
            let is_self = path.last().is_some_and(|last| last == "self") && path.len() > 1;
            let whole = if is_self { &path[..path.len() - 1] } else { &path[..] };
            let last = whole.last().cloned().unwrap_or_default();
            let stem = if last == "*" { &whole[..whole.len() - 1] } else { whole };
            out.push((stem.to_vec(), renamed.take().unwrap_or(last)));
        }
        path.truncate(base);
    };
    let mut base = 0;
    while let Some(word) = words.next() {
        match word {
            "{" => {
                outer.push(path.clone());
                base = path.len();
            }
            "," => finish(&mut path, &mut renamed, base),
            "}" => {
                finish(&mut path, &mut renamed, base);
                outer.pop();
                base = outer.last().map_or(0, Vec::len);
                // What stood before the braces is used up.
                path.truncate(base);
            }
            "as" => renamed = words.next().map(str::to_string),
            part => path.push(part.to_string()),
        }
    }
    finish(&mut path, &mut renamed, 0);
    out
}
