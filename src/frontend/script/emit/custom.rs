//! Custom classes of PyTorch, which have no code in an archive: a class without attributes, whose methods call the ops
//! that their row names.

use super::Compiler;
use crate::ir::schema::{Argument, Schema};
use crate::ir::{ClassDef, ClassKind, Function, Graph, Symbol, Type, ValueId};

impl Compiler {
    /// Defines a custom class. One that is not known here has no methods: what speaks of it can be compiled all the same.
    pub(super) fn define_custom(&mut self, name: Symbol) {
        let mut def = ClassDef::new(name, ClassKind::Script);
        let methods = self.registry.custom_class(name).map_or(&[][..], |class| class.methods);
        for (method, op) in methods {
            let Some(function) = method_function(self, name, method, op) else { continue };
            def.methods.insert(Symbol::new(method), function.name);
            self.module.functions.insert(function.name, function);
        }
        self.module.classes.insert(name, def);
    }
}

/// A function that calls an op with its own arguments.
fn method_function(unit: &Compiler, class: Symbol, method: &str, op: &str) -> Option<Function> {
    let kind = Symbol::new(op);
    let row = unit.registry.overloads(kind).first()?;
    let mut schema = row.schema().ok()?.clone();
    let mut graph = Graph::new();
    let receiver = schema.arguments.first_mut()?;
    *receiver = Argument::new("self", Type::class(class));
    let operands: Vec<ValueId> =
        schema.arguments.iter().map(|argument| graph.add_input(argument.ty.clone())).collect();
    let types: Vec<Type> = schema.returns.iter().map(|r| r.ty.clone()).collect();
    let call = graph.create(kind, &operands, &types);
    graph.append(graph.root(), call);
    let result = match graph.results(call).as_slice() {
        [only] => *only,
        several => {
            let tuple = graph.create(Symbol::new("prim::TupleConstruct"), several, &[Type::tuple(types)]);
            graph.append(graph.root(), tuple);
            graph.result(tuple, 0)?
        }
    };
    graph.add_output(result);
    let name = Symbol::new(&format!("{class}.{method}"));
    let returns = vec![Argument::new("", graph.ty(result).clone())];
    Some(Function { name, schema: Schema::new(name, schema.arguments, returns), graph, span: None })
}
