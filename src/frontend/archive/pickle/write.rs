//! Writes a tree as a pickle of protocol 2 in the form that TorchScript's own reader takes: typed lists
//! through their constructors, objects by NEWOBJ and BUILD, each storage named once. What was shared in
//! the tree is shared in the pickle. It walks with a stack of its own.

use indexmap::IndexMap;

use super::storage::StorageType;
use super::tree::{Node, NodeId, Pickle, Scales, StorageRecord, TensorRecord};

/// The bytes of a pickle of a tree.
pub fn write(pickle: &Pickle) -> Vec<u8> {
    let mut uses = vec![0u32; pickle.len()];
    for (_, node) in pickle.iter() {
        node.children(|child| {
            if let Some(count) = uses.get_mut(child.index()) {
                *count += 1;
            }
        });
    }
    let mut writer = Writer {
        pickle,
        uses,
        out: vec![b'\x80', 2],
        tasks: vec![Task::Node(pickle.root())],
        memo: IndexMap::new(),
    };
    while let Some(task) = writer.tasks.pop() {
        writer.run(task);
    }
    writer.out.push(b'.');
    writer.out
}

/// What stands in a memo slot.
#[derive(PartialEq, Eq, Hash)]
enum Memo<'a> {
    /// A node that is used more than once.
    Node(NodeId),
    /// A string, by content: strings have no identity.
    Text(&'a str),
    /// A global, as `module\nname\n`.
    Global(String),
    /// A storage: PyTorch makes a fresh one for each persistent id, so sharing needs the memo.
    Storage(&'a StorageRecord),
}

/// Work that is still to be done, last first.
enum Task<'a> {
    Node(NodeId),
    Bytes(&'static [u8]),
    Text(&'a str),
    Global(&'static str, &'static str),
    Put(Memo<'a>),
}

struct Writer<'a> {
    pickle: &'a Pickle,
    uses: Vec<u32>,
    out: Vec<u8>,
    tasks: Vec<Task<'a>>,
    /// The index of an item is its slot.
    memo: IndexMap<Memo<'a>, ()>,
}

impl<'a> Writer<'a> {
    fn run(&mut self, task: Task<'a>) {
        match task {
            Task::Node(id) => self.node(id),
            Task::Bytes(bytes) => self.out.extend(bytes),
            Task::Text(text) => self.text(text),
            Task::Global(module, name) => self.global(module, name),
            Task::Put(memo) => self.put(memo),
        }
    }

    /// Schedules tasks in the order in which they are given.
    fn then(&mut self, tasks: impl IntoIterator<Item = Task<'a>>) {
        let start = self.tasks.len();
        self.tasks.extend(tasks);
        if let Some(fresh) = self.tasks.get_mut(start..) {
            fresh.reverse();
        }
    }

    fn node(&mut self, id: NodeId) {
        let pickle = self.pickle;
        let shared = self.uses.get(id.index()).is_some_and(|count| *count > 1);
        let node = pickle.node(id);
        let scalar = matches!(
            node,
            Node::None | Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Complex(..) | Node::Str(_)
        );
        if shared && !scalar {
            if self.get(&Memo::Node(id)) {
                return;
            }
            self.tasks.push(Task::Put(Memo::Node(id)));
        }
        match node {
            Node::None => self.out.push(b'N'),
            Node::Bool(false) => self.out.push(b'\x89'),
            Node::Bool(true) => self.out.push(b'\x88'),
            Node::Int(value) => self.int(*value),
            Node::Float(value) => self.float(*value),
            Node::Complex(re, im) => {
                self.global("builtins", "complex");
                self.float(*re);
                self.float(*im);
                self.out.extend(b"\x86R");
            }
            Node::Str(text) => self.text(text),
            Node::List(list) => self.list(&list.items, list.type_text.as_deref()),
            Node::Tuple(items) => self.tuple(items),
            Node::Dict(dict) => {
                let pairs = dict.pairs.iter().flat_map(|(key, value)| [Task::Node(*key), Task::Node(*value)]);
                let filled = bracket(b"}(", pairs, b"u", dict.pairs.is_empty().then_some(b"}"));
                self.tagged(filled, dict.type_text.as_deref());
            }
            Node::Object(object) => {
                self.class(&object.class);
                self.out.extend(b")\x81");
                if let Some(state) = object.state {
                    self.then([Task::Node(state), Task::Bytes(b"b")]);
                }
            }
            Node::Enum(member) => {
                self.class(&member.class);
                self.then([Task::Node(member.value), Task::Bytes(b"R")]);
            }
            Node::Tensor(tensor) => self.tensor(tensor),
            Node::Device(name) => {
                self.global("torch", "device");
                self.text(name);
                self.out.extend(b"\x85R");
            }
            // A finished tree has neither; `None` keeps the pickle well formed.
            Node::Global(_) | Node::Storage(_) => self.out.push(b'N'),
        }
    }

    fn list(&mut self, items: &'a [NodeId], type_text: Option<&'a str>) {
        let constructor = match type_text {
            Some("List[int]") => "build_intlist",
            Some("List[float]") => "build_doublelist",
            Some("List[bool]") => "build_boollist",
            Some("List[Tensor]") => "build_tensorlist",
            _ => {
                let nodes = items.iter().map(|id| Task::Node(*id));
                let filled = bracket(b"](", nodes, b"e", items.is_empty().then_some(b"]"));
                return self.tagged(filled, type_text);
            }
        };
        self.global("torch.jit._pickle", constructor);
        let nodes = items.iter().map(|id| Task::Node(*id));
        self.then(bracket(b"(](", nodes, b"etR", None));
    }

    /// A list or dict, under its type where one is stated.
    fn tagged(&mut self, filled: Vec<Task<'a>>, type_text: Option<&'a str>) {
        match type_text {
            Some(text) => {
                self.global("torch.jit._pickle", "restore_type_tag");
                self.then(filled.into_iter().chain([Task::Text(text), Task::Bytes(b"\x86R")]));
            }
            None => self.then(filled),
        }
    }

    fn tuple(&mut self, items: &'a [NodeId]) {
        let nodes = items.iter().map(|id| Task::Node(*id));
        let (before, after): (&[u8], &[u8]) = match items.len() {
            0 => (b"", b")"),
            1 => (b"", b"\x85"),
            2 => (b"", b"\x86"),
            3 => (b"", b"\x87"),
            _ => (b"(", b"t"),
        };
        self.then(bracket(before, nodes, after, None));
    }

    fn tensor(&mut self, tensor: &'a TensorRecord) {
        if tensor.parameter {
            self.global("torch._utils", "_rebuild_parameter");
            self.out.push(b'(');
            let hooks = [Task::Global("collections", "OrderedDict"), Task::Bytes(b")RtR")];
            let flag: &[u8] = if tensor.requires_grad { b"\x88" } else { b"\x89" };
            self.then([Task::Bytes(flag)].into_iter().chain(hooks));
        }
        let rebuild = if tensor.scales.is_some() { "_rebuild_qtensor" } else { "_rebuild_tensor_v2" };
        self.global("torch._utils", rebuild);
        self.out.push(b'(');
        self.storage(&tensor.storage);
        self.int(tensor.offset);
        for dims in [&tensor.sizes, &tensor.strides] {
            self.out.push(b'(');
            dims.iter().for_each(|dim| self.int(*dim));
            self.out.push(b't');
        }
        if let Some(scales) = &tensor.scales {
            self.scales(scales);
        }
        self.out.push(if tensor.requires_grad { b'\x88' } else { b'\x89' });
        self.global("collections", "OrderedDict");
        self.out.extend(b")R");
        if tensor.conj || tensor.neg {
            self.global("torch.jit._pickle", "restore_type_tag");
            self.out.extend(b"}(");
            for (name, _) in [("conj", tensor.conj), ("neg", tensor.neg)].into_iter().filter(|(_, set)| *set)
            {
                self.text(name);
                self.out.push(b'\x88');
            }
            self.out.push(b'u');
            self.text("Dict[str, bool]");
            self.out.extend(b"\x86R");
        }
        self.out.extend(b"tR");
    }

    /// `(scheme, scale, zero_point)`, of channels `(scheme, scales, zero_points, axis)`.
    fn scales(&mut self, scales: &'a Scales) {
        self.out.push(b'(');
        match scales {
            Scales::PerTensor { scale, zero_point } => {
                self.global("torch", "per_tensor_affine");
                self.float(*scale);
                self.int(*zero_point);
            }
            Scales::PerChannel { scales, zero_points, axis } => {
                let float = zero_points.storage.element.dtype.starts_with("float");
                let scheme = if float { "per_channel_affine_float_qparams" } else { "per_channel_affine" };
                self.global("torch", scheme);
                self.tensor(scales);
                self.tensor(zero_points);
                self.int(*axis);
            }
        }
        self.out.push(b't');
    }

    fn storage(&mut self, storage: &'a StorageRecord) {
        if self.get(&Memo::Storage(storage)) {
            return;
        }
        let StorageType { class, .. } = storage.element;
        self.out.push(b'(');
        self.text("storage");
        self.global("torch", class);
        self.text(&storage.key);
        self.text(&storage.device);
        self.int(storage.numel as i64); // the machine keeps it below 2^63
        self.out.extend(b"tQ");
        self.put(Memo::Storage(storage));
    }

    fn int(&mut self, value: i64) {
        if let Ok(value) = u8::try_from(value) {
            self.out.extend([b'K', value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.out.push(b'M');
            self.out.extend(value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.out.push(b'J');
            self.out.extend(value.to_le_bytes());
        } else {
            self.out.extend(b"\x8a\x08");
            self.out.extend(value.to_le_bytes());
        }
    }

    fn float(&mut self, value: f64) {
        self.out.push(b'G');
        self.out.extend(value.to_be_bytes());
    }

    fn text(&mut self, text: &'a str) {
        if self.get(&Memo::Text(text)) {
            return;
        }
        match u32::try_from(text.len()) {
            Ok(length) => {
                self.out.push(b'X');
                self.out.extend(length.to_le_bytes());
            }
            Err(_) => {
                self.out.push(b'\x8d');
                self.out.extend((text.len() as u64).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        self.put(Memo::Text(text));
    }

    /// A class of the model: the last part of the qualified name stands alone.
    fn class(&mut self, qualified: &str) {
        let (module, name) = qualified.rsplit_once('.').unwrap_or(("__torch__", qualified));
        self.global(module, name);
    }

    fn global(&mut self, module: &str, name: &str) {
        let line = format!("{module}\n{name}\n");
        let memo = Memo::Global(line);
        if self.get(&memo) {
            return;
        }
        self.out.push(b'c');
        if let Memo::Global(line) = &memo {
            self.out.extend(line.as_bytes());
        }
        self.put(memo);
    }

    /// Recalls a memo slot, if the value stands in one.
    fn get(&mut self, memo: &Memo<'a>) -> bool {
        let Some(slot) = self.memo.get_index_of(memo) else { return false };
        self.slot(slot, [b'h', b'j']);
        true
    }

    fn put(&mut self, memo: Memo<'a>) {
        let (slot, _) = self.memo.insert_full(memo, ());
        self.slot(slot, [b'q', b'r']);
    }

    fn slot(&mut self, slot: usize, [short, long]: [u8; 2]) {
        match u8::try_from(slot) {
            Ok(slot) => self.out.extend([short, slot]),
            Err(_) => {
                self.out.push(long);
                self.out.extend((slot as u32).to_le_bytes()); // fewer slots than nodes, which are `u32`
            }
        }
    }
}

/// Tasks between two byte strings; for an empty run, `empty` alone where given.
fn bracket<'a>(
    before: &'static [u8],
    tasks: impl Iterator<Item = Task<'a>>,
    after: &'static [u8],
    empty: Option<&'static [u8; 1]>,
) -> Vec<Task<'a>> {
    match empty {
        Some(bytes) => vec![Task::Bytes(bytes)],
        None => [Task::Bytes(before)].into_iter().chain(tasks).chain([Task::Bytes(after)]).collect(),
    }
}
