//! Pieces to instructions, and the simulation that runs all alternatives side by side.
//!
//! Every piece owns one contiguous range of instructions whose end is the place after the piece, so any
//! run of pieces can be simulated by itself. Time is the product of text and program length.

use super::pieces::{Piece, Place, Syntax};
use super::sets::ByteSet;
use std::cell::Cell;

/// Steps that captures and back references of one search may take, next to some for each byte of the text. A plain
/// search is linear and needs no limit.
const BUDGET: u64 = 20_000_000;

/// One instruction; the one after it is the default successor.
#[derive(Clone, Debug)]
pub(super) enum Inst {
    /// Takes this byte.
    Byte(u8),
    /// Takes a byte of the set.
    Set(Box<ByteSet>),
    /// Goes on where the condition holds.
    At(Place),
    /// Marks the start of a group.
    Open(usize),
    /// Marks the end of a group.
    Close(usize),
    /// Goes on after it, or else at the target.
    Fork(usize),
    /// Goes to the target.
    Jump(usize),
    /// Enters a loop with this number.
    Enter(usize),
    /// Goes back to the target for another round of the loop, or else on.
    Round(usize, usize),
    /// The text of the group again, then on at the target; a simulation goes through the copy after it.
    Again(usize, usize),
}

/// A piece with its range of instructions.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) lo: usize,
    pub(super) hi: usize,
    pub(super) kind: Kind,
}

/// What a [`Node`] is.
#[derive(Debug)]
pub(super) enum Kind {
    /// Takes one byte.
    Take,
    /// Takes nothing.
    Condition,
    /// Group marks.
    Open(usize),
    Close(usize),
    /// Branches with the range of each.
    Either(Vec<Vec<Node>>),
    /// The inner nodes once or not at all.
    Maybe(Vec<Node>),
    /// The inner nodes once or more.
    Many(Vec<Node>),
    /// A back reference.
    Again,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) code: Vec<Inst>,
    pub(super) nodes: Vec<Node>,
    pub(super) loops: usize,
    pub(super) groups: usize,
    pub(super) backrefs: bool,
    /// Bytes that a match can start with; `None` if it can be empty.
    first: Option<ByteSet>,
    budget: Cell<u64>,
}

impl Program {
    /// Compiles a parsed pattern.
    pub(super) fn new(syntax: Syntax) -> Self {
        let mut program = Program {
            code: Vec::new(),
            nodes: Vec::new(),
            loops: 0,
            groups: syntax.groups,
            backrefs: syntax.backrefs,
            first: None,
            budget: Cell::new(0),
        };
        program.nodes = program.emit_all(syntax.pieces);
        program.first = program.first_bytes();
        program
    }

    /// Allows a fresh number of steps for a text of this length.
    pub(super) fn refill(&self, length: usize) {
        self.budget.set(BUDGET + 64 * length as u64);
    }

    /// Pays for `steps`; false when there is nothing left.
    pub(super) fn pay(&self, steps: u64) -> bool {
        let left = self.budget.get().saturating_sub(steps);
        self.budget.set(left);
        left > 0
    }

    fn emit_all(&mut self, pieces: Vec<Piece>) -> Vec<Node> {
        pieces.into_iter().map(|piece| self.emit(piece)).collect()
    }

