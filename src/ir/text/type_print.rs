//! Types as text, in PyTorch's four spellings. Parsing them back stands in `type_parse.rs`.
//!
//! | spelling | example | where |
//! |---|---|---|
//! | `Display` | `Dict(str, Tensor)`, `Float(2, strides=[1])?` | graph text |
//! | [`Type::unrefined`] | the same without tensor refinements; named tuples by name | inside `Dict(...)`, `Union(...)` |
//! | [`Type::annotation`] | `Dict[str, Tensor]` | Python source, error messages |
//! | [`Type::repr`] | `Tensor (inferred)` | error messages |
//!
//! A type whose parts are shared may be small and its text longer than any memory: [`MAX_TYPE_TEXT`] bounds the text,
//! `...` stands for what is left out, and [`Type::check_text`] is the error for those who need the whole text.

use crate::diag::{Diagnostic, Result};
use crate::ir::types::{TensorType, TypeParameter};
use crate::ir::{Dim, Stride, Type, TypeKind};
use std::fmt::{self, Write};

/// Text of a type is no longer than this many bytes; parts of longer ones are left out.
pub const MAX_TYPE_TEXT: u64 = 1 << 16;

/// Types deeper than this are not spelled out, nor could text of them be read back.
const MAX_TEXT_DEPTH: usize = 256;

/// Which of PyTorch's spellings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Graph,
    Str,
    Annotation,
}

impl fmt::Display for Type {
    /// The type as graph text shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_type(f, self, Spelling::Graph, ROOM)
    }
}

impl Type {
    /// The type as PyTorch writes it inside `Dict(...)`, `Union(...)` and `Await(...)`: tensors without what is
    /// known of them, named tuples by their name.
    pub fn unrefined(&self) -> String {
        self.spelled(Spelling::Str)
    }

    /// The type as a Python annotation: `List[int]`, `Optional[Tensor]`, `Tuple[()]`.
    pub fn annotation(&self) -> String {
        self.spelled(Spelling::Annotation)
    }

    /// The annotation as compile errors show it: a parameter without annotation is a `Tensor (inferred)`.
    pub fn repr(&self) -> String {
        match self.kind() {
            TypeKind::Tensor(t) if t.inferred => "Tensor (inferred)".to_string(),
            _ => self.annotation(),
        }
    }

    /// Appends the type as graph text shows it.
    pub fn write_to(&self, out: &mut String) {
        if let Some(name) = simple_name(self.kind(), Spelling::Graph) {
            out.push_str(name);
        } else {
            let _ = write_type(out, self, Spelling::Graph, ROOM);
        }
    }

    /// An error if graph text of the type would leave out parts.
    pub fn check_text(&self) -> Result<()> {
        self.check_length(self.facts().graph_text)
    }

    /// [`Type::annotation`] for those who read it back: an error where it would leave out parts.
    pub fn whole_annotation(&self) -> Result<String> {
        self.check_length(self.facts().name_text)?;
        Ok(self.annotation())
    }

    fn check_length(&self, bytes: u64) -> Result<()> {
        if bytes <= MAX_TYPE_TEXT && self.depth() <= MAX_TEXT_DEPTH {
            return Ok(());
        }
        Err(Diagnostic::runtime(format!(
            "the text of a type would take more than {MAX_TYPE_TEXT} bytes or {MAX_TEXT_DEPTH} levels: {}",
            self.summary()
        ))
        .hint(
            "such a type holds the same parts many times, or very deep; give the parts classes of their own",
        ))
    }

    /// The outermost parts of a type.
    fn summary(&self) -> String {
        let mut out = String::new();
        let _ = write_type(&mut out, self, Spelling::Graph, Room { bytes: 80, depth: 8 });
        out
    }

    fn spelled(&self, spelling: Spelling) -> String {
        let mut out = String::new();
        let _ = write_type(&mut out, self, spelling, ROOM);
        out
    }
}

