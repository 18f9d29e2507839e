//! The intermediate representation: modules, functions, graphs, blocks, ops, values, types, attributes.
//!
//! # Semantics
//! A [`Module`] owns functions, classes and constants; a [`Function`] has one [`Graph`]. A graph is a tree
//! of blocks. A block has parameters, an ordered list of ops, and results. Ops run one after the other in
//! their order; an op may be moved only where this is unobservable. A value is defined once, by an op or as a
//! block parameter, and is visible for the rest of the block that defines it and in the blocks nested there.
//!
//! The set of op kinds is open: a kind is an interned `dialect::name` ([`Symbol`]), and nothing in this
//! layer knows any of them. What a kind means (schema, effects, blocks it takes, when they run) stands in
//! its row under `src/dialects`. Tensors are constants by handle, never by bytes inside an attribute.
//!
//! Graphs are owned independently and `Send`; handles ([`OpId`], [`ValueId`], [`BlockId`]) are 32-bit and
//! mean something only together with the graph that made them.

mod attr;
pub mod bytecode;
mod edit;
mod graph;
mod ids;
mod location;
pub mod mlir;
mod module;
mod naming;
mod read;
mod storage;
mod symbol;
pub mod text;
pub mod types;
pub mod verify;

pub use edit::mapped;
pub use graph::{Use, ValueDef};
pub use ids::{BlockId, OpId, ValueId};
pub use location::{Location, LocationId, Place};
pub use module::{
    ClassAttribute, ClassDef, ClassKind, EnumDef, Function, InterfaceDef, Module, NamedTupleDef, Property,
};
pub use read::parse_module;
pub use storage::{Attr, Graph, Held};
pub use symbol::Symbol;
pub use text::lexer::{MAX_TEXT, too_large};
pub use text::module_parse::ParsedModule;
pub use text::module_print::derived_schema;
pub use text::options::{Naming, ParseOptions, PrintOptions, ResultTypes};
pub use text::parser::{parse_graph, parse_graph_source};
pub use text::schema::parse_schema;
pub use text::type_parse::parse_type;
pub use types::schema::{AliasInfo, Argument, Schema};
pub use types::subtype::{Hierarchy, NoClasses, is_subtype_of};
pub use types::{Dim, Stride, TensorType, Type, TypeKind, TypeParameter};
pub use types::{schema, subtype, unify};
pub use verify::{DialectLaws, NoLaws, TextPlaces, Violations, verify_graph, verify_module};