    fn emit(&mut self, piece: Piece) -> Node {
        let lo = self.code.len();
        let kind = match piece {
            Piece::Byte(byte) => {
                self.code.push(Inst::Byte(byte));
                Kind::Take
            }
            Piece::Set(set) => {
                self.code.push(Inst::Set(set));
                Kind::Take
            }
            Piece::At(place) => {
                self.code.push(Inst::At(place));
                Kind::Condition
            }
            Piece::Open(group) => {
                self.code.push(Inst::Open(group));
                Kind::Open(group)
            }
            Piece::Close(group) => {
                self.code.push(Inst::Close(group));
                Kind::Close(group)
            }
            Piece::Either(branches) => self.emit_either(branches),
            Piece::Maybe(inner) => {
                self.code.push(Inst::Jump(0));
                let inner = self.emit_all(inner);
                self.patch(lo, Inst::Fork(self.code.len()));
                Kind::Maybe(inner)
            }
            Piece::Many(inner) => {
                let number = self.loops;
                self.loops += 1;
                self.code.push(Inst::Enter(number));
                let inner = self.emit_all(inner);
                self.code.push(Inst::Round(number, lo + 1));
                Kind::Many(inner)
            }
            Piece::Again(group, copy) => {
                self.code.push(Inst::Jump(0));
                self.emit_all(copy);
                self.patch(lo, Inst::Again(group, self.code.len()));
                Kind::Again
            }
        };
        Node { lo, hi: self.code.len(), kind }
    }

    fn emit_either(&mut self, branches: Vec<Vec<Piece>>) -> Kind {
        let mut nodes = Vec::new();
        let mut exits = Vec::new();
        let last = branches.len().saturating_sub(1);
        for (index, branch) in branches.into_iter().enumerate() {
            let fork = self.code.len();
            if index < last {
                self.code.push(Inst::Jump(0));
            }
            nodes.push(self.emit_all(branch));
            if index < last {
                exits.push(self.code.len());
                self.code.push(Inst::Jump(0));
                self.patch(fork, Inst::Fork(self.code.len()));
            }
        }
        let end = self.code.len();
        exits.into_iter().for_each(|exit| self.patch(exit, Inst::Jump(end)));
        Kind::Either(nodes)
    }

    fn patch(&mut self, at: usize, inst: Inst) {
        if let Some(slot) = self.code.get_mut(at) {
            *slot = inst;
        }
    }

    /// Bytes a match can start with, or nothing if it can be empty.
    fn first_bytes(&self) -> Option<ByteSet> {
        let mut set = ByteSet::default();
        let mut seen = vec![false; self.code.len()];
        let mut work = vec![0];
        while let Some(pc) = work.pop() {
            let inst = self.code.get(pc)?;
            if std::mem::replace(&mut seen[pc], true) {
                continue;
            }
            match inst {
                Inst::Byte(byte) => set.insert(*byte),
                Inst::Set(more) => set.merge(more),
                _ => self.successors(pc, |next| work.push(next)),
            }
        }
        Some(set)
    }

    /// Where an instruction that takes nothing leads to; conditions are taken to hold.
    pub(super) fn successors(&self, pc: usize, mut visit: impl FnMut(usize)) {
        match self.code.get(pc) {
            Some(Inst::At(_) | Inst::Open(_) | Inst::Close(_) | Inst::Enter(_) | Inst::Again(..)) => {
                visit(pc + 1)
            }
            Some(Inst::Fork(target) | Inst::Round(_, target)) => {
                visit(pc + 1);
                visit(*target);
            }
            Some(Inst::Jump(target)) => visit(*target),
            Some(Inst::Byte(_) | Inst::Set(_)) | None => {}
        }
    }

    /// The leftmost match at or after `from`, and the longest of those: start and end.
    pub(super) fn search(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let goal = self.code.len();
        let mut now = Threads::new(goal + 1);
        let mut next = Threads::new(goal + 1);
        let mut best: Option<(usize, usize)> = None;
        let mut at = from;
        loop {
            if best.is_none() {
                if now.list.is_empty()
                    && let Some(first) = &self.first
                {
                    at += text.get(at..)?.iter().position(|byte| first.contains(*byte))?;
                }
                self.follow(&mut now, text, at, 0, goal, at);
            }
            if now.seen(goal) {
                let start = now.start(goal);
                if best.is_none_or(|(known, _)| start <= known) {
                    best = Some((start, at));
                }
            }
            let byte = match text.get(at) {
                Some(byte) => *byte,
                None => return best,
            };
            next.clear();
            for index in 0..now.list.len() {
                let pc = now.list[index];
                let start = now.start(pc);
                if best.is_none_or(|(known, _)| start <= known) && self.takes(pc, byte) {
                    self.follow(&mut next, text, at + 1, pc + 1, goal, start);
                }
            }
            std::mem::swap(&mut now, &mut next);
            at += 1;
            if now.list.is_empty() && best.is_some() {
                return best;
            }
        }
    }

