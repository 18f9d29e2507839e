//! The forms that follow from a row: the row under its further names, with its further overloads, and the schemas of what writes in
//! place or to `out`. It knows rows and text; what the table keeps of them is the table's.

use super::{Alias, OpDef};
use std::borrow::Cow;

/// A row under one of its names, with one of its overloads.
pub(super) struct Form {
    pub(super) def: OpDef,
    pub(super) schema: Cow<'static, str>,
    /// The overload of its `out` form, where it has one.
    pub(super) out: Option<Cow<'static, str>>,
}

/// A row under all its names, with all its overloads.
pub(super) fn expanded(def: OpDef) -> impl Iterator<Item = Form> {
    let (dialect, rest) = def.schema.split_once("::").unwrap_or(("", def.schema));
    let (base, behind) = rest.split_at(rest.find(['(', '.']).unwrap_or(rest.len()));
    let alias = move |alias: &Alias| {
        let row = OpDef {
            alias_of: Some(base),
            inplace: def.inplace && alias.inplace,
            out: def.out.filter(|_| alias.out),
            ..def
        };
        (row, alias.name, Cow::Owned(format!("{dialect}::{}{behind}", alias.name)))
    };
    let own = std::iter::once((def, base, Cow::Borrowed(def.schema)));
    own.chain(def.aliases.iter().map(alias)).flat_map(move |(row, name, schema)| {
        let overload = move |text: &&str| {
            let (overload, signature) = text.split_at(text.find('(').unwrap_or(text.len()));
            Form {
                def: OpDef { inplace: row.inplace && signature.starts_with("(Tensor "), ..row },
                schema: Cow::Owned(format!("{dialect}::{name}.{text}")),
                out: row.out.map(|_| Cow::Owned(format!("{overload}_out"))),
            }
        };
        let first = Form { def: row, schema, out: row.out.map(Cow::Borrowed) };
        std::iter::once(first).chain(row.overloads.iter().map(overload))
    })
}

/// `aten::tanh(Tensor self) -> Tensor` → `aten::tanh_(Tensor(a!) self) -> Tensor(a!)`
pub(super) fn inplace_schema(schema: &str) -> String {
    let at = schema.find(['(', '.']).unwrap_or(schema.len());
    let (name, rest) = schema.split_at(at);
    let rest = rest.replacen("(Tensor ", "(Tensor(a!) ", 1);
    let arguments = rest.split(" -> ").next().unwrap_or("");
    format!("{name}_{arguments} -> Tensor(a!)")
}

/// `aten::tanh(Tensor self) -> Tensor` → `aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)`; of several results each
/// is written to an argument of its own.
pub(super) fn out_schema(schema: &str, overload: &str, outs: &[&str]) -> String {
    let open = schema.find('(').unwrap_or(schema.len());
    let name = schema[..open].split('.').next().unwrap_or("");
    let (arguments, returns) = schema[open..].split_once(" -> ").unwrap_or((&schema[open..], ""));
    let arguments = arguments.trim_end_matches(')');
    let star = if arguments.contains("*, ") { "" } else { " *," };
    let marks: Vec<String> =
        ('a'..='z').take(outs.len()).map(|letter| format!("Tensor({letter}!)")).collect();
    let written: Vec<String> = marks.iter().zip(outs).map(|(mark, out)| format!("{mark} {out}")).collect();
    let mut next = marks.iter();
    let mut given = String::new();
    for (n, part) in returns.split("Tensor").enumerate() {
        given.push_str(if n == 0 { "" } else { next.next().map_or("Tensor", String::as_str) });
        given.push_str(part);
    }
    // The one result of an op has no name here.
    let given = if outs.len() == 1 { marks.concat() } else { given };
    format!("{name}.{overload}{arguments},{star} {}) -> {given}", written.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_schemas() {
        assert_eq!(
            inplace_schema("aten::add.Tensor(Tensor self, Tensor other) -> Tensor"),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"
        );
        assert_eq!(
            out_schema("aten::tanh(Tensor self) -> Tensor", "out", &["out"]),
            "aten::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
        );
    }
}
