//! The typed syntax tree of TorchScript text. Types are expressions here; what they mean is decided
//! where they are used. The tree knows nothing of grammar rules or IR.
//!
//! Spans are PyTorch's source ranges, quirks included, because error carets and the `# file:line:column`
//! marks of graphs come from them: a node covers its own sign or keyword and its children, so that
//! brackets around an expression and the closing bracket of a call lie outside.
//!
//! No tree is higher than [`MAX_DEPTH`], so it may be walked and dropped recursively.

use super::layout::too_deep;
use crate::diag::{Result, Span};

/// Height of the highest tree of expressions, and of the highest tree of statements.
pub const MAX_DEPTH: usize = 500;

/// A name with its place.
#[derive(Clone, Debug)]
pub struct Ident {
    /// The name.
    pub name: String,
    /// Its place.
    pub span: Span,
}

/// A source file: functions in order, and classes where it comes from an archive.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Definitions in the order of the text.
    pub items: Vec<Item>,
}

/// A definition at the top level.
#[derive(Clone, Debug)]
pub enum Item {
    /// A function.
    Def(Def),
    /// A class; only in code of archives.
    Class(Class),
}

/// `class name(base): body`
#[derive(Clone, Debug)]
pub struct Class {
    /// The class's name without its module.
    pub name: Ident,
    /// `Module`, `NamedTuple`, `Enum`, `Interface`, `ModuleInterface`, or any other expression.
    pub base: Option<Expr>,
    /// Attributes as annotated assignments (`Assign`), methods (`Def`), anything else as written.
    pub body: Vec<Stmt>,
    /// From the name to the end of the body.
    pub span: Span,
}

/// `def name(params) -> returns: body`
#[derive(Clone, Debug)]
pub struct Def {
    /// The function's name.
    pub name: Ident,
    /// Parameters and result, with the types of a type comment merged in.
    pub decl: Decl,
    /// Statements, at least one.
    pub body: Vec<Stmt>,
    /// From the name to the end of the body.
    pub span: Span,
}

/// Parameters and result of a function.
#[derive(Clone, Debug)]
pub struct Decl {
    /// Parameters in order.
    pub params: Vec<Param>,
    /// The type of the result, where stated.
    pub returns: Option<Expr>,
    /// The bracketed parameters and what follows them up to the colon.
    pub span: Span,
}

/// `name: annotation = default`
#[derive(Clone, Debug)]
pub struct Param {
    /// The parameter's name.
    pub name: Ident,
    /// Its type, where stated.
    pub annotation: Option<Expr>,
    /// The default value, where there is one.
    pub default: Option<Expr>,
    /// Stands after a lone `*`.
    pub keyword_only: bool,
    /// The parameter and, after a parameter without default, the sign that follows it.
    pub span: Span,
}

/// A statement with its place.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its place.
    pub span: Span,
    height: u16,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// An expression for its effect.
    Expr(Expr),
    /// `targets[0] = targets[1] = ... = value`, `target: annotation = value`, or with no value a
    /// declaration (an attribute of a class; an error in functions).
    Assign {
        /// Left sides in order, at least one; more than one only without annotation.
        targets: Vec<Expr>,
        /// The stated type.
        annotation: Option<Expr>,
        /// The right side.
        value: Option<Expr>,
    },
    /// `target op= value`; a type stated with it is dropped, as PyTorch drops it.
    AugAssign {
        /// The left side, no tuple.
        target: Expr,
        /// The operator without `=`.
        op: BinaryOp,
        /// The right side.
        value: Expr,
    },
    /// `if cond: then ... else: otherwise`; `elif` is an `If` alone in `otherwise`.
    If {
        /// The condition.
        cond: Expr,
        /// At least one statement.
        then: Vec<Stmt>,
        /// Empty where there is no `else`.
        otherwise: Vec<Stmt>,
    },
    /// `while cond: body`
    While {
        /// The condition.
        cond: Expr,
        /// At least one statement.
        body: Vec<Stmt>,
    },
    /// `for targets in iters: body`; the grammar allows none or several of either.
    For {
        /// Loop variables; `for (a, b) in` is one tuple, `for a, b in` is two targets.
        targets: Vec<Expr>,
        /// What is run over.
        iters: Vec<Expr>,
        /// At least one statement.
        body: Vec<Stmt>,
    },
    /// `with items: body`
    With {
        /// The managers, possibly none.
        items: Vec<WithItem>,
        /// At least one statement.
        body: Vec<Stmt>,
    },
    /// `return value`; without value, a `None` at the place of the keyword.
    Return(Expr),
    /// `raise exception`
    Raise(Expr),
    /// `assert cond, message`
    Assert {
        /// What must hold.
        cond: Expr,
        /// What to say if it does not.
        message: Option<Expr>,
    },
    /// `del targets`
    Delete(Vec<Expr>),
    /// `global names`
    Global(Vec<Ident>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `pass`
    Pass,
    /// A function inside a function or a method of a class.
    Def(Box<Def>),
}

