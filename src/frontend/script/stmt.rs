//! From the grammar's pairs to statements, functions and classes.

use super::ast::{Class, Decl, Def, Expr, ExprKind, Item, Module, Param, Stmt, StmtKind, WithItem};
use super::expr::{Builder, Extent, augmented, extents, lost};
use super::grammar::Rule;
use super::layout::Form;
use crate::diag::{Diagnostic, Result};
use pest::iterators::Pair;

/// Statements of a block and the range PyTorch gives to their list.
struct Block {
    stmts: Vec<Stmt>,
    extent: Extent,
}

impl Builder<'_> {
    /// The whole of a `unit` or a `library`.
    pub(super) fn module(&self, pair: Pair<'_, Rule>) -> Result<Module> {
        let mut items = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::def => items.push(Item::Def(self.def(part, false)?)),
                Rule::class => items.push(Item::Class(self.class(part)?)),
                _ => {}
            }
        }
        Ok(Module { items })
    }

    fn class(&self, pair: Pair<'_, Rule>) -> Result<Class> {
        let mut parts = pair.into_inner();
        let name = self.ident(&parts.next().ok_or_else(|| lost("class name"))?);
        let (mut base, mut block) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::base => base = self.exprs(part)?.pop(),
                Rule::block => block = Some(self.block(part, true)?),
                _ => {}
            }
        }
        let block = block.ok_or_else(|| lost("class body"))?;
        let own = Extent::from(&name.span);
        let span = self.span(own.over(base.as_ref().map(Extent::from)).over([block.extent]));
        Ok(Class { name, base, body: block.stmts, span })
    }

    pub(super) fn def(&self, pair: Pair<'_, Rule>, is_method: bool) -> Result<Def> {
        let mut parts = pair.into_inner();
        let name = self.ident(&parts.next().ok_or_else(|| lost("function name"))?);
        let params = parts.next().ok_or_else(|| lost("parameters"))?;
        // The range of an absent result type is that of the token there, the colon.
        let after = Extent::from(self.next(&params));
        let (params_extent, params) = self.params(params)?;
        let (mut returns, mut block) = (None, None);
        let mut signature = None;
        for part in parts {
            match part.as_rule() {
                Rule::returns => returns = self.exprs(part)?.pop(),
                Rule::body => (signature, block) = self.body(part, is_method)?,
                _ => {}
            }
        }
        let block = block.ok_or_else(|| lost("function body"))?;
        let result = returns.as_ref().map_or(after, Extent::from);
        let mut decl = Decl { params, returns, span: self.span(params_extent.over([result])) };
        if let Some(signature) = signature {
            // A method of Python comes without its class; its comment leaves `self` out.
            let alone = self.layout.form() == Form::Python && signature.params.len() + 1 == decl.params.len();
            let is_method = is_method || alone && decl.params.first().is_some_and(|p| p.name.name == "self");
            decl = self.merge_signature(decl, params_extent, signature, is_method)?;
        }
        let span = self.span(Extent::from(&name.span).over([Extent::from(&decl.span), block.extent]));
        Ok(Def { name, decl, body: block.stmts, span })
    }

    fn params(&self, pair: Pair<'_, Rule>) -> Result<(Extent, Vec<Param>)> {
        let mut extent = Extent::from(self.first(&pair));
        let mut params = Vec::new();
        let mut keyword_only = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::star => keyword_only = true,
                Rule::param => {
                    let param = self.param(part, keyword_only)?;
                    extent = extent.over([Extent::from(&param.span)]);
                    params.push(param);
                }
                _ => {}
            }
        }
        Ok((extent, params))
    }

    fn param(&self, pair: Pair<'_, Rule>, keyword_only: bool) -> Result<Param> {
        let after = Extent::from(self.next(&pair));
        let mut parts = pair.into_inner();
        let name = parts.next().ok_or_else(|| lost("parameter"))?;
        let (own, name) = (Extent::from(self.next(&name)), self.ident(&name));
        let (mut annotation, mut default) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::annotation => annotation = self.exprs(part)?.pop(),
                _ => default = self.exprs(part)?.pop(),
            }
        }
        // What is absent has the range of the token that stands in its place.
        let annotated = annotation.as_ref().map_or(own, Extent::from);
        let defaulted = default.as_ref().map_or(after, Extent::from);
        let span = self.span(Extent::from(&name.span).over([annotated, defaulted]));
        Ok(Param { name, annotation, default, keyword_only, span })
    }

    /// A function's type comment, and its statements.
    fn body(&self, pair: Pair<'_, Rule>, is_method: bool) -> Result<(Option<Signature>, Option<Block>)> {
        let after = Extent::from(self.next(&pair));
        let Some(first) = pair.clone().into_inner().next() else { return Err(lost("function body")) };
        let (parts, is_block) = match first.as_rule() {
            Rule::block_body => (first.into_inner(), true),
            _ => (pair.into_inner(), false),
        };
        let mut signature = None;
        let mut extent = None;
        let mut stmts = Vec::new();
        for part in parts {
            match part.as_rule() {
                Rule::signature => signature = Some(self.signature(part)?),
                Rule::newline => {}
                _ => {
                    extent = extent.or(Some(Extent::from(self.first(&part))));
                    stmts.push(self.stmt(part, is_method && !is_block)?);
                }
            }
        }
        let extent = if is_block { extent.unwrap_or(after) } else { after };
        let extent = extent.over(stmts.iter().map(|s| Extent::from(&s.span)));
        Ok((signature, Some(Block { stmts, extent })))
    }

    fn signature(&self, pair: Pair<'_, Rule>) -> Result<Signature> {
        let (mut params, mut returns) = (Vec::new(), None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => params.push(self.expr(part)?),
                Rule::returns => returns = self.exprs(part)?.pop(),
                _ => {}
            }
        }
        Ok(Signature { params, returns })
    }

    /// Gives the parameters the types of a type comment, which must name one for each, `self` aside.
    fn merge_signature(
        &self,
        decl: Decl,
        own: Extent,
        signature: Signature,
        is_method: bool,
    ) -> Result<Decl> {
        let skipped = usize::from(is_method);
        let expected = decl.params.len().saturating_sub(skipped);
        let found = signature.params.len();
        if expected != found {
            let what = if is_method { "method" } else { "function" };
            let message = format!(
                "Number of type annotations ({found}) did not match the number of {what} parameters ({expected})"
            );
            return Err(Diagnostic::compile(message).at(&decl.span));
        }
        let mut params = decl.params;
        for (param, annotation) in params.iter_mut().skip(skipped).zip(signature.params) {
            param.span = self.span(Extent::from(&param.span).over([Extent::from(&annotation)]));
            param.annotation = Some(annotation);
        }
        let parts = params.iter().map(|p| Extent::from(&p.span));
        let parts = parts.chain(signature.returns.as_ref().map(Extent::from));
        let span = self.span(Extent::from(&decl.span).over([own]).over(parts));
        Ok(Decl { params, returns: signature.returns, span })
    }

    fn block(&self, pair: Pair<'_, Rule>, in_class: bool) -> Result<Block> {
        let mut extent = Extent::from(self.first(&pair));
        let mut stmts = Vec::new();
        for part in pair.into_inner().filter(|p| p.as_rule() != Rule::indent) {
            let stmt = self.stmt(part, in_class)?;
            extent = extent.over([Extent::from(&stmt.span)]);
            stmts.push(stmt);
        }
        Ok(Block { stmts, extent })
    }

    fn stmt(&self, pair: Pair<'_, Rule>, in_class: bool) -> Result<Stmt> {
        let own = Extent::from(self.first(&pair));
        match pair.as_rule() {
            Rule::simple => self.simple(pair),
            Rule::if_stmt => self.if_stmt(pair),
            Rule::for_stmt => self.for_stmt(pair),
            Rule::while_stmt => self.while_stmt(pair),
            Rule::with_stmt => self.with_stmt(pair),
            Rule::return_stmt => self.return_stmt(pair),
            Rule::def => {
                let def = Box::new(self.def(pair, in_class)?);
                let span = def.span.clone();
                Stmt::new(StmtKind::Def(def), span)
            }
            Rule::global_stmt => {
                let is_ident = |p: &Pair<'_, Rule>| p.as_rule() == Rule::ident;
                let names: Vec<_> = pair.into_inner().filter(is_ident).map(|p| self.ident(&p)).collect();
                let span = self.span(own.over(names.iter().map(|n| Extent::from(&n.span))));
                Stmt::new(StmtKind::Global(names), span)
            }
            Rule::pass_stmt => Stmt::new(StmtKind::Pass, self.span(own)),
            Rule::break_stmt => Stmt::new(StmtKind::Break, self.span(own)),
            Rule::continue_stmt => Stmt::new(StmtKind::Continue, self.span(own)),
            rule => {
                let exprs = self.exprs(pair)?;
                let span = self.span(own.over(extents(&exprs)));
                let mut exprs = exprs.into_iter();
                let kind = match (rule, exprs.next(), exprs.next()) {
                    (Rule::raise_stmt, Some(exception), _) => StmtKind::Raise(exception),
                    (Rule::assert_stmt, Some(cond), message) => StmtKind::Assert { cond, message },
                    (Rule::del_stmt, first, second) => {
                        StmtKind::Delete(first.into_iter().chain(second).chain(exprs).collect())
                    }
                    _ => return Err(lost("statement")),
                };
                Stmt::new(kind, span)
            }
        }
    }

    fn return_stmt(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        let own = Extent::from(self.first(&pair));
        let value = match pair.into_inner().find(|p| p.as_rule() == Rule::values) {
            Some(values) => self.values(values)?,
            None => Expr::new(ExprKind::None, self.span(own))?,
        };
        let span = self.span(own.over([Extent::from(&value)]));
        Stmt::new(StmtKind::Return(value), span)
    }

    /// The chain of `if`, `elif`, `else`, built from its end.
    fn if_stmt(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        // What is absent has the range of the token that stands in its place.
        let mut rest = Block { stmts: Vec::new(), extent: self.next(&pair).into() };
        let own = Extent::from(self.first(&pair));
        let mut arms = Vec::new();
        let mut first = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => first.0 = Some(self.expr(part)?),
                Rule::block => first.1 = Some(self.block(part, false)?),
                Rule::elif => arms.push(self.condition_and_block(part)?),
                Rule::else_part => rest = self.inner_block(part)?,
                _ => {}
            }
        }
        let (Some(cond), Some(then)) = first else { return Err(lost("condition")) };
        for (cond, then) in arms.into_iter().rev() {
            // PyTorch lets an `elif` begin with its condition.
            let own = Extent::from(&cond);
            let stmt = self.if_node(own, cond, then, rest)?;
            rest = Block { extent: Extent::from(&stmt.span), stmts: vec![stmt] };
        }
        self.if_node(own, cond, then, rest)
    }

    fn if_node(&self, own: Extent, cond: Expr, then: Block, otherwise: Block) -> Result<Stmt> {
        let span = self.span(own.over([Extent::from(&cond), then.extent, otherwise.extent]));
        Stmt::new(StmtKind::If { cond, then: then.stmts, otherwise: otherwise.stmts }, span)
    }

    fn condition_and_block(&self, pair: Pair<'_, Rule>) -> Result<(Expr, Block)> {
        let (mut cond, mut block) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => cond = Some(self.expr(part)?),
                Rule::block => block = Some(self.block(part, false)?),
                _ => {}
            }
        }
        cond.zip(block).ok_or_else(|| lost("condition or block"))
    }

    /// The block among the children of a pair.
    fn inner_block(&self, pair: Pair<'_, Rule>) -> Result<Block> {
        let block = pair.into_inner().find(|p| p.as_rule() == Rule::block);
        self.block(block.ok_or_else(|| lost("block"))?, false)
    }

    fn while_stmt(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        let own = Extent::from(self.first(&pair));
        let (cond, block) = self.condition_and_block(pair)?;
        let span = self.span(own.over([Extent::from(&cond), block.extent]));
        Stmt::new(StmtKind::While { cond, body: block.stmts }, span)
    }

    fn for_stmt(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        let mut extent = Extent::from(self.first(&pair));
        let (mut targets, mut iters, mut body) = (Vec::new(), Vec::new(), Vec::new());
        for part in pair.into_inner() {
            let first = Extent::from(self.first(&part));
            match part.as_rule() {
                Rule::targets => {
                    targets = self.exprs(part)?;
                    extent = extent.over([first]).over(extents(&targets));
                }
                Rule::iterables => {
                    iters = self.exprs(part)?;
                    extent = extent.over([first]).over(extents(&iters));
                }
                Rule::block => {
                    let block = self.block(part, false)?;
                    extent = extent.over([block.extent]);
                    body = block.stmts;
                }
                _ => {}
            }
        }
        Stmt::new(StmtKind::For { targets, iters, body }, self.span(extent))
    }

    fn with_stmt(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        let mut extent = Extent::from(self.first(&pair));
        let (mut items, mut body) = (Vec::new(), Vec::new());
        for part in pair.into_inner() {
            extent = extent.over([Extent::from(self.first(&part))]);
            match part.as_rule() {
                Rule::with_items => {
                    let is_item = |p: &Pair<'_, Rule>| p.as_rule() == Rule::with_item;
                    items = part
                        .into_inner()
                        .filter(is_item)
                        .map(|p| self.with_item(p))
                        .collect::<Result<_>>()?;
                    extent = extent.over(items.iter().map(|i: &WithItem| Extent::from(&i.span)));
                }
                Rule::block => {
                    let block = self.block(part, false)?;
                    extent = extent.over([block.extent]);
                    body = block.stmts;
                }
                _ => {}
            }
        }
        Stmt::new(StmtKind::With { items, body }, self.span(extent))
    }

    fn with_item(&self, pair: Pair<'_, Rule>) -> Result<WithItem> {
        let mut parts = pair.into_inner();
        let context = self.expr(parts.next().ok_or_else(|| lost("manager"))?)?;
        let target = parts.next().map(|p| self.ident(&p));
        let extent = Extent::from(&context).over(target.as_ref().map(|t| Extent::from(&t.span)));
        Ok(WithItem { context, target, span: self.span(extent) })
    }

    /// An expression alone, an assignment, or a declaration.
    fn simple(&self, pair: Pair<'_, Rule>) -> Result<Stmt> {
        let mut annotation = None;
        let mut op = None;
        let mut sides = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::values => sides.push(self.values(part)?),
                Rule::annotation => annotation = self.exprs(part)?.pop(),
                Rule::augment => op = augmented(part.as_str().trim_end()),
                _ => {}
            }
        }
        let parts: Vec<Extent> = extents(&sides).chain(annotation.as_ref().map(Extent::from)).collect();
        let own = *parts.first().ok_or_else(|| lost("statement"))?;
        let value = if sides.len() > 1 { sides.pop() } else { None };
        let kind = match (op, value) {
            (Some(op), Some(value)) => {
                let target = sides.pop().ok_or_else(|| lost("target"))?;
                if matches!(target.kind, ExprKind::Tuple(_)) {
                    let message = " augmented assignment can only have one LHS expression";
                    return Err(Diagnostic::compile(message).at(&target.span));
                }
                StmtKind::AugAssign { target, op, value }
            }
            (_, None) if annotation.is_none() => {
                StmtKind::Expr(sides.pop().ok_or_else(|| lost("expression"))?)
            }
            (_, value) => {
                if let Some(annotation) = annotation.as_ref().filter(|_| sides.len() > 1) {
                    let message = "Annotated multiple assignment is not supported in python";
                    return Err(Diagnostic::compile(message).at(&annotation.span));
                }
                StmtKind::Assign { targets: sides, annotation: annotation.take(), value }
            }
        };
        Stmt::new(kind, self.span(own.over(parts)))
    }
}

/// `# type: (params) -> returns`
struct Signature {
    params: Vec<Expr>,
    returns: Option<Expr>,
}
