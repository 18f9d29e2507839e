//! `flambeau rules`: checks a file of rewrite rules by running both sides of each on random instances.

use super::case::encode;
use super::io::Io;
use super::progress::Progress;
use crate::diag::{Diagnostic, Result, Source, files, render};
use crate::dialects::{Registry, Run};
use crate::resources::budget;
use crate::rewrite::check::{Counterexample, Effort, Verdict, check};
use crate::rewrite::syntax::{Contract, Rule};
use crate::rewrite::{self, compile};
use crate::runtime::ScriptComposites;
use crate::tensor::Layout;
use crate::toolkit::Toolkit;
use crate::tools::limits::LimitOptions;
use crate::tools::threads::ThreadOptions;
use crate::value::Value;
use clap::{Args, Subcommand};
use hashbrown::HashMap;
use indexmap::IndexSet;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `flambeau rules`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Run both sides of each rule on random instances; reject unsound rules with a counterexample
    Check {
        /// The rules; `-` is standard input
        #[arg(required_unless_present = "group")]
        file: Option<PathBuf>,
        /// Check a rule group of this program instead of a file
        #[arg(long, value_name = "NAME", conflicts_with = "file")]
        group: Option<String>,
        /// Valid instances of each rule
        #[arg(long, default_value_t = 1000)]
        samples: usize,
        /// Draw other instances: a search over many of them runs the command with many numbers
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        /// Load a dialect definition file
        #[arg(long, value_name = "FILE")]
        dialect: Vec<PathBuf>,
    },
}

/// Runs the command; gives whether no rule was refused.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    options.threads.set();
    match &options.action {
        Action::Check { file, group, samples, seed, dialect } => {
            let toolkit = io.toolkit_with(dialect)?;
            let registry = toolkit.registry();
            let rules = match file {
                Some(file) => {
                    let text = io.read_text(file)?;
                    rewrite::parse(&Source::new(file.display().to_string(), text))?
                }
                None => of_group(&toolkit, group.as_deref().unwrap_or_default())?,
            };
            let odd = rewrite::lint(registry, &rules);
            budget::check()?;
            odd.iter().for_each(|odd| io.message(&render::human(odd)));
            let run = environment(registry);
            let (mut accepted, mut refused) = (0, 0);
            let mut checker = Checker::new(Effort::samples(*samples).seed(*seed), registry, &run);
            let progress = Progress::new("rules", rules.len(), io);
            for rule in &rules {
                progress.about(&rule.name);
                if let Err(error) = compile(registry, rule) {
                    progress.hidden(|| io.message(&render::human(&error)));
                }
                let (ok, line) = checker.line(rule)?;
                if ok {
                    accepted += 1;
                } else {
                    refused += 1;
                }
                progress.hidden(|| io.print(&line));
                progress.step();
            }
            progress.end();
            io.print(&format!("{accepted} accepted, {refused} refused\n"));
            Ok(refused == 0)
        }
    }
}

/// The rules of a group as written.
fn of_group(toolkit: &Toolkit, name: &str) -> Result<Vec<Rule>> {
    let all = rewrite::written(toolkit.registry())?;
    let groups: IndexSet<&str> = all.iter().filter_map(|rule| rule.group.as_deref()).collect();
    if !groups.contains(name) {
        let error = Diagnostic::usage(format!("there is no rule group '{name}'"));
        return Err(error.note(format!("groups are {}", groups.into_iter().collect::<Vec<_>>().join(", "))));
    }
    Ok(all.iter().filter(|rule| rule.group.as_deref() == Some(name)).cloned().collect())
}

