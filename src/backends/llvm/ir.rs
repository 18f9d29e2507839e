//! A thin layer over inkwell's builder: every operation takes scalars and vectors alike, and errors are ours.

use crate::diag::{Diagnostic, Result};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::ContextRef;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType, VectorType};
use inkwell::values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};

pub(super) use inkwell::values::InstructionOpcode as Opcode;

/// A scalar or a vector.
pub(super) type V<'c> = BasicValueEnum<'c>;
/// Its type.
pub(super) type T<'c> = BasicTypeEnum<'c>;

/// Where code goes.
pub(super) struct Ir<'c> {
    pub(super) ctx: ContextRef<'c>,
    pub(super) module: Module<'c>,
    pub(super) b: Builder<'c>,
}

/// An error of the builder is a bug of ours.
pub(super) fn bug(error: BuilderError) -> Diagnostic {
    Diagnostic::internal(format!("LLVM refused an instruction: {error}"))
}

fn mixed() -> Diagnostic {
    Diagnostic::internal("an LLVM value of an unexpected kind")
}

/// Number of lanes; 1 for a scalar.
pub(super) fn lanes(ty: T<'_>) -> u32 {
    match ty {
        BasicTypeEnum::VectorType(v) => v.get_size(),
        _ => 1,
    }
}

/// The type of one lane.
pub(super) fn lane_type(ty: T<'_>) -> T<'_> {
    match ty {
        BasicTypeEnum::VectorType(v) => v.get_element_type(),
        other => other,
    }
}

/// A vector type with a number of lanes.
pub(super) fn widen<'c>(lane: T<'c>, lanes: u32) -> T<'c> {
    if lanes == 1 {
        return lane;
    }
    match lane {
        BasicTypeEnum::FloatType(t) => t.vec_type(lanes).into(),
        BasicTypeEnum::IntType(t) => t.vec_type(lanes).into(),
        BasicTypeEnum::PointerType(t) => t.vec_type(lanes).into(),
        other => other,
    }
}

/// `lane` with as many lanes as `x` has.
pub(super) fn like<'c>(x: V<'c>, lane: T<'c>) -> T<'c> {
    widen(lane, lanes(x.get_type()))
}

