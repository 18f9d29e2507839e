//! Launches of a group's kernels: what no call changes is worked out once, with the plan, and a call adds memory and numbers.

use super::inputs::Given;
use super::lowered::Ready;
use super::{Arg, Buffer, Executable, Launch, Memory};
use crate::diag::{Diagnostic, Result};
use crate::lowering::{Access, GroupProgram, Part, Plan};
use crate::tensor::{DType, DeviceMemory, Scalar, Storage, Tensor, WriteBytes};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;

/// The launch of one part of a plan.
pub(super) struct PartLaunch {
    kernel: Arc<dyn Executable>,
    /// Outputs of the group, and after these its writes, that it stores to, each once: the first pieces of its memory.
    written: SmallVec<[usize; 2]>,
    /// Inputs of the group that it loads from, each once: the pieces after those.
    read: SmallVec<[usize; 6]>,
    /// Arguments of the kernel. Those that a call gives stand as zeros.
    args: Vec<Arg>,
    /// Where a number of the call goes, which input of the group it is, and the dtype that the kernel takes.
    numbers: SmallVec<[(usize, usize, DType); 2]>,
    grain: usize,
}

impl PartLaunch {
    /// A kernel with what it is given in each call: buffers, then integers, numbers of the call, and what its form with checks
    /// takes further.
    pub(super) fn new(
        group: &GroupProgram,
        part: &Part,
        integers: &[i64],
        ready: Ready,
    ) -> Result<PartLaunch> {
        let mut written: SmallVec<[usize; 2]> = part.stores.iter().map(|a| a.tensor).collect();
        written.sort_unstable();
        written.dedup();
        let mut read: SmallVec<[usize; 6]> = part.loads.iter().map(|a| a.tensor).collect();
        read.sort_unstable();
        read.dedup();
        let place = |places: &[usize], access: &Access| {
            let found = places.iter().position(|tensor| *tensor == access.tensor);
            found.ok_or_else(|| Diagnostic::internal("a buffer of a launch without its memory"))
        };
        let stores = part.stores.iter().map(|access| place(&written, access));
        let loads = part.loads.iter().map(|access| Ok(written.len() + place(&read, access)?));
        let memory = stores.chain(loads).collect::<Result<SmallVec<[usize; 8]>>>()?;
        let buffers = buffers(part)?.into_iter().zip(memory);
        let mut args: Vec<Arg> =
            buffers.map(|(buffer, memory)| Arg::Buffer(Buffer { memory, ..buffer })).collect();
        args.extend(integers.iter().map(|n| Arg::Int(*n)));
        let numbers = group
            .scalars
            .iter()
            .enumerate()
            .map(|(n, (input, dtype))| (args.len() + n, *input, *dtype))
            .collect();
        args.extend(group.scalars.iter().map(|_| Arg::Int(0)));
        args.extend(ready.lengths.iter().map(|n| Arg::Int(*n)));
        let extent = integers.first().copied().unwrap_or(1).max(1) as usize;
        Ok(PartLaunch { kernel: ready.kernel, written, read, args, numbers, grain: part.numel() / extent })
    }

    /// Opens the memory of the part, or finds it on the device, and runs its kernel. `stores` is the memory of the outputs, and of
    /// the inputs that are written to.
    pub(super) fn run(
        &self,
        given: &Given,
        stores: &[Storage],
        device: Option<&dyn DeviceMemory>,
    ) -> Result<()> {
        if let Some(device) = device {
            return self.run_on(device, given, stores);
        }
        let read = |input: &usize| given.memory(*input)?.read();
        let read_guards = self.read.iter().map(read).collect::<Result<SmallVec<[_; 6]>>>()?;
        let mut write_guards = self.open(stores)?;
        let mut memory: Vec<Memory<'_>> = Vec::with_capacity(write_guards.len() + read_guards.len());
        memory.extend(write_guards.iter_mut().map(|g| Memory::Write(&mut *g)));
        memory.extend(read_guards.iter().map(|g| Memory::Read(g)));
        self.launch(memory, given)
    }

