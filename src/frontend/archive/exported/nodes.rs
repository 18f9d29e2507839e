//! Nodes of an exported graph as ops. A node names its operator with the overload, and its arguments as the operator's schema
//! has them; higher-order operators are in [`super::control`].

use super::codes;
use super::schema::{
    Argument, Float, Graph, Node, OptionalTensor, SymBoolArgument, SymFloatArgument, SymIntArgument,
};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Op, matches};
use crate::frontend::archive::emit::Emitter;
use crate::ir::{Attr, Location, Place, Schema, Symbol, Type, ValueId};
use crate::resources::memory;
use crate::tensor::{DType, Rank};
use hashbrown::HashMap;
use num_complex::Complex64;

/// A graph in the making, with the values that have names.
pub(super) struct Nodes<'a> {
    pub(super) emitter: Emitter<'a>,
    values: HashMap<String, ValueId>,
    /// The dtypes of tensors that have names, and whether they have dimensions.
    pub(super) tensors: HashMap<String, (DType, Rank)>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(emitter: Emitter<'a>) -> Nodes<'a> {
        Nodes { emitter, values: HashMap::new(), tensors: HashMap::new() }
    }

    /// Gives a value a name.
    pub(super) fn bind(&mut self, name: &str, value: ValueId) {
        self.values.insert(name.to_string(), value);
    }

    /// The value with a name.
    pub(super) fn named(&self, name: &str) -> Result<ValueId> {
        self.values.get(name).copied().ok_or_else(|| Diagnostic::input(format!("there is no value `{name}`")))
    }

    /// Emits all nodes.
    pub(super) fn emit(&mut self, graph: &Graph) -> Result<()> {
        for (name, meta) in &graph.tensor_values {
            let rank = if meta.sizes.is_empty() { Rank::Zero } else { Rank::Dims };
            self.tensors.insert(name.clone(), (codes::dtype(meta.dtype)?, rank));
        }
        for node in &graph.nodes {
            let before = self.emitter.graph.last_op(self.emitter.block);
            self.node(node).map_err(|mut error| {
                let report = error.report_mut();
                report.message = format!("{}: {}", node.target, report.message);
                error
            })?;
            self.locate(node, before);
        }
        Ok(())
    }

    /// Emits a graph that an operator calls, with values for its inputs. Gives its outputs.
    pub(super) fn inner(&mut self, graph: &Graph, inputs: &[ValueId]) -> Result<Vec<ValueId>> {
        if graph.inputs.len() != inputs.len() {
            return Err(Diagnostic::input(format!(
                "a graph that takes {} values gets {}",
                graph.inputs.len(),
                inputs.len()
            )));
        }
        let outer = (std::mem::take(&mut self.values), std::mem::take(&mut self.tensors));
        for (input, value) in graph.inputs.iter().zip(inputs) {
            if let Some(name) = name_of(input) {
                self.bind(name, *value);
            }
        }
        let outputs =
            self.emit(graph).and_then(|()| graph.outputs.iter().map(|output| self.free(output)).collect());
        (self.values, self.tensors) = outer;
        outputs
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let Some(path) = node.target.strip_prefix("torch.ops.") else {
            let outputs = self.on_numbers(node)?;
            return self.results(&node.outputs, &outputs);
        };
        if let Some(name) = path.strip_prefix("higher_order.") {
            let outputs = self.higher_order(name, &node.inputs)?;
            return self.results(&node.outputs, &outputs);
        }
        let mut parts = path.split('.');
        let (Some(dialect), Some(name), overload, None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Diagnostic::input("the target is not an operator"));
        };
        let name = Symbol::new(&format!("{dialect}::{name}"));
        let overload = overload.filter(|overload| *overload != "default").unwrap_or("");
        let (row, given) = self.choose(name, overload, &node.inputs)?;
        let outputs = self.emitter.call_with(row.schema()?, &given, &[])?;
        self.results(&node.outputs, &outputs)
    }

    /// An argument as a value.
    pub(super) fn free(&mut self, arg: &Argument) -> Result<ValueId> {
        let emitter = &mut self.emitter;
        match arg {
            Argument::None(_) => emitter.constant(Type::none(), Attr::None),
            Argument::Tensor(tensor) => self.named(&tensor.name),
            Argument::Tensors(tensors) => {
                let items =
                    tensors.iter().map(|tensor| self.named(&tensor.name)).collect::<Result<Vec<_>>>()?;
                self.list(&items, Type::tensor())
            }
            Argument::Int(n) => emitter.constant(Type::int(), Attr::Int(*n)),
            Argument::Ints(ns) => emitter.constant(Type::list(Type::int()), Attr::Ints(ns.as_slice().into())),
            Argument::Float(Float(x)) => emitter.constant(Type::float(), Attr::Float(*x)),
            Argument::Floats(xs) => {
                let numbers = xs.iter().map(|Float(x)| *x).collect();
                emitter.constant(Type::list(Type::float()), Attr::Floats(numbers))
            }
            Argument::Bool(b) => emitter.constant(Type::bool(), Attr::Bool(*b)),
            Argument::Bools(flags) => {
                let items = flags.iter().map(|b| Attr::Bool(*b)).collect();
                emitter.constant(Type::list(Type::bool()), Attr::List(items))
            }
            Argument::String(text) | Argument::Operator(text) => {
                emitter.constant(Type::str(), Attr::Str(text.as_str().into()))
            }
            Argument::Strings(texts) => {
                let texts = texts.iter().map(|text| text.as_str().into()).collect();
                emitter.constant(Type::list(Type::str()), Attr::Strs(texts))
            }
            Argument::Complex(z) => {
                emitter.constant(Type::complex(), Attr::Complex(Complex64::new(z.real.0, z.imag.0)))
            }
            Argument::ScalarType(n) => emitter.constant(Type::int(), Attr::Int(codes::dtype(*n)?.code())),
            Argument::MemoryFormat(n) => emitter.constant(Type::int(), Attr::Int(codes::memory_format(*n)?)),
            Argument::Layout(n) => emitter.constant(Type::int(), Attr::Int(codes::layout(*n)?)),
            Argument::Device(device) => {
                let index = device.index.map(|index| format!(":{index}")).unwrap_or_default();
                let device = format!("{}{index}", device.kind).parse().map_err(Diagnostic::input)?;
                emitter.constant(Type::device(), Attr::Device(device))
            }
            _ => self.symbolic(arg),
        }
    }

    /// An argument that names values, as a value.
    fn symbolic(&mut self, arg: &Argument) -> Result<ValueId> {
        match arg {
            Argument::SymInt(n) => self.sym_int(n),
            Argument::SymInts(ns) => {
                let items = ns.iter().map(|n| self.sym_int(n)).collect::<Result<Vec<_>>>()?;
                self.list(&items, Type::int())
            }
            Argument::SymFloat(x) => self.sym_float(x),
            Argument::SymFloats(xs) => {
                let items = xs.iter().map(|x| self.sym_float(x)).collect::<Result<Vec<_>>>()?;
                self.list(&items, Type::float())
            }
            Argument::SymBool(b) => self.sym_bool(b),
            Argument::SymBools(flags) => {
                let items = flags.iter().map(|b| self.sym_bool(b)).collect::<Result<Vec<_>>>()?;
                self.list(&items, Type::bool())
            }
            Argument::OptionalTensor(tensor) => self.optional_tensor(tensor),
            Argument::OptionalTensors(tensors) => {
                let items = tensors.iter().map(|tensor| self.optional_tensor(tensor));
                let items = items.collect::<Result<Vec<_>>>()?;
                self.list(&items, Type::optional(Type::tensor()))
            }
            Argument::NestedTensors(lists) => {
                let mut items = memory::vec_reserved(lists.len())?;
                for list in lists {
                    let inner =
                        list.iter().map(|tensor| self.named(&tensor.name)).collect::<Result<Vec<_>>>()?;
                    items.push(self.list(&inner, Type::tensor())?);
                }
                self.list(&items, Type::list(Type::tensor()))
            }
            Argument::IntLists(lists) => {
                let lists = lists.iter().map(|list| Attr::Ints(list.as_slice().into())).collect();
                self.emitter.constant(Type::list(Type::list(Type::int())), Attr::List(lists))
            }
            Argument::FloatLists(lists) => {
                let row = |list: &Vec<Float>| Attr::Floats(list.iter().map(|Float(x)| *x).collect());
                let lists = lists.iter().map(row).collect();
                self.emitter.constant(Type::list(Type::list(Type::float())), Attr::List(lists))
            }
            Argument::CustomObj(object) => {
                Err(Diagnostic::unsupported(format!("an object of the class {}", object.class_fqn)))
            }
            Argument::Dictionary(_) => Err(Diagnostic::unsupported("an argument that is a dictionary")),
            _ => Err(Diagnostic::unsupported("a graph as an argument of this operator")),
        }
    }

    fn sym_int(&mut self, arg: &SymIntArgument) -> Result<ValueId> {
        match arg {
            SymIntArgument::Name(name) => self.named(name),
            SymIntArgument::Int(n) => self.emitter.constant(Type::int(), Attr::Int(*n)),
        }
    }

    fn sym_float(&mut self, arg: &SymFloatArgument) -> Result<ValueId> {
        match arg {
            SymFloatArgument::Name(name) => self.named(name),
            SymFloatArgument::Float(Float(x)) => self.emitter.constant(Type::float(), Attr::Float(*x)),
        }
    }

    fn sym_bool(&mut self, arg: &SymBoolArgument) -> Result<ValueId> {
        match arg {
            SymBoolArgument::Name(name) => self.named(name),
            SymBoolArgument::Bool(b) => self.emitter.constant(Type::bool(), Attr::Bool(*b)),
        }
    }

    fn optional_tensor(&mut self, arg: &OptionalTensor) -> Result<ValueId> {
        match arg {
            OptionalTensor::Tensor(tensor) => self.named(&tensor.name),
            OptionalTensor::None(_) => self.emitter.constant(Type::none(), Attr::None),
        }
    }

    pub(super) fn list(&mut self, items: &[ValueId], element: Type) -> Result<ValueId> {
        self.emitter.value("prim::ListConstruct", items, Type::list(element))
    }

    /// A call of the first overload that takes values of these types, and gives what is wanted.
    pub(super) fn by_types(
        &mut self,
        name: &str,
        values: &[ValueId],
        wanted: Option<&Type>,
    ) -> Result<ValueId> {
        let types: Vec<&Type> = values.iter().map(|value| self.emitter.graph.ty(*value)).collect();
        let name = Symbol::new(name);
        let fits = |op: &&Op| {
            let gives = |schema: &Schema| wanted.is_none_or(|ty| schema.returns.iter().any(|r| r.ty == *ty));
            op.schema().is_ok_and(|schema| matches(schema, &types) && gives(schema))
        };
        let row = self.emitter.registry.overloads(name).iter().find(fits).cloned();
        let Some(row) = row else {
            let types: Vec<String> = types.iter().map(|ty| ty.annotation()).collect();
            return Err(Diagnostic::input(format!("{name} does not take ({})", types.join(", "))));
        };
        let results = self.emitter.call(row.schema()?, values.to_vec())?;
        results.first().copied().ok_or_else(|| Diagnostic::internal("an operator without a result"))
    }

    /// Gives names to results.
    fn results(&mut self, outputs: &[Argument], values: &[ValueId]) -> Result<()> {
        if outputs.len() > values.len() {
            return Err(Diagnostic::input(format!(
                "{} results are named, and there are {}",
                outputs.len(),
                values.len()
            )));
        }
        for (output, value) in outputs.iter().zip(values) {
            match output {
                Argument::Tensors(tensors) => {
                    let types = memory::filled(tensors.len(), Type::tensor())?;
                    let op = self.emitter.emit("prim::ListUnpack", &[*value], &types);
                    let parts = self.emitter.graph.results(op);
                    for (tensor, part) in tensors.iter().zip(parts) {
                        self.bind(&tensor.name, part);
                    }
                }
                Argument::None(_) => {}
                other => {
                    let Some(name) = name_of(other) else {
                        return Err(Diagnostic::unsupported(
                            "a result that is neither a tensor nor a number",
                        ));
                    };
                    let value = match type_of(other) {
                        Some(ty) => self.emitter.cast(*value, &ty)?,
                        None => *value,
                    };
                    self.bind(name, value);
                }
            }
        }
        Ok(())
    }

    /// Gives ops after one the place and the module that a node states.
    fn locate(&mut self, node: &Node, before: Option<crate::ir::OpId>) {
        let Some(location) = location(node) else { return };
        let graph = &mut self.emitter.graph;
        let id = graph.add_location(location);
        let mut next = match before {
            Some(op) => graph.next(op),
            None => graph.first_op(self.emitter.block),
        };
        while let Some(op) = next.filter(|op| graph.terminated_block(*op).is_none()) {
            graph.set_location_id(op, id);
            next = graph.next(op);
        }
    }
}

