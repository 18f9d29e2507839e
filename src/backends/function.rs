//! A kernel as a function of a program: called with tensors and numbers, it stores to the tensors.
//!
//! At each call it is asked which elements the kernel will touch ([`reach`]). Where they lie in the tensors it runs as it was
//! written; where that cannot be known before, its checked form runs, which ends with an error instead of reaching outside.
//! What runs it is a [`Backend`]; nothing here knows how a program is interpreted.

use super::{Arg, Backend, Buffer, Executable, Launch, Memory};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::reach::reach;
use crate::dialects::loops::{self, Elem, Kernel, Param, Ty};
use crate::ir::Graph;
use crate::passes::loop_nests::check_bounds;
use crate::resources::Once;
use crate::tensor::{Snapshot, Storage, Tensor};
use crate::value::Value;
use std::sync::Arc;

/// A kernel that a program calls.
pub struct KernelFunction {
    kernel: Kernel,
    /// Of the parameters, for messages.
    names: Vec<String>,
    graph: Graph,
    backend: Arc<dyn Backend>,
    plain: Once<Arc<dyn Executable>>,
    checked: Once<Arc<dyn Executable>>,
}

/// Arguments that fit the parameters.
struct Given {
    args: Vec<Arg>,
    integers: Vec<Option<i64>>,
    /// Elements of each buffer.
    lengths: Vec<usize>,
    buffers: Vec<Snapshot>,
    written: Vec<bool>,
}

impl KernelFunction {
    /// The kernel that a graph is, to be run by a backend. Nothing is compiled yet. Fails where the graph breaks the laws of
    /// the `loop` dialect.
    pub fn new(graph: &Graph, backend: Arc<dyn Backend>) -> Result<KernelFunction> {
        let kernel = loops::decode(graph)?;
        let names = graph.inputs().iter().map(|input| graph.display_name(*input).to_string()).collect();
        let (plain, checked) = (Once::default(), Once::default());
        Ok(KernelFunction { kernel, names, graph: graph.clone(), backend, plain, checked })
    }

    /// Which parameters are buffers that the kernel stores to.
    pub fn written(&self) -> impl Iterator<Item = usize> {
        self.kernel.params.iter().enumerate().filter(|(_, param)| param.written).map(|(n, _)| n)
    }

    /// Runs the kernel. A buffer takes a contiguous tensor of its element type on the CPU, a number of the kernel a number.
    /// Tensors that it stores to change; they share no memory with other arguments. Fails with `Runtime` for arguments that do
    /// not fit and where the kernel reaches outside of a tensor.
    pub fn run(&self, arguments: &[Value]) -> Result<()> {
        let mut given = self.given(arguments)?;
        let executable = if self.stays_within(&given) {
            self.plain.get_or_make(|| self.backend.compile(&self.kernel))?
        } else {
            given.args.extend(given.lengths.iter().map(|n| Arg::Int(*n as i64)));
            self.checked.get_or_make(|| self.compile_checked())?
        };
        let stores: Vec<Storage> = given.storages(true);
        let loads: Vec<Storage> = given.storages(false);
        let read = loads.iter().map(Storage::read).collect::<Result<Vec<_>>>()?;
        let mut write = stores.iter().map(Storage::write).collect::<Result<Vec<_>>>()?;
        let mut memory: Vec<Memory<'_>> = write.iter_mut().map(|g| Memory::Write(&mut *g)).collect();
        memory.extend(read.iter().map(|g| Memory::Read(g)));
        given.place(stores.len());
        let grain = given.lengths.iter().copied().max().unwrap_or(1) / self.extent(&given).max(1);
        let mut launch = Launch { memory, args: given.args.into(), grain };
        // SAFETY: either every element that the kernel touches was found to lie in the spans, or the kernel itself ends before
        // it touches another. Tensors that it stores to share no memory with others. That iterations of its parallel loop
        // store to different elements is what the mark says.
        #[allow(unsafe_code, reason = "runs machine code of a kernel whose reach is checked")]
        unsafe {
            executable.run(&mut launch)
        }
    }

    fn compile_checked(&self) -> Result<Arc<dyn Executable>> {
        let mut graph = self.graph.clone();
        check_bounds(&mut graph);
        self.backend.compile(&loops::decode(&graph)?)
    }

    /// Whether all that the kernel touches is known to lie in its buffers.
    fn stays_within(&self, given: &Given) -> bool {
        let Some(reach) = reach(&self.kernel, &given.integers) else { return false };
        let mut lengths = given.lengths.iter();
        self.kernel.params.iter().zip(reach).filter(|(param, _)| matches!(param.ty, Ty::Buffer(_))).all(
            |(_, touched)| {
                let length = lengths.next().map_or(0, |n| *n as i64);
                touched.is_none_or(|[low, high]| low >= 0 && high < length)
            },
        )
    }

