//! Modules on disk: what code was compiled to, and what the passes that come before calls made of that, so that a second
//! process neither parses nor compiles nor runs them (docs/cache.md).
//!
//! A compiled module is found by all that it is made of: the sources, the constants and the classes of an archive, or a source by itself. What passes made of
//! it is found by that and the passes, and has the functions that they changed. Passes that ask for the instance or read elements of
//! constants are noticed: the first have no place here, and the others are made of those elements alone.

use super::constants::{Constants, asked_machine};
use super::place::Place;
use crate::backends::cache::{self, DiskCache, Key, Kind};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::frontend::archive::{Code, Compiled};
use crate::ir::bytecode::{self, Outside};
use crate::ir::{Module, Symbol};
use crate::passes::Pipeline;
use crate::passes::manager::Settings;
use crate::tensor::Moment;
use crate::value::Object;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;

/// Has compiled modules of archives and sources, and keeps those that are not there.
pub struct Keeper {
    cache: Arc<DiskCache>,
    origin: RefCell<Option<Origin>>,
}

/// What a module was compiled from: what is made of it is found by that.
pub struct Origin {
    cache: Arc<DiskCache>,
    key: Key,
    name: String,
    outside: Outside,
}

/// What stands with the functions that passes changed.
#[derive(Serialize, Deserialize)]
struct Passed {
    /// Functions that are gone.
    removed: Vec<String>,
}

impl Keeper {
    /// Of the cache of this process, if there is one. Modules over other ops than the built-in ones are not kept.
    pub fn installed(registry: &Registry) -> Option<Keeper> {
        let cache = cache::installed(Kind::Modules)?;
        if !registry.is_builtin() {
            cache.unkept("ops, rules or lowerings were added to the built-in ones");
            return None;
        }
        Some(Keeper::in_cache(cache))
    }

    /// Of a cache of [`Kind::Modules`], for modules over the built-in ops.
    pub fn in_cache(cache: Arc<DiskCache>) -> Keeper {
        Keeper { cache, origin: RefCell::default() }
    }

    /// What the module that was asked for is made of, where that is kept.
    pub fn into_origin(self) -> Option<Origin> {
        self.origin.into_inner()
    }

    fn place(&self, code: &Code<'_>) -> Result<Place, &'static str> {
        let mut outside = Outside { sources: code.sources.to_vec(), ..Outside::default() };
        let constants = bytecode::write_constants(code.constants, &mut outside).ok_or(OBJECTS)?;
        let outside = Constants::of(outside)?;
        let (version, elements) = (code.version.to_le_bytes(), outside.digest()?);
        let mut parts = vec![&version[..], &constants, &elements];
        parts.extend(code.classes.iter().map(String::as_bytes));
        // What follows are sources, and no class has an empty name.
        parts.push(&[]);
        parts.extend(code.sources.iter().flat_map(|s| [s.name().as_bytes(), s.text().as_bytes()]));
        let key = Key::of_parts(Kind::Modules, &parts);
        let source = || code.sources.first().map(|source| source.name().to_string());
        let name = code.classes.last().cloned().or_else(source).unwrap_or_default();
        Ok(Place { cache: Arc::clone(&self.cache), key, name, constants: outside })
    }

    fn found(&self, place: &Place, outside: &Outside, module: &Module) {
        let (cache, name) = (Arc::clone(&self.cache), place.name.clone());
        let outside = Outside { lists: bytecode::lists_of(module), ..outside.clone() };
        *self.origin.borrow_mut() = Some(Origin { cache, key: place.key, name, outside });
    }
}

impl Compiled for Keeper {
    fn module(&self, code: &Code<'_>, compile: Box<dyn FnOnce() -> Result<Module> + '_>) -> Result<Module> {
        let place = match self.place(code) {
            Ok(place) => place,
            Err(why) => {
                self.cache.unkept(why);
                return compile();
            }
        };
        let there =
            place.read(|(), bytes, outside| Some((bytecode::read_module(bytes, outside)?, outside.clone())));
        if let Some((module, outside)) = there {
            self.found(&place, &outside, &module);
            return Ok(module);
        }
        let since = Moment::now();
        let module = compile()?;
        let mut outside = place.constants.outside().clone();
        let kept = bytecode::write_module(&module, &mut outside).ok_or(OBJECTS).and_then(|bytes| {
            let read = bytecode::read_module(&bytes, &outside).ok_or(UNLIKE)?;
            place.write((), &bytes, (&outside, since)).map(|()| read)
        });
        // What a second process reads is what runs here too: passes name new values by what was named before, and their plans are
        // found by names.
        Ok(match kept {
            Ok(read) => {
                self.found(&place, &outside, &read);
                read
            }
            Err(why) => {
                self.cache.unkept(why);
                module
            }
        })
    }