/// The name of a type without parts.
fn simple_name(kind: &TypeKind, spelling: Spelling) -> Option<&'static str> {
    let python = spelling == Spelling::Annotation;
    Some(match kind {
        TypeKind::Any => "Any",
        TypeKind::AnyList => "list",
        TypeKind::AnyTuple => "tuple",
        TypeKind::AnyEnum => "AnyEnumType",
        TypeKind::AnyClass => "AnyClassType",
        TypeKind::Number if python => "number",
        TypeKind::Number => "Scalar",
        TypeKind::Int => "int",
        TypeKind::Float => "float",
        TypeKind::Complex => "complex",
        TypeKind::Bool => "bool",
        TypeKind::Str => "str",
        TypeKind::None => "NoneType",
        TypeKind::Device => "Device",
        TypeKind::ScalarType => "ScalarType",
        TypeKind::Layout => "Layout",
        TypeKind::MemoryFormat => "MemoryFormat",
        TypeKind::QScheme => "QScheme",
        TypeKind::Stream => "Stream",
        TypeKind::Generator => "Generator",
        TypeKind::Storage => "Storage",
        TypeKind::Capsule => "Capsule",
        TypeKind::PyObject => "PyObject",
        TypeKind::SymInt if python => "int",
        TypeKind::SymInt => "SymInt",
        TypeKind::SymFloat if python => "float",
        TypeKind::SymFloat => "SymFloat",
        TypeKind::SymBool if python => "bool",
        TypeKind::SymBool => "SymBool",
        TypeKind::Function(_) => "Function",
        TypeKind::Tensor(_) if spelling != Spelling::Graph => "Tensor",
        _ => return None,
    })
}

/// How much text is left for a type.
#[derive(Clone, Copy)]
struct Room {
    bytes: u64,
    depth: usize,
}

const ROOM: Room = Room { bytes: MAX_TYPE_TEXT, depth: MAX_TEXT_DEPTH };

impl Room {
    /// What is left for each of the parts of a type; all of it where the whole type fits.
    fn inside(self, ty: &Type, spelling: Spelling, parts: usize) -> Room {
        let depth = self.depth.saturating_sub(1);
        let facts = ty.facts();
        let needed = if spelling == Spelling::Graph { facts.graph_text } else { facts.name_text };
        let shared = self.bytes.saturating_sub(16) / parts.max(1) as u64;
        Room { bytes: if needed <= self.bytes { self.bytes } else { shared }, depth }
    }
}

fn write_type<W: Write>(out: &mut W, ty: &Type, spelling: Spelling, room: Room) -> fmt::Result {
    if let Some(name) = simple_name(ty.kind(), spelling) {
        return out.write_str(name);
    }
    // Names and tensors are written whole: nothing in them is shared.
    let parts = ty.part_count();
    if parts > 0 && (room.bytes < 24 || room.depth == 0) {
        return out.write_str("...");
    }
    let room = room.inside(ty, spelling, parts);
    let python = spelling == Spelling::Annotation;
    // PyTorch's graph printer spells these out itself; every other container falls back to `str`.
    let inner = if spelling == Spelling::Graph { Spelling::Str } else { spelling };
    let mut around = |open: &str, parts: &[&Type], close: &str, spelling| {
        out.write_str(open)?;
        for (i, part) in parts.iter().enumerate() {
            out.write_str(if i == 0 { "" } else { ", " })?;
            write_type(out, part, spelling, room)?;
        }
        out.write_str(close)
    };
    match ty.kind() {
        TypeKind::Tensor(tensor) => write_tensor(out, tensor),
        TypeKind::List(t) if python => around("List[", &[t], "]", spelling),
        TypeKind::List(t) => around("", &[t], "[]", spelling),
        TypeKind::Optional(t) if python => around("Optional[", &[t], "]", spelling),
        TypeKind::Optional(t) => around("", &[t], "?", spelling),
        TypeKind::Future(t) if spelling == Spelling::Str => around("Future(", &[t], ")", spelling),
        TypeKind::Future(t) => around("Future[", &[t], "]", spelling),
        TypeKind::RRef(t) if spelling == Spelling::Str => around("RRef(", &[t], ")", spelling),
        TypeKind::RRef(t) => around("RRef[", &[t], "]", spelling),
        TypeKind::Await(t) if python => around("Await[", &[t], "]", spelling),
        TypeKind::Await(t) => around("Await(", &[t], ")", inner),
        TypeKind::Dict(k, v) if python => around("Dict[", &[k, v], "]", spelling),
        TypeKind::Dict(k, v) => around("Dict(", &[k, v], ")", inner),
        TypeKind::Tuple(elements, names) => write_tuple(out, elements, names.as_deref(), spelling, room),
        TypeKind::Union(members) if python => {
            let shown = union_shown(members);
            around("Union[", &shown.iter().collect::<Vec<_>>(), "]", spelling)
        }
        TypeKind::Union(members) => write_union(out, members, inner, room),
        TypeKind::Enum(name, _) if python => write!(out, "{name}"),
        TypeKind::Enum(name, _) => write!(out, "Enum<{name}>"),
        TypeKind::Interface(name) if !python => {
            let name = name.as_str();
            write!(out, "InterfaceType<{}>", name.rsplit_once('.').map_or(name, |(_, last)| last))
        }
        TypeKind::Var(name) | TypeKind::Class(name) | TypeKind::Interface(name) => {
            out.write_str(name.as_str())
        }
        TypeKind::Dialect(dialect, name, parameters) => write_dialect(out, *dialect, *name, parameters, room),
        // Types without parts were written above.
        _ => Ok(()),
    }
}