impl<'c> Ir<'c> {
    pub(super) fn f32(&self) -> FloatType<'c> {
        self.ctx.f32_type()
    }

    pub(super) fn i1(&self) -> T<'c> {
        self.ctx.bool_type().into()
    }

    pub(super) fn i32(&self) -> T<'c> {
        self.ctx.i32_type().into()
    }

    pub(super) fn i64(&self) -> IntType<'c> {
        self.ctx.i64_type()
    }

    /// Any operation with two operands of one type.
    pub(super) fn op(&self, op: Opcode, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        self.b.build_binop(op, x, y, "").map_err(bug)
    }

    pub(super) fn add(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        self.op(if is_float(x) { Opcode::FAdd } else { Opcode::Add }, x, y)
    }

    pub(super) fn sub(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        self.op(if is_float(x) { Opcode::FSub } else { Opcode::Sub }, x, y)
    }

    pub(super) fn mul(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        self.op(if is_float(x) { Opcode::FMul } else { Opcode::Mul }, x, y)
    }

    pub(super) fn fdiv(&self, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        self.op(Opcode::FDiv, x, y)
    }

    pub(super) fn fneg(&self, x: V<'c>) -> Result<V<'c>> {
        match x {
            V::FloatValue(x) => self.b.build_float_neg(x, "").map(Into::into).map_err(bug),
            V::VectorValue(x) => self.b.build_float_neg(x, "").map(Into::into).map_err(bug),
            _ => Err(mixed()),
        }
    }

    /// x * y + z rounded once.
    pub(super) fn fma(&self, x: V<'c>, y: V<'c>, z: V<'c>) -> Result<V<'c>> {
        self.intrinsic("llvm.fma", &[x.get_type()], &[x, y, z])
    }

    pub(super) fn fcmp(&self, how: FloatPredicate, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        match (x, y) {
            (V::FloatValue(x), V::FloatValue(y)) => {
                self.b.build_float_compare(how, x, y, "").map(Into::into).map_err(bug)
            }
            (V::VectorValue(x), V::VectorValue(y)) => {
                self.b.build_float_compare(how, x, y, "").map(Into::into).map_err(bug)
            }
            _ => Err(mixed()),
        }
    }

    pub(super) fn icmp(&self, how: IntPredicate, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        match (x, y) {
            (V::IntValue(x), V::IntValue(y)) => {
                self.b.build_int_compare(how, x, y, "").map(Into::into).map_err(bug)
            }
            (V::VectorValue(x), V::VectorValue(y)) => {
                self.b.build_int_compare(how, x, y, "").map(Into::into).map_err(bug)
            }
            _ => Err(mixed()),
        }
    }

    pub(super) fn select(&self, c: V<'c>, x: V<'c>, y: V<'c>) -> Result<V<'c>> {
        match c {
            V::IntValue(c) => self.b.build_select(c, x, y, "").map_err(bug),
            V::VectorValue(c) => self.b.build_select(c, x, y, "").map_err(bug),
            _ => Err(mixed()),
        }
    }

    /// A conversion instruction; `lane` is the type of one lane of the result.
    pub(super) fn cast(&self, op: Opcode, x: V<'c>, lane: T<'c>) -> Result<V<'c>> {
        self.b.build_cast(op, x, like(x, lane), "").map_err(bug)
    }

    /// A float constant with as many lanes and of the lane type as `like`.
    pub(super) fn fconst(&self, like: V<'c>, value: f64) -> V<'c> {
        let ty = like.get_type();
        let scalar: V<'c> = match lane_type(ty) {
            T::FloatType(t) => t.const_float(value).into(),
            other => other.const_zero(),
        };
        self.constant_splat(scalar, lanes(ty))
    }

    /// An integer constant of a lane type with as many lanes as `like`.
    pub(super) fn iconst(&self, like: V<'c>, lane: T<'c>, value: i64) -> V<'c> {
        let scalar: V<'c> = match lane {
            T::IntType(t) => t.const_int(value as u64, true).into(),
            other => other.const_zero(),
        };
        self.constant_splat(scalar, lanes(like.get_type()))
    }

    fn constant_splat(&self, scalar: V<'c>, lanes: u32) -> V<'c> {
        if lanes == 1 {
            return scalar;
        }
        VectorType::const_vector(&vec![scalar; lanes as usize]).into()
    }

    /// The same scalar in every lane.
    pub(super) fn splat(&self, x: V<'c>, lanes: u32) -> Result<V<'c>> {
        if lanes == 1 {
            return Ok(x);
        }
        let T::VectorType(ty) = widen(x.get_type(), lanes) else { return Err(mixed()) };
        let first = self.b.build_insert_element(ty.get_poison(), x, self.i64().const_zero(), "");
        let first = first.map_err(bug)?;
        let mask = self.ctx.i32_type().vec_type(lanes).const_zero();
        self.b.build_shuffle_vector(first, ty.get_poison(), mask, "").map(Into::into).map_err(bug)
    }

    /// `count` neighbouring lanes of a vector.
    pub(super) fn part(&self, x: V<'c>, first: u32, count: u32) -> Result<V<'c>> {
        let V::VectorValue(x) = x else { return Err(mixed()) };
        let number = |n: u32| self.ctx.i32_type().const_int(n.into(), false);
        if count == 1 {
            return self.b.build_extract_element(x, number(first), "").map_err(bug);
        }
        let mask: Vec<IntValue<'c>> = (first..first + count).map(number).collect();
        let mask = VectorType::const_vector(&mask);
        self.b.build_shuffle_vector(x, x.get_type().get_poison(), mask, "").map(Into::into).map_err(bug)
    }

    /// 0, 1, 2, … as 64-bit integers.
    pub(super) fn iota(&self, lanes: u32) -> V<'c> {
        let numbers: Vec<IntValue<'c>> = (0..lanes).map(|n| self.i64().const_int(n.into(), false)).collect();
        VectorType::const_vector(&numbers).into()
    }

    /// Calls an LLVM intrinsic by its name and the types that it is overloaded on.
    pub(super) fn intrinsic(&self, name: &str, types: &[T<'c>], args: &[V<'c>]) -> Result<V<'c>> {
        let missing = || Diagnostic::internal(format!("LLVM has no intrinsic {name}"));
        let intrinsic = Intrinsic::find(name).ok_or_else(missing)?;
        let function = intrinsic.get_declaration(&self.module, types).ok_or_else(missing)?;
        let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|a| (*a).into()).collect();
        let call = self.b.build_call(function, &args, "").map_err(bug)?;
        Ok(call.try_as_basic_value().basic().unwrap_or_else(|| self.i64().const_zero().into()))
    }

    /// Calls a function of the C library once a lane; for what is too rare to have its own polynomial.
    pub(super) fn libm(&self, name: &str, args: &[V<'c>]) -> Result<V<'c>> {
        let Some(first) = args.first() else { return Err(mixed()) };
        let (ty, count) = (first.get_type(), lanes(first.get_type()));
        let T::FloatType(lane) = lane_type(ty) else { return Err(mixed()) };
        let function = self.module.get_function(name).unwrap_or_else(|| {
            let params = vec![lane.into(); args.len()];
            let function = self.module.add_function(name, lane.fn_type(&params, false), None);
            // As the interpreter calls it: LLVM's own idea of it differs in the last bit (`pow(x, 0.5)` is no `sqrt(x)`). It
            // may still be called once instead of twice.
            for (attribute, value) in [("nobuiltin", 0), ("memory", 0), ("nounwind", 0), ("willreturn", 0)] {
                let kind = Attribute::get_named_enum_kind_id(attribute);
                let attribute = self.ctx.create_enum_attribute(kind, value);
                function.add_attribute(AttributeLoc::Function, attribute);
            }
            function
        });
        let call = |args: Vec<BasicMetadataValueEnum<'c>>| -> Result<V<'c>> {
            let call = self.b.build_call(function, &args, "").map_err(bug)?;
            call.try_as_basic_value().basic().ok_or_else(mixed)
        };
        if count == 1 {
            return call(args.iter().map(|a| (*a).into()).collect());
        }
        let T::VectorType(vector) = ty else { return Err(mixed()) };
        let mut out: V<'c> = vector.get_poison().into();
        for n in 0..count {
            let n = self.i64().const_int(n.into(), false);
            let mut lane_args = Vec::new();
            for arg in args {
                let element = self.b.build_extract_element(arg.into_vector_value(), n, "").map_err(bug)?;
                lane_args.push(element.into());
            }
            let value = call(lane_args)?;
            let wider = self.b.build_insert_element(out.into_vector_value(), value, n, "");
            out = wider.map_err(bug)?.into();
        }
        Ok(out)
    }

    /// `usual`, and in lanes of a mask what is computed otherwise, which code does only where there is such a lane.
    pub(super) fn rarely<const N: usize>(
        &self,
        mask: V<'c>,
        usual: [V<'c>; N],
        otherwise: impl FnOnce() -> Result<[V<'c>; N]>,
    ) -> Result<[V<'c>; N]> {
        let b = &self.b;
        let outside = || Diagnostic::internal("code outside of a function");
        let before = b.get_insert_block().ok_or_else(outside)?;
        let function = before.get_parent().ok_or_else(outside)?;
        let (rare, done) =
            (self.ctx.append_basic_block(function, "rare"), self.ctx.append_basic_block(function, "usual"));
        let any = match lanes(mask.get_type()) {
            1 => mask,
            _ => self.intrinsic("llvm.vector.reduce.or", &[mask.get_type()], &[mask])?,
        };
        b.build_conditional_branch(any.into_int_value(), rare, done).map_err(bug)?;
        b.position_at_end(rare);
        let mut chosen = otherwise()?;
        for (chosen, usual) in chosen.iter_mut().zip(usual) {
            *chosen = self.select(mask, *chosen, usual)?;
        }
        let after = b.get_insert_block().ok_or_else(outside)?;
        b.build_unconditional_branch(done).map_err(bug)?;
        b.position_at_end(done);
        let mut out = usual;
        for (out, chosen) in out.iter_mut().zip(chosen) {
            let phi = b.build_phi(out.get_type(), "").map_err(bug)?;
            phi.add_incoming(&[(out as &dyn BasicValue<'c>, before), (&chosen, after)]);
            *out = phi.as_basic_value();
        }
        Ok(out)
    }

    /// The address of element `index`; a vector of indices gives a vector of addresses.
    pub(super) fn element(&self, base: PointerValue<'c>, lane: T<'c>, index: V<'c>) -> Result<V<'c>> {
        match index {
            V::IntValue(i) => gep(&self.b, lane, base, i).map(Into::into).map_err(bug),
            V::VectorValue(_) => {
                // Byte arithmetic on integers: LLVM's builder has no vector form of the address instruction.
                let count = lanes(index.get_type());
                let size = lane.size_of().ok_or_else(mixed)?;
                let bytes = self.mul(index, self.splat(size.into(), count)?)?;
                let start = self.b.build_ptr_to_int(base, self.i64(), "").map_err(bug)?;
                let address = self.add(self.splat(start.into(), count)?, bytes)?;
                self.b
                    .build_cast(Opcode::IntToPtr, address, widen(base.get_type().into(), count), "")
                    .map_err(bug)
            }
            _ => Err(mixed()),
        }
    }
}

fn is_float(x: V<'_>) -> bool {
    matches!(lane_type(x.get_type()), T::FloatType(_))
}

#[allow(
    unsafe_code,
    reason = "inkwell marks address arithmetic unsafe, though it only builds an instruction"
)]
fn gep<'c>(
    b: &Builder<'c>,
    lane: T<'c>,
    base: PointerValue<'c>,
    index: IntValue<'c>,
) -> Result<PointerValue<'c>, BuilderError> {
    // SAFETY: the instruction computes an address with one index and reads no aggregate type that could
    // mismatch; without `inbounds` no address is undefined.
    unsafe { b.build_gep(lane, base, &[index], "") }
}

/// Alignment and metadata of a load or store.
pub(super) fn set_alignment(value: V<'_>, bytes: usize) {
    if let Some(instruction) = value.as_instruction_value() {
        // Fails only for instructions without alignment.
        let _ = instruction.set_alignment(bytes as u32);
    }
}