    fn takes(&self, pc: usize, byte: u8) -> bool {
        match self.code.get(pc) {
            Some(Inst::Byte(own)) => *own == byte,
            Some(Inst::Set(set)) => set.contains(byte),
            _ => false,
        }
    }

    /// Adds a thread and all that it reaches without taking a byte; `goal` is not passed.
    fn follow(&self, threads: &mut Threads, text: &[u8], at: usize, pc: usize, goal: usize, start: usize) {
        let mut work = std::mem::take(&mut threads.work);
        work.push(pc);
        while let Some(pc) = work.pop() {
            if !threads.add(pc, start) || pc == goal {
                continue;
            }
            match self.code.get(pc) {
                Some(Inst::At(place)) if !holds(*place, text, at) => {}
                _ => self.successors(pc, |next| work.push(next)),
            }
        }
        threads.work = work;
    }

    /// Every end that the instructions from `lo` to `goal` can reach from `from`, up to `stop`, in rising order.
    pub(super) fn ends(
        &self,
        text: &[u8],
        from: usize,
        stop: usize,
        lo: usize,
        goal: usize,
        mut visit: impl FnMut(usize),
    ) {
        let mut now = Threads::new(self.code.len() + 1);
        let mut next = Threads::new(self.code.len() + 1);
        self.follow(&mut now, text, from, lo, goal, from);
        let mut at = from;
        loop {
            if now.seen(goal) {
                visit(at);
            }
            if at >= stop || now.list.is_empty() || !self.pay(1 + now.list.len() as u64) {
                return;
            }
            let Some(byte) = text.get(at) else { return };
            next.clear();
            for index in 0..now.list.len() {
                let pc = now.list[index];
                if pc != goal && self.takes(pc, *byte) {
                    self.follow(&mut next, text, at + 1, pc + 1, goal, from);
                }
            }
            std::mem::swap(&mut now, &mut next);
            at += 1;
        }
    }
}

/// Whether a place condition holds before `text[at]`.
pub(super) fn holds(place: Place, text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| text.get(index)).copied();
    let after = text.get(at).copied();
    let word = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    match place {
        Place::LineStart => before.is_none_or(|byte| byte == b'\n'),
        Place::LineEnd => after.is_none_or(|byte| byte == b'\n'),
        Place::WordStart => !word(before) && word(after),
        Place::WordEnd => word(before) && !word(after),
    }
}

/// A set of threads: instruction, and where the thread's match started.
struct Threads {
    list: Vec<usize>,
    starts: Vec<(u64, usize)>,
    round: u64,
    work: Vec<usize>,
}

impl Threads {
    fn new(size: usize) -> Self {
        Threads { list: Vec::new(), starts: vec![(0, 0); size], round: 1, work: Vec::new() }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.round += 1;
    }

    fn seen(&self, pc: usize) -> bool {
        self.starts.get(pc).is_some_and(|(round, _)| *round == self.round)
    }

    fn start(&self, pc: usize) -> usize {
        self.starts.get(pc).map_or(0, |(_, start)| *start)
    }

    /// False if a thread is there that started no later.
    fn add(&mut self, pc: usize, start: usize) -> bool {
        let Some(slot) = self.starts.get_mut(pc) else { return false };
        if slot.0 == self.round {
            if slot.1 <= start {
                return false;
            }
            slot.1 = start;
            return true;
        }
        *slot = (self.round, start);
        self.list.push(pc);
        true
    }
}