/// Members of a union as they print: int, float and complex together are one number.
fn union_shown(members: &[Type]) -> Vec<Type> {
    let is_number = |t: &Type| matches!(t.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Complex);
    if members.iter().filter(|t| is_number(t)).count() < 3 {
        return members.to_vec();
    }
    members.iter().filter(|t| !is_number(t)).cloned().chain([Type::number()]).collect()
}

/// A union in graph text. Where int, float and complex together print as one number, PyTorch sets its commas by the
/// members' places among all of them: `Union(, str, Scalar)`, `Union(TensorScalar)`.
fn write_union<W: Write>(out: &mut W, members: &[Type], spelling: Spelling, room: Room) -> fmt::Result {
    let is_number = |t: &Type| matches!(t.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Complex);
    let all_numbers = members.iter().filter(|t| is_number(t)).count() == 3;
    let mut separated = false;
    out.write_str("Union(")?;
    for (i, member) in members.iter().enumerate().filter(|(_, t)| !(all_numbers && is_number(t))) {
        if i > 0 {
            out.write_str(", ")?;
            separated = true;
        }
        write_type(out, member, spelling, room)?;
    }
    if all_numbers {
        out.write_str(if separated { ", Scalar" } else { "Scalar" })?;
    }
    out.write_char(')')
}

fn write_tuple<W: Write>(
    out: &mut W,
    elements: &[Type],
    names: Option<&crate::ir::types::TupleNames>,
    spelling: Spelling,
    room: Room,
) -> fmt::Result {
    match names {
        Some(names) if spelling == Spelling::Graph || names.name.as_str().is_empty() => {
            out.write_str("NamedTuple(")?;
            for (i, (element, field)) in elements.iter().zip(&names.fields).enumerate() {
                write!(out, "{}{field} : ", if i == 0 { "" } else { ", " })?;
                write_type(out, element, spelling, room)?;
                if let Some(default) = names.default_text(i) {
                    write!(out, " = {default}")?;
                }
            }
            return out.write_char(')');
        }
        Some(names) => return out.write_str(names.name.as_str()),
        None => {}
    }
    let (open, close) = match spelling {
        Spelling::Annotation if elements.is_empty() => return out.write_str("Tuple[()]"),
        Spelling::Annotation => ("Tuple[", ']'),
        _ => ("(", ')'),
    };
    out.write_str(open)?;
    for (i, element) in elements.iter().enumerate() {
        out.write_str(if i == 0 { "" } else { ", " })?;
        write_type(out, element, spelling, room)?;
    }
    out.write_char(close)
}

