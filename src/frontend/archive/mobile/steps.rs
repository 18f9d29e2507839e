//! Instructions that do not jump, one by one.

use super::code::{Instruction, Operator};
use super::translate::Machine;
use super::types;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

impl Machine<'_> {
    /// An instruction that does not jump.
    pub(super) fn step(&mut self, i: &Instruction) -> Result<()> {
        match &*i.name {
            "LOAD" | "MOVE" => {
                let value = self.registers.get(&i.x).copied();
                self.push(value.ok_or_else(|| Diagnostic::input(format!("register {} is empty", i.x)))?);
            }
            "STORE" => {
                let value = self.pop()?;
                self.registers.insert(i.x, value);
            }
            "STOREN" => {
                for (n, value) in self.pop_many(i.n)?.into_iter().enumerate() {
                    self.registers.insert(i.x.saturating_add(n as i64), value);
                }
            }
            "DROP" => {
                self.pop()?;
            }
            // A register that is emptied is not read again.
            "DROPR" => {}
            "LOADC" => {
                let code = self.code;
                let constant = usize::try_from(i.x).ok().and_then(|x| code.constants.get(x));
                let (ty, value) =
                    constant.ok_or_else(|| Diagnostic::input(format!("there is no constant {}", i.x)))?;
                let value = self.emitter.constant(ty.clone(), value.clone())?;
                self.push(value);
            }
            "OP" => self.operator(i.x, None)?,
            "OPN" => self.operator(i.x, Some(i.n))?,
            "GET_ATTR" | "SET_ATTR" => self.attribute(i)?,
            "UN_INITIALIZED" => {
                let value = self.emitter.value("prim::Uninitialized", &[], Type::any())?;
                self.unset.insert(value);
                self.push(value);
            }
            "RAISE_EXCEPTION" => {
                let operands = self.pop_many(2)?;
                self.emitter.emit("prim::RaiseException", &operands, &[]);
            }
            "WARN" => {
                let operands = self.pop_many(2)?;
                self.emitter.emit("aten::warn", &operands, &[]);
            }
            "INTERFACE_CALL" => self.interface_call(i)?,
            _ => return self.step_of_values(i),
        }
        Ok(())
    }

    /// An instruction that makes values of values, without an operator of the table.
    fn step_of_values(&mut self, i: &Instruction) -> Result<()> {
        let made = match &*i.name {
            "LIST_CONSTRUCT" => self.construct("prim::ListConstruct", i.x, i.n)?,
            "DICT_CONSTRUCT" => self.construct("prim::DictConstruct", i.x, i.n)?,
            "NAMED_TUPLE_CONSTRUCT" => self.construct("prim::TupleConstruct", i.x, i.n)?,
            "TUPLE_CONSTRUCT" => {
                let items = self.pop_many(i.x)?;
                let types: Vec<Type> = items.iter().map(|v| self.emitter.graph.ty(*v).clone()).collect();
                self.emitter.value("prim::TupleConstruct", &items, Type::tuple(types))?
            }
            "LIST_UNPACK" => return self.unpack("prim::ListUnpack", Some(i.x)),
            "TUPLE_SLICE" => self.tuple_slice(i)?,
            "TUPLE_INDEX" => self.tuple_index()?,
            "ISINSTANCE" => self.is_instance(i)?,
            "FORMAT" => {
                let operands = self.pop_many(i.x)?;
                self.emitter.value("aten::format", &operands, Type::str())?
            }
            "CREATE_OBJECT" => {
                let ty = self.type_at(i.x)?;
                self.emitter.value("prim::CreateObject", &[], ty)?
            }
            "TO_LIST" => {
                let operands = self.pop_many(3)?;
                let ty = self.list_type(&operands)?;
                self.emitter.value("prim::tolist", &operands, ty)?
            }
            "UNCHECKED_CAST" => return self.cast_of_unknown(),
            name => match simple(name) {
                Some((kind, takes)) => return self.by_name(kind, takes),
                None => {
                    let text = format!("bytecode instruction {}", name.escape_debug());
                    return Err(Diagnostic::unsupported(text).hint(
                        "save the model with its code: torch.jit.save, or _save_for_lite_interpreter",
                    ));
                }
            },
        };
        self.push(made);
        Ok(())
    }

    /// A call of the operator with a number.
    fn operator(&mut self, number: i64, inputs: Option<i64>) -> Result<()> {
        let operator = usize::try_from(number).ok().and_then(|n| self.code.operators.get(n)).cloned();
        let operator = operator.ok_or_else(|| Diagnostic::input(format!("there is no operator {number}")))?;
        match operator.name.as_str() {
            "prim::TupleUnpack" => return self.unpack("prim::TupleUnpack", None),
            "prim::ListUnpack" => return self.unpack("prim::ListUnpack", inputs),
            "prim::TupleIndex" => {
                let made = self.tuple_index()?;
                self.push(made);
                return Ok(());
            }
            "prim::unchecked_cast" => return self.cast_of_unknown(),
            _ => {}
        }
        let row = self.emitter.row(operator.name, &operator.overload);
        let schema = row.as_ref().map(|op| op.schema()).transpose()?;
        let given = inputs.or(operator.given.map(|n| n as i64));
        let given = given.or(schema.map(|s| s.arguments.len() as i64));
        let Some(given) = given else { return Err(self.unknown(&operator)) };
        let values = self.pop_many(given)?;
        let results = match schema {
            Some(schema) => self.emitter.call(&schema.clone(), values)?,
            // Execution that reaches it fails; its result is assumed to be a tensor.
            None => vec![self.emitter.value(operator.name.as_str(), &values, Type::tensor())?],
        };
        self.stack.extend(results);
        Ok(())
    }

    fn unknown(&self, operator: &Operator) -> Diagnostic {
        self.emitter.registry.unknown(operator.name)
    }

    /// An op of which the first overload that fits is meant.
    fn by_name(&mut self, kind: &str, takes: i64) -> Result<()> {
        let values = self.pop_many(takes)?;
        let types: Vec<Type> = values.iter().map(|v| self.emitter.graph.ty(*v).clone()).collect();
        let types: Vec<&Type> = types.iter().collect();
        let overloads = self.emitter.registry.overloads(Symbol::new(kind));
        let fits = |op: &&crate::dialects::Op| op.schema().is_ok_and(|s| crate::dialects::matches(s, &types));
        let row = overloads.iter().find(fits).or_else(|| overloads.first()).cloned();
        let Some(row) = row else { return Err(self.emitter.registry.unknown(Symbol::new(kind))) };
        let results = self.emitter.call(row.schema()?, values)?;
        self.stack.extend(results);
        Ok(())
    }

    fn type_at(&self, number: i64) -> Result<Type> {
        let text = usize::try_from(number).ok().and_then(|n| self.code.types.get(n));
        let text = text.ok_or_else(|| Diagnostic::input(format!("there is no type {number}")))?;
        types::parse(self.emitter.module, text)
    }

    fn construct(&mut self, kind: &str, ty: i64, count: i64) -> Result<ValueId> {
        let ty = self.type_at(ty)?;
        let items = self.pop_many(count)?;
        let mut cast = Vec::with_capacity(items.len());
        for (n, item) in items.into_iter().enumerate() {
            let wanted = match ty.kind() {
                TypeKind::List(element) => Some(element),
                TypeKind::Dict(key, value) => Some(if n % 2 == 0 { key } else { value }),
                TypeKind::Tuple(elements, _) => elements.get(n),
                _ => None,
            };
            let wanted = wanted.ok_or_else(|| Diagnostic::input("a container is made of too many values"))?;
            cast.push(self.emitter.cast(item, wanted)?);
        }
        self.emitter.value(kind, &cast, ty)
    }

    /// The parts of a list, of which there are as many as the instruction says, or of a tuple.
    fn unpack(&mut self, kind: &str, count: Option<i64>) -> Result<()> {
        // Bytecode does not keep that an attribute which may hold None was found to hold something.
        let value = self.pop()?;
        let ty = self.emitter.graph.ty(value).without_none();
        let value = self.emitter.cast(value, &ty)?;
        let types = match (ty.kind(), count) {
            (TypeKind::Tuple(elements, _), _) => elements.to_vec(),
            (TypeKind::List(element), Some(count)) => {
                let count = usize::try_from(count).ok().filter(|count| *count <= 1 << 16);
                vec![element.clone(); count.ok_or_else(|| Diagnostic::input("a list of impossible length"))?]
            }
            _ => {
                return Err(Diagnostic::unsupported(format!(
                    "taking apart a value of the type {}",
                    ty.annotation()
                )));
            }
        };
        let op = self.emitter.emit(kind, &[value], &types);
        self.stack.extend(self.emitter.graph.results(op));
        Ok(())
    }

    fn tuple_slice(&mut self, i: &Instruction) -> Result<ValueId> {
        let tuple = self.pop()?;
        let elements = self.emitter.graph.ty(tuple).tuple_elements().map(<[Type]>::to_vec);
        let range = usize::try_from(i.x).ok().zip(usize::try_from(i.n).ok());
        let part = elements.as_deref().zip(range).and_then(|(e, (from, to))| e.get(from..to));
        let part = part.ok_or_else(|| {
            Diagnostic::unsupported("a slice of a value that is not known to be such a tuple")
        })?;
        let result = self.emitter.value("prim::TupleSlice", &[tuple], Type::tuple(part.to_vec()))?;
        if let Some(op) = self.emitter.graph.def_op(result) {
            self.emitter.graph.set_attr(op, "beg", Attr::Int(i.x));
            self.emitter.graph.set_attr(op, "end", Attr::Int(i.n));
        }
        Ok(result)
    }

    fn tuple_index(&mut self) -> Result<ValueId> {
        let (index, tuple) = (self.pop()?, self.pop()?);
        let elements =
            self.emitter.graph.ty(tuple).tuple_elements().map(<[Type]>::to_vec).unwrap_or_default();
        let place = self.int_constant(index).map(|n| if n < 0 { n + elements.len() as i64 } else { n });
        let ty = place.and_then(|n| usize::try_from(n).ok()).and_then(|n| elements.get(n)).cloned();
        let index = self.emitter.cast(index, &Type::int())?;
        self.emitter.value("prim::TupleIndex", &[tuple, index], ty.unwrap_or_else(Type::any))
    }

    fn int_constant(&self, value: ValueId) -> Option<i64> {
        match self.emitter.graph.attr(self.emitter.graph.def_op(value)?, "value")? {
            Attr::Int(n) => Some(*n),
            _ => None,
        }
    }

    fn is_instance(&mut self, i: &Instruction) -> Result<ValueId> {
        let value = self.pop()?;
        let count = i.n.clamp(0, 1 << 10);
        let types = (0..count).map(|n| self.type_at(i.x.saturating_add(n))).collect::<Result<Vec<Type>>>()?;
        let result = self.emitter.value("prim::isinstance", &[value], Type::bool())?;
        if let Some(op) = self.emitter.graph.def_op(result) {
            self.emitter.graph.set_attr(op, "types", Attr::Types(types.into()));
        }
        Ok(result)
    }

    /// `tolist` with its number of dimensions and the kind of its elements.
    fn list_type(&self, operands: &[ValueId]) -> Result<Type> {
        let known = |n: usize| operands.get(n).and_then(|v| self.int_constant(*v));
        let (Some(dims @ 0..=64), Some(kind)) = (known(1), known(2)) else {
            return Err(Diagnostic::unsupported("tolist of a type that is not constant"));
        };
        let element = match kind {
            0 => Type::int(),
            1 => Type::float(),
            2 => Type::bool(),
            3 => Type::complex(),
            other => return Err(Diagnostic::unsupported(format!("tolist with elements of kind {other}"))),
        };
        Ok((0..dims).fold(element, |ty, _| Type::list(ty)))
    }

    /// A cast to a type that bytecode does not keep: what is optional is there.
    fn cast_of_unknown(&mut self) -> Result<()> {
        let value = self.pop()?;
        let ty = self.emitter.graph.ty(value).without_none();
        let cast = self.emitter.cast(value, &ty)?;
        self.push(cast);
        Ok(())
    }

    /// Attributes are counted in the order in which the class has them.
    fn attribute(&mut self, i: &Instruction) -> Result<()> {
        let stored = if &*i.name == "SET_ATTR" { Some(self.pop()?) } else { None };
        let object = self.pop()?;
        let class = self.emitter.graph.ty(object).class_name();
        let slot = usize::try_from(i.x).ok();
        let def = class.and_then(|class| self.emitter.module.class(class));
        let known = def.and_then(|def| def.attributes.get(slot?)).map(|a| (a.name, a.ty.clone()));
        let Some((name, ty)) = known.or_else(|| self.stored_attribute(class?, slot?, stored)) else {
            let ty = self.emitter.graph.ty(object).annotation();
            return Err(Diagnostic::input(format!("a {ty} has no attribute with the number {}", i.x)));
        };
        let op = match stored {
            Some(value) => self.emitter.emit("prim::SetAttr", &[object, value], &[]),
            None => self.emitter.emit("prim::GetAttr", &[object], &[ty]),
        };
        self.emitter.graph.set_attr(op, "name", Attr::Str(name.as_str().into()));
        self.stack.extend(self.emitter.graph.results(op));
        Ok(())
    }

    /// A call of a method by its name, which is a constant.
    fn interface_call(&mut self, i: &Instruction) -> Result<()> {
        let name = usize::try_from(i.x).ok().and_then(|x| self.code.constants.get(x));
        let Some((_, Attr::Str(name))) = name.cloned() else {
            return Err(Diagnostic::input("a call of a method without its name"));
        };
        let values = self.pop_many(i.n)?;
        if let Some(row) = self.custom_method(&values, &name) {
            let made = self.only_value(row, values)?;
            self.push(made);
            return Ok(());
        }
        let class = values.first().and_then(|object| self.emitter.graph.ty(*object).class_name());
        let method = class.and_then(|class| self.emitter.module.method(class, &name));
        let ty = match method.map(|method| method.schema.returns.as_slice()) {
            Some([only]) => only.ty.clone(),
            _ => Type::any(),
        };
        let op = self.emitter.emit("prim::CallMethod", &values, &[ty]);
        self.emitter.graph.set_attr(op, "name", Attr::Str(name));
        self.stack.extend(self.emitter.graph.results(op));
        Ok(())
    }

    /// The op that stands for a method of a custom class.
    fn custom_method(&self, values: &[ValueId], name: &str) -> Option<Op> {
        let class = self.emitter.graph.ty(*values.first()?).class_name()?;
        let methods = self.emitter.registry.custom_class(class)?.methods;
        let (_, op) = methods.iter().find(|(method, _)| *method == name)?;
        self.emitter.registry.overloads(Symbol::new(op)).first().cloned()
    }

    /// A call of an op as one value: several results as a tuple, as a method gives them.
    fn only_value(&mut self, row: Op, values: Vec<ValueId>) -> Result<ValueId> {
        match self.emitter.call(row.schema()?, values)?.as_slice() {
            [only] => Ok(*only),
            several => {
                let types: Vec<Type> = several.iter().map(|v| self.emitter.graph.ty(*v).clone()).collect();
                self.emitter.value("prim::TupleConstruct", several, Type::tuple(types))
            }
        }
    }
}

/// Instructions that stand for one op, with the number of values that it takes.
fn simple(name: &str) -> Option<(&'static str, i64)> {
    Some(match name {
        "DTYPE" => ("prim::dtype", 1),
        "DEVICE" => ("prim::device", 1),
        "DIM" => ("aten::dim", 1),
        "IS_CUDA" => ("prim::is_cuda", 1),
        "NUM_TO_TENSOR" => ("prim::NumToTensor", 1),
        "__NOT__" => ("aten::__not__", 1),
        "__IS__" => ("aten::__is__", 2),
        "__ISNOT__" => ("aten::__isnot__", 2),
        "__CONTAINS__" => ("aten::__contains__", 2),
        "DICT_INDEX" => ("aten::__getitem__", 2),
        _ => return None,
    })
}
