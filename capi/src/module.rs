//! Modules: loading, calling, saving.

#![allow(unsafe_code, reason = "C gives pointers; their requirements are stated in flambeau.h")]

use crate::handles::{self, Handle};
use crate::{guarded, operators, runs};
use engine::diag::{Diagnostic, Result};
use engine::dialects::Run;
use engine::frontend::archive::save as writer;
use engine::ir::Symbol;
use engine::resources::Once;
use engine::runtime::Program;
use engine::toolkit::{self, Entries};
use engine::tools::save;
use engine::value::{Object, Value};
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::ptr::null_mut;

/// A program as loaded, and as it runs.
pub(crate) struct Module {
    plain: Program,
    fast: Once<Entries>,
}

impl Module {
    fn new(plain: Program) -> *mut Module {
        toolkit::detach_parameters(&plain);
        Box::into_raw(Box::new(Module { plain, fast: Once::default() }))
    }

    /// The program that a function is called by: after the default passes, which run when it is first called. A pass that fails
    /// is the error of every call.
    fn fast(&self, class: Option<Symbol>, name: &str) -> Result<Program> {
        let entries = self.fast.get_or_make(|| {
            Ok(Entries::new(self.plain.clone(), runs::toolkit()?.parse_pipeline("default")?))
        })?;
        entries.of(class, name)
    }

    fn instance(&self) -> Result<&Object> {
        let instance = self.plain.instance();
        instance.ok_or_else(|| Diagnostic::input("a program of functions has no attributes"))
    }

    fn attribute(&self, path: &str) -> Result<Value> {
        let mut at = Value::Object(self.instance()?.clone());
        for name in path.split('.') {
            let Value::Object(object) = &at else {
                return Err(Diagnostic::input(format!(
                    "'{name}' of '{path}' is asked of a {}",
                    at.kind_name()
                )));
            };
            let found = object.get(Symbol::new(name));
            at = found.ok_or_else(|| {
                Diagnostic::input(format!("Module {} has no attribute '{name}'", object.class()))
            })?;
        }
        Ok(at)
    }

    /// Calls a method by its path, `encoder.forward`, or a function.
    fn call(&self, path: &str, arguments: Vec<Value>) -> Result<Value> {
        let Some((object, method)) = path.rsplit_once('.').filter(|_| self.plain.instance().is_some()) else {
            let program = self.fast(None, path)?;
            return runs::with_run(|run| program.run(path, arguments, run));
        };
        let Value::Object(object) = self.attribute(object)? else {
            return Err(Diagnostic::input(format!("'{object}' is not a module")));
        };
        let program = self.fast(Some(object.class()), method)?;
        runs::with_run(|run| program.run_on(&object, method, arguments, Vec::new(), run))
    }

    /// Sets `training` of the object and all beneath it whose class has it.
    fn train(&self, on: bool) -> Result<()> {
        let classes = self.plain.module();
        let mut work = vec![self.instance()?.clone()];
        let mut seen: Vec<usize> = Vec::new();
        while let Some(object) = work.pop() {
            if seen.contains(&object.id()) {
                continue;
            }
            seen.push(object.id());
            if classes.class(object.class()).is_some_and(|c| c.attribute("training").is_some()) {
                object.set(Symbol::new("training"), Value::Bool(on));
            }
            work.extend(object.fields().into_iter().filter_map(|(_, field)| match field {
                Value::Object(inner) => Some(inner),
                _ => None,
            }));
        }
        Ok(())
    }

    fn save(&self, path: &Path) -> Result<()> {
        let (registry, module) = (runs::registry()?, self.plain.module());
        let name = path.file_stem().map_or("archive".into(), |stem| stem.to_string_lossy());
        let bytes = match self.plain.instance() {
            None => save::save_function(registry, module, &name, &[])?,
            Some(object) => {
                let root = Value::Object(object.clone());
                let states = toolkit::saved_states(&self.plain, object, &Run::silent())?;
                let contents = writer::Contents {
                    module,
                    root: &root,
                    constants: Vec::new(),
                    states: &states,
                    extra: &[],
                    traced_inputs: None,
                    origin: &|_| None,
                };
                writer::save(registry, contents, &name, Vec::new())?
            }
        };
        std::fs::write(path, bytes).map_err(|e| Diagnostic::input(format!("{}: {e}", path.display())))
    }
}

/// # Safety
/// The pointer must be null or a living module.
unsafe fn living<'a>(handle: *const Module) -> Result<&'a Module> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| handles::null("the module"))
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_load(path: *const c_char) -> *mut Module {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let path = unsafe { handles::text(path, "the path") }?;
        let toolkit = runs::toolkit()?;
        runs::with_run(|run| toolkit.load_file(path.as_ref(), run)).map(Module::new)
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_load_bytes(
    bytes: *const u8,
    size: usize,
    name: *const c_char,
) -> *mut Module {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (bytes, name) =
            unsafe { (handles::bytes(bytes, size, "the program")?, handles::text(name, "the name")?) };
        let toolkit = runs::toolkit()?;
        let program = match std::str::from_utf8(bytes) {
            Ok(text) if !bytes.starts_with(b"PK") && !bytes.contains(&0) => {
                toolkit::load_text_with(name, text, toolkit.registry())
            }
            _ => runs::with_run(|run| toolkit::load_archive_with(bytes, run, toolkit.registry())),
        };
        program.map(Module::new)
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_module_save(module: *const Module, path: *const c_char) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let (module, path) = unsafe { (living(module)?, handles::text(path, "the path")?) };
        module.save(path.as_ref()).map(|()| 0)
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_module_call(
    module: *const Module,
    method: *const c_char,
    arguments: *const *const Handle,
    count: usize,
) -> *mut Handle {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (method, arguments) =
            unsafe { (handles::text(method, "the name")?, handles::values(arguments, count)?) };
        if module.is_null() {
            return operators::call(method, arguments).map(handles::handle);
        }
        // SAFETY: as above.
        let module = unsafe { living(module) }?;
        module.call(method, arguments).map(handles::handle)
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_module_attribute(
    module: *const Module,
    path: *const c_char,
) -> *mut Handle {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (module, path) = unsafe { (living(module)?, handles::text(path, "the path")?) };
        module.attribute(path).map(handles::handle)
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_module_train(module: *mut Module, training: c_int) -> c_int {
    // SAFETY: the caller's promise.
    guarded(-1, || unsafe { living(module) }?.train(training != 0).map(|()| 0))
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_module_free(module: *mut Module) {
    if !module.is_null() {
        // SAFETY: the module was made by `Module::new`, and C gives it back once.
        let owned = unsafe { Box::from_raw(module) };
        guarded((), || {
            drop(owned);
            Ok(())
        });
    }
}
