//! Plans on disk: what a plan's pipeline makes of a graph, by all that it is made of. In a second process the passes that come after
//! attributes were frozen are not run again (docs/cache.md).
//!
//! A key is over this build, the machine, the passes, the graph with its types, and of each constant tensor its layout and, of small
//! ones, its elements. Of larger ones a plan says itself what it is made of: passes that read their elements are noticed
//! ([`Moment`]), and a digest of these stands with the plan. So another model of the same architecture may take the graph, and none
//! takes a number that was computed from the weights of another. What it knows of ops and passes is nothing.

use super::build::Subject;
use super::making::{Making, Stage};
use crate::backends::cache::{DiskCache, Key};
use crate::ir::bytecode::{self, Outside};
use crate::ir::{Attr, Graph, Symbol, Type, TypeKind, ValueId};
use crate::passes::Pipeline;
use crate::passes::manager::Step;
use crate::resources::{machine, pool};
use crate::tensor::{DType, Dims, Layout, Moment, Storage, Tensor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// Of storages of at most this number of bytes the elements are part of the key, whether passes read them or not.
const SMALL: usize = 1 << 16;
/// Bytes that a call may read to find out whether a plan is made of its weights, and bytes of new constants of a plan.
const MAX_BYTES: usize = 16 << 20;
/// The passes after which nothing of a plan depends on objects any more: attributes are constants, and what read objects is gone.
const FREEZES: [&str; 2] = ["freeze-attributes", "dce-graph"];

/// The steps up to those that freeze attributes, and those after them; None where there are no such steps.
pub(super) fn split(pipeline: &Pipeline) -> Option<(Pipeline, Pipeline)> {
    let has = |step: &Step, name| {
        Pipeline { steps: vec![step.clone()] }.passes().iter().any(|(pass, _)| pass.name == name)
    };
    let mut after = 0;
    for name in FREEZES {
        after += 1 + pipeline.steps[after..].iter().position(|step| has(step, name))?;
    }
    let (first, rest) = pipeline.steps.split_at(after);
    Some((Pipeline { steps: first.to_vec() }, Pipeline { steps: rest.to_vec() }))
}

/// Where the plan of a graph is, or is to be put.
pub(super) struct Place {
    cache: Arc<DiskCache>,
    key: Key,
    name: String,
    outside: Outside,
    /// Of the tensors outside, each once.
    storages: Vec<Storage>,
    /// Of these, how often they were written.
    versions: Vec<u64>,
}

/// What stands with a graph.
#[derive(Serialize, Deserialize)]
struct Head {
    /// Storages whose elements the plan is made of, with digests.
    read: Vec<(usize, String)>,
    /// Bytes of the storages that are new.
    storages: Vec<usize>,
    /// Tensors that are new.
    tensors: Vec<NewTensor>,
    stages: Vec<StageText>,
    rules: Vec<(String, usize)>,
    /// Bytes of the graph.
    graph: usize,
}

/// A constant that passes made.
#[derive(Serialize, Deserialize)]
struct NewTensor {
    /// Those of the graph before come first.
    storage: usize,
    dtype: String,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: usize,
}

/// A [`Stage`]; how long it took, it took another process.
#[derive(Serialize, Deserialize)]
struct StageText {
    pass: String,
    changes: u64,
    ops: usize,
    bytes: u64,
    removed: Vec<(String, usize)>,
}

impl Place {
    /// Where the plan is that `rest` makes of a graph without attributes. None where there is no cache; an error says why a plan of
    /// this kind is not kept.
    pub(super) fn of(
        subject: &Subject<'_>,
        rest: &Pipeline,
        graph: &Graph,
    ) -> Option<Result<Place, &'static str>> {
        Some(Place::find(subject.disk.clone()?, subject, rest, graph))
    }

    fn find(
        cache: Arc<DiskCache>,
        subject: &Subject<'_>,
        rest: &Pipeline,
        graph: &Graph,
    ) -> Result<Place, &'static str> {
        let code = &subject.context;
        if subject.open.is_some() {
            return Err("it leaves sizes open");
        }
        if !code.registry.is_builtin() {
            return Err("ops, rules or lowerings were added to the built-in ones");
        }
        if !code.limits.names().is_empty() || !code.fusion.log_spec().is_empty() {
            return Err("passes are limited or logged");
        }
        if uses_objects(graph) {
            return Err("its graph uses objects");
        }
        let mut outside = Outside::default();
        let bytes =
            bytecode::write(graph, &mut outside).ok_or("its graph holds an object of a custom class")?;
        if !outside.tensors.iter().all(|tensor| tensor.is_plain() && tensor.device().is_cpu()) {
            return Err("it has a constant that is not a plain tensor");
        }
        let mut place = Place {
            cache,
            key: Key::from_bytes([0; _]),
            name: subject.function.name.to_string(),
            outside,
            storages: Vec::new(),
            versions: Vec::new(),
        };
        let constants = place.constants().ok_or("memory of a constant cannot be opened")?;
        place.key =
            Key::of_plan(&[rest.to_text().as_bytes(), asked_machine().as_bytes(), &bytes, &constants]);
        Ok(place)
    }

    /// What a key says of constants: where each lies, and what is in small storages.
    fn constants(&mut self) -> Option<Vec<u8>> {
        let mut text = String::new();
        let mut small = Vec::new();
        for tensor in &self.outside.tensors {
            let storage = tensor.storage();
            let at = self.storages.iter().position(|known| known.same(&storage)).unwrap_or_else(|| {
                self.versions.push(storage.version());
                self.storages.push(storage);
                self.storages.len() - 1
            });
            let Layout { sizes, strides, offset } = tensor.layout();
            text += &format!(
                "{at} {} {} {sizes:?} {strides:?} {offset} {}\n",
                tensor.dtype().name(),
                self.storages[at].nbytes(),
                tensor.requires_grad()
            );
        }
        for storage in self.storages.iter().filter(|storage| storage.nbytes() <= SMALL) {
            small.extend_from_slice(&storage.read().ok()?);
        }
        Some([text.as_bytes(), &Sha256::digest(&small)].concat())
    }

    /// The graph and what passes did, if they are there and made of these weights.
    pub(super) fn read(&self) -> Option<(Graph, Making)> {
        let bytes = self.cache.get(&self.key)?;
        let found = head(&bytes).and_then(|(head, rest)| match self.is_of_these(&head)? {
            true => Some(Some(self.decoded(&head, rest)?)),
            false => Some(None),
        });
        match found {
            None => self.cache.spoiled(),
            Some(None) => self.cache.refused(),
            Some(Some(_)) => {}
        }
        found.flatten()
    }

    /// Whether the weights are the same of which a plan was made.
    fn is_of_these(&self, head: &Head) -> Option<bool> {
        for (at, expected) in &head.read {
            if digest(self.storages.get(*at)?)? != *expected {
                return Some(false);
            }
        }
        Some(true)
    }

    fn decoded(&self, head: &Head, rest: &[u8]) -> Option<(Graph, Making)> {
        let (graph, rest) = rest.split_at_checked(head.graph)?;
        let outside = self.with_new(head, rest)?;
        let graph = bytecode::read(graph, &outside)?;
        let stages = head.stages.iter().map(StageText::stage).collect();
        let rules = head.rules.iter().map(|(name, times)| (Arc::from(name.as_str()), *times)).collect();
        Some((graph, Making { kept: head.stages.len(), stages, rules, ..Making::default() }))
    }

    /// What is outside of the graph that was kept.
    fn with_new(&self, head: &Head, mut rest: &[u8]) -> Option<Outside> {
        let mut storages = self.storages.clone();
        for length in &head.storages {
            let (bytes, after) = rest.split_at_checked(*length)?;
            storages.push(Storage::from_bytes(bytes).ok()?);
            rest = after;
        }
        let mut outside = self.outside.clone();
        for new in &head.tensors {
            let layout = Layout {
                sizes: Dims::from_slice(&new.sizes),
                strides: Dims::from_slice(&new.strides),
                offset: new.offset,
            };
            let fits = layout.sizes.len() == layout.strides.len();
            let storage = storages.get(new.storage).filter(|_| fits)?.clone();
            outside.tensors.push(Tensor::from_storage(storage, DType::from_name(&new.dtype)?, layout).ok()?);
        }
        rest.is_empty().then_some(outside)
    }

    /// Keeps what passes made since a moment, with what each did and the rules that fired. The error says why it is not kept; that
    /// the folder does not allow it is counted by the cache.
    pub(super) fn write(
        &self,
        graph: &Graph,
        (stages, rules): (&[Stage], &[(Arc<str>, usize)]),
        since: Moment,
    ) -> Result<(), &'static str> {
        let mut outside = self.outside.clone();
        let bytes =
            bytecode::write(graph, &mut outside).ok_or("its plan holds an object of a custom class")?;
        if outside.sources.len() > self.outside.sources.len() {
            return Err("its plan has locations in other sources");
        }
        let mut head = Head {
            read: Vec::new(),
            storages: Vec::new(),
            tensors: Vec::new(),
            stages: stages.iter().map(StageText::of).collect(),
            rules: rules.iter().map(|(name, times)| (name.to_string(), *times)).collect(),
            graph: bytes.len(),
        };
        let mut content = self.new_constants(&outside, &mut head)?;
        self.what_was_read(since, &mut head)?;
        if self.storages.iter().zip(&self.versions).any(|(storage, version)| storage.version() != *version) {
            return Err("a constant was written meanwhile");
        }
        let head = serde_json::to_vec(&head).map_err(|_| "what passes did cannot be written")?;
        let length = u32::try_from(head.len()).map_err(|_| "what passes did is too long")?;
        let mut file = [&length.to_le_bytes()[..], &head, &bytes].concat();
        file.append(&mut content);
        self.cache.put(&self.key, &self.name, &file);
        Ok(())
    }

    /// Adds the tensors that are new; gives the content of their storages.
    fn new_constants(&self, outside: &Outside, head: &mut Head) -> Result<Vec<u8>, &'static str> {
        let mut storages = self.storages.clone();
        let mut content = Vec::new();
        for tensor in &outside.tensors[self.outside.tensors.len()..] {
            if !tensor.is_plain() || !tensor.device().is_cpu() || tensor.requires_grad() {
                return Err("its plan has a constant that is not a plain tensor");
            }
            let storage = tensor.storage();
            let at = match storages.iter().position(|known| known.same(&storage)) {
                Some(at) => at,
                None => {
                    let bytes = storage.read().map_err(|_| "memory of a constant cannot be opened")?;
                    head.storages.push(bytes.len());
                    content.extend_from_slice(&bytes);
                    storages.push(storage);
                    storages.len() - 1
                }
            };
            if content.len() > MAX_BYTES {
                return Err("its plan has large constants that were computed");
            }
            let Layout { sizes, strides, offset } = tensor.layout();
            let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
            let dtype = tensor.dtype().name().to_string();
            head.tensors.push(NewTensor { storage: at, dtype, sizes, strides, offset });
        }
        Ok(content)
    }

    /// Adds the larger storages whose elements passes read.
    fn what_was_read(&self, since: Moment, head: &mut Head) -> Result<(), &'static str> {
        let mut bytes = 0usize;
        for (at, storage) in self.storages.iter().enumerate() {
            if storage.nbytes() <= SMALL || !since.knows_read(storage) {
                continue;
            }
            bytes = bytes.saturating_add(storage.nbytes());
            if bytes > MAX_BYTES {
                return Err("passes read the elements of large constants");
            }
            head.read.push((at, digest(storage).ok_or("memory of a constant cannot be opened")?));
        }
        Ok(())
    }
}

