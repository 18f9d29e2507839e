//! Forward hooks of modules: methods that run before and after `forward` where a module is called, and what PyTorch asks of their
//! types.

use super::compiler::Compiler;
use super::matching::Given;
use super::{Emitter, Sugared};
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::ir::{Schema, Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    /// Calls a module that has hooks: those before `forward` on the tuple of its arguments, which they may give anew, and those
    /// after it on that tuple and the result.
    pub(super) fn call_hooked(
        &mut self,
        module: ValueId,
        class: Symbol,
        (args, named): (&[Given], &[Given]),
        span: &Span,
    ) -> Result<Sugared> {
        let Some(def) = self.unit.module.class(class) else {
            return Err(Diagnostic::internal("a call of a module without a class"));
        };
        let function = |hook: &Symbol| def.methods.get(hook).copied();
        let before: Vec<Symbol> = def.forward_pre_hooks.iter().filter_map(function).collect();
        let after: Vec<Symbol> = def.forward_hooks.iter().filter_map(function).collect();
        let given: Vec<ValueId> = args.iter().chain(named).map(|given| given.value).collect();
        let mut input = self.make_tuple(&given, span);
        for hook in &before {
            let result = self.call_hook(*hook, &[module, input], span)?;
            if *self.ty(result) != Type::none() {
                let is_tuple = self.ty(result).tuple_elements().is_some();
                input = if is_tuple { result } else { self.make_tuple(&[result], span) };
            }
        }
        let forward = Symbol::new("forward");
        let called = if before.is_empty() {
            self.call_method_with(module, forward, args, named, span)?
        } else {
            let args: Vec<Given> = self.unpack(input, span)?.into_iter().map(Given::from).collect();
            self.call_method_with(module, forward, &args, &[], span)?
        };
        let mut output = self.as_value(called, span)?;
        for hook in &after {
            let result = self.call_hook(*hook, &[module, input, output], span)?;
            if *self.ty(result) != Type::none() {
                output = result;
            }
        }
        Ok(Sugared::Value(output))
    }

    fn call_hook(&mut self, hook: Symbol, args: &[ValueId], span: &Span) -> Result<ValueId> {
        let args: Vec<Given> = args.iter().copied().map(Given::from).collect();
        let result = self.call_function(&[hook], &args, &[], span)?;
        self.as_value(result, span)
    }
}

impl Compiler {
    /// Checks the hooks of a class against its `forward`, with PyTorch's errors.
    pub(super) fn check_hooks(&mut self, class: Symbol) -> Result<()> {
        let Some(def) = self.module.class(class) else { return Ok(()) };
        let (before, after) = (def.forward_pre_hooks.clone(), def.forward_hooks.clone());
        if before.is_empty() && after.is_empty() {
            return Ok(());
        }
        let span = Span::new(&Source::new("<hooks>", ""), 0, 0);
        let forward = self.method_schema(class, "forward", class.as_str(), &span)?;
        let takes: Vec<Type> = forward.arguments.iter().skip(1).map(|argument| argument.ty.clone()).collect();
        let module = class.as_str().rsplit('.').next().unwrap_or_default();
        for hook in before {
            let schema = self.method_schema(class, hook.as_str(), class.as_str(), &span)?;
            let states_result = self.states_result(class, hook);
            check_pre_hook(&schema, states_result, &takes)
                .map_err(|problem| of_pre_hook(hook.as_str(), module, &takes, &problem))?;
        }
        let mut gives = forward.returns.first().map_or_else(Type::none, |result| result.ty.clone());
        for hook in after {
            let schema = self.method_schema(class, hook.as_str(), class.as_str(), &span)?;
            check_hook(&schema, &takes, &gives)
                .map_err(|problem| of_hook(hook.as_str(), module, (&takes, &gives), &problem))?;
            if let Some(result) = schema.returns.first().filter(|result| result.ty != Type::none()) {
                gives = result.ty.clone();
            }
        }
        Ok(())
    }
}

/// What is wrong, from after the module's name on.
type Problem = String;