    /// Iterations of the parallel loop.
    fn extent(&self, given: &Given) -> usize {
        let extent = self.kernel.extent.and_then(|n| given.integers.get(n).copied().flatten());
        extent.map_or(1, |n| n.max(1) as usize)
    }

    fn given(&self, arguments: &[Value]) -> Result<Given> {
        let params = &self.kernel.params;
        if params.len() != arguments.len() {
            let message = format!("a kernel takes {} arguments, not {}", params.len(), arguments.len());
            return Err(Diagnostic::runtime(message));
        }
        let mut given =
            Given { args: vec![], integers: vec![], lengths: vec![], buffers: vec![], written: vec![] };
        for (n, (param, value)) in params.iter().zip(arguments).enumerate() {
            let refused = |why: String| Diagnostic::runtime(format!("the kernel's %{} {why}", self.names[n]));
            given.add(param, value).map_err(refused)?;
        }
        for (n, buffer) in given.buffers.iter().enumerate() {
            let shared = |m: usize| given.buffers[m].storage.same(&buffer.storage);
            if given.written[n] && (0..given.buffers.len()).any(|m| m != n && shared(m)) {
                let message = "a kernel stores to a tensor that shares its memory with another argument";
                return Err(Diagnostic::runtime(message).hint("give it a copy: tensor.clone()"));
            }
        }
        Ok(given)
    }
}

impl Given {
    /// Adds an argument; the error says what is wrong with it.
    fn add(&mut self, param: &Param, value: &Value) -> Result<(), String> {
        let (arg, integer) = match (param.ty, value) {
            (Ty::Buffer(elem), Value::Tensor(tensor)) => {
                let buffer = self.buffer(param, elem, tensor)?;
                (Arg::Buffer(buffer), None)
            }
            (Ty::Scalar(Elem::Bool), Value::Bool(x)) => (Arg::Bool(*x), Some(i64::from(*x))),
            (Ty::Scalar(elem), value) if elem.is_float() => match value.to_float() {
                Ok(x) => (Arg::Float(x), None),
                Err(_) => return Err(format!("takes a number, not {}", value.kind_name())),
            },
            (Ty::Scalar(elem), Value::Int(x)) => match elem.int_range() {
                Some([low, high]) if (low..=high).contains(x) => (Arg::Int(*x), Some(*x)),
                _ => return Err(format!("is of type {}, which has no {x}", elem.name())),
            },
            (Ty::Scalar(elem), value) => {
                return Err(format!("takes {}, not {}", elem.name(), value.kind_name()));
            }
            (_, value) => return Err(format!("takes a tensor, not {}", value.kind_name())),
        };
        self.args.push(arg);
        self.integers.push(integer);
        Ok(())
    }

    fn buffer(&mut self, param: &Param, elem: Elem, tensor: &Tensor) -> Result<Buffer, String> {
        let snapshot = tensor.snapshot();
        if Elem::of(snapshot.dtype) != Some(elem) {
            return Err(format!("holds {}, and is given a tensor of {}", elem.name(), snapshot.dtype.name()));
        }
        if !tensor.is_plain() || !tensor.is_contiguous() {
            return Err("takes a contiguous tensor on the CPU".into());
        }
        if param.written && tensor.requires_grad() {
            return Err("is stored to, and its tensor requires grad".into());
        }
        let (first, length) = (snapshot.layout.offset, snapshot.layout.numel());
        let buffer =
            Buffer { memory: self.buffers.len(), first, low: first, end: first.saturating_add(length) };
        self.lengths.push(length);
        self.buffers.push(snapshot);
        self.written.push(param.written);
        Ok(buffer)
    }

    fn storages(&self, written: bool) -> Vec<Storage> {
        let wanted = self.buffers.iter().zip(&self.written).filter(|(_, is)| **is == written);
        wanted.map(|(buffer, _)| buffer.storage.clone()).collect()
    }

    /// Numbers memory as it is opened: what is stored to first.
    fn place(&mut self, stores: usize) {
        let (mut store, mut load) = (0, stores);
        let mut places = Vec::new();
        for written in &self.written {
            let next = if *written { &mut store } else { &mut load };
            places.push(*next);
            *next += 1;
        }
        for arg in &mut self.args {
            if let Arg::Buffer(buffer) = arg {
                buffer.memory = places.get(buffer.memory).copied().unwrap_or(usize::MAX);
            }
        }
    }
}
