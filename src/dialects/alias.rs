//! Further names and overloads of a row: PyTorch calls one function by several names (`absolute` is `abs`), and gives it numbers in
//! the place of tensors. Each is a schema like the row's own, with the forms that are derived from it; what it computes is defined
//! once. Which name a pass prefers is not known here.

/// A further name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    pub(super) name: &'static str,
    pub(super) inplace: bool,
    pub(super) out: bool,
}

impl Alias {
    /// `absolute`, with the in-place and `out` forms that the row itself has.
    pub const fn new(name: &'static str) -> Alias {
        Alias { name, inplace: true, out: true }
    }

    /// PyTorch has no in-place form under this name.
    pub const fn functional(mut self) -> Alias {
        self.inplace = false;
        self
    }

    /// PyTorch has no `out` form under this name.
    pub const fn without_out(mut self) -> Alias {
        self.out = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::dialects::{Registry, Variant};
    use crate::ir::Symbol;

    #[test]
    fn names_share_a_row_and_have_the_forms_that_are_said() {
        let registry = Registry::builtin();
        let forms = |name: &str| -> Vec<Variant> {
            registry
                .overloads(Symbol::new(name))
                .iter()
                .filter(|op| op.is_built())
                .map(|op| op.variant())
                .collect()
        };
        assert_eq!(forms("aten::negative"), [Variant::Plain, Variant::Out]);
        assert_eq!(forms("aten::negative_"), [Variant::InPlace]);
        assert_eq!(forms("aten::special_erf"), [Variant::Plain, Variant::Out]);
        assert!(forms("aten::special_erf_").is_empty());
        let row = &registry.overloads(Symbol::new("aten::negative"))[0];
        assert_eq!(row.def().alias_of, Some("neg"));
        assert_eq!(row.schema_text(), "aten::negative(Tensor self) -> Tensor");
    }

    #[test]
    fn overloads_share_a_row_and_have_forms_of_their_own() {
        let registry = Registry::builtin();
        let texts = |name: &str| -> Vec<String> {
            let all = registry.overloads(Symbol::new(name)).iter();
            all.filter(|op| op.is_built()).map(|op| op.schema_text().to_string()).collect()
        };
        let shifts = texts("aten::bitwise_left_shift");
        assert_eq!(shifts[1], "aten::bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor");
        assert_eq!(shifts[2], "aten::bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor");
        let outs = shifts.iter().filter(|text| text.contains("_out("));
        assert_eq!((shifts.len(), outs.count()), (6, 3));
        // A number cannot be written to.
        assert_eq!(texts("aten::bitwise_left_shift_").len(), 2);
        assert_eq!(texts("aten::special_zeta").len(), 6);
    }

    /// What a row says of two tensors, and how it is differentiated, may not be true of a tensor and a number.
    #[test]
    fn rows_of_several_overloads_state_no_facts() {
        for op in Registry::builtin().iter().filter(|op| !op.def().overloads.is_empty()) {
            let def = op.def();
            assert!(def.facts.is_empty() && def.grad.is_none(), "{}", op.schema_text());
        }
    }

    /// A name that stands for another names one that is there, with no other after it.
    #[test]
    fn no_name_is_of_a_name() {
        let registry = Registry::builtin();
        for op in registry.iter() {
            let Some(other) = op.def().alias_of else { continue };
            let others = registry.overloads(Symbol::new(&format!("{}::{other}", op.name().namespace())));
            assert!(!others.is_empty(), "{} is not a name of {other}", op.schema_text());
            assert!(others.iter().all(|op| op.def().alias_of.is_none()), "{}", op.schema_text());
        }
    }
}
