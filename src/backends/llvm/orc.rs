//! Machine code in memory: a safe face on LLVM's ORC JIT. All unsafe code of the CPU path stands here.
//!
//! Code is compiled to an object outside of ORC and only linked here, so that no LLVM context crosses
//! threads. Each kernel has its own resource tracker: dropping [`Code`] frees its memory.

#![allow(unsafe_code, reason = "ORC has a C interface, and machine code is called through a raw address")]

use crate::diag::{Diagnostic, Result};
use crate::resources::budget;
use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITAddObjectFileWithRT, LLVMOrcLLJITGetGlobalPrefix,
    LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITMangleAndIntern, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMJITSymbolGenericFlags, LLVMOrcAbsoluteSymbols,
    LLVMOrcCSymbolMapPair, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess,
    LLVMOrcDefinitionGeneratorRef, LLVMOrcDisposeMaterializationUnit, LLVMOrcJITDylibAddGenerator,
    LLVMOrcJITDylibCreateResourceTracker, LLVMOrcJITDylibDefine, LLVMOrcReleaseResourceTracker,
    LLVMOrcResourceTrackerRef, LLVMOrcResourceTrackerRemove,
};
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;

/// The signature of every kernel: arguments in slots of 8 bytes, first and last iteration of the parallel loop. The result is
/// 0, 1 more than the number of the condition that does not hold, or [`STOPPED`].
type Entry = unsafe extern "C" fn(*const u64, i64, i64) -> i64;

/// What a kernel gives that left its loops because its run must end.
pub(super) const STOPPED: i64 = -1;

/// The function that compiled loops call with the steps that they ran since they called it last. Where it gives something
/// other than 0, the kernel ends.
pub(super) const TAKE_STEPS: &str = "flambeau_take_steps";

/// See [`TAKE_STEPS`]. What is wrong is asked of the budget again by who called the kernel.
extern "C" fn take_steps(steps: i64) -> i64 {
    i64::from(budget::take_all_steps(steps.unsigned_abs()).is_err())
}

/// Why a kernel ended before its work was done.
pub(super) enum Left {
    /// A condition does not hold: its number.
    Condition(usize),
    /// The run must end.
    Stopped,
}

/// A JIT: memory for code, and names of functions that code may call.
pub(super) struct Jit {
    raw: LLVMOrcLLJITRef,
}

// SAFETY: LLJIT and its execution session are documented as thread-safe; all calls go through them.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

/// Lets the C library call a function when the process ends, before it destroys what was there when this was called: LLVM's state.
pub(super) fn at_exit(function: extern "C" fn()) {
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }
    // SAFETY: the C standard's function, declared as it is; what it is given is a function of this program, which takes nothing
    // and does not unwind.
    let refused = unsafe { atexit(function) } != 0;
    // Where the C library has no room for it, the process ends as it did before.
    debug_assert!(!refused, "the C library takes at least 32 functions");
}

/// Turns an LLVM error into ours and frees it.
fn check(error: LLVMErrorRef, what: &str) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is not null and is consumed exactly once here; the message is freed after copying.
    let message = unsafe {
        let raw = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(raw).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(raw);
        text
    };
    Err(Diagnostic::internal(format!("{what}: {message}")))
}