/// Checks a file of rules before it is used; fails at the first rule that is refused, and gives what is odd about
/// the others. `dialects` are the texts of the dialects that the registry has besides the built-in ones. Verdicts are
/// kept beside the user's other caches by content, so that the same file is checked once.
pub fn check_file(file: &Path, registry: &Arc<Registry>, dialects: &[String]) -> Result<Vec<Diagnostic>> {
    let text = files::text(file)?;
    let rules = rewrite::parse(&Source::new(file.display().to_string(), text.as_str()))?;
    let odd = rewrite::lint(registry, &rules);
    // What ops mean is part of what was checked.
    let mut content = text.clone();
    for dialect in dialects {
        content.push('\0');
        content += dialect;
    }
    let known = verdict_file(&content);
    if known.as_ref().is_some_and(|path| is_verdict_on(path, &content)) {
        return Ok(odd);
    }
    budget::check()?;
    let run = environment(registry);
    let mut checker = Checker::new(Effort::samples(200), registry, &run);
    for rule in &rules {
        compile(registry, rule)?;
        let (ok, line) = checker.line(rule)?;
        if !ok {
            return Err(Diagnostic::compile(line.trim().to_string())
                .at(&rule.span)
                .hint("`flambeau rules check FILE` checks all rules of a file"));
        }
    }
    if let Some(path) = known {
        // A cache that cannot be written costs a second check and nothing else.
        let _ = keep(&path, &content);
    }
    Ok(odd)
}

/// Whether a file of the cache speaks of this very text: sums may collide, texts do not.
fn is_verdict_on(path: &Path, content: &str) -> bool {
    files::read_text(path).is_ok_and(|kept| kept.strip_prefix(SOUND) == Some(content))
}

/// Writes a verdict to a temporary file and renames it, so that it is never read incomplete.
fn keep(path: &Path, content: &str) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    let draft = folder.join(format!("draft-{}", std::process::id()));
    // One of a process that died.
    let _ = std::fs::remove_file(&draft);
    files::create(&draft, format!("{SOUND}{content}").as_bytes())?;
    std::fs::rename(&draft, path)
}

/// What a kept verdict begins with; the text that it is about follows.
const SOUND: &str = "sound\n";

/// Where the verdict on a text is kept: by a checksum and the length of the text, and by this program, as ops mean
/// what its version says.
fn verdict_file(text: &str) -> Option<PathBuf> {
    // As the XDG specification has it, a path that is empty or relative counts as unset.
    let root = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| {
            std::env::var_os("HOME")
                .map(|home| PathBuf::from(home).join(".cache"))
                .filter(|path| path.is_absolute())
        })?;
    let name = format!("{}-{:08x}-{}", program(), crc32fast::hash(text.as_bytes()), text.len());
    Some(root.join("flambeau").join("rules").join(name))
}

/// The version of this program, and the size and age of its file: two builds of one version may differ.
fn program() -> String {
    let built = std::env::current_exe().and_then(std::fs::metadata).ok();
    let size = built.as_ref().map_or(0, std::fs::Metadata::len);
    let age = built
        .and_then(|m| m.modified().ok())
        .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |d| d.as_secs());
    format!("{}-{size:x}-{age:x}", env!("CARGO_PKG_VERSION"))
}

/// A world without output, in which ops that are defined by text run.
pub fn environment(registry: &Arc<Registry>) -> Run {
    let run = Run::silent().with_composites(ScriptComposites::of(registry));
    run.set_grad_enabled(false);
    run
}

/// Checks rules one after the other; of those that say the same, the first.
pub struct Checker<'a> {
    effort: Effort,
    registry: &'a Registry,
    run: &'a Run,
    /// Whether a law may be applied, and why, by its text.
    known: HashMap<String, (bool, String)>,
}

impl<'a> Checker<'a> {
    /// One that has seen no rule yet.
    pub fn new(effort: Effort, registry: &'a Registry, run: &'a Run) -> Checker<'a> {
        Checker { effort, registry, run, known: HashMap::new() }
    }

    /// Whether a rule may be applied, and the line that says so. Fails where a limit of the run is reached.
    pub fn line(&mut self, rule: &Rule) -> Result<(bool, String)> {
        let known = self.known.get(rule.law()).cloned();
        let (ok, why) = match known {
            Some(known) => known,
            None => {
                let checked = check_law(rule, self.effort, self.registry, self.run)?;
                self.known.insert(rule.law().to_string(), checked.clone());
                checked
            }
        };
        Ok((ok, format!("{} {}{why}\n", if ok { "ok" } else { "REFUSED" }, rule.name)))
    }
}

