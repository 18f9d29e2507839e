//! What a cached kernel is found by: a strong hash of all that decides its machine code. The kernel in its closed form is
//! written as bytes that no other kernel has; beside it stand the machine, LLVM's version and what this build of Flambeau makes
//! of kernels. Knows no file.

use super::build;
use super::kind::Kind;
use crate::dialects::loops::{
    Carried, Chosen, Const, Elem, For, If, Kernel, Mark, Order, Prim, Reg, Stmt, Ty, While, binary_name,
    compare_name, prim_name, unary_name,
};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Primitives that the description of a kernel names.
const NAMED: usize = 6;

/// For which machine code is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// `x86_64-unknown-linux-gnu`
    pub triple: &'a str,
    /// LLVM's name of the processor.
    pub cpu: &'a str,
    /// LLVM's list of its features.
    pub features: &'a str,
    /// Whether stores bypass the caches.
    pub stream: bool,
    /// Of LLVM.
    pub version: (u32, u32, u32),
}

/// The name of a kernel's machine code, of a plan, or of a module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; KEY_BYTES]);

impl Key {
    /// The key of a kernel's code for a machine, as this build of Flambeau makes it.
    pub fn of(kernel: &Kernel, target: &Target<'_>) -> Key {
        Key::of_build(kernel, target, build::identity())
    }

    /// The same for another build.
    pub(super) fn of_build(kernel: &Kernel, target: &Target<'_>, build: &str) -> Key {
        let mut out = Bytes(Vec::with_capacity(4096));
        out.text(build);
        let Target { triple, cpu, features, stream, version: (major, minor, patch) } = target;
        [triple, cpu, features].into_iter().for_each(|text| out.text(text));
        out.byte(u8::from(*stream));
        [major, minor, patch].into_iter().for_each(|n| out.number(u64::from(*n)));
        out.kernel(kernel);
        Key(Sha256::digest(&out.0).into())
    }

    /// The key of a plan or a module, by all that it is made of, as this build of Flambeau makes it.
    pub fn of_parts(kind: Kind, made_of: &[&[u8]]) -> Key {
        let mut hash = Sha256::new();
        // A border that moves between two parts changes the key.
        for part in [kind.noun().as_bytes(), build::sources().as_bytes()].iter().chain(made_of) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().into())
    }

    /// A key by its bytes.
    pub const fn from_bytes(bytes: [u8; KEY_BYTES]) -> Key {
        Key(bytes)
    }

    /// A key by its 64 digits.
    pub fn from_hex(text: &str) -> Option<Key> {
        let digits = text.as_bytes();
        let plain = digits.iter().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(c));
        if digits.len() != 2 * KEY_BYTES || !plain {
            return None;
        }
        let mut key = [0; KEY_BYTES];
        for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Key(key))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Its 64 digits.
    pub fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(2 * KEY_BYTES), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// The bytes of a kernel, by which kernels are the same exactly if they compute the same bits: unlike by `==`, 0.0 differs
/// from -0.0, and a NaN is itself.
pub fn kernel_bytes(kernel: &Kernel) -> Vec<u8> {
    let mut out = Bytes(Vec::with_capacity(4096));
    out.kernel(kernel);
    out.0
}

/// For people: what a kernel takes and gives, and the first things that it computes with floats.
pub fn describe(kernel: &Kernel) -> String {
    let types = |written: bool| {
        let params = kernel.params.iter().filter(|p| p.written == written && matches!(p.ty, Ty::Buffer(_)));
        params.map(|p| kernel.elem(p.reg).name()).collect::<Vec<_>>().join(",")
    };
    let mut names = Vec::new();
    named(kernel, &kernel.body, &mut names);
    let more = if names.len() > NAMED { "+..." } else { "" };
    names.truncate(NAMED);
    let what = if names.is_empty() { "copy".to_string() } else { names.join("+") + more };
    format!("{what} ({}) -> {}", types(false), types(true))
}

