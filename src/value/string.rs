//! Text as a value: shared, immutable, charged to the run that made it.

use crate::resources::Charge;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Text. Clones share it.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    text: Characters,
    _charge: Charge,
}

/// Long text stays where it was written, as a copy would take as much again; short text is shared with constants and keys.
enum Characters {
    Shared(Arc<str>),
    Long(String),
}

/// Text of this many bytes is long.
const LONG_BYTES: usize = 1 << 12;
/// Bytes that a text takes besides its characters.
const HEAD_BYTES: usize = 64;

impl Text {
    /// The characters, to be shared with what is not a value.
    pub fn shared(&self) -> Arc<str> {
        match &self.0.text {
            Characters::Shared(text) => Arc::clone(text),
            Characters::Long(text) => Arc::from(text.as_str()),
        }
    }

    /// Whether both are one object.
    pub fn same(&self, other: &Text) -> bool {
        self.as_ptr() == other.as_ptr() && self.len() == other.len()
    }

    fn of(text: Characters, bytes: usize) -> Text {
        Text(Arc::new(Inner { text, _charge: Charge::taken(HEAD_BYTES + bytes) }))
    }
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Text {
        let bytes = text.len();
        Text::of(Characters::Shared(text), bytes)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::from(Arc::<str>::from(text))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Text {
        Text::from(text.as_str())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        let bytes = text.capacity();
        if text.len() < LONG_BYTES {
            Text::from(text.as_str())
        } else {
            Text::of(Characters::Long(text), bytes)
        }
    }
}

impl From<Box<str>> for Text {
    fn from(text: Box<str>) -> Text {
        Text::from(String::from(text))
    }
}

impl From<std::borrow::Cow<'_, str>> for Text {
    fn from(text: std::borrow::Cow<'_, str>) -> Text {
        Text::from(text.into_owned())
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        match &self.0.text {
            Characters::Shared(text) => text,
            Characters::Long(text) => text,
        }
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
