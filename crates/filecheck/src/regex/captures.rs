//! What each group took, once it is known where a match starts and ends.
//!
//! Two ways. Without back references the match is divided piece by piece, each piece taking as much as leaves
//! the rest a match. With them the alternatives are tried in order, and a longer match is preferred.

use super::program::{Inst, Kind, Node, Program, holds};

/// Most entries of the backtracking stack.
const MAX_PENDING: usize = 2_000_000;

/// Start and end of each group; group 0 is the match.
pub type Spans = Vec<Option<(usize, usize)>>;

/// Divides `text[from..stop]`, which the nodes are known to match, and notes what the groups took.
pub(super) fn divide(
    program: &Program,
    text: &[u8],
    nodes: &[Node],
    from: usize,
    stop: usize,
    spans: &mut Spans,
) {
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return };
    if !nodes.iter().any(has_groups) {
        return;
    }
    let tails = Tails::new(program, text, from, stop, first.lo, last.hi, nodes);
    let mut at = from;
    for (index, node) in nodes.iter().enumerate() {
        let start = at;
        match &node.kind {
            Kind::Take => at += 1,
            Kind::Condition => {}
            Kind::Open(group) => set(spans, *group, (at, at)),
            Kind::Close(group) => {
                let begin = spans.get(*group).copied().flatten().map_or(at, |span| span.0);
                set(spans, *group, (begin, at));
            }
            Kind::Either(_) | Kind::Maybe(_) | Kind::Many(_) | Kind::Again => {
                let mut longest = None;
                program.ends(text, start, stop, node.lo, node.hi, |end| {
                    if tails.fits(index, end) {
                        longest = Some(end);
                    }
                });
                let Some(end) = longest else { return };
                at = end;
            }
        }
        match &node.kind {
            Kind::Either(branches) => {
                let fits = branches.iter().find(|branch| exactly(program, text, branch, start, at));
                if let Some(branch) = fits {
                    divide(program, text, branch, start, at, spans);
                }
            }
            Kind::Maybe(inner) if exactly(program, text, inner, start, at) => {
                divide(program, text, inner, start, at, spans);
            }
            Kind::Many(inner) => {
                let (begin, end) = last_round(program, text, inner, start, at);
                divide(program, text, inner, begin, end, spans);
            }
            _ => {}
        }
    }
}

fn set(spans: &mut Spans, group: usize, span: (usize, usize)) {
    if let Some(slot) = spans.get_mut(group) {
        *slot = Some(span);
    }
}

fn has_groups(node: &Node) -> bool {
    match &node.kind {
        Kind::Open(_) => true,
        Kind::Either(branches) => branches.iter().flatten().any(has_groups),
        Kind::Maybe(inner) | Kind::Many(inner) => inner.iter().any(has_groups),
        _ => false,
    }
}

fn longest(program: &Program, text: &[u8], nodes: &[Node], from: usize, stop: usize) -> Option<usize> {
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return Some(from) };
    let mut found = None;
    program.ends(text, from, stop, first.lo, last.hi, |end| found = Some(end));
    found
}

fn exactly(program: &Program, text: &[u8], nodes: &[Node], from: usize, stop: usize) -> bool {
    longest(program, text, nodes, from, stop) == Some(stop)
}

/// The last of the rounds that a loop makes, each as long as it can be.
fn last_round(program: &Program, text: &[u8], inner: &[Node], from: usize, stop: usize) -> (usize, usize) {
    let (mut begin, mut at) = (from, from);
    loop {
        match longest(program, text, inner, at, stop) {
            None => return (begin, at),
            Some(end) if end == at => return (at, end),
            Some(end) => (begin, at) = (at, end),
        }
    }
}

/// For each node, the places from which the nodes after it can match up to the end.
struct Tails {
    from: usize,
    fits: Vec<Vec<bool>>,
}

