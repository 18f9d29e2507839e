//! What names outside of the function mean: Python's builtins, `torch` and its submodules, the program's own.

use super::sugared::{Context, Special};
use super::{Emitter, Sugared, error};
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::is_custom_class;
use crate::frontend::script::library;
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};
use crate::tensor::DType;

/// Builtin functions of Python that are ops of the same name.
const PLAIN_BUILTINS: &[(&str, &str)] = &[
    ("hash", "aten::hash"),
    ("hex", "aten::hex"),
    ("oct", "aten::oct"),
    ("bin", "aten::bin"),
    ("chr", "aten::chr"),
    ("ord", "aten::ord"),
    ("round", "aten::round"),
    ("pow", "aten::pow"),
    ("divmod", "aten::divmod"),
    ("sum", "aten::sum"),
    ("all", "aten::all"),
    ("any", "aten::any"),
    ("id", "prim::id"),
    ("min", "prim::min"),
    ("max", "prim::max"),
    ("abs", "prim::abs"),
];

/// Builtin functions of Python with rules of their own.
const SPECIALS: &[(&str, Special)] = &[
    ("print", Special::Print),
    ("len", Special::Len),
    ("range", Special::Range),
    ("enumerate", Special::Enumerate),
    ("zip", Special::Zip),
    ("isinstance", Special::IsInstance),
    ("hasattr", Special::HasAttr),
    ("getattr", Special::GetAttr),
    ("tuple", Special::Tuple),
    ("list", Special::List),
    ("dict", Special::Dict),
    ("slice", Special::Slice),
    ("sorted", Special::Sorted),
    ("annotate", Special::Annotate),
    ("uninitialized", Special::Uninitialized),
    ("unchecked_cast", Special::UncheckedCast),
    ("fork", Special::Fork),
    ("awaitable", Special::Awaitable),
    ("rangelist", Special::RangeList),
];

/// The version whose language this is.
const PYTORCH_VERSION: &str = "2.15.0";

/// Python's exception classes that programs may raise.
const EXCEPTIONS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "EnvironmentError",
    "Exception",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
];

/// Functions of Python that TorchScript does not have.
const MISSING_FUNCTIONS: &[&str] = &[
    "__build_class__",
    "__import__",
    "aiter",
    "anext",
    "ascii",
    "breakpoint",
    "callable",
    "compile",
    "delattr",
    "dir",
    "eval",
    "exec",
    "format",
    "globals",
    "input",
    "issubclass",
    "iter",
    "locals",
    "next",
    "open",
    "repr",
    "setattr",
    "vars",
];

/// Classes of Python that TorchScript does not have.
const MISSING_CLASSES: &[&str] = &[
    "bytearray",
    "bytes",
    "classmethod",
    "GeneratorExit",
    "KeyboardInterrupt",
    "SystemExit",
    "filter",
    "frozenset",
    "map",
    "memoryview",
    "object",
    "property",
    "reversed",
    "set",
    "staticmethod",
    "super",
    "type",
];

/// Submodules of `torch` whose functions are ops of a prefixed name: `torch.linalg.det` is `aten::linalg_det`.
const PREFIXED: &[(&str, &str)] =
    &[("torch.linalg", "linalg_"), ("torch.fft", "fft_"), ("torch.special", "special_")];

