//! Constants that are objects: a list or dictionary that an attribute gives is made once for a program, wherever
//! the attribute stands. So a mutable default is one object for all calls, as in PyTorch.

use crate::diag::Result;
use crate::dialects::prim::constant;
use crate::ir::{Attr, Symbol, Type};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;

/// The containers among the constants of a program.
#[derive(Default)]
pub(super) struct Constants {
    /// By [`Attr::identity`]; the attribute is kept, so that the identity stays its own.
    made: Mutex<HashMap<usize, (Attr, Value)>>,
}

impl Constants {
    /// The value of a constant; see [`constant::value`].
    pub(super) fn value(&self, attrs: &[(Symbol, Attr)], ty: Option<&Type>) -> Result<Value> {
        let attr = attrs.iter().find(|(name, _)| *name == "value").map(|(_, attr)| attr);
        let Some((attr, identity)) = attr.and_then(|attr| Some((attr, attr.identity()?))) else {
            return constant::value(attrs, ty);
        };
        if let Some((_, value)) = self.made.lock().get(&identity) {
            return Ok(value.clone());
        }
        let value = constant::value(attrs, ty)?;
        self.made.lock().insert(identity, (attr.clone(), value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attribute_makes_one_list() {
        let constants = Constants::default();
        let attr = Attr::Ints([1, 2].into());
        let make = |attr: &Attr| {
            let attrs = [(Symbol::new("value"), attr.clone())];
            constants.value(&attrs, Some(&Type::list(Type::int()))).expect("a list")
        };
        assert!(make(&attr).is_same(&make(&attr)));
        assert!(!make(&attr).is_same(&make(&Attr::Ints([1, 2].into()))));
    }
}