impl Jit {
    /// A JIT for this process. Code may call functions of the process's libraries (the C library's math).
    pub(super) fn new() -> Result<Arc<Jit>> {
        let mut raw: LLVMOrcLLJITRef = ptr::null_mut();
        // SAFETY: a null builder means the defaults; `raw` is only used when no error came.
        check(unsafe { LLVMOrcCreateLLJIT(&mut raw, ptr::null_mut()) }, "cannot start LLVM's JIT")?;
        let jit = Jit { raw };
        let mut generator: LLVMOrcDefinitionGeneratorRef = ptr::null_mut();
        // SAFETY: the JIT is alive; the generator is handed over to its dylib at once.
        unsafe {
            let prefix = LLVMOrcLLJITGetGlobalPrefix(jit.raw);
            let error = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut generator,
                prefix,
                None,
                ptr::null_mut(),
            );
            check(error, "cannot search the process for functions")?;
            LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit.raw), generator);
        }
        jit.define(TAKE_STEPS, take_steps as *const () as u64)?;
        Ok(Arc::new(jit))
    }

    /// Lets code call a function of this program by a name.
    fn define(&self, name: &str, address: u64) -> Result<()> {
        let name = CString::new(name).map_err(|_| Diagnostic::internal("a symbol with a zero byte"))?;
        let flags = LLVMJITSymbolFlags {
            GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
            TargetFlags: 0,
        };
        // SAFETY: the JIT is alive; the interned name is handed over to the unit, and the unit to the dylib, which takes it
        // where no error comes.
        unsafe {
            let interned = LLVMOrcLLJITMangleAndIntern(self.raw, name.as_ptr());
            let symbol = LLVMJITEvaluatedSymbol { Address: address, Flags: flags };
            let mut pair = LLVMOrcCSymbolMapPair { Name: interned, Sym: symbol };
            let unit = LLVMOrcAbsoluteSymbols(&mut pair, 1);
            let error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(self.raw), unit);
            if !error.is_null() {
                LLVMOrcDisposeMaterializationUnit(unit);
            }
            check(error, "cannot name a function for compiled code")
        }
    }

    /// Links an object and finds the function `symbol` in it. Symbols must differ between objects.
    pub(super) fn link(self: &Arc<Jit>, object: &[u8], symbol: &str) -> Result<Code> {
        let name = CString::new(symbol).map_err(|_| Diagnostic::internal("a symbol with a zero byte"))?;
        // SAFETY: the buffer copies `object`, whose pointer and length belong together, and is consumed by the
        // call that adds it; the tracker belongs to this JIT, which `Code` keeps alive.
        unsafe {
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                name.as_ptr(),
            );
            let tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(self.raw));
            let mut code = Code { jit: Arc::clone(self), tracker, entry: never };
            check(LLVMOrcLLJITAddObjectFileWithRT(self.raw, tracker, buffer), "cannot load machine code")?;
            let mut address = 0;
            check(LLVMOrcLLJITLookup(self.raw, &mut address, name.as_ptr()), "cannot link machine code")?;
            if address == 0 {
                return Err(Diagnostic::internal(format!("machine code without its function {symbol}")));
            }
            // The one place where an address becomes a function: emitted with exactly this signature.
            code.entry = std::mem::transmute::<usize, Entry>(address as usize);
            Ok(code)
        }
    }
}

impl Drop for Jit {
    fn drop(&mut self) {
        // SAFETY: every `Code` holds an `Arc` of the JIT, so none of its code is left.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.raw) };
        // There is nothing left to report it to.
        let _ = check(error, "cannot stop LLVM's JIT");
    }
}

/// Stands in an entry until it is linked.
unsafe extern "C" fn never(_: *const u64, _: i64, _: i64) -> i64 {
    0
}

/// A linked kernel.
pub(super) struct Code {
    jit: Arc<Jit>,
    tracker: LLVMOrcResourceTrackerRef,
    entry: Entry,
}

// SAFETY: the code is immutable once linked, and the tracker is used only in `drop`.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

/// Arguments of a call, each in 8 bytes. Addresses in it stay valid as long as `'a`.
pub(super) struct Slots<'a> {
    pub(super) slots: &'a [u64],
}

impl Code {
    /// Runs iterations `begin..end` of the kernel. The error says why it ended before its work was done.
    ///
    /// # Safety
    /// `slots` must hold what the kernel's parameters demand; buffers must hold every element that these
    /// iterations touch, written ones must not be accessed by other threads during that time.
    pub(super) unsafe fn call(&self, slots: &Slots<'_>, begin: i64, end: i64) -> Result<(), Left> {
        // SAFETY: the caller's promise; the tracker keeps the code alive.
        match unsafe { (self.entry)(slots.slots.as_ptr(), begin, end) } {
            0 => Ok(()),
            STOPPED => Err(Left::Stopped),
            condition => Err(Left::Condition(condition.unsigned_abs() as usize - 1)),
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the tracker was made by this JIT, which is alive, and nothing runs the code any more.
        let error = unsafe { LLVMOrcResourceTrackerRemove(self.tracker) };
        let _ = check(error, "cannot free machine code");
        // SAFETY: released once.
        unsafe { LLVMOrcReleaseResourceTracker(self.tracker) };
        debug_assert!(!self.jit.raw.is_null());
    }
}
