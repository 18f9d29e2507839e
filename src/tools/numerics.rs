//! What rewrite rules must promise about numbers, as every command that runs passes takes it: `--fast-math`,
//! `--nan-relaxed`, `--contract`. Rules of a user's file that the contract in force leaves out are reported, never
//! dropped in silence. Nothing here knows how rules are applied.

use super::io::Io;
use crate::diag::{Diagnostic, Result, Source, files, render};
use crate::passes::Pipeline;
use crate::rewrite::{self, syntax::Contract};
use crate::toolkit::Toolkit;
use clap::Args;
use clap::builder::PossibleValuesParser;

/// Options of a command for the contract of rules.
#[derive(Args, Clone, Debug, Default)]
pub struct Numerics {
    /// Contract of rewrite rules where the pipeline does not set one: 'exact' (same bits; the default), 'nan-relaxed' or
    /// 'fast-math'
    #[arg(long, value_name = "CONTRACT", value_parser = PossibleValuesParser::new(Contract::NAMES), hide_possible_values = true)]
    contract: Option<String>,
    /// The same as --contract=fast-math: rules may reorder and contract floating-point arithmetic
    #[arg(long, conflicts_with = "contract")]
    fast_math: bool,
    /// The same as --contract=nan-relaxed: rules may assume that there are no NaNs and infinities, and that -0 is 0
    #[arg(long, conflicts_with_all = ["contract", "fast_math"])]
    nan_relaxed: bool,
}

impl Numerics {
    /// The contract that was asked for, if one was.
    pub fn contract(&self) -> Option<Contract> {
        match self.contract.as_deref() {
            Some(name) => Contract::named(name),
            None if self.fast_math => Some(Contract::FastMath),
            None if self.nan_relaxed => Some(Contract::NanRelaxed),
            None => None,
        }
    }

    /// Reads a pipeline and puts it under the contract.
    pub fn pipeline(&self, text: &str, toolkit: &Toolkit) -> Result<Pipeline> {
        let mut pipeline = toolkit.parse_pipeline(text)?;
        if let Some(contract) = self.contract() {
            pipeline.set_default("contract", contract.name());
        }
        Ok(pipeline)
    }

    /// The same, with a warning for each rule of the pipeline's rule files that its contract leaves out.
    pub fn checked_pipeline(&self, text: &str, io: &mut Io<'_>) -> Result<Pipeline> {
        let pipeline = self.pipeline(text, io.toolkit)?;
        warn_left_out(&pipeline, io)?;
        Ok(pipeline)
    }
}

/// Warns of the rules in the pipeline's rule files that a contract leaves out.
pub fn warn_left_out(pipeline: &Pipeline, io: &mut Io<'_>) -> Result<()> {
    for odd in left_out(pipeline)? {
        io.message(&render::human(&odd));
    }
    Ok(())
}

/// A warning for each rule of a file that a pass of the pipeline reads and leaves out for its contract.
fn left_out(pipeline: &Pipeline) -> Result<Vec<Diagnostic>> {
    let mut seen: Vec<(String, Contract)> = Vec::new();
    for (_, options) in pipeline.passes() {
        let file = options.text("rules").unwrap_or("");
        let contract = options.text("contract").ok().and_then(Contract::named).unwrap_or_default();
        if !file.is_empty() && !seen.iter().any(|(f, c)| f == file && *c == contract) {
            seen.push((file.to_string(), contract));
        }
    }
    let mut found = Vec::new();
    for (file, contract) in seen {
        let text = files::read_text(std::path::Path::new(&file))
            .map_err(|e| Diagnostic::input(format!("{file}: {e}")))?;
        for rule in rewrite::parse(&Source::new(file.as_str(), text))? {
            if contract.admits(rule.contract) {
                continue;
            }
            let (name, own, in_force) = (&rule.name, rule.contract.name(), contract.name());
            let message =
                format!("rule {name} is not applied: it is {own}, and the contract in force is {in_force}");
            let hint = format!("--{own} applies it, or simplify{{contract={own}}} in the pipeline");
            found.push(Diagnostic::compile(message).at(&rule.span).hint(hint).warning());
        }
    }
    Ok(found)
}
