//! A packed layer: what is kept of it in a plan, and what ops read of it. How one is packed, and how it runs, is not known here.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Outputs, one};
use crate::ir::Symbol;
use crate::kernels::float::{Activation, Epilogue, Layout as Order, PackedConv, Prologue, Residual};
use crate::value::{Native, Object, Value};
use std::sync::Arc;

/// The class of packed layers.
pub const CLASS: &str = "__torch__.torch.classes.fusion.Layer";

/// PyTorch's code of row-major memory.
pub const ROW_MAJOR: i64 = 0;
/// PyTorch's code of memory with channels innermost.
pub const CHANNELS_LAST: i64 = 2;

/// Which operand of [`super::CONV`] and [`super::CONV_INTO`] are the channels' factors.
pub const GATE: usize = 3;
/// Which operand of [`super::CONV`] says how the result lies.
pub const CONV_FORMAT: usize = 4;
/// Which operand of [`super::NORM`] does.
pub const NORM_FORMAT: usize = 3;
/// Which operand of [`super::ATTENTION`] does.
pub const ATTENTION_FORMAT: usize = 5;

/// A packed layer.
#[derive(Clone)]
pub(super) struct Layer {
    /// None: a batch norm by itself.
    pub(super) conv: Option<Arc<PackedConv>>,
    pub(super) order: Order,
    pub(super) bias: Option<Vec<f32>>,
    pub(super) norm: Norm,
    pub(super) activation: Activation,
    pub(super) residual_after: bool,
    pub(super) before: Norm,
    pub(super) before_activation: Activation,
}

/// Factors and terms of channels.
pub(super) type Norm = Option<(Vec<f32>, Vec<f32>)>;

impl Default for Layer {
    fn default() -> Layer {
        Layer {
            conv: None,
            order: Order::ChannelsLast,
            bias: None,
            norm: None,
            activation: Activation::None,
            residual_after: false,
            before: None,
            before_activation: Activation::None,
        }
    }
}

impl Layer {
    pub(super) fn made(self) -> Result<Outputs> {
        let native: Native = Arc::new(self);
        one(Value::Object(Object::with_native(Symbol::new(CLASS), native)))
    }

    pub(super) fn of<'a>(a: &Args<'a>, n: usize) -> Result<&'a Layer> {
        let object = a.value(n)?.to_object()?;
        let wrong = || Diagnostic::runtime(format!("expected a packed layer but got a {}", object.class()));
        object.native::<Layer>().ok_or_else(wrong)
    }

    pub(super) fn conv(&self) -> Result<&PackedConv> {
        self.conv
            .as_deref()
            .ok_or_else(|| Diagnostic::runtime("a packed batch norm in place of a convolution"))
    }

    pub(super) fn epilogue<'a>(&'a self, residual: Option<Residual<'a>>) -> Epilogue<'a> {
        Epilogue {
            bias: self.bias.as_deref(),
            norm: pair_of(&self.norm),
            residual,
            activation: self.activation,
        }
    }

    /// What is done to inputs first; None where it is nothing.
    pub(super) fn prologue<'a>(&'a self, gate: Option<&'a [f32]>) -> Option<Prologue<'a>> {
        let prologue = Prologue { norm: pair_of(&self.before), activation: self.before_activation, gate };
        (self.before.is_some() || gate.is_some()).then_some(prologue)
    }
}

fn pair_of(norm: &Norm) -> Option<(&[f32], &[f32])> {
    norm.as_ref().map(|(scale, shift)| (scale.as_slice(), shift.as_slice()))
}
