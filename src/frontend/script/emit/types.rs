//! Type expressions, and questions about types.

use super::sugared::Special;
use super::{Emitter, Sugared, error};
use crate::diag::{Diagnostic, Result, Source, Span};
use crate::frontend::script::ast::{BinaryOp, Expr, ExprKind};
use crate::ir::types::{subtype, unify};
use crate::ir::{Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    pub(super) fn is_subtype(&self, a: &Type, b: &Type) -> bool {
        subtype::is_subtype_of(a, b, &self.unit.module)
    }

    /// Why a type is not a subtype of another, in PyTorch's wording: empty if there is no more to say.
    pub(super) fn why_not(&self, a: &Type, b: &Type) -> std::result::Result<(), String> {
        subtype::why_not_subtype(a, b, &self.unit.module)
    }

    /// The common type of two, or a union of them where that is asked for.
    pub(super) fn unify(&self, a: &Type, b: &Type, widens: bool) -> Option<Type> {
        unify::unify_as(a, b, &self.unit.module, widens, None)
    }

    /// The union of types: one of them if there is only one, an optional if the other is None.
    pub(super) fn union(&self, types: Vec<Type>) -> Type {
        subtype::union(&types)
    }

    /// The type that an expression names.
    pub(super) fn type_of(&mut self, expr: &Expr) -> Result<Type> {
        let span = &expr.span;
        match &expr.kind {
            ExprKind::None | ExprKind::NoneType => Ok(Type::none()),
            ExprKind::Name(name) => self.named_type(name, expr),
            ExprKind::Attribute { .. } => self.qualified_type(expr),
            ExprKind::Subscript { value, indices, indices_span } => {
                self.generic_type(value, indices, (span, indices_span))
            }
            ExprKind::Binary { op: BinaryOp::BitOr, left, right } => {
                let members = vec![self.type_of(left)?, self.type_of(right)?];
                Ok(self.union(members))
            }
            ExprKind::Str(text) => {
                let source = crate::diag::Source::new(span.source().name(), text.clone());
                let inner = crate::frontend::script::parse_type(&source);
                self.unit.same_names(&source, span.source());
                // PyTorch has Python look the text up, which makes no type of `a | b`.
                match inner {
                    Ok(inner) if !self.unit.is_source() => self.type_of(&inner),
                    Ok(inner) if !matches!(inner.kind, ExprKind::Binary { .. }) => self.type_of(&inner),
                    _ => error(span, format!("Unknown type name '{text}'")),
                }
            }
            other => {
                let kind = token_name(other);
                error(span, format!("Expression of type {kind} cannot be used in a type expression"))
            }
        }
    }

    fn named_type(&mut self, name: &str, expr: &Expr) -> Result<Type> {
        if matches!(name, "list" | "tuple") && self.unit.is_source() {
            return error(
                &expr.span,
                format!(
                    "Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
                ),
            );
        }
        if let Some(ty) = simple_type(name) {
            return Ok(ty);
        }
        match self.unit.lookup(name, &expr.span)? {
            Some(found) => self.type_named_by(found, name, expr),
            None => match bare_container(name) {
                Some(message) if self.unit.is_source() && name != "Future" => {
                    Err(Diagnostic::compile(message))
                }
                _ => error(&expr.span, format!("Unknown type name '{name}'")),
            },
        }
    }

    fn type_named_by(&self, found: Sugared, name: &str, expr: &Expr) -> Result<Type> {
        match found {
            Sugared::Namespace(path) => {
                let short = path.rsplit('.').next().unwrap_or_default();
                match (known_type(&path), bare_container(short)) {
                    (Some(ty), _) => Ok(ty),
                    (None, Some(message)) => Err(Diagnostic::compile(message)),
                    (None, None) => error(&expr.span, format!("Unknown type name '{name}'")),
                }
            }
            Sugared::Class(class) => Ok(Type::class(class)),
            Sugared::NamedTuple(ty) | Sugared::Type(ty) => Ok(ty),
            Sugared::EnumClass(class) => Ok(self.unit.enum_type(class)),
            // `torch.LongTensor` makes tensors, too, and `torch.Generator` generators.
            Sugared::Special(Special::LegacyTensor(_)) => Ok(Type::tensor()),
            _ => match known_type(name) {
                Some(ty) => Ok(ty),
                None => error(&expr.span, format!("Unknown type name '{name}'")),
            },
        }
    }

    fn qualified_type(&mut self, expr: &Expr) -> Result<Type> {
        let Some(path) = dotted(expr) else {
            return error(&expr.span, "expected the name of a type");
        };
        if self.unit.is_hosted(&expr.span) {
            if let Some(ty) = self.hosted_path(&path, &expr.span)?.as_deref().and_then(known_type) {
                return Ok(ty);
            }
            let found = match self.unit.hosted_number(&path, &expr.span)? {
                Some(found) => found,
                None => self.sugared(expr, None)?,
            };
            return self.type_named_by(found, &path, expr);
        }
        let known = known_type(&path);
        if let Some(ty) = known {
            return Ok(ty);
        }
        let found = match self.unit.lookup_qualified(&path, &expr.span)? {
            None if self.unit.is_source() => self.unit.python_class(&path, &expr.span)?,
            found => found,
        };
        match found {
            Some(found) => self.type_named_by(found, &path, expr),
            None => match bare_container(path.strip_prefix("torch.jit.").unwrap_or_default()) {
                Some(message) if self.unit.is_source() => Err(Diagnostic::compile(message)),
                _ => error(&expr.span, format!("Unknown type name '{path}'")),
            },
        }
    }

    /// Compiles the methods that interfaces in a type ask of the classes of values, so that these can be compared.
    /// What does not compile does not match, and is reported where it is called.
    pub(super) fn ready_for(&mut self, wanted: &Type, values: &[ValueId]) {
        for interface in interfaces_in(wanted, 0) {
            let Some(def) = self.unit.module.interfaces.get(&interface) else { continue };
            let methods: Vec<Symbol> = def.methods.keys().copied().collect();
            for value in values {
                let span = Span::new(&Source::new("<interface>", ""), 0, 0);
                for class in self.ty(*value).clone().alternatives().iter().filter_map(Type::class_name) {
                    for method in &methods {
                        let _ = self.unit.method_schema(class, method.as_str(), &self.name, &span);
                    }
                }
            }
        }
    }

    fn generic_type(
        &mut self,
        head: &Expr,
        indices: &[Expr],
        (span, indices_span): (&Span, &Span),
    ) -> Result<Type> {
        let Some(name) = dotted(head) else {
            return error(&head.span, "Subscripted type must be a type identifier");
        };
        let name = name.rsplit('.').next().unwrap_or_default().to_string();
        let parts: Vec<&Expr> = match indices {
            [Expr { kind: ExprKind::Tuple(items), .. }] => items.iter().collect(),
            _ => indices.iter().collect(),
        };
        const KNOWN: &[&str] = &[
            "List", "list", "Optional", "Future", "Await", "_Await", "RRef", "Final", "Dict", "dict",
            "Tuple", "tuple", "Union", "Enum",
        ];
        let known = KNOWN.contains(&name.as_str()) || name.starts_with("BroadcastingList");
        if !known || (name == "Final" && self.unit.is_source() && !self.unit.is_hosted(span)) {
            return error(span, format!("Unknown type constructor {name}"));
        }
        if let ("Tuple" | "tuple", [literal]) = (name.as_str(), indices)
            && let ExprKind::Tuple(items) = &literal.kind
        {
            // `Tuple[()]` is the empty tuple.
            if items.is_empty() {
                return Ok(Type::tuple(Vec::new()));
            }
            if self.unit.is_source() {
                return error(
                    &literal.span,
                    "Tuple literal in Tuple type annotation must not have any elements!",
                );
            }
        }
        let mut inner = Vec::with_capacity(parts.len());
        for part in &parts {
            inner.push(self.type_of(part)?);
        }
        let one = |inner: &[Type]| match inner {
            [only] => Ok(only.clone()),
            _ => error(span, format!(" expected exactly one element type but found {}", inner.len())),
        };
        match name.as_str() {
            "List" | "list" => Ok(Type::list(one(&inner)?)),
            "Optional" => Ok(Type::optional(one(&inner)?)),
            "Future" => Ok(Type::future(one(&inner)?)),
            "Await" | "_Await" => Ok(Type::new(TypeKind::Await(one(&inner)?))),
            "RRef" => Ok(Type::new(TypeKind::RRef(one(&inner)?))),
            "Final" => one(&inner),
            "Dict" | "dict" => match inner.as_slice() {
                [key, value] => {
                    self.check_key_type(key)?;
                    Ok(Type::dict(key.clone(), value.clone()))
                }
                _ => error(span, format!(" expected exactly 2 element types but found {}", inner.len())),
            },
            "Tuple" | "tuple" => Ok(Type::tuple(inner)),
            "Union" => Ok(self.union(inner)),
            "Enum" => match inner.as_slice() {
                [ty] => Ok(ty.clone()),
                _ => error(span, "Enum type must name one class"),
            },
            _ if name.starts_with("BroadcastingList") => {
                let count = name.trim_start_matches("BroadcastingList").parse::<usize>();
                if self.unit.is_source() && !count.is_ok_and(|n| n > 0) {
                    return error(indices_span, "subscript of Broadcastable list must be a positive integer");
                }
                Ok(Type::list(one(&inner)?))
            }
            _ => error(span, format!("Unknown type constructor {name}")),
        }
    }
}