fn check_input(schema: &Schema, takes: &[Type]) -> std::result::Result<(), Problem> {
    let Some(input) = schema.arguments.get(1) else { return Ok(()) };
    let received = input.ty.annotation();
    let Some(elements) = input.ty.tuple_elements() else {
        return Err(format!(
            "expected the input argument to be typed as a Tuple but found type: '{received}' instead.\n"
        ));
    };
    if elements.len() != takes.len() {
        return Err(format!(
            "has the wrong number of contained types for the input argument's Tuple. Received type: '{received}'.\n"
        ));
    }
    if !same(elements, takes) {
        return Err(format!(
            "has the wrong inner types for the input tuple argument. Received type: '{received}'.\n"
        ));
    }
    Ok(())
}

fn check_count(schema: &Schema, count: usize) -> std::result::Result<(), Problem> {
    let found = schema.arguments.len();
    if found == count {
        return Ok(());
    }
    Err(format!("was expected to only have exactly {count} inputs but it had {found} inputs. "))
}

fn check_pre_hook(schema: &Schema, states_result: bool, takes: &[Type]) -> std::result::Result<(), Problem> {
    check_count(schema, 2)?;
    check_input(schema, takes)?;
    let result = schema.returns.first().map_or_else(Type::none, |result| result.ty.clone());
    if !states_result {
        return Err(
            "is missing a return annotation. Return annotations are required, please add one.\n".into()
        );
    }
    let shown = result.annotation();
    match result.kind() {
        TypeKind::None => Ok(()),
        TypeKind::Tuple(elements, _) if elements.len() != takes.len() => Err(format!(
            "returned the wrong type of: '{shown}'. The returned tuple contains the wrong number of contained types.\n"
        )),
        TypeKind::Tuple(elements, _) if !same(elements, takes) => Err(format!(
            "returned the wrong type of: '{shown}'. The returned tuple contains the wrong inner types.\n"
        )),
        TypeKind::Tuple(..) => Ok(()),
        // What is not a tuple stands for the only argument.
        _ if same(takes, std::slice::from_ref(&result)) => Ok(()),
        _ => Err(format!("returned the wrong type of: '{shown}'.")),
    }
}

fn check_hook(schema: &Schema, takes: &[Type], gives: &Type) -> std::result::Result<(), Problem> {
    check_count(schema, 3)?;
    check_input(schema, takes)?;
    match schema.arguments.get(2) {
        Some(output) if output.ty.annotation() != gives.annotation() => Err(format!(
            "has the wrong type for the output argument. Received type: '{}'. Expected type: '{}'.\n",
            output.ty.annotation(),
            gives.annotation()
        )),
        _ => Ok(()),
    }
}

/// Whether types are alike as written: a tensor by annotation is one by default.
fn same(a: &[Type], b: &[Type]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.annotation() == b.annotation())
}

fn tuple_of(types: &[Type]) -> String {
    Type::tuple(types.to_vec()).annotation()
}

fn of_pre_hook(hook: &str, module: &str, takes: &[Type], problem: &str) -> Diagnostic {
    let whole = tuple_of(takes);
    let results = match takes {
        [only] if only.tuple_elements().is_none() => format!("'None', '{}', or '{whole}'", only.annotation()),
        _ => format!("'None' or '{whole}'"),
    };
    Diagnostic::compile(format!(
        "Pre-hook '{hook}' on module '{module}' {problem}This error occurred while scripting the forward pre-hook '{hook}' on module '{module}'. If you did not want to script this pre-hook remove it from the original NN module before scripting. Pre-hooks for module '{module}' are expected to have the following signature: {hook}(self, input: {whole}) with a return type of either {results}.\n"
    ))
}

fn of_hook(hook: &str, module: &str, (takes, gives): (&[Type], &Type), problem: &str) -> Diagnostic {
    Diagnostic::compile(format!(
        "Hook '{hook}' on module '{module}' {problem}This error occurred while scripting the forward hook '{hook}' on module {module}. If you did not want to script this hook remove it from the original NN module before scripting. This hook was expected to have the following signature: {hook}(self, input: {}, output: {}). The type of the output arg is the returned type from either the forward method or the previous hook if it exists. Note that hooks can return anything, but if the hook is on a submodule the outer module is expecting the same return type as the submodule's forward.\n",
        tuple_of(takes),
        gives.annotation()
    ))
}
