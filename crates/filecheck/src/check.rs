//! Runs the checks over the input.
//!
//! `LABEL` checks cut the input into regions first; within a region each check starts where the one before
//! it ended. What is found and missed goes to [`Report`].

use super::Options;
use super::checkfile::Check;
use super::directive::Kind;
use super::pattern::{Found, Miss, Pattern};
use super::report::{Outcome, Report};
use super::source::{Level, Sources, Span};
use super::variables::Variables;

/// The check failed, and that was reported.
#[derive(Debug)]
struct Failed;

/// Runs `checks` over `input`; false if one failed.
pub fn run(
    sources: &Sources,
    input: Span,
    checks: &[Check],
    options: &Options,
    variables: &mut Variables,
    report: &mut Report<'_>,
) -> bool {
    let mut runner = Runner { sources, options, variables, report };
    runner.run(input, checks)
}

struct Runner<'a, 'r> {
    sources: &'a Sources,
    options: &'a Options,
    variables: &'a mut Variables,
    report: &'a mut Report<'r>,
}

impl Runner<'_, '_> {
    fn run(&mut self, input: Span, checks: &[Check]) -> bool {
        let mut rest = input;
        let mut failed = false;
        let mut done = 0;
        loop {
            let label = checks.iter().skip(done).position(|check| check.pattern.kind == Kind::Label);
            let end = label.map_or(checks.len(), |index| done + index + 1);
            let mut region = rest;
            if label.is_some()
                && let Some(check) = checks.get(end - 1)
            {
                let Ok(found) = self.find_counted(check, rest, 0) else { return false };
                region = rest.part(0, found.at + found.len);
                rest = rest.part(found.at + found.len, rest.len());
            }
            // The first region comes before any label and keeps what the command line defines.
            if done != 0 && self.options.enable_var_scope {
                self.variables.forget_locals();
            }
            for check in checks.get(done..end).unwrap_or_default() {
                match self.check(check, region) {
                    Ok(found) => region = region.part(found.at + found.len, region.len()),
                    Err(Failed) => {
                        failed = true;
                        break;
                    }
                }
            }
            done = end;
            if label.is_none() {
                return !failed;
            }
        }
    }

    /// One check with the `DAG` and `NOT` checks in front of it.
    fn check(&mut self, check: &Check, region: Span) -> Result<Found, Failed> {
        let mut nots = Vec::new();
        let start = self.dags(check, region, &mut nots)?;
        let found = self.find_counted(check, region, start)?;
        let skipped = region.part(start, found.at);
        if self.wrong_line(check, skipped) {
            let searched = region.part(start, region.len());
            let place = searched.part(found.at - start, found.at - start + found.len);
            self.report.wrong_line(&check.pattern, check.place, place);
            return Err(Failed);
        }
        self.nots(&nots, skipped)?;
        Ok(found)
    }

    /// Matches the pattern as often as it asks for, from `start` on; the result spans all matches.
    fn find_counted(&mut self, check: &Check, region: Span, start: usize) -> Result<Found, Failed> {
        let mut end = start;
        let mut first = None;
        for count in 1..=check.pattern.count {
            let searched = region.part(end, region.len());
            let result = self.find(&check.pattern, searched);
            let outcome = Outcome { expected: true, prefix: &check.prefix, place: check.place, count };
            let found = self.reported(&check.pattern, outcome, searched, result)?.ok_or(Failed)?;
            first.get_or_insert(end + found.at);
            end += found.at + found.len;
            // From here on every match would be this empty one again.
            if found.at == 0 && found.len == 0 && !check.pattern.has_variable() {
                break;
            }
        }
        let at = first.unwrap_or(end);
        Ok(Found { at, len: end - at })
    }

    fn find(&mut self, pattern: &Pattern, searched: Span) -> Result<Found, Miss> {
        pattern.find(self.sources.text(searched), searched, self.variables)
    }

    /// Reports a result; an error if it is not what was wanted.
    fn reported(
        &mut self,
        pattern: &Pattern,
        outcome: Outcome<'_>,
        searched: Span,
        result: Result<Found, Miss>,
    ) -> Result<Option<Found>, Failed> {
        match result {
            Ok(found) => {
                let place = searched.part(found.at, found.at + found.len);
                let good = self.report.found(pattern, outcome, place, self.variables);
                if good { Ok(Some(found)) } else { Err(Failed) }
            }
            Err(miss) => {
                let good = self.report.missed(pattern, outcome, searched, &miss, self.variables);
                if good { Ok(None) } else { Err(Failed) }
            }
        }
    }