/// Types by the dotted names that PyTorch and Python have for them.
fn known_type(path: &str) -> Option<Type> {
    if let Some(own) = path.strip_prefix("flambeau.") {
        return known_type(&format!("torch.{own}"));
    }
    match path {
        "torch.Tensor" => Some(Type::tensor()),
        "torch.device" => Some(Type::device()),
        "torch.dtype" | "torch.layout" | "torch.memory_format" => Some(Type::int()),
        "torch.Generator" | "torch._C.Generator" => Some(Type::generator()),
        "torch.Stream" => Some(Type::stream()),
        // Python's subclasses of tensors.
        "torch.nn.Parameter" | "torch.nn.parameter.Parameter" => Some(Type::tensor()),
        "torch.ByteTensor" | "torch.CharTensor" | "torch.ShortTensor" | "torch.IntTensor"
        | "torch.LongTensor" | "torch.HalfTensor" | "torch.FloatTensor" | "torch.DoubleTensor"
        | "torch.BoolTensor" => Some(Type::tensor()),
        _ => path.strip_prefix("typing.").and_then(simple_type),
    }
}

/// The interfaces that a type names, also inside of containers.
fn interfaces_in(ty: &Type, depth: usize) -> Vec<Symbol> {
    let all = |types: &[Type]| types.iter().flat_map(|t| interfaces_in(t, depth + 1)).collect();
    match ty.kind() {
        _ if depth > 20 => Vec::new(),
        TypeKind::Interface(name) => vec![*name],
        TypeKind::List(t) | TypeKind::Optional(t) | TypeKind::Dict(_, t) => interfaces_in(t, depth + 1),
        TypeKind::Union(types) | TypeKind::Tuple(types, _) => all(types),
        _ => Vec::new(),
    }
}

