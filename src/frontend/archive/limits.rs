//! Every cap on what an archive may ask for, in one place. A file from a stranger can never make the
//! reader use more memory or time than these figures allow, because each is checked before the work.

/// The caps. `Limits::default()` is meant for files of unknown origin; a caller who trusts a larger
/// model raises single figures.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Entries in the archive.
    pub entries: u64,
    /// Bytes of an entry's name.
    pub entry_name_bytes: usize,
    /// Uncompressed bytes for each compressed byte of an entry.
    pub ratio: u64,
    /// Bytes of one inflated entry. Stored entries are bounded by the file itself.
    pub inflated_bytes: u64,
    /// The whole budget is `budget_factor * file size + budget_base` bytes: for all inflated entries
    /// together, and again for the data tree of each pickle.
    pub budget_factor: u64,
    /// See `budget_factor`.
    pub budget_base: u64,
    /// Bytes of one source file under `code/`.
    pub code_bytes: u64,
    /// Steps of the pickle machine; checking the items of a list counts as well.
    pub pickle_ops: u64,
    /// Values on the stack of the pickle machine, and open marks.
    pub pickle_stack: usize,
    /// Slots of the memo.
    pub pickle_memo: usize,
    /// Nesting of the finished data tree.
    pub pickle_depth: u32,
    /// Values of all constants of the code together, where one that is shared counts each time.
    pub constant_values: u64,
    /// Bytes of the name of a class, and of each line of a `GLOBAL`.
    pub class_name_bytes: usize,
    /// Bytes of a type string (`Dict[str, List[int]]`).
    pub type_text_bytes: usize,
    /// Dimensions of a tensor.
    pub dims: usize,
    /// Bytes of all original sources that the debug ranges of one code file rebuild.
    pub debug_text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 64 << 30,
            entries: 65_536,
            entry_name_bytes: 4096,
            ratio: 100,
            inflated_bytes: 256 << 20,
            budget_factor: 2,
            budget_base: 64 << 20,
            code_bytes: 16 << 20,
            pickle_ops: 100_000_000,
            pickle_stack: 1 << 20,
            pickle_memo: 1 << 20,
            pickle_depth: 1000,
            constant_values: 4 << 20,
            class_name_bytes: 4096,
            type_text_bytes: 64 << 10,
            dims: 64,
            debug_text_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// The budget in bytes for an input of the given size.
    pub fn budget(&self, input_bytes: usize) -> u64 {
        (input_bytes as u64).saturating_mul(self.budget_factor).saturating_add(self.budget_base)
    }
}
