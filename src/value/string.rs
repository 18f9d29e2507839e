//! Text as a value: shared, immutable, charged to the run that made it.

use crate::resources::Charge;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Text. Clones share it.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    text: Arc<str>,
    _charge: Charge,
}

/// Bytes that a text takes besides its characters.
const HEAD_BYTES: usize = 64;

impl Text {
    /// The characters, to be shared with what is no value.
    pub fn shared(&self) -> &Arc<str> {
        &self.0.text
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Text {
        let charge = Charge::taken(HEAD_BYTES + text.len());
        Text(Arc::new(Inner { text, _charge: charge }))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::from(Arc::<str>::from(text))
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        **self == **other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Text) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::resources::{Budget, Limits};
    use crate::value::Value;
    use std::sync::Arc;

    #[test]
    fn text_and_lists_are_charged_while_they_live() {
        let budget = Arc::new(Budget::new(Limits { bytes: Some(10_000), ..Limits::default() }));
        let _installed = budget.install();
        let list = Value::list(crate::ir::Type::str(), vec![Value::str("x".repeat(1000))]);
        assert!((1000..2000).contains(&budget.live_bytes()), "{}", budget.live_bytes());
        let items = list.to_list().expect("a list");
        (0..20).for_each(|_| items.items_mut().push(Value::str("y".repeat(1000))));
        assert!(budget.check().expect_err("full").message().contains("memory limit"));
        drop(list);
        assert_eq!(budget.live_bytes(), 0);
    }
}
