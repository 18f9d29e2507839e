//! Passes that are a group of rewrite rules: [`super::Pass::rules`], where cost decides, and [`super::Pass::directed`], where
//! the rules do.

use super::{Context, PassOption, simplify};
use crate::diag::{Diagnostic, Result};
use crate::ir::Graph;
use crate::rewrite::{self, CompiledRule, Replaced};
use std::sync::Arc;

/// What such a pass takes where cost decides: the options of `simplify` but the file of further rules.
pub(super) const OPTIONS: &[PassOption] = simplify::OPTIONS.split_at(1).1;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>, group: &str) -> Result<bool> {
    let rules = rules(context, group, false)?;
    let contract = simplify::contract(context).unwrap_or_default();
    let manner = simplify::Manner { one_by_one: false, contract };
    Ok(simplify::apply(graph, context, &rules, &manner)?.replaced > 0)
}

/// What a pass does besides, once its rules have replaced something.
pub type Then = fn(&mut Graph, &Context<'_>, &Replaced) -> Result<()>;

/// A directed group as a pass.
#[derive(Clone, Copy, Debug)]
pub struct Directed {
    group: &'static str,
    keeps_matched: bool,
    then: Option<Then>,
}

impl Directed {
    /// The rules of a group that the rule file declares `directed`, to be found when the pass runs.
    pub const fn group(group: &'static str) -> Directed {
        Directed { group, keeps_matched: false, then: None }
    }

    /// The matched ops stay, even if unused.
    pub const fn keeps_matched(mut self) -> Directed {
        self.keeps_matched = true;
        self
    }

    /// What is done once something was replaced.
    pub const fn then(mut self, then: Then) -> Directed {
        self.then = Some(then);
        self
    }

    pub(super) fn run(self, graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
        let rules = rules(context, self.group, true)?;
        let replaced = rewrite::replace(
            graph,
            context.registry,
            Some(context.module),
            &rules,
            self.keeps_matched,
            &mut |graph, rule, op| {
                context.step(|| format!("{} takes {}", rule.name, graph.op_line(op).trim()))
            },
        );
        context.count("ops replaced", replaced.count as u64);
        if replaced.count == 0 {
            return Ok(false);
        }
        context.changed();
        if let Some(then) = self.then {
            then(graph, context, &replaced)?;
        }
        Ok(true)
    }
}

/// Drops dropout that does nothing; freezing does so too.
pub(super) const REMOVE_DROPOUT: Directed = Directed::group("remove-dropout");

/// The rules of a group; fails where the other kind of pass is meant for them.
fn rules(context: &Context<'_>, group: &str, directed: bool) -> Result<Arc<[CompiledRule]>> {
    let rules = rewrite::group(context.registry, group)?;
    match rules.iter().find(|rule| rule.directed != directed) {
        None => Ok(rules),
        Some(other) if directed => Err(Diagnostic::input(format!("rule group '{group}' is not directed"))
            .at(&other.span)
            .hint("a pass of `Pass::directed` takes groups that begin `group NAME directed {`")),
        Some(other) => Err(Diagnostic::input(format!("rule group '{group}' is directed"))
            .at(&other.span)
            .hint("`Pass::directed` makes a pass of such a group")),
    }
}