fn write_tensor<W: Write>(out: &mut W, t: &TensorType) -> fmt::Result {
    match t.dtype {
        Some(dtype) => {
            out.write_str(dtype.type_name())?;
            out.write_str(if t.sizes.is_none() { "Tensor" } else { "" })?;
        }
        None => out.write_str("Tensor")?,
    }
    let mut separator = "(";
    let mut next = |out: &mut W| {
        out.write_str(separator)?;
        separator = ", ";
        Ok::<_, fmt::Error>(())
    };
    if let Some(sizes) = &t.sizes {
        for dim in sizes.iter() {
            next(out)?;
            match dim {
                Dim::Known(n) => write!(out, "{n}")?,
                Dim::Symbol(n) => write!(out, "SS({n})")?,
                Dim::Open(n) => write!(out, "s{n}")?,
                Dim::Unknown => out.write_char('*')?,
            }
        }
        write_strides(out, t, sizes.len(), &mut next)?;
    }
    if let Some(on) = t.requires_grad {
        next(out)?;
        write!(out, "requires_grad={}", u8::from(on))?;
    }
    if let Some(device) = &t.device {
        next(out)?;
        write!(out, "device={device}")?;
    }
    match (separator, t.sizes.is_some()) {
        ("(", true) => out.write_str("()")?,
        ("(", false) => {}
        _ => out.write_char(')')?,
    }
    out.write_str(if t.undefined == Some(true) { "[Undefined]" } else { "" })
}

/// Strides print only where all are known.
fn write_strides<W: Write>(
    out: &mut W,
    t: &TensorType,
    rank: usize,
    next: &mut impl FnMut(&mut W) -> fmt::Result,
) -> fmt::Result {
    let Some(strides) = &t.strides else { return Ok(()) };
    if rank == 0 || strides.len() != rank || strides.contains(&Stride::Unknown) {
        return Ok(());
    }
    next(out)?;
    out.write_str("strides=[")?;
    for (i, stride) in strides.iter().enumerate() {
        out.write_str(if i == 0 { "" } else { ", " })?;
        match stride {
            Stride::Known(n) => write!(out, "{n}")?,
            Stride::Open(factor, sizes) => write_product(out, *factor, sizes)?,
            Stride::Unknown => out.write_char('*')?,
        }
    }
    out.write_char(']')
}

/// `768*s0*s1`; a factor of 1 is left out.
fn write_product<W: Write>(out: &mut W, factor: i64, sizes: &[u32]) -> fmt::Result {
    if factor != 1 {
        write!(out, "{factor}*")?;
    }
    sizes.iter().enumerate().try_for_each(|(i, size)| write!(out, "{}s{size}", if i == 0 { "" } else { "*" }))
}

