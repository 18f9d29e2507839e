//! The names of primitives: `loop::tanh` is `Unary::Tanh`. One table for decoding, building and rows.

use super::Prim;
use crate::dialects::constraint::Law;
use crate::dialects::scalar::{Binary, Compare, Unary};
use crate::dialects::structure::Structure;
use crate::dialects::{Effects, OpDef, control};

/// What every op of the dialect obeys.
pub(super) const LAWS: &[Law] = &[Law::Structure(Structure::Kernel)];

/// An op that computes a number and nothing else.
pub(super) const fn primitive(schema: &'static str, doc: &'static str) -> OpDef {
    control(schema).effects(Effects::NONE).laws(LAWS).doc(doc)
}

macro_rules! table {
    ($($(#[$doc:meta])* $function:ident $find:ident $Enum:ident $ROWS:ident $what:literal { $($Variant:ident $name:literal),* $(,)? })*) => {
        $(
            $(#[$doc])*
            pub fn $function(op: $Enum) -> &'static str {
                match op { $($Enum::$Variant => $name),* }
            }

            /// The primitive of a name.
            pub(super) fn $find(name: &str) -> Option<$Enum> {
                match name { $($name => Some($Enum::$Variant),)* _ => None }
            }

            /// Their rows.
            pub(super) static $ROWS: &[OpDef] =
                &[$(primitive(concat!("loop::", $name, "(...) -> ..."), $what)),*];
        )*
    };
}

table! {
    /// The name of a unary primitive.
    unary_name find_unary Unary UNARY "The scalar primitive of that name of one number." {
        Neg "neg", Abs "abs", Not "not", Exp "exp", Exp2 "exp2", Expm1 "expm1", Log "log", Log2 "log2",
        Log10 "log10", Log1p "log1p", Sin "sin", Cos "cos", Tan "tan", Asin "asin", Acos "acos", Atan "atan",
        Sinh "sinh", Cosh "cosh", Tanh "tanh", Asinh "asinh", Acosh "acosh", Atanh "atanh", Sqrt "sqrt",
        Rsqrt "rsqrt", Erf "erf", Erfc "erfc", Lgamma "lgamma", Floor "floor", Ceil "ceil", Round "round",
        Trunc "trunc", Real "real", Imag "imag", Conj "conj",
    }
    /// The name of a binary primitive.
    binary_name find_binary Binary BINARY "The scalar primitive of that name of two numbers of one type." {
        Add "add", Sub "sub", Mul "mul", Div "div", Rem "rem", Pow "pow", Atan2 "atan2", Min "min", Max "max",
        And "and", Or "or", Xor "xor", Shl "shl", Shr "shr", CopySign "copysign", Hypot "hypot",
        NextAfter "nextafter",
    }
    /// The name of a comparison.
    compare_name find_compare Compare COMPARE "Compares two numbers of one type." { Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge" }
}

/// The name of a primitive: its op kind without `loop::`.
pub fn prim_name(prim: &Prim) -> &'static str {
    match prim {
        Prim::Const(_) => "const",
        Prim::Unary(op, _) => unary_name(*op),
        Prim::Binary(op, ..) => binary_name(*op),
        Prim::Fma(..) => "fma",
        Prim::Compare(op, ..) => compare_name(*op),
        Prim::Select(..) => "select",
        Prim::Convert(_) => "convert",
        Prim::Bitcast(_) => "bitcast",
    }
}
