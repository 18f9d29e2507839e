//! What all kernels of a backend share: the machine, the linker, and the cache on disk. Here kernels become linked code; what
//! calls it is not known here.

use super::ending::Compiling;
use super::generate::generate;
use super::machine::Machine;
use super::orc::{Code, Jit};
use super::symbol;
use crate::backends::cache::{self, DiskCache, Key, Kind};
use crate::diag::Result;
use crate::dialects::loops::Kernel;
use inkwell::targets::FileType;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What compiled kernels keep using.
pub(super) struct Shared {
    pub(super) machine: Machine,
    pub(super) jit: Arc<Jit>,
    /// Instead of the cache that is set for the process.
    pub(super) own: Option<Arc<DiskCache>>,
    /// Kernels that were compiled, both forms of them.
    pub(super) compiled: AtomicU64,
}

/// Linked code, and whether it came from the cache on disk.
pub(super) struct Linked {
    pub(super) code: Code,
    pub(super) cached: bool,
}

impl Shared {
    /// Compiles and links a kernel, or takes its code from the cache on disk.
    pub(super) fn plain(&self, kernel: &Kernel, key: &Key) -> Result<Linked> {
        self.link(kernel, &self.machine, key)
    }

    /// The same with stores that bypass the processor's caches.
    pub(super) fn streaming(&self, kernel: &Kernel) -> Result<Linked> {
        let machine = self.machine.streaming();
        self.link(kernel, &machine, &machine.key(kernel))
    }

    fn link(&self, kernel: &Kernel, machine: &Machine, key: &Key) -> Result<Linked> {
        let cache = self.own.clone().or_else(|| cache::installed(Kind::Kernels));
        if let Some(cache) = &cache
            && let Some(object) = cache.get(key)
        {
            match self.linked(object, key) {
                Ok(code) => return Ok(Linked { code, cached: true }),
                Err(_) => cache.spoiled(),
            }
        }
        let _compiling = Compiling::begin()?;
        let object = generate(kernel, machine, &symbol::of(key), FileType::Object)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let code = self.linked(object.clone(), key)?;
        if let Some(cache) = &cache {
            cache.put(key, &cache::describe(kernel), &object);
        }
        Ok(Linked { code, cached: false })
    }

    fn linked(&self, object: Vec<u8>, key: &Key) -> Result<Code> {
        let (object, name) = symbol::instance(object, key)?;
        self.jit.link(&object, &name)
    }
}