/// `context as target`
#[derive(Clone, Debug)]
pub struct WithItem {
    /// The manager.
    pub context: Expr,
    /// The variable that names what it enters with.
    pub target: Option<Ident>,
    /// The whole item.
    pub span: Span,
}

/// An expression with its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
    height: u16,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A variable, function, module or type.
    Name(String),
    /// A literal number, its minus signs folded in (they lie outside the span).
    Number(Number),
    /// A literal string, adjacent ones joined, escapes resolved; the span is the first one's.
    Str(String),
    /// `True` or `False`
    Bool(bool),
    /// `None`
    None,
    /// `NoneType`
    NoneType,
    /// `...` or `Ellipsis`
    Dots,
    /// `value.name`
    Attribute {
        /// What it is taken of.
        value: Box<Expr>,
        /// The attribute.
        name: Ident,
    },
    /// `callee(args, keywords)`
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Positional arguments; may hold `Starred`.
        args: Vec<Expr>,
        /// Named arguments, which may stand anywhere among the others.
        keywords: Vec<Keyword>,
        /// The opening bracket and the positional arguments.
        args_span: Span,
    },
    /// `value[indices]`; only here stand `Slice`s.
    Subscript {
        /// What is indexed.
        value: Box<Expr>,
        /// One for each comma-separated part, possibly none; `x[(1, 2)]` is one tuple.
        indices: Vec<Expr>,
        /// The opening bracket and the indices.
        indices_span: Span,
    },
    /// `start:stop:step`
    Slice {
        /// Where to begin.
        start: Option<Box<Expr>>,
        /// Where to end.
        stop: Option<Box<Expr>>,
        /// How far apart.
        step: Option<Box<Expr>>,
    },
    /// `op operand`; `a not in b` is `not (a in b)`.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it applies to.
        operand: Box<Expr>,
    },
    /// `*value`
    Starred(Box<Expr>),
    /// `left op right`; comparisons do not chain: `a < b < c` is `(a < b) < c`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `then if cond else otherwise`
    Ternary {
        /// The condition.
        cond: Box<Expr>,
        /// The value if it holds.
        then: Box<Expr>,
        /// The value if it does not.
        otherwise: Box<Expr>,
    },
    /// `[elements]`
    List(Vec<Expr>),
    /// `(elements)`, or elements with commas alone.
    Tuple(Vec<Expr>),
    /// `{keys[0]: values[0], ...}`
    Dict {
        /// Keys in order.
        keys: Vec<Expr>,
        /// As many values.
        values: Vec<Expr>,
    },
    /// `element for target in iter`, in square brackets or not. As in PyTorch, `[[x for x in y]]` is the
    /// inner list alone.
    ListComp {
        /// The element of each iteration.
        element: Box<Expr>,
        /// The variable.
        target: Box<Expr>,
        /// What is run over.
        iter: Box<Expr>,
    },
    /// `{key: value for target in iter}`
    DictComp {
        /// The key of each iteration.
        key: Box<Expr>,
        /// The value of each iteration.
        value: Box<Expr>,
        /// The variable.
        target: Box<Expr>,
        /// What is run over.
        iter: Box<Expr>,
    },
}