    /// Opens what is written to, in the order of storages, so that two threads that write to the same ones never wait for each
    /// other.
    fn open<'s>(&self, stores: &'s [Storage]) -> Result<SmallVec<[WriteBytes<'s>; 2]>> {
        if let [only] = self.written[..] {
            return Ok(SmallVec::from_iter([stores[only].write()?]));
        }
        let mut order: SmallVec<[usize; 2]> = (0..self.written.len()).collect();
        order.sort_unstable_by_key(|n| stores[self.written[*n]].id());
        let mut opened: SmallVec<[(usize, WriteBytes<'s>); 2]> = SmallVec::new();
        for n in order {
            opened.push((n, stores[self.written[n]].write()?));
        }
        opened.sort_unstable_by_key(|(n, _)| *n);
        Ok(opened.into_iter().map(|(_, bytes)| bytes).collect())
    }

    /// The same where memory is a device's: what is there already stays, and results do.
    fn run_on(&self, device: &dyn DeviceMemory, given: &Given, stores: &[Storage]) -> Result<()> {
        let written = self.written.iter().map(|store| stores[*store].resident(device));
        let written = written.collect::<Result<SmallVec<[_; 2]>>>()?;
        let read = self.read.iter().map(|input| given.memory(*input)?.resident(device));
        let read = read.collect::<Result<SmallVec<[_; 6]>>>()?;
        let written = written.iter().map(|buffer| Memory::Device(buffer, true));
        let memory = written.chain(read.iter().map(|buffer| Memory::Device(buffer, false))).collect();
        self.launch(memory, given)
    }

    fn launch(&self, memory: Vec<Memory<'_>>, given: &Given) -> Result<()> {
        let mut launch = Launch { memory, args: self.args(given)?, grain: self.grain };
        // SAFETY: kernel and arguments come from one part, whose kernel walks `sizes` by the strides of each access and
        // nothing else, which is what the spans say (one that a module has was checked against them, or checks itself); stores of
        // one part go to different elements of tensors that were made for this call, so that no load reads them, or of inputs that
        // share memory with no other one and are read through the buffers that are written to. Arguments were worked out for the
        // layouts of a plan, and the inputs were found to have them.
        #[allow(unsafe_code, reason = "the one place where groups run machine code")]
        unsafe {
            self.kernel.run(&mut launch)
        }
    }

    fn args(&self, given: &Given) -> Result<Cow<'_, [Arg]>> {
        if self.numbers.is_empty() {
            return Ok(Cow::Borrowed(&self.args));
        }
        let mut args = self.args.clone();
        for (at, input, dtype) in &self.numbers {
            args[*at] = match (dtype, given.number(*input)?) {
                (DType::F64, n) => Arg::Float(n.to_f64()),
                (DType::Bool, n) => Arg::Bool(n.to_bool()),
                (_, Scalar::Int(n)) => Arg::Int(n),
                (_, n) => Arg::Int(n.to_i64()),
            };
        }
        Ok(Cow::Owned(args))
    }
}

/// An access of a part as a buffer: where it begins, and the lowest and the highest element that it touches. Which memory it
/// lies in is said by the launch.
fn buffer(access: &Access, sizes: &[i64]) -> Result<Buffer> {
    let (mut low, mut high) = (access.offset as i128, access.offset as i128);
    for (size, stride) in sizes.iter().zip(&access.strides) {
        let reach = i128::from((size - 1).max(0)) * i128::from(*stride);
        if reach < 0 { low += reach } else { high += reach }
    }
    let end = if sizes.contains(&0) { low } else { high + 1 };
    match (usize::try_from(low), usize::try_from(end)) {
        (Ok(low), Ok(end)) => Ok(Buffer { memory: 0, first: access.offset, low, end }),
        _ => Err(Diagnostic::internal("a tensor that reaches outside of its storage")),
    }
}

/// The buffers of a part, as its kernel takes them.
pub(super) fn buffers(part: &Part) -> Result<SmallVec<[Buffer; 8]>> {
    let accesses = part.stores.iter().chain(&part.loads).enumerate();
    accesses.map(|(n, access)| buffer(access, &part.walked(n))).collect()
}

/// New tensors for what a plan gives, in the memory of a device where there is one.
pub(super) fn allocate(plan: &Plan, device: Option<&dyn DeviceMemory>) -> Result<SmallVec<[Tensor; 2]>> {
    let one = |(dtype, layout): &(DType, crate::tensor::Layout)| {
        // Kernels write every element.
        let nbytes = layout.numel().saturating_mul(dtype.size());
        let storage = match device {
            Some(device) => Storage::away(device.allocate(nbytes)?)?,
            None => Storage::for_writing(nbytes)?,
        };
        Tensor::from_storage(storage, *dtype, layout.clone())
    };
    plan.outputs.iter().map(one).collect()
}
