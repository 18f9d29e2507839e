//! Blocks of pages that are files, and the page of the public surface. `BLESS=1` writes both.

use super::docs::fresh;
use super::sources::product_code;
use libtest_mimic::Failed;
use std::fmt::Write as _;
use std::fs;

/// Each block of `docs/extend.md` that names a file (`rust file=PATH`) is that file.
pub(super) fn blocks_are_the_files_that_they_name() -> Result<(), Failed> {
    let page = fs::read_to_string("docs/extend.md")?;
    let mut wanted = String::new();
    let (mut inside, mut files) = (None, 0);
    for line in page.lines() {
        match (inside, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let _ = writeln!(wanted, "{line}");
                inside = Some(info.split_once("file=").map(|(_, path)| path));
                if let Some(Some(path)) = inside {
                    let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
                    wanted.push_str(&text);
                    files += 1;
                }
            }
            (Some(_), Some("")) => {
                wanted.push_str("```\n");
                inside = None;
            }
            // The file stands in the place of what the page has.
            (Some(Some(_)), _) => {}
            _ => {
                let _ = writeln!(wanted, "{line}");
            }
        }
    }
    if files < 6 {
        return Err(format!("the page shows {files} files").into());
    }
    fresh("docs/extend.md", &wanted)
}

/// Where what the prelude names is defined, with what is not of the surface left out of the list.
const DEFINED: &[&str] = &[
    "src/toolkit/mod.rs",
    "src/toolkit/dialect.rs",
    "src/toolkit/model.rs",
    "src/tensor/mod.rs",
    "src/tensor/array.rs",
    "src/tensor/data.rs",
    "src/value/model.rs",
    "src/value/mod.rs",
    "src/value/shared_generator.rs",
    "src/dialects/model.rs",
    "src/dialects/run.rs",
    "src/dialects/watch.rs",
    "src/dialects/args.rs",
    "src/dialects/cells.rs",
    "src/dialects/op_def.rs",
    "src/dialects/region/blocks.rs",
    "src/passes/pass.rs",
    "src/passes/options.rs",
    "src/passes/context.rs",
    "src/backends/backend.rs",
    "src/backends/executable.rs",
    "src/backends/choice.rs",
    "src/diag/mod.rs",
];

/// What stands in those files and is not of the surface, since types that name each other stand together.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "src/value/model.rs",
        &["Future", "List", "DictKey", "Entries", "Dict", "Tuple", "Native", "Object", "EnumValue"],
    ),
    ("src/dialects/model.rs", &["Op", "Variant", "Operands", "Compute", "Autograd", "Region"]),
];

/// `docs/surface.md`: what a release keeps. A change of it is a change for users, and shows in review.
pub(super) fn the_public_surface_is_listed() -> Result<(), Failed> {
    let mut page = String::from(
        "# Public surface\n\nGenerated; `BLESS=1 cargo test --test root tidy` rewrites it. What stands here is kept from release to release: \
         the names of\n`flambeau::prelude` and the public items of the files that define them. Other modules are public for authors of \
         dialects, passes\nand backends, and may change with each release.\n\n## Prelude\n\n",
    );
    let library = fs::read_to_string("src/lib.rs")?;
    let (_, prelude) = library.split_once("pub mod prelude {").ok_or("there is no prelude")?;
    for line in prelude.lines().filter_map(|line| line.trim().strip_prefix("pub use ")) {
        let _ = writeln!(page, "- `{}`", line.trim_end_matches(';'));
    }
    for path in DEFINED {
        let text = fs::read_to_string(path)?;
        let items = product_code(path, &text).into_iter().filter_map(|(_, line)| item(line));
        let beside = BESIDE.iter().filter(|(other, _)| other == path).flat_map(|(_, names)| *names);
        let beside: Vec<String> = beside.map(|name| format!(" `{name}`")).collect();
        let (hidden, items): (Vec<String>, Vec<String>) =
            items.partition(|item| beside.iter().any(|name| item.ends_with(name)));
        if let Some(gone) = beside.iter().find(|name| !hidden.iter().any(|item| item.ends_with(*name))) {
            return Err(format!("{path} defines no{gone}: shorten the list").into());
        }
        if items.is_empty() {
            return Err(format!("{path} defines nothing public").into());
        }
        let _ = write!(page, "\n## `{path}`\n\n{}\n", items.join("\n"));
    }
    fresh("docs/surface.md", &page)
}

/// `- fn load`, for a line that begins a public item.
fn item(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let words =
        ["unsafe fn ", "const fn ", "fn ", "struct ", "enum ", "trait ", "type ", "const ", "static "];
    let word = words.into_iter().find(|word| rest.starts_with(word))?;
    let name = &rest[word.len()..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(format!("- {} `{}`", word.trim_end(), &name[..end]))
}