    fn unkept(&self, reason: &'static str) {
        self.cache.unkept(reason);
    }
}

impl Origin {
    /// Where what passes make of the module is kept. None, with the reason counted, where it is not kept.
    pub(in crate::runtime) fn passed(&self, pipeline: &Pipeline, settings: &Settings) -> Option<Place> {
        let found = self.place(pipeline, settings);
        found.map_err(|why| self.cache.unkept(why)).ok()
    }

    fn place(&self, pipeline: &Pipeline, settings: &Settings) -> Result<Place, &'static str> {
        if !settings.limits.names().is_empty() || !settings.log.is_empty() {
            return Err("passes are limited or logged");
        }
        if settings.stop.is_some() || settings.record_steps {
            return Err("passes are examined");
        }
        let constants = Constants::of(self.outside.clone())?;
        let (text, machine) = (pipeline.to_text(), asked_machine());
        let mut parts = vec![&self.key.bytes()[..], text.as_bytes(), machine.as_bytes()];
        parts.extend(settings.roots.iter().map(|root| root.as_str().as_bytes()));
        let key = Key::of_parts(Kind::Modules, &parts);
        let name = format!("{} after passes", self.name);
        Ok(Place { cache: Arc::clone(&self.cache), key, name, constants })
    }
}

/// A module after passes, if it is there.
pub(in crate::runtime) fn read(place: &Place, plain: &Module) -> Option<Module> {
    place.read(|passed: Passed, bytes, outside| changed(plain, &passed, bytes, outside))
}

fn changed(plain: &Module, passed: &Passed, bytes: &[u8], outside: &Outside) -> Option<Module> {
    let changed = bytecode::read_module(bytes, outside)?;
    let mut module = plain.clone();
    for name in &passed.removed {
        module.functions.shift_remove(&Symbol::existing(name)?)?;
    }
    module.functions.extend(changed.functions);
    Some(module)
}

/// Keeps what passes made of a module since a moment, and gives it as a second process reads it. That it is not kept is counted, with the
/// reason.
pub(in crate::runtime) fn write(
    place: &Place,
    (plain, made): (&Module, &Module),
    settings: &Settings,
    since: Moment,
) -> Option<Module> {
    write_changes(place, (plain, made), settings, since).map_err(|why| place.cache.unkept(why)).ok()
}

fn write_changes(
    place: &Place,
    (plain, made): (&Module, &Module),
    settings: &Settings,
    since: Moment,
) -> Result<Module, &'static str> {
    if settings.extras.was_asked_for::<Object>() {
        return Err("passes read attributes of the module");
    }
    let mut outside = place.constants.outside().clone();
    let differ = bytecode::differences(plain, made, &mut outside.clone()).ok_or(OBJECTS)?;
    let Some(differ) = differ else {
        return Err("passes changed more than functions");
    };
    let removed: Vec<Symbol> =
        plain.functions.keys().filter(|name| !made.functions.contains_key(*name)).copied().collect();
    let order = plain.functions.keys().filter(|name| made.functions.contains_key(*name));
    let new = made.functions.keys().filter(|name| !plain.functions.contains_key(*name));
    if !order.chain(new).eq(made.functions.keys()) {
        return Err("passes changed the order of functions");
    }
    let functions = differ.iter().filter_map(|name| Some((*name, made.functions.get(name)?.clone())));
    let changes = Module { functions: functions.collect(), ..Module::default() };
    let bytes = bytecode::write_module(&changes, &mut outside).ok_or(OBJECTS)?;
    let passed = Passed { removed: removed.iter().map(|name| name.to_string()).collect() };
    let read = changed(plain, &passed, &bytes, &outside).ok_or(UNLIKE)?;
    place.write(passed, &bytes, (&outside, since)).map(|()| read)
}

const OBJECTS: &str = "it holds an object of a custom class";
const UNLIKE: &str = "its bytes cannot be read again";
