//! How arguments and results are nested: PyTorch's tree specs. A tree says where its leaves stand, not what they are.

use super::schema::NamedTuple;
use crate::diag::{Diagnostic, Result};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

/// The version of the form in which trees are written.
const VERSION: i64 = 1;

/// A tree.
#[derive(Debug, PartialEq)]
pub(super) enum Tree {
    Leaf,
    Tuple(Vec<Tree>),
    List(Vec<Tree>),
    /// Keys are texts or ints.
    Dict(Vec<(Key, Tree)>),
    Named {
        name: String,
        fields: Vec<(String, Tree)>,
    },
}

/// A key of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Str(String),
    Int(i64),
}

#[derive(Deserialize)]
struct Spec {
    #[serde(rename = "type")]
    kind: Option<String>,
    context: Option<String>,
    children_spec: Vec<Spec>,
}

/// Reads the text of a tree.
pub(super) fn parse(text: &str, named_tuples: &IndexMap<String, NamedTuple>) -> Result<Tree> {
    let (version, spec): (i64, Spec) = serde_json::from_str(text)
        .map_err(|error| Diagnostic::input(format!("a tree of arguments or results: {error}")))?;
    if version != VERSION {
        return Err(Diagnostic::unsupported(format!(
            "trees of arguments in version {version} of their form"
        )));
    }
    tree(spec, named_tuples)
}

/// The parser of JSON has bounded how deep the tree is.
fn tree(spec: Spec, named_tuples: &IndexMap<String, NamedTuple>) -> Result<Tree> {
    let Some(kind) = spec.kind else { return Ok(Tree::Leaf) };
    let context: Json =
        spec.context.as_deref().map_or(Ok(Json::Null), serde_json::from_str).unwrap_or_default();
    let children = spec.children_spec.into_iter().map(|child| tree(child, named_tuples));
    let children = children.collect::<Result<Vec<Tree>>>()?;
    Ok(match (&*kind, keys(&context)) {
        ("builtins.tuple", _) => Tree::Tuple(children),
        ("builtins.list" | "collections.deque", _) => Tree::List(children),
        ("collections.namedtuple", _) => {
            let name = context.as_str().unwrap_or_default();
            let fields = named_tuples.get(name).map(|fields| fields.field_names.clone());
            let fields = fields.filter(|fields| fields.len() == children.len()).ok_or_else(|| {
                Diagnostic::input(format!("the file does not say what the fields of `{name}` are"))
            })?;
            Tree::Named { name: name.to_string(), fields: fields.into_iter().zip(children).collect() }
        }
        // Dictionaries, and classes of results that are dictionaries by the names of their fields.
        (_, Some(keys)) if keys.len() == children.len() => {
            Tree::Dict(keys.into_iter().zip(children).collect())
        }
        _ => {
            return Err(Diagnostic::unsupported(format!("arguments or results of the class `{kind}`")));
        }
    })
}

/// The keys that a context lists.
fn keys(context: &Json) -> Option<Vec<Key>> {
    let list = context.as_array().or_else(|| context.get("dict_context")?.as_array())?;
    // A data class lists its fields, and then those that are None.
    let list = match list.as_slice() {
        [Json::Array(fields), Json::Array(_)] => fields,
        _ => list,
    };
    let key = |key: &Json| match key {
        Json::String(text) => Some(Key::Str(text.clone())),
        number => number.as_i64().map(Key::Int),
    };
    list.iter().map(key).collect()
}