    /// Whether a `NEXT`, `SAME` or `EMPTY` check matched on a line that it must not; reports it.
    fn wrong_line(&mut self, check: &Check, skipped: Span) -> bool {
        let kind = check.pattern.kind;
        if !matches!(kind, Kind::Next | Kind::Same | Kind::Empty) {
            return false;
        }
        let (lines, second) = line_feeds(self.sources.text(skipped));
        let complaint = match (kind, lines) {
            (Kind::Same, 0) | (Kind::Next | Kind::Empty, 1) => return false,
            (Kind::Same, _) => "is not on the same line as the previous match",
            (_, 0) => "is on the same line as previous match",
            _ => "is not on the line after the previous match",
        };
        let message = format!("{}{}: {complaint}", check.prefix, kind.suffix());
        self.report.message(Level::Error, check.place, &message);
        self.report.message(Level::Note, skipped.tail(), "'next' match was here");
        self.report.message(Level::Note, skipped.head(), "previous match ended here");
        if kind != Kind::Same && lines > 1 {
            let place = skipped.part(second, second);
            self.report.message(Level::Note, place, "non-matching line after previous match is here");
        }
        true
    }

    fn nots(&mut self, nots: &[&(Pattern, String)], skipped: Span) -> Result<(), Failed> {
        let mut result = Ok(());
        for (pattern, prefix) in nots {
            let found = self.find(pattern, skipped);
            let outcome = Outcome { expected: false, prefix, place: pattern.place, count: 1 };
            if self.reported(pattern, outcome, skipped, found).is_err() {
                result = Err(Failed);
            }
        }
        result
    }

    /// Matches the `DAG` checks in front of a check, group by group; gives where the last group ended.
    /// `NOT` checks after the last group are left in `nots`.
    fn dags<'c>(
        &mut self,
        check: &'c Check,
        region: Span,
        nots: &mut Vec<&'c (Pattern, String)>,
    ) -> Result<usize, Failed> {
        let mut start = 0;
        // What the group has taken, in order of place.
        let mut taken: Vec<Found> = Vec::new();
        for (index, entry) in check.before.iter().enumerate() {
            let (pattern, prefix) = entry;
            if pattern.kind == Kind::Not {
                nots.push(entry);
                continue;
            }
            self.dag(pattern, prefix, region, start, &mut taken)?;
            if check.before.get(index + 1).is_some_and(|(next, _)| next.kind == Kind::Dag) {
                continue;
            }
            if !nots.is_empty() {
                let first = taken.first().map_or(start, |found| found.at);
                self.nots(nots, region.part(start, first.max(start)))?;
                nots.clear();
            }
            start = taken.last().map_or(start, |found| found.at + found.len);
            taken.clear();
        }
        Ok(start)
    }

    /// Matches one `DAG` check where no earlier one of its group did.
    fn dag(
        &mut self,
        pattern: &Pattern,
        prefix: &str,
        region: Span,
        start: usize,
        taken: &mut Vec<Found>,
    ) -> Result<(), Failed> {
        let outcome = Outcome { expected: true, prefix, place: pattern.place, count: 1 };
        let each = self.options.very_verbose();
        let mut from = start;
        let mut next = 0;
        let found = loop {
            let searched = region.part(from, region.len());
            let result = self.find(pattern, searched);
            let found = match result {
                Ok(found) if !each => found,
                result => self.reported(pattern, outcome, searched, result)?.ok_or(Failed)?,
            };
            let found = Found { at: from + found.at, len: found.len };
            let end = found.at + found.len;
            if self.options.allow_deprecated_dag_overlap {
                let all = taken.first().map_or(found, |old| {
                    let at = old.at.min(found.at);
                    Found { at, len: end.max(old.at + old.len) - at }
                });
                *taken = vec![all];
                break found;
            }
            let behind = taken.iter().skip(next).position(|old| found.at < old.at + old.len);
            next = behind.map_or(taken.len(), |count| next + count);
            match taken.get(next) {
                Some(old) if old.at < end => {
                    from = old.at + old.len;
                    if each {
                        self.report.discarded(region.part(old.at, from));
                    }
                    next += 1;
                }
                _ => {
                    taken.insert(next, found);
                    break found;
                }
            }
        };
        if !each {
            let place = region.part(found.at, found.at + found.len);
            self.report.found(pattern, outcome, place, self.variables);
        }
        Ok(())
    }
}

/// Number of line ends, and the offset after the first.
fn line_feeds(text: &[u8]) -> (usize, usize) {
    let mut count = 0;
    let mut behind_first = 0;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if matches!(byte, b'\n' | b'\r') {
            count += 1;
            // The two in either order are one line end.
            at += usize::from(
                matches!(text.get(at + 1), Some(b'\n' | b'\r')) && text.get(at + 1) != Some(byte),
            );
            if count == 1 {
                behind_first = at + 1;
            }
        }
        at += 1;
    }
    (count, behind_first)
}