/// `name=value` in a call.
#[derive(Clone, Debug)]
pub struct Keyword {
    /// The parameter.
    pub name: Ident,
    /// Its argument.
    pub value: Expr,
    /// The whole.
    pub span: Span,
}

/// The value of a literal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// The imaginary part of a complex number whose real part is 0.
    Imaginary(f64),
    /// An integer that 64 bits cannot hold; PyTorch refuses it when the expression is compiled.
    OutOfRange,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `not`
    Not,
    /// `~`
    BitNot,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `//`
    FloorDiv,
    /// `%`
    Mod,
    /// `@`
    MatMul,
    /// `**`
    Pow,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `and`
    And,
    /// `or`
    Or,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `is`
    Is,
    /// `is not`
    IsNot,
    /// `in`
    In,
}

impl Expr {
    /// An expression; fails where it would be higher than [`MAX_DEPTH`].
    pub fn new(kind: ExprKind, span: Span) -> Result<Expr> {
        let height = 1 + kind.height();
        if usize::from(height) > MAX_DEPTH {
            return Err(too_deep("expressions", MAX_DEPTH).at(&span));
        }
        Ok(Expr { kind, span, height })
    }

    /// Levels of expressions inside each other; 1 for a name.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}

impl ExprKind {
    /// Height of the highest child.
    fn height(&self) -> u16 {
        match self {
            ExprKind::Attribute { value, .. } | ExprKind::Starred(value) => value.height,
            ExprKind::Unary { operand, .. } => operand.height,
            ExprKind::Call { callee, args, keywords, .. } => {
                let named = keywords.iter().map(|k| k.value.height).max().unwrap_or(0);
                callee.height.max(highest(args)).max(named)
            }
            ExprKind::Subscript { value, indices, .. } => value.height.max(highest(indices)),
            ExprKind::Slice { start, stop, step } => {
                highest([start, stop, step].into_iter().flatten().map(Box::as_ref))
            }
            ExprKind::Binary { left, right, .. } => left.height.max(right.height),
            ExprKind::Ternary { cond, then, otherwise } => highest([&**cond, then, otherwise]),
            ExprKind::List(elements) | ExprKind::Tuple(elements) => highest(elements),
            ExprKind::Dict { keys, values } => highest(keys).max(highest(values)),
            ExprKind::ListComp { element, target, iter } => highest([&**element, target, iter]),
            ExprKind::DictComp { key, value, target, iter } => highest([&**key, value, target, iter]),
            ExprKind::Name(_)
            | ExprKind::Number(_)
            | ExprKind::Str(_)
            | ExprKind::Bool(_)
            | ExprKind::None
            | ExprKind::NoneType
            | ExprKind::Dots => 0,
        }
    }
}

fn highest<'e>(expressions: impl IntoIterator<Item = &'e Expr>) -> u16 {
    expressions.into_iter().map(|e| e.height).max().unwrap_or(0)
}

impl Stmt {
    /// A statement; fails where statements would stand more than [`MAX_DEPTH`] deep in each other.
    pub fn new(kind: StmtKind, span: Span) -> Result<Stmt> {
        let blocks: [&[Stmt]; 2] = match &kind {
            StmtKind::If { then, otherwise, .. } => [then, otherwise],
            StmtKind::While { body, .. } | StmtKind::For { body, .. } | StmtKind::With { body, .. } => {
                [body, &[]]
            }
            StmtKind::Def(def) => [&def.body, &[]],
            _ => [&[], &[]],
        };
        let height = 1 + blocks.into_iter().flatten().map(|s| s.height).max().unwrap_or(0);
        if usize::from(height) > MAX_DEPTH {
            return Err(too_deep("statements", MAX_DEPTH).at(&span));
        }
        Ok(Stmt { kind, span, height })
    }

    /// Levels of statements inside each other; 1 for a simple one.
    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}