impl Tails {
    /// Runs the instructions `lo..hi` backwards from `stop`.
    fn new(
        program: &Program,
        text: &[u8],
        from: usize,
        stop: usize,
        lo: usize,
        hi: usize,
        nodes: &[Node],
    ) -> Self {
        let mut before = vec![Vec::new(); hi - lo + 1];
        for pc in lo..hi {
            program.successors(pc, |next| {
                if let Some(list) = next.checked_sub(lo).and_then(|index| before.get_mut(index)) {
                    list.push(pc);
                }
            });
        }
        let mut tails = Tails { from, fits: vec![vec![false; stop - from + 1]; nodes.len()] };
        let mut alive = vec![false; hi - lo + 1];
        let mut list = vec![hi];
        for at in (from..=stop).rev() {
            alive.fill(false);
            let mut work = std::mem::take(&mut list);
            while let Some(pc) = work.pop() {
                if std::mem::replace(&mut alive[pc - lo], true) {
                    continue;
                }
                list.push(pc);
                for earlier in &before[pc - lo] {
                    let blocked = matches!(program.code.get(*earlier), Some(Inst::At(place)) if !holds(*place, text, at));
                    if !blocked {
                        work.push(*earlier);
                    }
                }
            }
            for (node, fits) in nodes.iter().zip(&mut tails.fits) {
                fits[at - from] = alive[node.hi - lo];
            }
            if !program.pay(1 + (hi - lo) as u64 / 8 + list.len() as u64) {
                break;
            }
            let byte = at.checked_sub(1).and_then(|index| text.get(index)).copied();
            let previous = list.drain(..).filter_map(|pc| pc.checked_sub(1)).filter(|pc| *pc >= lo);
            list = previous
                .filter(|pc| match (program.code.get(*pc), byte) {
                    (Some(Inst::Byte(own)), Some(byte)) => *own == byte,
                    (Some(Inst::Set(set)), Some(byte)) => set.contains(byte),
                    _ => false,
                })
                .collect();
        }
        tails
    }

    fn fits(&self, node: usize, at: usize) -> bool {
        self.fits.get(node).and_then(|fits| fits.get(at - self.from)).copied().unwrap_or(false)
    }
}

enum Pending {
    /// Try this instruction at this place.
    Try(usize, usize),
    /// Put a group back.
    Group(usize, Option<(usize, usize)>),
    /// Put a loop's last place back.
    Loop(usize, Option<usize>),
}

/// Looks for a match of exactly `text[from..stop]` with back references; gives the groups.
pub(super) fn backtrack(program: &Program, text: &[u8], from: usize, stop: usize) -> Option<Spans> {
    let mut spans: Spans = vec![None; program.groups + 1];
    let mut rounds: Vec<Option<usize>> = vec![None; program.loops];
    let mut pending = vec![Pending::Try(0, from)];
    while let Some(item) = pending.pop() {
        let (mut pc, mut at) = match item {
            Pending::Try(pc, at) => (pc, at),
            Pending::Group(group, span) => {
                spans[group] = span;
                continue;
            }
            Pending::Loop(number, place) => {
                rounds[number] = place;
                continue;
            }
        };
        loop {
            if !program.pay(1) || pending.len() > MAX_PENDING {
                return None;
            }
            let Some(inst) = program.code.get(pc) else {
                if at == stop {
                    return Some(spans);
                }
                break;
            };
            let byte = text.get(at).copied().filter(|_| at < stop);
            match inst {
                Inst::Byte(own) if byte == Some(*own) => (pc, at) = (pc + 1, at + 1),
                Inst::Set(set) if byte.is_some_and(|b| set.contains(b)) => (pc, at) = (pc + 1, at + 1),
                Inst::Byte(_) | Inst::Set(_) => break,
                Inst::At(place) if holds(*place, text, at) => pc += 1,
                Inst::At(_) => break,
                Inst::Open(group) | Inst::Close(group) => {
                    let old = spans[*group];
                    pending.push(Pending::Group(*group, old));
                    let begin =
                        if matches!(inst, Inst::Open(_)) { at } else { old.map_or(at, |span| span.0) };
                    spans[*group] = Some((begin, at));
                    pc += 1;
                }
                Inst::Fork(other) => {
                    pending.push(Pending::Try(*other, at));
                    pc += 1;
                }
                Inst::Jump(target) => pc = *target,
                Inst::Enter(number) => {
                    pending.push(Pending::Loop(*number, rounds[*number]));
                    rounds[*number] = Some(at);
                    pc += 1;
                }
                Inst::Round(number, _) if rounds[*number] == Some(at) => pc += 1,
                Inst::Round(number, target) => {
                    pending.push(Pending::Try(pc + 1, at));
                    pending.push(Pending::Loop(*number, rounds[*number]));
                    rounds[*number] = Some(at);
                    pc = *target;
                }
                Inst::Again(group, target) => {
                    let Some((begin, end)) = spans.get(*group).copied().flatten() else { break };
                    let (Some(taken), Some(rest)) = (text.get(begin..end), text.get(at..stop)) else { break };
                    if !rest.starts_with(taken) {
                        break;
                    }
                    (pc, at) = (*target, at + taken.len());
                }
            }
        }
    }
    None
}