fn write_dialect<W: Write>(
    out: &mut W,
    dialect: crate::ir::Symbol,
    name: crate::ir::Symbol,
    parameters: &[TypeParameter],
    room: Room,
) -> fmt::Result {
    write!(out, "{dialect}.{name}")?;
    for (i, parameter) in parameters.iter().enumerate() {
        out.write_str(if i == 0 { "<" } else { ", " })?;
        match parameter {
            TypeParameter::Type(ty) => write_type(out, ty, Spelling::Graph, room)?,
            TypeParameter::Int(n) => write!(out, "{n}")?,
            TypeParameter::Str(text) => {
                let mut quoted = String::new();
                super::number::write_quoted(&mut quoted, text);
                out.write_str(&quoted)?;
            }
        }
    }
    out.write_str(if parameters.is_empty() { "" } else { ">" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_type;

    /// Graph text, and the Python annotation, as PyTorch prints them.
    #[test]
    fn types_print_back() {
        for (text, annotation) in [
            ("int[]?", "Optional[List[int]]"),
            ("Dict(str, Tensor?)", "Dict[str, Optional[Tensor]]"),
            ("(Tensor, int)", "Tuple[Tensor, int]"),
            ("()", "Tuple[()]"),
            ("Future[Tensor][]", "List[Future[Tensor]]"),
            ("Await(Tensor)", "Await[Tensor]"),
            ("Scalar", "number"),
            ("Union(float, int)[]", "List[Union[float, int]]"),
            ("Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Tensor"),
            ("Float(requires_grad=0, device=cuda:0)?", "Optional[Tensor]"),
            ("FloatTensor(device=cpu)", "Tensor"),
            ("Tensor(*, 4)", "Tensor"),
            ("Float(SS(-1), 4)", "Tensor"),
            ("Tensor(device=cpu)", "Tensor"),
            ("Float()", "Tensor"),
            ("Float(2, 3)[Undefined]", "Tensor"),
            ("__torch__.a.___torch_mangle_1.M[]", "List[__torch__.a.___torch_mangle_1.M]"),
            ("Enum<__torch__.Color>", "__torch__.Color"),
            ("InterfaceType<Shape>[]", "List[Shape]"),
            ("NamedTuple(a : int, b : float[] = [1, 2])", "NamedTuple(a : int, b : List[float] = [1, 2])"),
            ("loops.buffer<Float(2), 3, \"a\">", "loops.buffer<Float(2), 3, \"a\">"),
            ("t[]", "List[t]"),
            ("NoneType", "NoneType"),
            ("Any?", "Optional[Any]"),
            ("Tensor(*)", "Tensor"),
            ("number[]", "List[number]"),
            ("Quantizer", "Quantizer"),
            ("Union(int[]Scalar)", "Union[List[int], number]"),
            ("Union(TensorScalar)", "Union[Tensor, number]"),
            ("Union(, str, Scalar)[]", "List[Union[str, number]]"),
            ("Dict(str, Union(, NoneType, str, Scalar))", "Dict[str, Union[NoneType, str, number]]"),
        ] {
            let ty = parse_type(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(ty.to_string(), text);
            assert_eq!(ty.annotation(), annotation);
        }
    }

    #[test]
    fn blanks_inside_types_do_not_matter() {
        for (text, shown) in [
            ("Float (2, SS ( -1 ), device= cuda:1 )", "Float(2, SS(-1), device=cuda:1)"),
            ("Tensor [ ]", "Tensor[]"),
            ("int [] ?", "int[]?"),
            ("Dict (str, int)", "Dict(str, int)"),
        ] {
            assert_eq!(parse_type(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string(), shown);
        }
    }

    #[test]
    fn containers_drop_what_is_known_of_tensors() {
        let ty = parse_type("Dict(str, Float(2))").unwrap();
        assert_eq!(ty.to_string(), "Dict(str, Tensor)");
        let ty = parse_type("Dict(str, Future(int))").unwrap();
        assert_eq!(ty.to_string(), "Dict(str, Future(int))");
    }

    #[test]
    fn annotations_parse_as_types() {
        let ty = parse_type("Optional[Dict[str, List[Tuple[int, Tensor]]]]").unwrap();
        assert_eq!(ty.to_string(), "Dict(str, (int, Tensor)[])?");
    }

    #[test]
    fn text_of_types_that_share_parts_is_bounded() {
        let int = parse_type("int").unwrap();
        let mut ty = parse_type("(int, Float(2))").unwrap();
        for _ in 0..60 {
            ty = Type::tuple([ty.clone(), ty.clone(), int.clone()]);
            for text in [ty.to_string(), ty.annotation(), ty.unrefined()] {
                assert!(text.len() as u64 <= 2 * MAX_TYPE_TEXT);
            }
        }
        let error = ty.check_text().unwrap_err().to_string();
        assert!(
            error.contains("more than 65536 bytes") && error.contains("...") && error.len() < 400,
            "{error}"
        );
        let deep = (0..100_000).fold(int, |ty, _| Type::list(ty));
        assert!(deep.to_string().starts_with("...[]") && deep.check_text().is_err());
        assert!(parse_type("(int, Dict(str, Tensor[]))[]").unwrap().check_text().is_ok());
    }

    #[test]
    fn bad_types_are_refused_with_advice() {
        let message = |text: &str| parse_type(text).unwrap_err().to_string();
        assert_eq!(message("Tensr"), "there is no type `Tensr` (<type>:1:1); did you mean `Tensor`?");
        assert_eq!(message("Dict(str)"), "`Dict` takes 2 type(s), 1 given (<type>:1:5)");
        assert!(message(&"(".repeat(100_000)).contains("nests deeper"));
        assert!(message(&format!("int{}", "[]".repeat(100_000))).contains("nests deeper"));
    }
}
