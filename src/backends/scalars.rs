//! Kernels of loops over numbers: called with numbers and lists, they do the iterations that are left of a loop, or nothing.
//!
//! Lists are copied in and, where the kernel did its work, copied back. So a kernel that ends by a condition that does not hold
//! has no effect, and the caller goes on as if it had not run. Nothing here knows how a program is interpreted.

use super::{Arg, Backend, Buffer, Executable, FusionCounters, Launch, Memory};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::loops::{self, Elem, Ty};
use crate::ir::Graph;
use crate::lowering::scalars::{FULL, ListUse, ScalarLoop, Takes};
use crate::passes::loop_nests::check_bounds;
use crate::resources::{Once, budget, host, memory};
use crate::value::{List, Value};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements that a list that grows has room for at first, beyond twice those that it has.
const ROOM: usize = 256;

/// The kernel of a loop.
pub struct ScalarKernel {
    name: String,
    lowered: ScalarLoop,
    /// Whether the kernel may be another than the lowering's: its accesses are checked then.
    checked: bool,
    /// None for the one that runs kernels on the CPU, which is not made before something is compiled.
    backend: Option<Arc<dyn Backend>>,
    counters: Arc<FusionCounters>,
    compiled: Once<Arc<dyn Executable>>,
    /// Elements that a list had to have room for.
    room: AtomicUsize,
}

/// The iterations that are left of a loop.
pub struct RemainingLoop<'a> {
    /// How many iterations there are at most.
    pub trips: i64,
    /// The number of the next one.
    pub trip: i64,
    /// Whether there is one.
    pub goes_on: bool,
    /// What it gets.
    pub carried: &'a [Value],
    /// Numbers from around the loop.
    pub outer: &'a [Value],
    /// Lists from around the loop.
    pub lists: &'a [List],
}

/// Elements of a list as a kernel sees them.
struct Elements {
    bytes: memory::Scratch<u64>,
    length: usize,
    room: usize,
}

impl ScalarKernel {
    /// The kernel of a lowered loop, to be run by a backend, or by that of the CPU without one. Nothing is compiled yet.
    pub fn new(
        name: String,
        lowered: ScalarLoop,
        backend: Option<Arc<dyn Backend>>,
        counters: Arc<FusionCounters>,
    ) -> ScalarKernel {
        let (compiled, room) = (Once::default(), AtomicUsize::new(ROOM));
        ScalarKernel { name, lowered, checked: false, backend, counters, compiled, room }
    }

    /// The same with another kernel, which takes the same. Fails with `Verify` where it does not.
    pub fn with_kernel(mut self, kernel: &Graph) -> Result<ScalarKernel> {
        let (own, other) = (loops::decode(&self.lowered.kernel)?, loops::decode(kernel)?);
        let types = |kernel: &loops::Kernel| kernel.params.iter().map(|p| p.ty).collect::<Vec<Ty>>();
        let writes = own.params.iter().zip(&other.params).any(|(own, other)| other.written && !own.written);
        if types(&own) != types(&other) || writes {
            let message =
                format!("the kernel '{}' does not take and store to what its loop gives", self.name);
            return Err(Diagnostic::verify(message));
        }
        self.lowered.kernel = kernel.clone();
        self.checked = true;
        Ok(self)
    }

    /// Whether it is compiled.
    pub fn is_ready(&self) -> bool {
        self.compiled.get().is_some()
    }

    /// Does what is left of a loop and gives the numbers that it carries after the last iteration. None, with nothing changed,
    /// where the interpreter must do it, which is counted with its reason. Fails where the run must end.
    pub fn run(&self, rest: &RemainingLoop<'_>) -> Result<Option<Vec<Value>>> {
        let executable = match self.compiled.get_or_make(|| self.compile()) {
            Ok(executable) => executable,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(error),
        };
        loop {
            let room = self.room.load(Ordering::Relaxed);
            let lists = match self.lists(rest, room) {
                Ok(lists) => lists,
                // Where there is no memory for copies, the interpreter needs none.
                Err(error) => {
                    self.counters.loop_ran(&self.name, Some(error.message()));
                    return Ok(None);
                }
            };
            let (done, steps) = budget::steps_of(|| self.launch(&**executable, rest, lists));
            let error = match done {
                Ok(values) => {
                    self.counters.loop_ran(&self.name, None);
                    return Ok(Some(values));
                }
                Err(error) => error,
            };
            // Its work is undone and will be done again.
            budget::give_back_all_steps(steps);
            match error.kind() {
                ErrorKind::Raised if error.message() == FULL => {
                    self.room.store(room.saturating_mul(4), Ordering::Relaxed);
                }
                ErrorKind::Raised => {
                    self.counters.loop_ran(&self.name, Some(error.message()));
                    return Ok(None);
                }
                _ => return Err(error),
            }
        }
    }

