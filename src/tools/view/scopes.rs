//! Frames for the modules that an inlined graph came from: ops that stand next to each other and name the same scope, as graph
//! text has it (`scope: __module.layer1/__module.layer1.conv`), become the block of an op that stands for the module.
//!
//! Must not know where scopes come from, nor how frames are drawn.

use super::model::{Block, Model, Op, Part, Value};
use hashbrown::{HashMap, HashSet};

/// Scopes nest no deeper in a picture.
const MAX_DEPTH: usize = 60;
/// The kind of an op that stands for a module.
const KIND: &str = "scope";

/// Puts ops of one scope into frames. What all ops of a function share is not a frame of its own.
pub(super) fn frame(model: &mut Model) {
    let known = model.blocks.len();
    for block in 0..known {
        let around = match model.blocks[block].owner {
            None => common(model, block),
            Some(owner) => model.ops[owner].scope.as_deref().map_or_else(Vec::new, owned),
        };
        Frames { model, block, around, open: Vec::new() }.run();
    }
    if model.blocks.len() > known {
        rewire(model);
    }
}

/// The parts of a scope, from the outermost module to the innermost.
fn parts(scope: &str) -> impl Iterator<Item = &str> {
    scope.split('/').filter(|part| !part.is_empty()).take(MAX_DEPTH)
}

fn owned(scope: &str) -> Vec<String> {
    parts(scope).map(str::to_string).collect()
}

/// How many parts two scopes share.
fn shared<'a>(a: impl IntoIterator<Item = &'a str>, b: impl IntoIterator<Item = &'a str>) -> usize {
    a.into_iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// What the scopes of all ops of a block share. Constants have no scope to speak of.
fn common(model: &Model, block: usize) -> Vec<String> {
    let ops = model.blocks[block].ops.iter().map(|op| &model.ops[*op]);
    let mut scopes = ops.filter(|op| op.constant.is_none()).map(|op| op.scope.as_deref().unwrap_or_default());
    let Some(first) = scopes.next() else { return Vec::new() };
    let length = scopes.fold(usize::MAX, |length, scope| length.min(shared(parts(first), parts(scope))));
    parts(first).take(length).map(str::to_string).collect()
}

/// Frames of one block, from its first op to its last.
struct Frames<'m> {
    model: &'m mut Model,
    block: usize,
    /// The scope that the whole block lies in, which needs no frame.
    around: Vec<String>,
    /// Parts that are open, with the block of each one's frame.
    open: Vec<(String, usize)>,
}

impl Frames<'_> {
    fn run(mut self) {
        let ops = std::mem::take(&mut self.model.blocks[self.block].ops);
        for op in ops {
            // A constant is drawn where it is used.
            if self.model.ops[op].constant.is_some() {
                self.model.blocks[self.block].ops.push(op);
                continue;
            }
            let scope = self.model.ops[op].scope.clone().unwrap_or_default();
            let known = shared(self.around.iter().map(String::as_str), parts(&scope));
            let wanted: Vec<&str> = parts(&scope).skip(known).collect();
            let same = shared(self.open.iter().map(|(part, _)| part.as_str()), wanted.iter().copied());
            self.open.truncate(same);
            for part in &wanted[same..] {
                self.enter(part);
            }
            let block = self.innermost();
            self.model.ops[op].block = block;
            self.model.blocks[block].ops.push(op);
            for result in self.model.ops[op].results.clone() {
                self.model.values[result].block = block;
            }
        }
    }

    fn innermost(&self) -> usize {
        self.open.last().map_or(self.block, |(_, block)| *block)
    }

    /// A frame for a part, in the innermost one that is open.
    fn enter(&mut self, part: &str) {
        let (outer, op, block) = (self.innermost(), self.model.ops.len(), self.model.blocks.len());
        let name = part.strip_prefix("__module.").unwrap_or(part).to_string();
        self.model.blocks.push(Block { name, owner: Some(op), inputs: vec![], ops: vec![], outputs: vec![] });
        self.model.ops.push(Op {
            kind: KIND.to_string(),
            part: Part::Scope,
            block: outer,
            operands: Vec::new(),
            results: Vec::new(),
            attributes: Vec::new(),
            blocks: vec![block],
            location: None,
            scope: None,
            constant: None,
            effects: false,
            time: None,
            bytes: None,
        });
        self.model.blocks[outer].ops.push(op);
        self.open.push((part.to_string(), block));
    }
}

/// Lets what is used outside of a frame leave it as a result of the frame: as that of a block leaves the op that holds it.
fn rewire(model: &mut Model) {
    let mut leaving: HashMap<(usize, usize), usize> = HashMap::new();
    for op in 0..model.ops.len() {
        let block = model.ops[op].block;
        let operands = std::mem::take(&mut model.ops[op].operands);
        let operands = operands.into_iter().map(|value| seen_from(model, &mut leaving, value, block));
        model.ops[op].operands = operands.collect();
    }
    for block in 0..model.blocks.len() {
        // What leaves a frame is one of its values.
        if model.blocks[block].owner.is_some_and(|op| model.ops[op].part == Part::Scope) {
            continue;
        }
        let outputs = std::mem::take(&mut model.blocks[block].outputs);
        let outputs = outputs.into_iter().map(|value| seen_from(model, &mut leaving, value, block));
        model.blocks[block].outputs = outputs.collect();
    }
    takes(model);
}

/// The value as a block sees it: the result of the outermost frame that the block does not stand in.
fn seen_from(
    model: &mut Model,
    leaving: &mut HashMap<(usize, usize), usize>,
    value: usize,
    block: usize,
) -> usize {
    let mut around = vec![block];
    while let Some(owner) = around.last().and_then(|block| model.blocks[*block].owner) {
        around.push(model.ops[owner].block);
    }
    let mut value = value;
    while !around.contains(&model.values[value].block) {
        let from = model.values[value].block;
        let Some(frame) = model.blocks[from].owner.filter(|op| model.ops[*op].part == Part::Scope) else {
            break;
        };
        value = *leaving.entry((value, frame)).or_insert_with(|| {
            let Value { name, ty, seen, .. } = &model.values[value];
            let (name, ty, seen) = (name.clone(), ty.clone(), seen.clone());
            let result = model.values.len();
            model.values.push(Value { name, ty, seen, op: Some(frame), block: model.ops[frame].block });
            model.ops[frame].results.push(result);
            model.blocks[from].outputs.push(value);
            result
        });
    }
    value
}

/// Computes the inputs of each frame: values from outside that are used in it.
fn takes(model: &mut Model) {
    let mut taken = HashSet::new();
    for op in 0..model.ops.len() {
        for operand in model.ops[op].operands.clone() {
            let known = &model.values[operand];
            let (home, hidden) = (known.block, known.op.is_some_and(|op| model.ops[op].constant.is_some()));
            let mut at = model.ops[op].block;
            while !hidden && at != home {
                let Some(owner) = model.blocks[at].owner else { break };
                if model.ops[owner].part == Part::Scope && taken.insert((owner, operand)) {
                    model.ops[owner].operands.push(operand);
                }
                at = model.ops[owner].block;
            }
        }
    }
}