/// The place that the node's stack trace ends with, and the module that it lies in.
fn location(node: &Node) -> Option<Location> {
    let trace = node.metadata.get("stack_trace").map_or("", String::as_str);
    let frame = trace.lines().rev().find_map(|line| line.trim_start().strip_prefix("File \""));
    let place = frame.and_then(|frame| {
        let (file, rest) = frame.split_once("\", line ")?;
        let line = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        Some(Place::File { file: Symbol::new(file), line, column: 0 })
    });
    let stack = node.metadata.get("nn_module_stack").map_or("", String::as_str);
    let path =
        stack.rsplit(';').next().and_then(|module| module.split(',').nth(1)).filter(|path| !path.is_empty());
    let scope = path.map(|path| Symbol::new(&format!("__module.{path}")));
    if place.is_none() && scope.is_none() {
        return None;
    }
    Some(Location { place: place.unwrap_or(Place::Unknown), scope, inlined_from: None })
}

/// The name of the one value that an argument is.
pub(super) fn name_of(arg: &Argument) -> Option<&str> {
    match arg {
        Argument::Tensor(tensor) | Argument::OptionalTensor(OptionalTensor::Tensor(tensor)) => {
            Some(&tensor.name)
        }
        Argument::SymInt(SymIntArgument::Name(name))
        | Argument::SymFloat(SymFloatArgument::Name(name))
        | Argument::SymBool(SymBoolArgument::Name(name)) => Some(name),
        _ => None,
    }
}

/// The type that the value of an argument has.
pub(super) fn type_of(arg: &Argument) -> Option<Type> {
    Some(match arg {
        Argument::Tensor(_) => Type::tensor(),
        Argument::Int(_) | Argument::SymInt(_) => Type::int(),
        Argument::Float(_) | Argument::SymFloat(_) => Type::float(),
        Argument::Bool(_) | Argument::SymBool(_) => Type::bool(),
        Argument::String(_) => Type::str(),
        _ => return None,
    })
}