    fn compile(&self) -> Result<Arc<dyn Executable>> {
        let mut kernel = self.lowered.kernel.clone();
        if self.checked {
            check_bounds(&mut kernel);
        }
        let backend = self.backend.clone().map_or_else(super::default_cpu, Ok)?;
        let compiled = loops::decode(&kernel).and_then(|kernel| backend.compile(&kernel));
        let refused = compiled.as_ref().err().map(|error| error.message().to_string());
        self.counters.loop_compiled(&self.name, refused.as_deref());
        compiled
    }

    /// Copies of the lists, those that grow with room for more.
    fn lists(&self, rest: &RemainingLoop<'_>, room: usize) -> Result<SmallVec<[Elements; 2]>> {
        let writes = self.lowered.lists.iter().any(|used| used.written);
        let copy = |(used, list): (&ListUse, &List)| {
            if writes && rest.lists.iter().filter(|other| other.same(list)).count() > 1 {
                return Err(Diagnostic::runtime("two lists of the loop are the same list"));
            }
            Elements::of(list, used.elem, if used.grows { room } else { 0 })
        };
        self.lowered.lists.iter().zip(rest.lists).map(copy).collect()
    }

    fn launch(
        &self,
        executable: &dyn Executable,
        rest: &RemainingLoop<'_>,
        mut lists: SmallVec<[Elements; 2]>,
    ) -> Result<Vec<Value>> {
        let lowered = &self.lowered;
        let mut results: SmallVec<[u64; 8]> = SmallVec::from_elem(0, lowered.carried.len());
        let mut grown: SmallVec<[i64; 2]> = lists.iter().map(|list| list.length as i64).collect();
        let mut args: SmallVec<[Arg; 16]> = SmallVec::new();
        let mut counts: SmallVec<[i64; 8]> = SmallVec::new();
        for takes in &lowered.takes {
            let whole = |memory: usize, elements: usize| Arg::Buffer(Buffer::whole(memory, elements));
            let (first_result, first_grown) = (lists.len(), lists.len() + results.len());
            args.push(match *takes {
                Takes::Trips => Arg::Int(rest.trips),
                Takes::Trip => Arg::Int(rest.trip),
                Takes::GoesOn => Arg::Bool(rest.goes_on),
                Takes::Carried(n) => number(rest.carried.get(n), lowered.carried[n])?,
                Takes::Outer(n) => number(rest.outer.get(n), lowered.outer[n].1)?,
                Takes::Elements(n) => whole(n, lists[n].room),
                Takes::Length(n) => Arg::Int(lists[n].length as i64),
                Takes::Room(n) => Arg::Int(lists[n].room as i64),
                Takes::Grown(n) => whole(first_grown + n, 1),
                Takes::Result(n) => whole(first_result + n, 1),
            });
            if let Some(Arg::Buffer(buffer)) = args.last() {
                counts.push(buffer.end as i64);
            }
        }
        if self.checked {
            args.extend(counts.into_iter().map(Arg::Int));
        }
        let memory = (lists.iter_mut().map(|list| bytemuck::cast_slice_mut(&mut list.bytes[..])))
            .chain(results.iter_mut().map(bytemuck::bytes_of_mut))
            .chain(grown.iter_mut().map(bytemuck::bytes_of_mut));
        let memory = memory.map(Memory::Write).collect();
        let mut launch = Launch { memory, args: args.to_vec().into(), grain: 1 };
        // The lists are copies: nothing depends on them.
        let rest_here = host::at_rest();
        // SAFETY: the lowering asks whether an index lies in a list, or whether it has room, before each access to one, and
        // touches the one element of other buffers; a kernel that may be another asks before each access. No two arguments
        // share memory, and the kernel has no parallel loop whose iterations could meet: it stores to buffers of one element.
        #[allow(unsafe_code, reason = "runs machine code that checks its own accesses")]
        unsafe {
            executable.run(&mut launch)?;
        }
        drop(rest_here);
        for (((used, list), elements), length) in lowered.lists.iter().zip(rest.lists).zip(&lists).zip(&grown)
        {
            if used.written {
                elements.copy_back(
                    list,
                    used.elem,
                    if used.grows { *length } else { elements.length as i64 },
                )?;
            }
        }
        Ok(results.iter().zip(&lowered.carried).map(|(bits, elem)| of_bits(*bits, *elem)).collect())
    }
}

