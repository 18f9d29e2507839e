//! For which machine code is generated: CPU name, features, vector width; or a GPU.

use crate::backends::cache::{self, Key};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{For, Kernel, Order, Stmt};
use inkwell::OptimizationLevel;
use inkwell::support::get_llvm_version;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions, TargetTriple,
};
use std::sync::{Once, OnceLock};

/// Vector registers of the widest type that an iteration of a vector loop fills.
const REGISTERS: u32 = 2;

/// A machine to generate code for.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) kind: Kind,
    pub(super) triple: String,
    pub(super) cpu: String,
    pub(super) features: String,
    /// Stores bypass the caches; for results much larger than they are.
    pub(super) stream: bool,
}

/// CPU or GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Width of vector registers in bits, and whether there are masks (AVX-512).
    Cpu { vector_bits: u32, masks: bool },
    /// NVIDIA.
    Ptx,
}

static INITIALIZE: Once = Once::new();
static REGISTER: OnceLock<fn()> = OnceLock::new();

/// Says how LLVM's options and targets are registered, in a program that is linked so that they are not at its start. Runs
/// once, before LLVM is used for the first time. Only the first call counts.
pub fn register_by(register: fn()) {
    let _ = REGISTER.set(register);
}

fn initialize() {
    INITIALIZE.call_once(|| {
        if let Some(register) = REGISTER.get() {
            register();
        }
        Target::initialize_x86(&InitializationConfig::default());
        Target::initialize_nvptx(&InitializationConfig::default());
    });
}

impl Machine {
    /// This computer.
    pub(super) fn host() -> Machine {
        initialize();
        let cpu = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        let has = |name: &str| features.split(',').any(|f| f.strip_prefix('+') == Some(name));
        let wide = ["avx512f", "avx512bw", "avx512dq", "avx512vl"].into_iter().all(has);
        let vector_bits = if wide {
            512
        } else if has("avx2") {
            256
        } else {
            128
        };
        Machine {
            kind: Kind::Cpu { vector_bits, masks: wide },
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu,
            features,
            stream: false,
        }
    }

    /// An NVIDIA GPU of an architecture such as `sm_90`.
    pub(super) fn ptx(arch: &str) -> Machine {
        initialize();
        Machine {
            kind: Kind::Ptx,
            triple: "nvptx64-nvidia-cuda".to_string(),
            cpu: arch.to_string(),
            features: "+ptx80".to_string(),
            stream: false,
        }
    }

    /// Under which a kernel's code for this machine is kept.
    pub(super) fn key(&self, kernel: &Kernel) -> Key {
        // What else is said of a machine follows from these.
        let Machine { kind: _, triple, cpu, features, stream } = self;
        let version = get_llvm_version();
        Key::of(kernel, &cache::Target { triple, cpu, features, stream: *stream, version })
    }

    /// The same machine with stores that bypass the caches.
    pub(super) fn streaming(&self) -> Machine {
        Machine { stream: true, ..self.clone() }
    }

    pub(super) fn masks(&self) -> bool {
        matches!(self.kind, Kind::Cpu { masks: true, .. })
    }

    /// Whether multiplying by a power of two is one instruction.
    pub(super) fn scales_natively(&self) -> bool {
        self.masks()
    }

    /// Whether it is a GPU, which rounds to bfloat16 by an instruction.
    pub(super) fn is_gpu(&self) -> bool {
        self.kind == Kind::Ptx
    }

    pub(super) fn has_libm(&self) -> bool {
        self.kind != Kind::Ptx
    }

    /// How many lanes a vector loop gets: two registers of its widest type, so that two independent chains
    /// hide each other's latency.
    pub(super) fn lanes(&self, kernel: &Kernel, l: &For) -> u32 {
        let Kind::Cpu { vector_bits, .. } = self.kind else { return 1 };
        // The lanes of partial results fix the bits of a sum, whatever the machine.
        if let Order::Lanes(n) = l.order
            && !l.carried.is_empty()
        {
            return n;
        }
        let widest = widest(kernel, &l.body).max(4);
        REGISTERS * vector_bits / (8 * widest)
    }

    /// Attributes that every function carries: without them code is generated for a generic machine.
    pub(super) fn attributes(&self) -> Vec<(&'static str, &str)> {
        let mut out = vec![("target-cpu", self.cpu.as_str()), ("target-features", self.features.as_str())];
        if let Kind::Cpu { vector_bits, .. } = self.kind {
            out.push((
                "prefer-vector-width",
                match vector_bits {
                    512 => "512",
                    256 => "256",
                    _ => "128",
                },
            ));
            out.push(("no-trapping-math", "true"));
            // LLVM makes a call of fmod by a known divisor an instruction that promises not to meet NaN, also where that
            // divisor is NaN.
            out.push(("no-builtin-fmod", ""));
            out.push(("no-builtin-fmodf", ""));
        }
        out
    }

    /// LLVM's description of the machine.
    pub(super) fn target_machine(&self) -> Result<TargetMachine> {
        let triple = TargetTriple::create(&self.triple);
        let target = Target::from_triple(&triple).map_err(|m| {
            Diagnostic::unsupported(format!("LLVM was built without a target for {}: {m}", self.triple))
        })?;
        let options = TargetMachineOptions::new()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(OptimizationLevel::Aggressive)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target.create_target_machine_from_options(&triple, options).ok_or_else(|| {
            Diagnostic::unsupported(format!("LLVM does not know the machine {} {}", self.triple, self.cpu))
        })
    }
}

/// Bytes of the largest number that statements load, store or compute with as a float.
fn widest(kernel: &Kernel, body: &[Stmt]) -> u32 {
    let size = |s: &Stmt| match s {
        Stmt::Load { buffer, .. } | Stmt::Store { buffer, .. } => kernel.elem(*buffer).size() as u32,
        Stmt::Let(dst, _) if kernel.elem(*dst).is_float() => kernel.elem(*dst).size() as u32,
        _ => 1,
    };
    let within = |s: &Stmt| s.blocks().map(|inner| widest(kernel, inner)).max().unwrap_or(1);
    body.iter().map(|s| size(s).max(within(s))).max().unwrap_or(1)
}