/// Checks a rule in all its readings; whether it may be applied, and why.
fn check_law(rule: &Rule, effort: Effort, registry: &Registry, run: &Run) -> Result<(bool, String)> {
    let compiled = match compile(registry, rule) {
        Ok(compiled) => compiled,
        Err(error) => return Ok((false, format!(": {}", one_line(&error)))),
    };
    if rule.contract == Contract::Trusted {
        return Ok((true, " (trusted, not checked)".to_string()));
    }
    let mut instances = 0;
    let mut untestable = String::new();
    // Several readings share the samples.
    let least = effort.samples.min(150).min(3_000 / compiled.len().max(1)).max(1);
    let effort = Effort { samples: (effort.samples / compiled.len()).max(least), ..effort };
    for reading in &compiled {
        match check(reading, effort, run)? {
            Verdict::Sound { instances: n } => instances += n,
            Verdict::Refuted(found) => return Ok((false, refused(&found))),
            Verdict::Untestable { reason } => untestable = reason,
        }
    }
    if instances == 0 {
        return Ok((false, format!(": untestable: {untestable}")));
    }
    Ok((true, format!(" ({}, {instances} instances)", rule.contract.name())))
}

fn one_line(error: &Diagnostic) -> String {
    let place = error.report().span.as_ref().map(|span| {
        let (line, column) = span.line_column();
        format!("{line}:{}: ", column + 1)
    });
    let hint = error.report().hints.first().map_or(String::new(), |hint| format!(" ({hint})"));
    format!("{}{}{hint}", place.unwrap_or_default(), error.message().replace('\n', " "))
}

/// `: x=… left=… right=…`, each value as cases encode it.
fn refused(found: &Counterexample) -> String {
    let mut line = ":".to_string();
    for (variable, value) in &found.variables {
        let _ = write!(line, " {variable}={}", shown(value));
    }
    let _ = write!(line, " left={}", shown(&found.left));
    let right = match &found.right {
        Ok(value) => shown(value),
        Err(error) => raises(error),
    };
    let _ = write!(line, " right={right}");
    for (variable, left, right) in &found.after {
        let _ =
            write!(line, " {variable}.after.left={} {variable}.after.right={}", shown(left), shown(right));
    }
    if !found.shared.is_empty() {
        // What is written to one is seen in the other.
        let _ =
            write!(line, " shared={}", json!(found.shared.iter().map(|name| &**name).collect::<Vec<_>>()));
    }
    line
}

fn raises(error: &Diagnostic) -> String {
    let class = error.report().class.clone().unwrap_or_else(|| "RuntimeError".to_string());
    json!({"raises": {"when": "run", "class": class, "message": error.message()}}).to_string()
}