/// A number of the type that the kernel takes. One that is not defined yet is not read.
fn number(value: Option<&Value>, elem: Elem) -> Result<Arg> {
    Ok(match (value, elem) {
        (Some(Value::Int(x)), Elem::I64) => Arg::Int(*x),
        (Some(Value::Float(x)), Elem::F64) => Arg::Float(*x),
        (Some(Value::Bool(x)), Elem::Bool) => Arg::Bool(*x),
        (Some(Value::Uninitialized), Elem::I64) => Arg::Int(0),
        (Some(Value::Uninitialized), Elem::F64) => Arg::Float(0.0),
        (Some(Value::Uninitialized), Elem::Bool) => Arg::Bool(false),
        _ => return Err(unlike()),
    })
}

fn unlike() -> Diagnostic {
    Diagnostic::runtime("a value is not of the type that the program says")
}

fn of_bits(bits: u64, elem: Elem) -> Value {
    match elem {
        Elem::F64 => Value::Float(f64::from_bits(bits)),
        Elem::Bool => Value::Bool(bits.to_le_bytes()[0] != 0),
        _ => Value::Int(bits as i64),
    }
}

impl Elements {
    /// A copy of a list's elements, with room for more.
    fn of(list: &List, elem: Elem, more: usize) -> Result<Elements> {
        let items = list.items();
        let length = items.len();
        let room = if more == 0 { length } else { length.saturating_mul(2).saturating_add(more) };
        let mut bytes = memory::filled(room.checked_mul(elem.size()).ok_or_else(unlike)?.div_ceil(8), 0u64)?;
        match elem {
            Elem::I64 | Elem::F64 => {
                for (slot, item) in bytes.iter_mut().zip(&*items) {
                    *slot = match (item, elem) {
                        (Value::Int(x), Elem::I64) => *x as u64,
                        (Value::Float(x), Elem::F64) => x.to_bits(),
                        _ => return Err(unlike()),
                    };
                }
            }
            _ => {
                let flags: &mut [u8] = bytemuck::cast_slice_mut(&mut bytes[..]);
                for (slot, item) in flags.iter_mut().zip(&*items) {
                    let Value::Bool(x) = item else { return Err(unlike()) };
                    *slot = u8::from(*x);
                }
            }
        }
        Ok(Elements { bytes, length, room })
    }

    /// Gives a list the elements that a kernel left.
    fn copy_back(&self, list: &List, elem: Elem, length: i64) -> Result<()> {
        let length = usize::try_from(length).ok().filter(|n| *n <= self.room);
        let length =
            length.ok_or_else(|| Diagnostic::runtime("a kernel gives a list a length beyond its room"))?;
        let flags: &[u8] = bytemuck::cast_slice(&self.bytes[..]);
        let value = |n: usize| match elem {
            Elem::Bool => Value::Bool(flags[n] != 0),
            elem => of_bits(self.bytes[n], elem),
        };
        let mut items = list.items_mut();
        items.truncate(length);
        let kept = items.len();
        for (n, item) in items.iter_mut().enumerate() {
            *item = value(n);
        }
        items.extend((kept..length).map(value));
        Ok(())
    }
}