impl Emitter<'_> {
    /// A name that is not a variable.
    pub(super) fn resolve(&mut self, name: &str, span: &Span) -> Result<Option<Sugared>> {
        match self.unit.lookup(name, span)? {
            // A name of PyTorch under whatever name the program around the text has it.
            Some(Sugared::Namespace(path)) if self.unit.is_hosted(span) => self.path(&path, span).map(Some),
            Some(found) => Ok(Some(found)),
            None => self.resolve_builtin(name, span),
        }
    }

    /// A name that the program does not define.
    pub(super) fn resolve_builtin(&mut self, name: &str, span: &Span) -> Result<Option<Sugared>> {
        if let Some((_, kind)) = PLAIN_BUILTINS.iter().find(|(n, _)| *n == name) {
            return Ok(Some(Sugared::Builtin(Symbol::new(kind), None)));
        }
        if let Some((_, special)) = SPECIALS.iter().find(|(n, _)| *n == name) {
            return Ok(Some(Sugared::Special(*special)));
        }
        if MISSING_FUNCTIONS.contains(&name) && self.unit.is_source() {
            return error(
                span,
                format!(
                    "Python builtin <built-in function {name}> is currently not supported in Torchscript"
                ),
            );
        }
        if let Some(class) = MISSING_CLASSES.iter().find(|n| **n == name).filter(|_| self.unit.is_source()) {
            return Ok(Some(Sugared::Python(class)));
        }
        if EXCEPTIONS.contains(&name) {
            return Ok(Some(Sugared::Exception(name.to_string())));
        }
        Ok(match name {
            "int" | "float" | "bool" | "complex" | "str" => Some(Sugared::Cast(Symbol::new(name))),
            "torch" | "flambeau" | "math" | "cmath" | "warnings" | "ops" | "typing" | "collections" => {
                Some(Sugared::Namespace(name.to_string()))
            }
            "F" if self.unit.is_source() => Some(Sugared::Namespace("torch.nn.functional".to_string())),
            "inf" => Some(Sugared::Constant(Type::float(), Attr::Float(f64::INFINITY))),
            "nan" => Some(Sugared::Constant(Type::float(), Attr::Float(f64::NAN))),
            "infj" => Some(Sugared::Constant(
                Type::complex(),
                Attr::Complex(num_complex::Complex64::new(0.0, f64::INFINITY)),
            )),
            "nanj" => Some(Sugared::Constant(
                Type::complex(),
                Attr::Complex(num_complex::Complex64::new(0.0, f64::NAN)),
            )),
            "CONSTANTS" if !self.unit.is_source() => Some(Sugared::Constants),
            "_unwrap_optional" => Some(Sugared::Special(Special::UnwrapOptional)),
            "_to_tensor" => Some(Sugared::Special(Special::ToTensor)),
            "__torch__" => Some(Sugared::Namespace(name.to_string())),
            "Tensor" => Some(Sugared::Type(Type::tensor())),
            _ => match super::types::bare_container(name)
                .filter(|_| self.unit.is_source() && name != "Future")
            {
                Some(message) => return Err(Diagnostic::compile(message)),
                None => None,
            },
        })
    }

    /// `object.name`
    pub(super) fn attribute(&mut self, object: Sugared, name: &str, span: &Span) -> Result<Sugared> {
        match object {
            Sugared::Namespace(module) => self.module_attribute(&module, name, span),
            Sugared::Constants => self.unit.archive_constant(name, span),
            Sugared::EnumClass(class) => self.enum_member(class, name, span),
            Sugared::Class(class) if name == "__new__" => Ok(Sugared::New(class)),
            Sugared::Class(class) => match self.unit.class_function(class, name, span)? {
                Some(function) => Ok(function),
                None => error(
                    span,
                    format!("Tried to access nonexistent attribute or method '{name}' of class '{class}'"),
                ),
            },
            Sugared::Tuple(items) => {
                let value = self.as_value(Sugared::Tuple(items), span)?;
                self.value_attribute(value, name, span)
            }
            Sugared::Value(value) => self.value_attribute(value, name, span),
            Sugared::Constant(ty, attr) => {
                let value = self.as_value(Sugared::Constant(ty, attr), span)?;
                self.value_attribute(value, name, span)
            }
            Sugared::Hosted(number, class) => match self.unit.hosted_attribute(number, name, span)? {
                Some(Sugared::Namespace(path)) => self.path(&path, span),
                Some(found) => Ok(found),
                None => error(span, format!("'{class}' object has no attribute or method '{name}'")),
            },
            other => error(span, format!("attribute lookup is not defined on {}", self.kind_of(&other))),
        }
    }

    /// The functions of PyTorch's library that a name stands for, where it is more than one.
    fn library_overloads(&mut self, module: &str, name: &str) -> Result<Option<Sugared>> {
        let names = library::overloads(module, name);
        let found = names.iter().map(|n| self.unit.python_function(module, n)).filter_map(Result::transpose);
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok((!found.is_empty()).then_some(Sugared::Overloaded(found)))
    }

    fn module_attribute(&mut self, module: &str, name: &str, span: &Span) -> Result<Sugared> {
        let missing = || error(span, format!("object has no attribute {name}"));
        let path = format!("{module}.{name}");
        if module == "__torch__" || module.starts_with("__torch__.") {
            return match self.unit.lookup_qualified(&path, span)? {
                Some(found) => Ok(found),
                None => Ok(Sugared::Namespace(path)),
            };
        }
        // What PyTorch has in two places is in one here.
        if module == "flambeau" {
            return match torch_special(&format!("torch.jit.{name}")) {
                Some(found) => Ok(found),
                None if name == "jit" => Ok(Sugared::Namespace("torch.jit".to_string())),
                None if name == "strict_fusion" => self.module_attribute("torch.jit", name, span),
                None => self.module_attribute("torch", name, span),
            };
        }
        // Modules in source, operators in archives.
        if self.unit.is_source() && matches!(path.as_str(), "torch.cuda" | "torch.cpu") {
            return Ok(Sugared::Namespace(path));
        }
        if let Some(found) = torch_special(&path) {
            return Ok(found);
        }
        match module {
            "torch" => {
                if let Some(dtype) = DType::from_name(name) {
                    return Ok(Sugared::Constant(Type::int(), Attr::Int(dtype.code())));
                }
                if self.unit.is_source() {
                    if let Some(class) = self.unit.python_class(&path, span)? {
                        return Ok(class);
                    }
                    if let Some(dispatch) = library::dispatch(module, name) {
                        return Ok(Sugared::Dispatch("torch", dispatch));
                    }
                    if let Some(overloaded) = self.library_overloads(module, name)? {
                        return Ok(overloaded);
                    }
                    if let Some(function) = self.unit.python_function(module, name)? {
                        return Ok(Sugared::Function(function));
                    }
                    if let Some(dtype) = legacy_constructor(name) {
                        return Ok(Sugared::Special(Special::LegacyTensor(dtype)));
                    }
                    if library::only_python(name) {
                        return Ok(Sugared::Builtin(Symbol::new(&format!("aten::{name}")), None));
                    }
                }
                self.op_or("aten", name, missing)
            }
            "torch.sparse" => match name {
                "spdiags" => self.op_or("aten", "_spdiags", missing),
                "spsolve" => self.op_or("aten", "_spsolve", missing),
                "sampled_addmm" => self.op_or("aten", "sparse_sampled_addmm", missing),
                _ => self.op_or("aten", &format!("_sparse_{name}"), missing),
            },
            "torch.nested" => self.op_or("aten", &format!("nested_{name}"), missing),
            "torch.amp" | "torch.amp.autocast_mode" | "torch.cuda.amp" | "torch.cpu.amp" | "torch.jit" => {
                self.unit.python_class(&path, span)?.map_or_else(missing, Ok)
            }
            "torch.autograd" => match name {
                "no_grad" => Ok(Sugared::Context(Context::NoGrad)),
                "grad" | "backward" => self.op_or("aten", name, missing),
                _ => missing(),
            },
            "math" | "cmath" => self.math_attribute(module, name, span),
            "ops" | "torch.ops" => Ok(Sugared::Namespace(format!("ops.{name}"))),
            "torch.nn.functional" | "torch.nn.init" | "torch.nn.utils.rnn" => {
                if let Some(dispatch) = library::dispatch(module, name) {
                    return Ok(Sugared::Dispatch("torch.nn.functional", dispatch));
                }
                if let Some(overloaded) = self.library_overloads(module, name)? {
                    return Ok(overloaded);
                }
                match self.unit.python_function(module, library::python_name(name))? {
                    Some(function) => Ok(Sugared::Function(function)),
                    None if module == "torch.nn.utils.rnn" => {
                        self.unit.python_class(&path, span)?.map_or_else(missing, Ok)
                    }
                    None => self.op_or("aten", library::op_name(name), missing),
                }
            }
            "torch.nn" if name == "Parameter" => Ok(Sugared::Type(Type::tensor())),
            // A module is made in Python; a script only calls those that it is given.
            "torch.nn" if self.unit.is_source() && name.starts_with(|c: char| c.is_ascii_uppercase()) => {
                error(span, format!("Cannot instantiate class '{name}' in a script function"))
            }
            "torch.Tensor" | "torch._C._nn" => self.op_or("aten", name, missing),
            _ => {
                if let Some(namespace) = module.strip_prefix("ops.") {
                    return self.op_or(namespace, name, missing);
                }
                if let Some((_, prefix)) = PREFIXED.iter().find(|(m, _)| *m == module) {
                    let full = format!("{prefix}{name}");
                    return self.op_or("aten", &full, missing);
                }
                missing()
            }
        }
    }

    fn op_or(
        &mut self,
        namespace: &str,
        name: &str,
        missing: impl FnOnce() -> Result<Sugared>,
    ) -> Result<Sugared> {
        let kind = Symbol::new(&format!("{namespace}::{name}"));
        let known = !self.unit.registry.overloads(kind).is_empty() || !self.unit.is_source();
        if known { Ok(Sugared::Builtin(kind, None)) } else { missing() }
    }

    pub(super) fn enum_member(&mut self, class: Symbol, name: &str, span: &Span) -> Result<Sugared> {
        let Some(def) = self.unit.module.enums.get(&class) else {
            return error(span, format!("enum {class} is not defined"));
        };
        let Some((member, value)) = def.members.iter().find(|(n, _)| *n == name) else {
            return error(span, format!("'{class}' has no attribute '{name}'"));
        };
        let ty = Type::new(TypeKind::Enum(class, def.value_type.clone()));
        let attr = Attr::Enum(std::sync::Arc::new((class.to_string(), member.to_string(), value.clone())));
        Ok(Sugared::Constant(ty, attr))
    }

    /// `value.name` of a value of the graph.
    fn value_attribute(&mut self, value: ValueId, name: &str, span: &Span) -> Result<Sugared> {
        let ty = self.ty(value).clone();
        match ty.kind() {
            TypeKind::Class(class) => self.object_attribute(value, *class, name, span),
            TypeKind::Interface(interface) => {
                self.unit.interface_schema(*interface, name, span)?;
                Ok(Sugared::Method(value, Symbol::new(name)))
            }
            TypeKind::Tuple(elements, Some(names)) if names.fields.iter().any(|f| *f == name) => {
                let at = names.fields.iter().position(|f| *f == name).unwrap_or(0);
                let index = self.int(at as i64, span);
                let item = self.emit_value(
                    Symbol::new("prim::TupleIndex"),
                    &[value, index],
                    elements[at].clone(),
                    span,
                );
                Ok(Sugared::Value(item))
            }
            TypeKind::Enum(_, inner) => match name {
                "name" => Ok(Sugared::Value(self.emit_value(
                    Symbol::new("prim::EnumName"),
                    &[value],
                    Type::str(),
                    span,
                ))),
                "value" => {
                    let inner = inner.clone();
                    Ok(Sugared::Value(self.emit_value(Symbol::new("prim::EnumValue"), &[value], inner, span)))
                }
                _ => error(span, format!("Invalid enum attribute: '{name}'")),
            },
            _ => self.builtin_attribute(value, &ty, name, span),
        }
    }

    fn object_attribute(
        &mut self,
        value: ValueId,
        class: Symbol,
        name: &str,
        span: &Span,
    ) -> Result<Sugared> {
        if self.unit.has_method(class, name) || is_custom_class(class.as_str()) {
            return Ok(Sugared::Method(value, Symbol::new(name)));
        }
        if let Some(function) = self.unit.static_method(class, name) {
            return Ok(Sugared::Function(function));
        }
        let Some(def) = self.unit.module.class(class) else {
            return error(span, format!("class {class} is not defined"));
        };
        if let Some(attribute) = def.attribute(name) {
            let ty = attribute.ty.clone();
            let op = self.emit(Symbol::new("prim::GetAttr"), &[value], &[ty], span);
            self.graph.set_attr(op, "name", Attr::Str(name.into()));
            return Ok(Sugared::Value(self.only_result(op)));
        }
        if let Some((ty, attr)) = def.constants.get(&Symbol::new(name)) {
            return Ok(Sugared::Constant(ty.clone(), attr.clone()));
        }
        if let Some(getter) = def.properties.get(&Symbol::new(name)).map(|p| p.getter) {
            return self.call_method(value, getter, &[], span).map(Sugared::Value);
        }
        if let Some(items) = self.container_method(value, name, span)? {
            return Ok(Sugared::Items(items));
        }
        match self.unit.hosted_member(class, name, span)? {
            Some(Sugared::Namespace(path)) => return self.path(&path, span),
            Some(found) => return Ok(found),
            None if self.unit.has_method(class, &format!("{name}__0")) => {
                return Ok(Sugared::Method(value, Symbol::new(name)));
            }
            None if self.unit.has_attribute(class, name)
                || self.unit.static_method(class, name).is_some() =>
            {
                return self.object_attribute(value, class, name, span);
            }
            None => {}
        }
        error(
            span,
            format!(
                "Tried to access nonexistent attribute or method '{name}' of type '{}'. Did you forget to initialize an attribute in __init__()?",
                Type::class(class).repr()
            ),
        )
    }

    /// Properties of tensors and methods of builtin types.
    fn builtin_attribute(&mut self, value: ValueId, ty: &Type, name: &str, span: &Span) -> Result<Sugared> {
        if let TypeKind::Tensor(_) = ty.kind() {
            if let Some(kind) = tensor_property(name) {
                return self.builtin(Symbol::new(kind), &[value], span).map(Sugared::Value);
            }
            if let Some(dtype) = cast_method(name) {
                return Ok(Sugared::TensorCast(value, dtype));
            }
            if name == "type" {
                return Ok(Sugared::Builtin(Symbol::new("aten::to"), Some(value)));
            }
            if name == "__getitem__" {
                return Ok(Sugared::Special(Special::TensorItem(value)));
            }
            if name == "tolist" {
                return Ok(Sugared::Special(Special::ToList(value)));
            }
        }
        if let TypeKind::Device = ty.kind()
            && matches!(name, "type" | "index")
        {
            return self.builtin(Symbol::new(&format!("prim::{name}")), &[value], span).map(Sugared::Value);
        }
        let kind = Symbol::new(&format!("aten::{name}"));
        if self.takes_self(kind, ty) {
            return Ok(Sugared::Builtin(kind, Some(value)));
        }
        if let TypeKind::Future(_) = ty.kind()
            && name == "wait"
        {
            return Ok(Sugared::Builtin(Symbol::new("aten::wait"), Some(value)));
        }
        if let TypeKind::Optional(inner) = ty.kind() {
            return error(
                span,
                format!("'Optional[{}]' object has no attribute or method '{name}'.", inner.repr()),
            );
        }
        // What ops name their results is not a name of a type.
        let shown = match ty.kind() {
            TypeKind::Tuple(elements, Some(names)) if !names.name.as_str().contains('.') => {
                Type::tuple(elements.to_vec())
            }
            _ => ty.clone(),
        };
        error(span, format!("'{}' object has no attribute or method '{name}'.", shown.repr()))
    }
}

