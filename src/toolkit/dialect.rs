//! A dialect in Rust: what it declares, and how that becomes part of a table of ops. Nothing is taken on trust that can be
//! examined: names, schemas, overloads, meanings and derivatives are checked when the dialect is added.

use super::lowerings;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::constraint::Declaration;
use crate::dialects::{CustomClass, OpDef, Registry};
use crate::frontend::dialect::meaning;
use crate::lowering::Lowering;
use std::sync::Arc;

/// A dialect: rows of its ops, types, attributes. Everything but the name may be left out.
///
/// What an op demands (attributes, blocks, types that agree) and how it is lowered to loops stands in its row, as for
/// built-in ops.
pub trait Dialect {
    /// What its names begin with: `sparse` of `sparse::dot` and `sparse.coo`.
    fn name(&self) -> &'static str;

    /// One row an op.
    fn ops(&self) -> Vec<OpDef> {
        Vec::new()
    }

    /// Its types: `sparse.coo<...>`.
    fn types(&self) -> Vec<Declaration> {
        Vec::new()
    }

    /// Its attributes: `#sparse.order<...>`.
    fn attributes(&self) -> Vec<Declaration> {
        Vec::new()
    }

    /// Classes whose instances archives hold (`torch::class_` in PyTorch), each with what an instance is at run time.
    fn classes(&self) -> Vec<CustomClass> {
        Vec::new()
    }

    /// How its ops become kernels where their rows do not say so as data; each is compared with what the op means.
    fn lowerings(&self) -> Vec<Arc<dyn Lowering>> {
        Vec::new()
    }

    /// Derivatives too long for rows, in the language of `.grad` files.
    fn derivatives(&self) -> &'static str {
        ""
    }
}

/// A copy of a table with a dialect, or the first thing that is wrong with it.
pub(super) fn added(base: &Arc<Registry>, dialect: &dyn Dialect) -> Result<Arc<Registry>> {
    let name = dialect.name();
    let fault = |why: String| Diagnostic::input(format!("dialect {name}: {why}"));
    let mut registry = Registry::clone(base);
    // The laws of a dialect that was added hold in every verification, as those of dialect files do.
    let ops: Vec<OpDef> = dialect.ops().into_iter().map(|def| OpDef { declared: true, ..def }).collect();
    for def in &ops {
        let taken = registry.add_checked(*def).map_err(|error| fault(error.message().to_string()))?;
        if taken.namespace() != name {
            return Err(fault(format!("{taken} is not an op of it")));
        }
    }
    let (types, attributes) = (dialect.types(), dialect.attributes());
    for declared in types.iter().chain(&attributes) {
        if declared.name.as_str().split_once('.').is_none_or(|(of, _)| of != name) {
            return Err(fault(format!("{} is not a name of it", declared.name)));
        }
    }
    registry.declare(name, &types, &attributes);
    dialect.classes().into_iter().for_each(|class| registry.add_class(class));
    if !dialect.derivatives().is_empty() {
        registry.add_grads(&Source::new(format!("{name}.grad"), dialect.derivatives()))?;
    }
    let registry = Arc::new(registry);
    for (schema, text) in ops.iter().filter_map(|def| Some((def.schema, def.meaning?))) {
        let op = schema.split('(').next().unwrap_or(schema);
        let source = Source::new(format!("the meaning of {op}"), text);
        meaning(&registry, &source)?;
    }
    lowerings::added(&registry, dialect.lowerings())
}