/// A value as cases encode it; a tensor that does not lie as its sizes alone would have it says its strides besides.
fn shown(value: &Value) -> String {
    let mut json = encode(value).unwrap_or_else(|error| json!({"unsupported": error.message()}));
    if let (Value::Tensor(t), Some(object)) = (value, json.get_mut("tensor").and_then(Json::as_object_mut))
        && Layout::contiguous(&t.sizes()).is_ok_and(|plain| plain.strides != t.strides())
    {
        object.insert("strides".to_string(), json!(t.strides().as_slice()));
    }
    json.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::pool;

    /// Fewer instances than the command takes, so that all rules are done in seconds.
    const EFFORT: Effort = Effort { samples: 15, exhaustive: 600, evaluations: 12_000, seed: 0 };

    /// For rules whose left sides seldom fit together: convolutions with all their operands.
    const PATIENT: Effort = Effort { samples: 2, exhaustive: 600, evaluations: 400_000, seed: 0 };

    #[test]
    fn no_built_in_rule_lies() {
        let rules = rewrite::builtin_rules().expect("the files are valid");
        let refused = pool::jobs(pool::cores(), 8 << 20, rules.len(), |n| {
            let rule = &rules[n];
            let registry = Registry::builtin();
            let run = environment(&registry);
            let checked =
                |effort: Effort| Checker::new(effort, &registry, &run).line(rule).expect("no limits");
            let (mut ok, mut line) = checked(EFFORT);
            if line.contains("untestable") {
                (ok, line) = checked(PATIENT);
            }
            (!ok).then_some(line)
        });
        let refused: Vec<String> = refused.into_iter().flatten().collect();
        assert!(refused.is_empty(), "{}", refused.concat());
    }

    #[test]
    fn a_verdict_holds_for_its_text_alone() {
        let folder = std::env::temp_dir().join(format!("flambeau-verdicts-{}", std::process::id()));
        let path = folder.join("verdict");
        assert!(!is_verdict_on(&path, "a => b"));
        keep(&path, "a => b").unwrap();
        assert!(is_verdict_on(&path, "a => b"));
        // Another text with the same sum would ask for the same file.
        assert!(!is_verdict_on(&path, "a => c"));
        assert!(!is_verdict_on(&path, "a => b, and more"));
        let files = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["verdict"], "the draft is gone");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn texts_of_one_length_have_verdicts_of_their_own() {
        assert_ne!(verdict_file("x"), verdict_file("y"));
        assert_eq!(verdict_file("x"), verdict_file("x"));
    }

    #[test]
    fn liars_are_refused() {
        let unsound = [
            "rule a exact aten::div(?x: Tensor, ?x) => aten::ones_like(?x) if is_float(?x)",
            "rule b exact aten::log(aten::exp(?x: Tensor)) => ?x if is_float(?x)",
            "rule c exact aten::mul(?x: Tensor, 0) => aten::zeros_like(?x) if is_float(?x)",
            "rule d exact aten::mul(?x: Tensor, aten::ones_like(?y: Tensor)) => ?x",
            "rule e exact aten::gt(aten::add(?x: int, 1), ?x) => true",
            "rule f exact aten::relu_(?x: Tensor) => aten::relu(?x)",
            "rule g exact aten::mul(aten::floordiv(?x: int, ?y: int), ?y) => ?x",
            "rule h exact aten::mm(?a: Tensor, ?b: Tensor) => aten::mm(?b, ?a)",
        ];
        for text in unsound {
            let rules = rewrite::parse(&Source::new("t.rules", text)).expect("a rule");
            let registry = Registry::builtin();
            let run = environment(&registry);
            let mut checker = Checker::new(Effort::samples(200), &registry, &run);
            let (ok, line) = checker.line(&rules[0]).expect("no limits");
            assert!(!ok && line.contains(" left=") && line.contains(" right="), "{text}: {line}");
        }
    }

    #[test]
    fn rules_that_say_the_same_are_checked_once() {
        let rule = "exact aten::neg(aten::neg(?x: Tensor)) => ?x if is_float(?x)";
        let text: String = (0..2_000).map(|n| format!("rule r{n} {rule}\n")).collect();
        let rules = rewrite::parse(&Source::new("t.rules", text)).expect("rules");
        let registry = Registry::builtin();
        let run = environment(&registry);
        let mut checker = Checker::new(Effort::samples(20), &registry, &run);
        let lines: Vec<String> = rules.iter().map(|rule| checker.line(rule).expect("no limits").1).collect();
        assert_eq!(checker.known.len(), 1);
        assert_eq!(lines[1_999], lines[0].replace("r0", "r1999"));
    }

    #[test]
    fn a_limit_of_time_ends_the_check() {
        use crate::resources::{Budget, Limits};
        let text = "rule r exact aten::neg(aten::neg(?x: Tensor)) => ?x if is_float(?x)";
        let rules = rewrite::parse(&Source::new("t.rules", text)).expect("a rule");
        let registry = Registry::builtin();
        let limits = Limits { time: Some(std::time::Duration::ZERO), ..Limits::default() };
        let _installed = Arc::new(Budget::new(limits)).install();
        let run = environment(&registry);
        let error = Checker::new(Effort::samples(1_000_000), &registry, &run).line(&rules[0]);
        assert!(error.expect_err("late").message().contains("time limit"));
    }
}