/// The dtype of the tensors that `torch.LongTensor` and similar functions make.
fn legacy_constructor(name: &str) -> Option<DType> {
    Some(match name.strip_suffix("Tensor")? {
        "Byte" => DType::U8,
        "Char" => DType::I8,
        "Short" => DType::I16,
        "Int" => DType::I32,
        "Long" => DType::I64,
        "Half" => DType::F16,
        "Float" => DType::F32,
        "Double" => DType::F64,
        "Bool" => DType::Bool,
        _ => return None,
    })
}

/// The dtype that a method of tensors converts to: `t.long()`.
fn cast_method(name: &str) -> Option<DType> {
    Some(match name {
        "byte" => DType::U8,
        "char" => DType::I8,
        "short" => DType::I16,
        "int" => DType::I32,
        "long" => DType::I64,
        "half" => DType::F16,
        "float" => DType::F32,
        "double" => DType::F64,
        "cfloat" => DType::C64,
        "cdouble" => DType::C128,
        _ => return None,
    })
}

/// The op of a tensor's property.
fn tensor_property(name: &str) -> Option<&'static str> {
    Some(match name {
        "dtype" => "prim::dtype",
        "device" => "prim::device",
        "grad" => "prim::grad",
        "data" => "prim::data",
        "shape" => "prim::shape",
        "is_cuda" => "prim::is_cuda",
        "is_cpu" => "prim::is_cpu",
        "is_xla" => "prim::is_xla",
        "is_xpu" => "prim::is_xpu",
        "is_sparse" => "prim::is_sparse",
        "is_sparse_csr" => "prim::is_sparse_csr",
        "is_mkldnn" => "prim::is_mkldnn",
        "is_mps" => "prim::is_mps",
        "is_mtia" => "prim::is_mtia",
        "is_vulkan" => "prim::is_vulkan",
        "is_ipu" => "prim::is_ipu",
        "is_maia" => "prim::is_maia",
        "is_meta" => "prim::is_meta",
        "is_quantized" => "prim::is_quantized",
        "is_nested" => "prim::is_nested",
        "is_leaf" => "aten::is_leaf",
        "requires_grad" => "prim::requires_grad",
        "layout" => "prim::layout",
        "itemsize" => "prim::itemsize",
        "nbytes" => "prim::nbytes",
        "ndim" => "prim::ndim",
        "name" => "prim::name",
        "real" => "aten::real",
        "imag" => "aten::imag",
        "retains_grad" => "aten::retains_grad",
        "T" => "prim::T",
        "H" => "prim::H",
        "mT" => "prim::mT",
        "mH" => "prim::mH",
        _ => return None,
    })
}