/// Types with a name of their own.
fn simple_type(name: &str) -> Option<Type> {
    Some(match name {
        "Tensor" => Type::tensor(),
        "int" => Type::int(),
        "float" => Type::float(),
        "complex" => Type::complex(),
        "bool" => Type::bool(),
        "str" => Type::str(),
        "NoneType" | "None" => Type::none(),
        "Any" => Type::any(),
        "Device" | "device" => Type::device(),
        "Generator" => Type::generator(),
        "Stream" => Type::stream(),
        "Capsule" => Type::capsule(),
        "number" | "Scalar" => Type::number(),
        "list" | "AnyList" => Type::any_list(),
        "tuple" | "AnyTuple" => Type::any_tuple(),
        "AnyEnumType" => Type::any_enum(),
        "AnyClassType" => Type::any_class(),
        "PyObject" => Type::py_object(),
        "Layout" | "MemoryFormat" | "ScalarType" | "QScheme" => Type::int(),
        "Storage" => Type::storage(),
        "ByteTensor" | "CharTensor" | "ShortTensor" | "IntTensor" | "LongTensor" | "HalfTensor"
        | "FloatTensor" | "DoubleTensor" | "BoolTensor" => Type::tensor(),
        _ => return None,
    })
}

/// What PyTorch says of a container type without its elements.
pub(super) fn bare_container(name: &str) -> Option<String> {
    match name {
        "List" | "Tuple" | "Optional" | "Union" | "Future" => Some(format!(
            "Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
        )),
        "Dict" => Some(
            "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]"
                .into(),
        ),
        _ => None,
    }
}

/// `a.b.c` as text.
pub(super) fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Attribute { value, name } => Some(format!("{}.{}", dotted(value)?, name.name)),
        _ => None,
    }
}

fn binary_token(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::FloorDiv => "//",
        BinaryOp::Mod => "%",
        BinaryOp::MatMul => "@",
        BinaryOp::Pow => "**",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        _ => "binary",
    }
}

/// What PyTorch's compiler calls an expression in messages about types.
fn token_name(kind: &ExprKind) -> &'static str {
    match kind {
        ExprKind::Dots => "dots",
        ExprKind::Number(_) => "const",
        ExprKind::Bool(true) => "True",
        ExprKind::Bool(false) => "False",
        ExprKind::Call { .. } => "apply",
        ExprKind::List(_) => "list-literal",
        ExprKind::Tuple(_) => "tuple-literal",
        ExprKind::Dict { .. } => "dict-literal",
        ExprKind::Ternary { .. } => "if-expr",
        ExprKind::Slice { .. } => "slice_expr",
        ExprKind::Starred(_) => "starred",
        ExprKind::Binary { op, .. } => binary_token(*op),
        ExprKind::Unary { .. } => "unary",
        _ => "expression",
    }
}