/// Primitives that give floats, and combinations into memory, each once, up to one more than are named. Kernels nest as deep
/// as `decode` lets them.
fn named<'a>(kernel: &Kernel, body: &'a [Stmt], names: &mut Vec<&'a str>) {
    for statement in body {
        let name = match statement {
            _ if names.len() > NAMED => return,
            Stmt::Let(dst, prim) if kernel.elem(*dst).is_float() => match prim {
                Prim::Const(_) | Prim::Convert(_) | Prim::Bitcast(_) | Prim::Select(..) => continue,
                _ => prim_name(prim),
            },
            Stmt::Accumulate { op, .. } => binary_name(*op),
            Stmt::For(l) => {
                named(kernel, &l.body, names);
                continue;
            }
            Stmt::While(l) => {
                named(kernel, &l.body, names);
                continue;
            }
            Stmt::If(branch) => {
                named(kernel, &branch.then, names);
                named(kernel, &branch.otherwise, names);
                continue;
            }
            Stmt::Let(..) | Stmt::Load { .. } | Stmt::Store { .. } | Stmt::Require { .. } => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// Bytes from which what was written can be read again: each list with its length before it, each choice with a number.
struct Bytes(Vec<u8>);

impl Bytes {
    fn byte(&mut self, n: u8) {
        self.0.push(n);
    }

    fn number(&mut self, n: u64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn reg(&mut self, reg: Reg) {
        self.0.extend_from_slice(&reg.0.to_le_bytes());
    }

    fn regs(&mut self, regs: &[Reg]) {
        regs.iter().for_each(|reg| self.reg(*reg));
    }

    fn elem(&mut self, elem: Elem) {
        self.text(elem.name());
    }

    fn ty(&mut self, ty: Ty) {
        let (what, elem) = match ty {
            Ty::Scalar(elem) => (0, elem),
            Ty::Buffer(elem) => (1, elem),
        };
        self.byte(what);
        self.elem(elem);
    }

    fn kernel(&mut self, kernel: &Kernel) {
        let Kernel { params, locals, types, body, extent, messages } = kernel;
        self.number(params.len() as u64);
        for param in params {
            self.reg(param.reg);
            self.ty(param.ty);
            self.byte(u8::from(param.written));
        }
        self.number(locals.len() as u64);
        for local in locals {
            self.reg(local.reg);
            self.number(u64::from(local.size));
        }
        self.number(types.len() as u64);
        types.iter().for_each(|ty| self.ty(*ty));
        self.body(body);
        // None is not an index.
        self.number(extent.map_or(u64::MAX, |n| n as u64));
        self.number(messages.len() as u64);
        messages.iter().for_each(|message| self.text(message));
    }

    /// Statements nest as deep as `decode` lets them.
    fn body(&mut self, body: &[Stmt]) {
        self.number(body.len() as u64);
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Let(dst, prim) => {
                self.byte(0);
                self.reg(*dst);
                self.prim(prim);
            }
            Stmt::Load { dst, buffer, index } => {
                self.byte(1);
                self.regs(&[*dst, *buffer, *index]);
            }
            Stmt::Store { buffer, index, value } => {
                self.byte(2);
                self.regs(&[*buffer, *index, *value]);
            }
            Stmt::Accumulate { op, buffer, index, value } => {
                self.byte(3);
                self.text(binary_name(*op));
                self.regs(&[*buffer, *index, *value]);
            }
            Stmt::For(l) => {
                self.byte(4);
                self.for_loop(l);
            }
            Stmt::If(branch) => {
                self.byte(5);
                self.branch(branch);
            }
            Stmt::Require { condition, message } => {
                self.byte(6);
                self.reg(*condition);
                self.number(*message as u64);
            }
            Stmt::While(l) => {
                self.byte(7);
                self.while_loop(l);
            }
        }
    }

    fn branch(&mut self, branch: &If) {
        let If { condition, then, otherwise, results } = branch;
        self.reg(*condition);
        self.body(then);
        self.body(otherwise);
        self.number(results.len() as u64);
        for Chosen { result, then, otherwise } in results {
            self.regs(&[*result, *then, *otherwise]);
        }
    }

    fn while_loop(&mut self, l: &While) {
        let While { enters, again, steps, carried, body } = l;
        self.regs(&[*enters, *again]);
        self.number(u64::from(*steps));
        self.carried(carried);
        self.body(body);
    }

    fn carried(&mut self, carried: &[Carried]) {
        self.number(carried.len() as u64);
        for Carried { init, param, next, result, combine } in carried {
            self.regs(&[*init, *param, *next, *result]);
            self.text(combine.map_or("", binary_name));
        }
    }

    fn for_loop(&mut self, l: &For) {
        let For { iv, begin, end, step, mark, order, steps, carried, body } = l;
        self.regs(&[*iv, *begin, *end, *step]);
        self.byte(match mark {
            Mark::Serial => 0,
            Mark::Parallel => 1,
            Mark::Vector => 2,
            Mark::ParallelVector => 3,
        });
        self.number(match order {
            Order::Sequential => 0,
            Order::Lanes(n) => 1 + u64::from(*n),
        });
        self.number(u64::from(*steps));
        self.carried(carried);
        self.body(body);
    }

    fn prim(&mut self, prim: &Prim) {
        match prim {
            Prim::Const(number) => {
                self.byte(0);
                self.constant(*number);
            }
            Prim::Unary(op, x) => {
                self.byte(1);
                self.text(unary_name(*op));
                self.reg(*x);
            }
            Prim::Binary(op, x, y) => {
                self.byte(2);
                self.text(binary_name(*op));
                self.regs(&[*x, *y]);
            }
            Prim::Fma(x, y, z) => {
                self.byte(3);
                self.regs(&[*x, *y, *z]);
            }
            Prim::Compare(op, x, y) => {
                self.byte(4);
                self.text(compare_name(*op));
                self.regs(&[*x, *y]);
            }
            Prim::Select(x, y, z) => {
                self.byte(5);
                self.regs(&[*x, *y, *z]);
            }
            Prim::Convert(x) => {
                self.byte(6);
                self.reg(*x);
            }
            Prim::Bitcast(x) => {
                self.byte(7);
                self.reg(*x);
            }
        }
    }

    fn constant(&mut self, number: Const) {
        let (what, bits) = match number {
            Const::Int(n) => (0, [n as u64, 0]),
            Const::Float(x) => (1, [x.to_bits(), 0]),
            Const::Complex(x) => (2, [x.re.to_bits(), x.im.to_bits()]),
            Const::Bool(x) => (3, [u64::from(x), 0]),
        };
        self.byte(what);
        bits.into_iter().for_each(|half| self.number(half));
    }
}
