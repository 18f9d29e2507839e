//! Constants and sources that graphs on disk refer to: what a key says of them, which of them passes read, and those that are new.
//! Knows tensors and texts; what the graphs are of is for others to know.

use crate::diag::Source;
use crate::ir::bytecode::Outside;
use crate::resources::{machine, pool};
use crate::tensor::{DType, Dims, Layout, Moment, Storage, Tensor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Of storages of at most this number of bytes the elements are part of the key, whether passes read them or not.
const SMALL: usize = 1 << 16;
/// Bytes that a call may read to find out whether what is kept is made of its weights, and bytes of new constants.
const MAX_BYTES: usize = 16 << 20;

/// What is outside of a graph before it changes.
pub struct Constants {
    outside: Outside,
    /// Of the tensors outside, each once.
    storages: Vec<Storage>,
    /// Of these, how often they were written.
    versions: Vec<u64>,
}

/// What stands on disk of constants and sources: those that are new, and of which elements what is kept was made.
#[derive(Default, Serialize, Deserialize)]
pub struct Outer {
    /// Storages whose elements were read, with digests.
    read: Vec<(usize, String)>,
    /// Bytes of the storages that are new.
    storages: Vec<usize>,
    /// Tensors that are new.
    tensors: Vec<NewTensor>,
    /// Sources that are new.
    sources: Vec<NewSource>,
}

/// A constant that was made.
#[derive(Serialize, Deserialize)]
struct NewTensor {
    /// Those before come first.
    storage: usize,
    dtype: String,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: usize,
}

/// A source that the graphs before do not refer to.
#[derive(Serialize, Deserialize)]
struct NewSource {
    name: String,
    first_line: usize,
    bytes: usize,
}

impl Constants {
    /// Those outside of graphs. The error says why what is made of them is not kept.
    pub fn of(outside: Outside) -> Result<Constants, &'static str> {
        if !outside.tensors.iter().all(|tensor| tensor.is_plain() && tensor.device().is_cpu()) {
            return Err("it has a constant that is not a plain tensor");
        }
        let mut storages: Vec<Storage> = Vec::new();
        for tensor in &outside.tensors {
            let storage = tensor.storage();
            if !storages.iter().any(|known| known.same(&storage)) {
                storages.push(storage);
            }
        }
        let versions = storages.iter().map(Storage::version).collect();
        Ok(Constants { outside, storages, versions })
    }

    /// What is outside, tensors and sources.
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// What a key says of them: where each lies, and what is in small storages.
    pub fn digest(&self) -> Result<Vec<u8>, &'static str> {
        let mut text = String::new();
        let mut small = Sha256::new();
        for tensor in &self.outside.tensors {
            let storage = tensor.storage();
            let at = self.storages.iter().position(|known| known.same(&storage)).unwrap_or_default();
            let Layout { sizes, strides, offset } = tensor.layout();
            text += &format!(
                "{at} {} {} {sizes:?} {strides:?} {offset} {}\n",
                tensor.dtype().name(),
                storage.nbytes(),
                tensor.requires_grad()
            );
        }
        for storage in self.storages.iter().filter(|storage| storage.nbytes() <= SMALL) {
            small.update(&storage.read().map_err(|_| UNREADABLE)?[..]);
        }
        Ok([text.as_bytes(), &small.finalize()].concat())
    }

    /// Whether the weights are the same of which something was made.
    pub fn are_those_of(&self, outer: &Outer) -> Option<bool> {
        for (at, expected) in &outer.read {
            if digest(self.storages.get(*at)?)? != *expected {
                return Some(false);
            }
        }
        Some(true)
    }

    /// What is outside of something that was kept, whose new constants and sources these bytes are.
    pub fn with_new(&self, outer: &Outer, mut rest: &[u8]) -> Option<Outside> {
        let mut storages = self.storages.clone();
        for length in &outer.storages {
            storages.push(Storage::from_bytes(cut(&mut rest, *length)?).ok()?);
        }
        let mut outside = self.outside.clone();
        for new in &outer.tensors {
            let layout = Layout {
                sizes: Dims::from_slice(&new.sizes),
                strides: Dims::from_slice(&new.strides),
                offset: new.offset,
            };
            let fits = layout.sizes.len() == layout.strides.len();
            let storage = storages.get(new.storage).filter(|_| fits)?.clone();
            outside.tensors.push(Tensor::from_storage(storage, DType::from_name(&new.dtype)?, layout).ok()?);
        }
        for NewSource { name, first_line, bytes } in &outer.sources {
            let text = std::str::from_utf8(cut(&mut rest, *bytes)?).ok()?;
            outside.sources.push(Source::starting_at(name, text, *first_line));
        }
        rest.is_empty().then_some(outside)
    }

    /// What is outside now and was not before, with its bytes, and what was read since a moment. The error says why what was made is not
    /// kept.
    pub fn new_in(&self, grown: &Outside, since: Moment) -> Result<(Outer, Vec<u8>), &'static str> {
        let mut outer = Outer::default();
        let mut content = self.new_constants(grown, &mut outer)?;
        for source in &grown.sources[self.outside.sources.len()..] {
            let (name, bytes) = (source.name().to_string(), source.text().len());
            outer.sources.push(NewSource { name, first_line: source.first_line(), bytes });
            content.extend_from_slice(source.text().as_bytes());
        }
        if content.len() > MAX_BYTES {
            return Err("it has large constants that were computed");
        }
        self.what_was_read(since, &mut outer)?;
        if self.storages.iter().zip(&self.versions).any(|(storage, version)| storage.version() != *version) {
            return Err("a constant was written meanwhile");
        }
        Ok((outer, content))
    }

    /// Adds the tensors that are new; gives the content of their storages.
    fn new_constants(&self, grown: &Outside, outer: &mut Outer) -> Result<Vec<u8>, &'static str> {
        let mut storages = self.storages.clone();
        let mut content = Vec::new();
        for tensor in &grown.tensors[self.outside.tensors.len()..] {
            if !tensor.is_plain() || !tensor.device().is_cpu() || tensor.requires_grad() {
                return Err("it has a constant that is not a plain tensor");
            }
            let storage = tensor.storage();
            let at = match storages.iter().position(|known| known.same(&storage)) {
                Some(at) => at,
                None => {
                    let bytes = storage.read().map_err(|_| UNREADABLE)?;
                    outer.storages.push(bytes.len());
                    content.extend_from_slice(&bytes);
                    storages.push(storage);
                    storages.len() - 1
                }
            };
            if content.len() > MAX_BYTES {
                return Err("it has large constants that were computed");
            }
            let Layout { sizes, strides, offset } = tensor.layout();
            let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
            let dtype = tensor.dtype().name().to_string();
            outer.tensors.push(NewTensor { storage: at, dtype, sizes, strides, offset });
        }
        Ok(content)
    }

    /// Adds the larger storages whose elements were read.
    fn what_was_read(&self, since: Moment, outer: &mut Outer) -> Result<(), &'static str> {
        let mut bytes = 0usize;
        for (at, storage) in self.storages.iter().enumerate() {
            if storage.nbytes() <= SMALL || !since.knows_read(storage) {
                continue;
            }
            bytes = bytes.saturating_add(storage.nbytes());
            if bytes > MAX_BYTES {
                return Err("passes read the elements of large constants");
            }
            outer.read.push((at, digest(storage).ok_or(UNREADABLE)?));
        }
        Ok(())
    }
}

const UNREADABLE: &str = "memory of a constant cannot be opened";

/// The first bytes, which are taken away.
fn cut<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(first)
}

fn digest(storage: &Storage) -> Option<String> {
    let bytes = storage.read().ok()?;
    Some(Sha256::digest(&bytes[..]).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What passes may ask of the machine.
pub fn asked_machine() -> String {
    format!("{}, {} threads", machine::features(), pool::threads())
}