/// Names below `torch` that are not ops.
fn torch_special(path: &str) -> Option<Sugared> {
    Some(match path {
        "torch.jit"
        | "torch.nn"
        | "torch.nn.functional"
        | "torch.nn.init"
        | "torch.nn.utils"
        | "torch.nn.utils.rnn"
        | "torch.linalg"
        | "torch.fft"
        | "torch.special"
        | "torch.ops"
        | "torch.autograd"
        | "torch.autograd.profiler"
        | "torch.profiler"
        | "torch.sparse"
        | "torch.nested"
        | "torch.amp"
        | "torch.amp.autocast_mode"
        | "torch.cuda.amp"
        | "torch.cpu.amp"
        | "torch._C"
        | "torch._C._nn"
        | "torch.Tensor"
        | "torch.functional"
        | "torch._VF" => {
            let path = match path {
                "torch.functional" | "torch._VF" => "torch",
                other => other,
            };
            Sugared::Namespace(path.to_string())
        }
        "torch.device" => Sugared::Type(Type::device()),
        "torch.jit.annotate" => Sugared::Special(Special::Annotate),
        "torch.jit.isinstance" => Sugared::Special(Special::IsInstance),
        "torch.jit._unwrap_optional" => Sugared::Special(Special::UnwrapOptional),
        "torch.jit.fork" | "torch.jit._fork" => Sugared::Special(Special::Fork),
        "torch.jit._awaitable" => Sugared::Special(Special::Awaitable),
        "torch.jit.wait" | "torch.jit._wait" => Sugared::Builtin(Symbol::new("aten::wait"), None),
        "torch.jit._awaitable_wait" => Sugared::Builtin(Symbol::new("prim::awaitable_wait"), None),
        "torch.jit._awaitable_nowait" => Sugared::Builtin(Symbol::new("prim::awaitable_nowait"), None),
        "torch.jit.is_scripting" => Sugared::Special(Special::IsScripting),
        "torch.jit.is_tracing" | "torch._C._get_tracing_state" => Sugared::Special(Special::IsTracing),
        "torch.no_grad" => Sugared::Context(Context::NoGrad),
        "torch.autograd.profiler.record_function" | "torch.profiler.record_function" => {
            Sugared::Context(Context::RecordFunction)
        }
        "torch.strided" => Sugared::Constant(Type::int(), Attr::Int(0)),
        "torch.sparse_coo" => Sugared::Constant(Type::int(), Attr::Int(1)),
        "torch.contiguous_format" => Sugared::Constant(Type::int(), Attr::Int(0)),
        "torch.legacy_contiguous_format" => Sugared::Constant(Type::int(), Attr::Int(0)),
        "torch.preserve_format" => Sugared::Constant(Type::int(), Attr::Int(1)),
        "torch.channels_last" => Sugared::Constant(Type::int(), Attr::Int(2)),
        "torch.channels_last_3d" => Sugared::Constant(Type::int(), Attr::Int(3)),
        "torch.inf" => Sugared::Constant(Type::float(), Attr::Float(f64::INFINITY)),
        "torch.nan" => Sugared::Constant(Type::float(), Attr::Float(f64::NAN)),
        "torch.pi" => Sugared::Constant(Type::float(), Attr::Float(std::f64::consts::PI)),
        "torch.e" => Sugared::Constant(Type::float(), Attr::Float(std::f64::consts::E)),
        "torch.uint16" => Sugared::Constant(Type::int(), Attr::Int(27)),
        "torch.uint32" => Sugared::Constant(Type::int(), Attr::Int(28)),
        "torch.uint64" => Sugared::Constant(Type::int(), Attr::Int(29)),
        "torch.qint8" => Sugared::Constant(Type::int(), Attr::Int(12)),
        "torch.quint8" => Sugared::Constant(Type::int(), Attr::Int(13)),
        "torch.qint32" => Sugared::Constant(Type::int(), Attr::Int(14)),
        "torch.newaxis" => Sugared::Constant(Type::none(), Attr::None),
        "torch.__version__" => Sugared::Constant(Type::str(), Attr::Str(PYTORCH_VERSION.into())),
        "torch._check" => Sugared::Special(Special::Check),
        "torch.manual_seed" => Sugared::Builtin(Symbol::new("aten::manual_seed"), None),
        "warnings.warn" => Sugared::Builtin(Symbol::new("aten::warn"), None),
        "collections.OrderedDict" => Sugared::Special(Special::Dict),
        _ => return None,
    })
}
