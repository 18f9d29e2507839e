//! `modules()`, `named_children()`, `named_buffers()` and the like in a script: the module's class says what there is, so
//! that loops over them are unrolled. As in PyTorch, scripts cannot ask for `parameters()`.

use super::{Emitter, Sugared, iterate};
use crate::diag::{Result, Span};
use crate::ir::{Attr, ClassKind, Symbol, Type, ValueId};

/// What a method of modules gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// The module itself and all below it.
    Modules,
    /// The modules right below it.
    Children,
    /// Its own buffers.
    Buffers,
}

impl Emitter<'_> {
    /// What such a method of a module gives, each with its path where the method's name begins with `named_`; None where
    /// the value is not a module or the method another one. A module comes before those that it holds, and these in the
    /// order of its attributes.
    pub(super) fn module_members(
        &mut self,
        object: ValueId,
        method: &str,
        span: &Span,
    ) -> Result<Option<Vec<Sugared>>> {
        let Some((members, is_named)) = method_of(method) else { return Ok(None) };
        if !self.is_module(self.ty(object)) {
            return Ok(None);
        }
        let found = match members {
            Members::Modules => self.modules_below(object, span)?,
            Members::Children | Members::Buffers => self.held(object, "", members, span)?,
        };
        let item = |(path, value): (String, ValueId)| {
            let value = Sugared::Value(value);
            let path = Sugared::Constant(Type::str(), Attr::Str(path.as_str().into()));
            if is_named { Sugared::Tuple(vec![path, value]) } else { value }
        };
        Ok(Some(found.into_iter().map(item).collect()))
    }

    fn modules_below(&mut self, object: ValueId, span: &Span) -> Result<Vec<(String, ValueId)>> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), object)];
        while let Some((path, module)) = open.pop() {
            let inner = self.held(module, &path, Members::Children, span)?;
            found.push((path, module));
            open.extend(inner.into_iter().rev());
            // A class whose attribute is of the class itself would never end.
            if found.len() + open.len() > iterate::MAX_UNROLLED {
                return Err(iterate::too_much_unrolled(span));
            }
        }
        Ok(found)
    }

    /// The submodules or buffers right below a module, with their paths.
    fn held(
        &mut self,
        module: ValueId,
        path: &str,
        members: Members,
        span: &Span,
    ) -> Result<Vec<(String, ValueId)>> {
        let Some(class) = self.ty(module).class_name().and_then(|name| self.unit.module.class(name)) else {
            return Ok(Vec::new());
        };
        let of_kind = |a: &&crate::ir::ClassAttribute| match members {
            Members::Buffers => a.is_buffer,
            Members::Modules | Members::Children => self.is_module(&a.ty),
        };
        let rows: Vec<(Symbol, Type)> =
            class.attributes.iter().filter(of_kind).map(|a| (a.name, a.ty.clone())).collect();
        let mut found = Vec::with_capacity(rows.len());
        for (name, ty) in rows {
            let op = self.emit(Symbol::new("prim::GetAttr"), &[module], &[ty], span);
            self.graph.set_attr(op, "name", Attr::Str(name.as_str().into()));
            let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            found.push((path, self.only_result(op)));
        }
        Ok(found)
    }

    fn is_module(&self, ty: &Type) -> bool {
        let class = ty.class_name().and_then(|name| self.unit.module.class(name));
        class.is_some_and(|class| class.kind == ClassKind::Module)
    }
}

/// What a method gives, and whether with paths.
fn method_of(name: &str) -> Option<(Members, bool)> {
    Some(match name {
        "modules" => (Members::Modules, false),
        "named_modules" => (Members::Modules, true),
        "children" => (Members::Children, false),
        "named_children" => (Members::Children, true),
        "named_buffers" => (Members::Buffers, true),
        _ => return None,
    })
}
