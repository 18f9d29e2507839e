//! Backward code of fusion groups. A group some input of which requires grad runs as its kernel all the same; the tape records it
//! as one operation, whose backward is a graph of its own, fused and compiled. It is made when the first call of a kind
//! needs it and kept; what cannot be made so runs op by op, with the reason.
//!
//! It knows graphs, passes and code; no op by name, and not how the tape works.

use super::code::{BackwardKind, BuiltBackward, Code, CompiledBackward, Derivatives};
use super::inner::Inner;
use super::interpreter::execute;
use super::spec::{ArgumentSpec, refined};
use crate::autodiff::{self, Wanted};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Outputs, Region, Run};
use crate::ir::{Graph, Module, Type, TypeKind};
use crate::passes::{self, Context, Pipeline};
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::{Arc, LazyLock};

/// Backward graphs of one group that are kept; the oldest goes first.
const MAX_KEPT: usize = 32;

static FUSE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("canonicalize-ops,fuse"));

impl Derivatives {
    /// The region that a call of the group is, for the tape; or why it runs op by op. Fails where the run must end.
    pub(super) fn region(
        self: &Arc<Derivatives>,
        program: &Arc<Inner>,
        code: &Arc<Code>,
        operands: &[Value],
        run: &Run,
    ) -> Result<Result<Arc<dyn Region>, Arc<str>>> {
        if self.written {
            return Ok(Err("something writes to what its backward would read".into()));
        }
        let largest = operands.iter().filter_map(|v| v.to_tensor().ok()).map(Tensor::numel).max();
        if largest.unwrap_or(0) < program.differentiates_from {
            return Ok(Err("an input requires grad, and all are small".into()));
        }
        if operands.iter().any(|v| matches!(v, Value::Tensor(t) if !t.is_plain())) {
            return Ok(Err("an input requires grad, and one is of a special kind".into()));
        }
        let inputs = operands.iter().map(|v| matches!(v, Value::Tensor(t) if t.requires_grad())).collect();
        let outputs = vec![true; self.graph.outputs().len()];
        let kind = BackwardKind { spec: ArgumentSpec::of(operands, run), inputs, outputs };
        Ok(self.built(&kind, program, operands)?.map(|all| {
            let this = Arc::clone(self);
            Arc::new(GroupRegion { this, program: Arc::clone(program), code: Arc::clone(code), kind, all })
                as Arc<dyn Region>
        }))
    }

    /// The gradients of operands that are wanted, from those of some outputs.
    pub(super) fn gradients(
        &self,
        program: &Arc<Inner>,
        operands: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>> {
        let outputs = gradients.iter().map(Option::is_some).collect();
        let kind = BackwardKind { spec: ArgumentSpec::of(operands, run), inputs: wanted.to_vec(), outputs };
        self.of_kind(&kind, program, operands, gradients, run)
    }

    fn of_kind(
        &self,
        kind: &BackwardKind,
        program: &Arc<Inner>,
        operands: &[Value],
        gradients: &[Option<Tensor>],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>> {
        let built = self.built(kind, program, operands)?;
        let built = built.map_err(|reason| Diagnostic::internal(format!("of fewer gradients, {reason}")))?;
        built.run(program, operands, gradients, &kind.inputs, run)
    }

    /// The backward of a kind of call, made where there is none yet.
    fn built(&self, kind: &BackwardKind, program: &Arc<Inner>, operands: &[Value]) -> Result<BuiltBackward> {
        if let Some((_, known)) = self.kept.lock().iter().find(|(other, _)| other == kind) {
            return Ok(known.clone());
        }
        let built = match self.build(kind, program, operands) {
            Ok(compiled) => Ok(Arc::new(compiled)),
            Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
            Err(error) => Err(format!("its backward is not compiled: {}", error.message()).into()),
        };
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            drop(kept.remove(0));
        }
        kept.push((kind.clone(), built.clone()));
        Ok(built)
    }

    fn build(
        &self,
        kind: &BackwardKind,
        program: &Arc<Inner>,
        operands: &[Value],
    ) -> Result<CompiledBackward> {
        let typed = typed(&self.graph, operands);
        let wanted = Wanted { inputs: &kind.inputs, outputs: &kind.outputs };
        let mut backward = autodiff::backward(&typed, wanted, &program.registry)?;
        let module = Module::default();
        let context = Context::new(&program.registry, &module);
        FUSE.as_ref().map_err(Clone::clone)?.run_graph(&mut backward.graph, &context)?;
        let graph = Arc::new(backward.graph);
        let code = Code::compile(program.code_context(), &graph, "backward")?;
        Ok(CompiledBackward {
            _graph: graph,
            code: Arc::new(code),
            reads: backward.reads,
            follows: backward.follows,
            keeps: backward.keeps,
            outputs: kind.outputs.clone(),
        })
    }
}

impl CompiledBackward {
    fn run(
        &self,
        program: &Arc<Inner>,
        operands: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>> {
        let mut arguments = operands.to_vec();
        arguments.extend(gradients.iter().flatten().cloned().map(Value::Tensor));
        let mut found = execute(program, run, Arc::clone(&self.code), arguments)?.into_iter();
        let all = wanted.iter().map(|wanted| match wanted.then(|| found.next()).flatten() {
            None | Some(Value::None) => Ok(None),
            Some(value) => value.to_tensor().cloned().map(Some),
        });
        all.collect()
    }
}

/// A graph whose inputs have the types of such values, as it is differentiated.
pub fn typed(graph: &Graph, values: &[Value]) -> Graph {
    let mut typed = graph.clone();
    for (input, value) in graph.inputs().iter().zip(values) {
        let ty = detached(refined(typed.ty(*input), value));
        typed.set_type(*input, ty);
    }
    typed
}

/// The same type without requires_grad: no gradients are recorded where it is used.
pub(super) fn detached(ty: Type) -> Type {
    match ty.kind() {
        TypeKind::Tensor(tensor) => {
            let mut tensor = tensor.clone();
            tensor.requires_grad = None;
            Type::new(TypeKind::Tensor(tensor))
        }
        _ => ty,
    }
}

/// One kind of call of a group.
struct GroupRegion {
    this: Arc<Derivatives>,
    program: Arc<Inner>,
    /// The group op by op.
    code: Arc<Code>,
    kind: BackwardKind,
    /// The backward where all outputs have gradients and all inputs that require one want it.
    all: Arc<CompiledBackward>,
}

impl Region for GroupRegion {
    fn name(&self) -> &str {
        &self.this.name
    }

    fn reads(&self) -> &[bool] {
        &self.all.reads
    }

    fn follows(&self) -> &[bool] {
        &self.all.follows
    }

    fn keeps(&self) -> bool {
        self.all.keeps
    }

    fn replay(&self, values: Vec<Value>, run: &Run) -> Result<Outputs> {
        Ok(execute(&self.program, run, Arc::clone(&self.code), values)?.into_iter().collect())
    }

    fn backward(
        &self,
        values: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>> {
        let outputs: Vec<bool> = gradients.iter().map(Option::is_some).collect();
        if outputs == self.all.outputs && wanted == self.kind.inputs {
            return self.all.run(&self.program, values, gradients, wanted, run);
        }
        let kind = BackwardKind { spec: self.kind.spec.clone(), inputs: wanted.to_vec(), outputs };
        self.this.of_kind(&kind, &self.program, values, gradients, run)
    }
}
