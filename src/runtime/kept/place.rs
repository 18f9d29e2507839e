//! Where something is kept that was made of graphs, or is to be put: with the constants and sources that its bytes refer to.

use super::constants::{Constants, Outer};
use crate::backends::cache::{DiskCache, Key};
use crate::ir::bytecode::Outside;
use crate::tensor::Moment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A place in a cache, by all that what is there is made of.
pub struct Place {
    /// Where it is.
    pub cache: Arc<DiskCache>,
    /// Under which it is found.
    pub key: Key,
    /// For people.
    pub name: String,
    /// What its bytes refer to and was there before it was made.
    pub constants: Constants,
}

/// What stands before the bytes.
#[derive(Serialize, Deserialize)]
struct Head<H> {
    outer: Outer,
    own: H,
    /// How many bytes come before those of new constants.
    bytes: usize,
}

impl Place {
    /// What is there, if it is made of the constants that are here; `decode` gets what stood with it, its bytes and what these refer
    /// to. What it finds to be no such thing counts as damaged.
    pub fn read<H: DeserializeOwned, T>(
        &self,
        decode: impl FnOnce(H, &[u8], &Outside) -> Option<T>,
    ) -> Option<T> {
        let file = self.cache.get(&self.key)?;
        let Some(found) = self.decoded(&file, decode) else {
            self.cache.spoiled();
            return None;
        };
        if found.is_none() {
            self.cache.refused();
        }
        found
    }

    /// None for what is no such thing, and within that for what is made of other constants.
    #[expect(clippy::option_option, reason = "the two say different things of what was read")]
    fn decoded<H: DeserializeOwned, T>(
        &self,
        file: &[u8],
        decode: impl FnOnce(H, &[u8], &Outside) -> Option<T>,
    ) -> Option<Option<T>> {
        let (length, rest) = file.split_first_chunk::<4>()?;
        let (head, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let head: Head<H> = serde_json::from_slice(head).ok()?;
        if !self.constants.are_those_of(&head.outer)? {
            return Some(None);
        }
        let (bytes, rest) = rest.split_at_checked(head.bytes)?;
        let outside = self.constants.with_new(&head.outer, rest)?;
        decode(head.own, bytes, &outside).map(Some)
    }

    /// Puts something there: what stands with it, and its bytes, which refer to `grown` and were made since a moment. The error says why
    /// it is not kept; that the folder does not allow it is counted by the cache.
    pub fn write<H: Serialize>(
        &self,
        own: H,
        bytes: &[u8],
        (grown, since): (&Outside, Moment),
    ) -> Result<(), &'static str> {
        let (outer, content) = self.constants.new_in(grown, since)?;
        let head = serde_json::to_vec(&Head { outer, own, bytes: bytes.len() });
        let head = head.map_err(|_| "what passes did cannot be written")?;
        let length = u32::try_from(head.len()).map_err(|_| "what passes did is too long")?;
        let file = [&length.to_le_bytes()[..], &head, bytes, &content].concat();
        self.cache.put(&self.key, &self.name, &file);
        Ok(())
    }
}
