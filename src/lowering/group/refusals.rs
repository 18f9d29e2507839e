//! What an op's row refuses besides dtypes. A kernel cannot refuse: an op that might, of the values that it could
//! meet, does not go into one. It runs by itself then and says why.

use super::{Known, Reader};
use crate::diag::Result;
use crate::dialects::Op;
use crate::eval::check_number;
use crate::ir::{Attr, OpId};
use crate::tensor::{self, DType, Scalar};
use crate::value::Value;

/// Elements and numbers that no run is known not to meet: those that rows refuse.
const PROBES: [i64; 3] = [0, -1, i64::MAX];

impl Reader<'_> {
    /// Asks an op's row about the values that refusals are for.
    ///
    /// # Errors
    /// If it refuses one of them.
    pub(super) fn probe(&self, op: OpId, row: &Op) -> Result<()> {
        let Some(check) = row.def().check else { return Ok(()) };
        for probe in PROBES {
            let arguments = row.schema()?.arguments.iter().enumerate();
            let values = arguments.map(|(n, argument)| match self.graph.operand(op, n) {
                Some(value) => self.stand_in(op, &self.known(op, value)?, probe),
                None => self.stand_in(op, &Known::from_default(argument.default.as_ref()), probe),
            });
            check(&values.collect::<Result<Vec<Value>>>()?)
                .map_err(|error| self.refuse(op, &format!("it may raise: {}", error.message())))?;
        }
        Ok(())
    }

    /// Asks whether an op's constant numbers fit elements of the dtype that its tensors have in common. Those that a call passes are
    /// not known here: a kernel makes infinities of them where they do not fit.
    ///
    /// # Errors
    /// If one does not.
    pub(super) fn fit_numbers(&self, op: OpId, row: &Op, common: DType) -> Result<()> {
        if row.def().numbers.is_empty() {
            return Ok(());
        }
        for (argument, value) in row.schema()?.arguments.iter().zip(self.graph.operands(op)) {
            if let Known::Number(number) = self.known(op, *value)? {
                check_number(row.def(), argument.name.as_str(), number, common)
                    .map_err(|error| self.refuse(op, &format!("it raises: {}", error.message())))?;
            }
        }
        Ok(())
    }

    /// A value for what is known of an operand.
    fn stand_in(&self, op: OpId, known: &Known, probe: i64) -> Result<Value> {
        let tensor = |dtype: DType| tensor::Tensor::full(dtype, &[1], Scalar::Int(probe)).map(Value::Tensor);
        let number = |dtype: DType| match dtype {
            DType::Bool => Value::Bool(probe != 0),
            DType::I64 => Value::Int(probe),
            _ => Value::Float(probe as f64),
        };
        match known {
            Known::Tensor(t) => tensor(self.program.dtype(t.value)),
            Known::Source(input, _) => match self.inputs[*input] {
                super::InputSig::Tensor(dtype, _) => tensor(dtype),
                _ => Err(self.refuse(op, "an operand is not a tensor")),
            },
            Known::Number(c) => Ok(Value::from(*c)),
            Known::Passed(v) => Ok(number(self.program.dtype(*v))),
            Known::Other(Attr::Str(text)) => Ok(Value::str(text.clone())),
            Known::Other(Attr::None) => Ok(Value::None),
            Known::Other(_) | Known::Joined(..) | Known::Sums(..) => {
                Err(self.refuse(op, "its row asks for more than is known"))
            }
        }
    }
}
