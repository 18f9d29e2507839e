//! The module that an exported program belongs to: its tensors as attributes of nested objects, so that they have the names
//! that they have in PyTorch (`layer1.0.weight`).

use super::schema::InputSpec;
use super::weights::Weights;
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::emit::Emitter;
use crate::ir::{Attr, ClassAttribute, ClassDef, ClassKind, Module, Symbol, Type, ValueId};
use crate::value::{Object, Value};
use indexmap::IndexMap;

/// Parts that a qualified name may have.
const MAX_PARTS: usize = 100;

/// Qualified name of the class of the whole program.
pub(super) const ROOT: &str = "__torch__.Exported";

/// Objects by qualified name, `""` for the root.
pub(super) struct Objects {
    made: IndexMap<String, (Object, Symbol)>,
}

impl Objects {
    /// The objects that hold all tensors that the inputs name; their classes join the module.
    pub(super) fn build(
        module: &mut Module,
        inputs: &[InputSpec],
        weights: &mut Weights<'_>,
    ) -> Result<Objects> {
        let mut objects = Objects { made: IndexMap::new() };
        objects.object(module, "")?;
        for input in inputs {
            let Some(name) = attribute(input) else { continue };
            let (parent, last) = split(name)?;
            let tensor = weights.tensor(name)?;
            let (object, class) = objects.object(module, parent)?;
            if object.get(Symbol::new(last)).is_some() {
                return Err(Diagnostic::input(format!("two attributes of the program are called `{name}`")));
            }
            object.set(Symbol::new(last), Value::Tensor(tensor));
            add(module, class, last, Type::tensor(), Some(input));
        }
        Ok(objects)
    }

    /// The object of the whole program.
    pub(super) fn root(&self) -> Value {
        self.made.first().map_or(Value::None, |(_, (object, _))| Value::Object(object.clone()))
    }

    /// The object with a name and its class; it and those that it lies in are made if they are not there.
    fn object(&mut self, module: &mut Module, name: &str) -> Result<(Object, Symbol)> {
        if let Some(made) = self.made.get(name) {
            return Ok(made.clone());
        }
        let mut above: Option<Object> = None;
        for end in ends(name) {
            let path = &name[..end];
            if let Some((object, _)) = self.made.get(path) {
                above = Some(object.clone());
                continue;
            }
            let class = self.class_name(path);
            let object = Object::new(class);
            module.classes.insert(class, ClassDef::new(class, ClassKind::Module));
            if let Some(outer) = &above {
                let (_, last) = split(path)?;
                if outer.get(Symbol::new(last)).is_some() {
                    return Err(Diagnostic::input(format!(
                        "`{path}` is a tensor and a module of the program"
                    )));
                }
                outer.set(Symbol::new(last), Value::Object(object.clone()));
                add(module, outer.class(), last, Type::class(class), None);
            }
            self.made.insert(path.to_string(), (object.clone(), class));
            above = Some(object);
        }
        self.made.get(name).cloned().ok_or_else(|| Diagnostic::internal("an object was not made"))
    }

    /// A name for the class of a module: its path, and a number where two paths read alike.
    fn class_name(&self, path: &str) -> Symbol {
        let readable: String = path.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
        let plain = if path.is_empty() { ROOT.to_string() } else { format!("{ROOT}_{readable}") };
        let taken = |name: &str| self.made.values().any(|(_, class)| *class == *name);
        match taken(&plain) {
            false => Symbol::new(&plain),
            true => Symbol::new(&format!("{plain}_{}", self.made.len())),
        }
    }
}

/// The qualified name of the attribute that an input is.
pub(super) fn attribute(input: &InputSpec) -> Option<&str> {
    match input {
        InputSpec::Parameter { parameter_name: name }
        | InputSpec::Buffer { buffer_name: name }
        | InputSpec::TensorConstant { tensor_constant_name: name } => Some(name),
        _ => None,
    }
}

/// Reads of attributes in a graph, each object once.
pub(super) struct Reads {
    made: IndexMap<String, ValueId>,
}

impl Reads {
    /// Reads from the object of the whole program.
    pub(super) fn of(root: ValueId) -> Reads {
        Reads { made: IndexMap::from([(String::new(), root)]) }
    }

    /// The value of an attribute.
    pub(super) fn read(&mut self, emitter: &mut Emitter<'_>, name: &str) -> Result<ValueId> {
        let (parent, _) = split(name)?;
        let mut value = self.part(emitter, "")?;
        for end in ends(parent) {
            value = self.part(emitter, &name[..end])?;
        }
        get(emitter, value, name)
    }

    fn part(&mut self, emitter: &mut Emitter<'_>, path: &str) -> Result<ValueId> {
        if let Some(made) = self.made.get(path) {
            return Ok(*made);
        }
        let (parent, _) = split(path)?;
        let above = self.made.get(parent).copied();
        let above =
            above.ok_or_else(|| Diagnostic::internal("an object is read before the one that contains it"))?;
        let made = get(emitter, above, path)?;
        self.made.insert(path.to_string(), made);
        Ok(made)
    }
}

/// An attribute, by the last part of its name, of an object.
fn get(emitter: &mut Emitter<'_>, object: ValueId, name: &str) -> Result<ValueId> {
    let (_, last) = split(name)?;
    let class = emitter.graph.ty(object).class_name().and_then(|class| emitter.module.class(class));
    let ty = class.and_then(|class| class.attribute(last)).map(|attribute| attribute.ty.clone());
    let ty = ty.ok_or_else(|| Diagnostic::input(format!("the program has no attribute `{name}`")))?;
    let made = emitter.value("prim::GetAttr", &[object], ty)?;
    if let Some(op) = emitter.graph.def_op(made) {
        emitter.graph.set_attr(op, "name", Attr::Str(last.into()));
    }
    Ok(made)
}

/// What lies before the last part of a name, and the last part.
fn split(name: &str) -> Result<(&str, &str)> {
    if name.split('.').count() > MAX_PARTS {
        return Err(Diagnostic::input(format!("the name of an attribute has more than {MAX_PARTS} parts")));
    }
    Ok(name.rsplit_once('.').unwrap_or(("", name)))
}

/// Ends of a path's beginnings: of the root, then of each module within.
fn ends(path: &str) -> impl Iterator<Item = usize> + '_ {
    let dots = path.match_indices('.').map(|(at, _)| at);
    let whole = (!path.is_empty()).then_some(path.len());
    std::iter::once(0).chain(dots).chain(whole)
}

fn add(module: &mut Module, class: Symbol, name: &str, ty: Type, input: Option<&InputSpec>) {
    let Some(class) = module.classes.get_mut(&class) else { return };
    class.attributes.push(ClassAttribute {
        name: Symbol::new(name),
        ty,
        is_parameter: matches!(input, Some(InputSpec::Parameter { .. })),
        is_buffer: matches!(input, Some(InputSpec::Buffer { .. })),
    });
}