/// What stands before the graph, and the rest.
fn head(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(head).ok()?, rest))
}

fn digest(storage: &Storage) -> Option<String> {
    let bytes = storage.read().ok()?;
    Some(Sha256::digest(&bytes[..]).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What passes may ask of the machine.
fn asked_machine() -> String {
    format!("{}, {} threads", machine::features(), pool::threads())
}

/// Whether something in a graph is an object, or a type of one that a pass might look up in the module.
fn uses_objects(graph: &Graph) -> bool {
    let used = |value: &ValueId| graph.has_uses(*value) && has_class(graph.ty(*value));
    let root = graph.root();
    graph.params(root).iter().any(used)
        || graph.all_ops().into_iter().any(|op| {
            let in_attrs = graph.attrs(op).iter().any(|(_, attr)| match attr {
                Attr::Type(ty) => has_class(ty),
                Attr::Types(types) => types.iter().any(has_class),
                Attr::Graph(inner) => uses_objects(inner),
                Attr::Graphs(all) => all.iter().any(|inner| uses_objects(inner)),
                _ => false,
            });
            let in_params =
                || graph.nested_blocks(op).iter().flat_map(|block| graph.params(*block)).any(used);
            let in_results = || graph.results(op).iter().any(|result| has_class(graph.ty(*result)));
            in_attrs || in_results() || in_params()
        })
}

/// Whether a type names a class, an interface or an enum.
fn has_class(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::Enum(..) | TypeKind::Function(_) => true,
        TypeKind::AnyClass | TypeKind::AnyEnum | TypeKind::Capsule | TypeKind::PyObject => true,
        TypeKind::List(inner)
        | TypeKind::Optional(inner)
        | TypeKind::Future(inner)
        | TypeKind::Await(inner)
        | TypeKind::RRef(inner) => has_class(inner),
        TypeKind::Dict(key, value) => has_class(key) || has_class(value),
        TypeKind::Tuple(types, _) | TypeKind::Union(types) => types.iter().any(has_class),
        _ => false,
    }
}

impl StageText {
    fn of(stage: &Stage) -> StageText {
        let Stage { pass, changes, ops, bytes, removed, .. } = stage;
        let removed = removed.iter().map(|(kind, n)| (kind.to_string(), *n)).collect();
        StageText { pass: pass.to_string(), changes: *changes, ops: *ops, bytes: *bytes, removed }
    }

    fn stage(&self) -> Stage {
        let StageText { pass, changes, ops, bytes, removed } = self;
        let removed = removed.iter().map(|(kind, n)| (Symbol::new(kind), *n)).collect();
        let (pass, time) = (Symbol::new(pass).as_str(), Duration::ZERO);
        Stage { pass, changes: *changes, ops: *ops, bytes: *bytes, removed, time }
    }
}
