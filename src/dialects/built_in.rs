//! What is built in: the tables of all dialects here, their classes and their derivatives, and the table of ops made of them once.
//! The one file that knows all dialects; the table of ops knows none, and no dialect knows this file.

use super::grads::Grads;
use super::{
    Registry, aten, fusion, loops, mkldnn, prepacked, prim, quantized, torchaudio, torchvision, transformers,
};
use crate::diag::Source;
use std::sync::{Arc, LazyLock};

static BUILTIN: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::with_builtins()));

impl Registry {
    /// The built-in ops, made once.
    pub fn builtin() -> Arc<Registry> {
        Arc::clone(&BUILTIN)
    }

    /// Whether nothing was added to the built-in ops, or to what is kept with them.
    pub fn is_builtin(&self) -> bool {
        Arc::ptr_eq(&self.derived.0, &BUILTIN.derived.0)
    }

    /// A new table of the built-in ops, to add to.
    pub fn with_builtins() -> Registry {
        let mut registry = Registry::default();
        let tables = prim::TABLES
            .iter()
            .chain(fusion::TABLES)
            .chain(loops::TABLES)
            .chain(aten::TABLES)
            .chain(quantized::TABLES)
            .chain(torchvision::TABLES)
            .chain(torchaudio::TABLES)
            .chain(transformers::TABLES)
            .chain(prepacked::TABLES)
            .chain(mkldnn::TABLES);
        for table in tables {
            for def in *table {
                registry.add(*def);
            }
        }
        let classes =
            prepacked::CLASSES.iter().chain(quantized::packed::CLASSES).chain(fusion::layer::CLASSES);
        classes.for_each(|class| registry.add_class(*class));
        registry.declare_all();
        registry.grads = Grads::builtin();
        registry
    }
}

/// The files of derivatives.
const GRADS: &[(&str, &str)] = aten::GRADS;

static BUILTIN_GRADS: LazyLock<Grads> = LazyLock::new(|| {
    let mut grads = Grads::default();
    for (name, text) in GRADS {
        // A test reads every file; one that is wrong loses its cells, which a gradient would name.
        let _ = grads.add(&Source::new(*name, *text));
    }
    grads
});

impl Grads {
    /// The built-in ones.
    pub fn builtin() -> Grads {
        BUILTIN_GRADS.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_file_reads() {
        for (name, text) in GRADS {
            Grads::default().add(&Source::new(*name, *text)).expect(name);
        }
    }
}
