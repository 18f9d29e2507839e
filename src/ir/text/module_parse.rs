//! Parsing files: any number of graphs, with or without a name, declarations of classes, interfaces, enums and
//! named tuples, and resources. Graphs are read by `parser.rs`, printing stands in `module_print.rs`.

use super::attr::read_attr;
use super::lexer::{Cursor, Parsed, TextError, is_name_byte};
use super::module_print::derived_schema;
use super::options::{Naming, ParseOptions};
use super::parser::GraphParser;
use super::schema::read_schema;
use super::type_parse::{program_type, read_type};
use crate::diag::{Diagnostic, Source};
use crate::ir::verify::TextPlaces;
use crate::ir::{
    Attr, ClassAttribute, ClassDef, ClassKind, EnumDef, Function, Graph, InterfaceDef, Module, NamedTupleDef,
    OpId, Property, Schema, Symbol, Type, TypeKind,
};
use hashbrown::HashMap;
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A module read from text.
#[derive(Clone, Debug, Default)]
pub struct ParsedModule {
    /// The module. A graph without a name is the function "", further ones are "#1", "#2" and so on.
    pub module: Module,
    /// Where the ops of each function stand in the text, if that was asked for.
    pub places: IndexMap<Symbol, TextPlaces>,
}

/// Reads a file in PyTorch's form. The errors come in the order of their places.
pub(in crate::ir) fn parse_text(
    source: &Arc<Source>,
    options: &ParseOptions,
) -> Result<ParsedModule, Vec<Diagnostic>> {
    super::parser::check_size(source)?;
    let parsed = parse_module_once(source, options)?;
    let is_raw = |function: &Function| {
        function.name == "" && !super::parser::keeps_names(source.text(), &function.graph)
    };
    if options.naming == Naming::Auto
        && parsed.module.functions.len() == 1
        && parsed.module.functions.values().all(is_raw)
    {
        return parse_module_once(source, &super::parser::as_torch(options, source.text()));
    }
    Ok(parsed)
}

fn parse_module_once(source: &Arc<Source>, options: &ParseOptions) -> Result<ParsedModule, Vec<Diagnostic>> {
    let mut reader = ModuleReader {
        graphs: GraphParser::new(source.text(), *options),
        parsed: ParsedModule::default(),
        schema: None,
        resources: Vec::new(),
    };
    let result = reader.run(source, options.record_places);
    // What came before an error stands before it in the text too.
    let result = reader.fill_resources().and(result);
    let ModuleReader { graphs, parsed, .. } = reader;
    let finished = graphs.finish(result);
    finished.map_err(|mut errors| {
        errors.sort_by_key(TextError::start);
        errors.into_iter().map(|e| e.into_diagnostic(source)).collect::<Vec<_>>()
    })?;
    let mut parsed = parsed;
    resolve(&mut parsed.module);
    Ok(parsed)
}

struct ModuleReader<'a, 'o> {
    graphs: GraphParser<'a, 'o>,
    parsed: ParsedModule,
    /// A `schema` line waits for its graph.
    schema: Option<Schema>,
    /// Those after the last graph, filled in together.
    resources: Vec<Resource<'a>>,
}

/// The content of an attribute that the text of a graph does not show.
struct Resource<'a> {
    start: usize,
    end: usize,
    /// Which graph, in the order of printing; 0 is the function's own.
    graph: usize,
    /// The op by its place among the graph's ops, else by its first result.
    by_place: bool,
    op: &'a str,
    attribute: &'a str,
    value: Attr,
}

/// Start and end of resources that name nothing.
type Misses = Vec<(usize, usize)>;

/// What may stand at the start of a line outside of graphs.
const ITEMS: &str = "`graph(`, `schema`, `resource`, `class`, `interface`, `enum` or `named_tuple`";

impl<'a> ModuleReader<'a, '_> {
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.graphs.cursor
    }

    fn run(&mut self, source: &Arc<Source>, record: bool) -> Parsed<()> {
        loop {
            self.graphs.skip_trivia();
            if self.cursor().at_end() {
                return match (&self.schema, self.parsed.module.functions.is_empty()) {
                    (Some(schema), _) => {
                        let message = format!("the graph of `{}` is missing after its schema", schema.name);
                        Err(self.cursor().expected(&message))
                    }
                    (None, true) if self.is_empty() => {
                        Err(self.cursor().expected(ITEMS).hint("the text holds no graph and no declaration"))
                    }
                    _ => Ok(()),
                };
            }
            let start = self.cursor().pos();
            let word = self.cursor().name();
            if word != "resource" {
                self.fill_resources()?;
            }
            match word {
                "graph" => {
                    self.cursor().set_pos(start);
                    self.graph(source, record)?;
                }
                "schema" => {
                    self.cursor().skip_blanks();
                    self.schema = Some(read_schema(self.cursor())?);
                }
                "resource" => self.resource()?,
                "class" => self.class()?,
                "interface" => self.interface()?,
                "enum" => self.enumeration()?,
                "named_tuple" => self.named_tuple()?,
                _ => {
                    self.cursor().set_pos(start);
                    let hint = match word {
                        "with" => "a `with` tail must directly follow the graph whose subgraph it is",
                        "func" => {
                            "MLIR is read in its generic form: print it with `mlir-opt --mlir-print-op-generic`"
                        }
                        "def" => "this is source, not graph text: give the file as `.py`",
                        _ => "every graph begins with `graph(` or `graph @name(`",
                    };
                    return Err(self.cursor().expected(ITEMS).hint(hint));
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        let m = &self.parsed.module;
        m.classes.is_empty() && m.interfaces.is_empty() && m.enums.is_empty() && m.named_tuples.is_empty()
    }

    // --- graphs ---

    fn graph(&mut self, source: &Arc<Source>, record: bool) -> Parsed<()> {
        let start = self.cursor().pos();
        let (name, graph) = self.graphs.named_graph()?;
        let functions = &mut self.parsed.module.functions;
        let name = match name {
            "" if functions.is_empty() => Symbol::new(""),
            "" => Symbol::new(&format!("#{}", functions.len())),
            name => Symbol::new(name),
        };
        if functions.contains_key(&name) {
            return Err(TextError::meaning(start, start + 5, format!("there are two graphs `@{name}`")));
        }
        let schema = match self.schema.take() {
            Some(schema) if schema.name == name => schema,
            Some(schema) => {
                let message = format!("the schema before this graph is that of `{}`", schema.name);
                return Err(TextError::meaning(start, start + 5, message));
            }
            None => derived_schema(name, &graph),
        };
        functions.insert(name, Function { name, schema, graph, span: None });
        if record {
            let starts = self.graphs.take_places();
            self.parsed.places.insert(name, TextPlaces::new(Arc::clone(source), starts));
        }
        Ok(())
    }

    /// `resource [subgraph] %7 value = tensor(...)`: the content of an attribute of the graph before.
    fn resource(&mut self) -> Parsed<()> {
        let start = self.cursor().pos();
        let cursor = &mut self.graphs.cursor;
        cursor.skip_blanks();
        let number: usize = cursor.digits().parse().unwrap_or(0);
        cursor.skip_blanks();
        let by_place = cursor.eat(b'@');
        if !by_place && !cursor.eat(b'%') {
            return Err(cursor.expected("`%value` or `@number` of an op"));
        }
        let name_start = cursor.pos();
        while is_name_byte(cursor.peek()) || matches!(cursor.peek(), b'.' | b':' | b'/') {
            cursor.advance(1);
        }
        let op_name = cursor.slice(name_start, cursor.pos());
        cursor.skip_blanks();
        let attribute = cursor.dotted_name();
        cursor.expect(b'=')?;
        cursor.skip_blanks();
        let value = read_line_value(cursor, None)?;
        let end = cursor.pos();
        if self.parsed.module.functions.is_empty() {
            let message = "the resource names no graph of the graph before";
            return Err(TextError::meaning(start, end, message));
        }
        let (graph, op) = (number, op_name);
        self.resources.push(Resource { start, end, graph, by_place, op, attribute, value });
        Ok(())
    }

    /// Puts the resources that wait into the graph before them, in one walk over it.
    fn fill_resources(&mut self) -> Parsed<()> {
        let mut wanted: BTreeMap<usize, Vec<Resource<'a>>> = BTreeMap::new();
        for resource in self.resources.drain(..) {
            wanted.entry(resource.graph).or_default().push(resource);
        }
        let Some((_, function)) = self.parsed.module.functions.last_mut().filter(|_| !wanted.is_empty())
        else {
            return Ok(());
        };
        let mut misses = Misses::new();
        fill(&mut function.graph, &mut 0, &mut wanted, &mut misses);
        misses.extend(wanted.into_values().flatten().map(|resource| (resource.start, resource.end)));
        match misses.into_iter().min() {
            None => Ok(()),
            Some((start, end)) => {
                let message = "the resource names no op and attribute of the graph before";
                Err(TextError::meaning(start, end, message))
            }
        }
    }

    // --- declarations ---

    /// A qualified name, and whether `(Module)` follows it.
    fn declared(&mut self) -> Parsed<(Symbol, bool)> {
        let cursor = self.cursor();
        cursor.skip_blanks();
        let name = cursor.dotted_name();
        if name.is_empty() {
            return Err(cursor.expected("a qualified name"));
        }
        Ok((Symbol::new(name), cursor.eat_str("(Module)")))
    }

    /// Whether another line of the declaration follows: an indented one. Steps over its indentation.
    fn next_member(&mut self) -> Parsed<bool> {
        loop {
            let cursor = self.cursor();
            cursor.skip_blanks();
            if cursor.peek() == b'#' {
                cursor.skip_line();
            }
            if cursor.at_end() {
                return Ok(false);
            }
            if !cursor.eat(b'\n') {
                return Err(cursor.expected("the end of the line"));
            }
            let line = cursor.pos();
            cursor.skip_blanks();
            match cursor.peek() {
                b'\n' | b'#' => {}
                0 if cursor.at_end() => return Ok(false),
                _ if cursor.pos() > line => return Ok(true),
                _ => {
                    cursor.set_pos(line);
                    return Ok(false);
                }
            }
        }
    }

    fn class(&mut self) -> Parsed<()> {
        let start = self.cursor().pos();
        let (name, is_module) = self.declared()?;
        let mut class = ClassDef::new(name, if is_module { ClassKind::Module } else { ClassKind::Script });
        self.cursor().expect(b':')?;
        while self.next_member()? {
            self.class_member(&mut class)?;
        }
        if self.parsed.module.classes.insert(name, class).is_some() {
            return Err(TextError::meaning(start, start + 5, format!("there are two classes `{name}`")));
        }
        Ok(())
    }

    fn class_member(&mut self, class: &mut ClassDef) -> Parsed<()> {
        let cursor = self.cursor();
        let start = cursor.pos();
        let word = cursor.name();
        cursor.skip_blanks();
        let is_known = matches!(
            word,
            "parameter"
                | "buffer"
                | "attribute"
                | "constant"
                | "method"
                | "static_method"
                | "property"
                | "forward_pre_hook"
                | "forward_hook"
        );
        if !is_known {
            cursor.set_pos(start);
            return Err(cursor.expected(
                "`parameter`, `buffer`, `attribute`, `constant`, `method`, `static_method`, `property`, `forward_pre_hook` or `forward_hook`",
            ));
        }
        let name = read_member(cursor)?;
        match word {
            "parameter" | "buffer" | "attribute" => {
                let ty = read_declared_type(cursor)?;
                let (is_parameter, is_buffer) = (word == "parameter", word == "buffer");
                class.attributes.push(ClassAttribute { name, ty, is_parameter, is_buffer });
            }
            "constant" => {
                let ty = read_declared_type(cursor)?;
                cursor.expect(b'=')?;
                cursor.skip_blanks();
                let value = read_line_value(cursor, Some(&ty))?;
                class.constants.insert(name, (ty, value));
            }
            "method" => {
                class.methods.insert(name, read_target(cursor)?);
            }
            "static_method" => {
                class.static_methods.insert(name, read_target(cursor)?);
            }
            "property" => {
                let getter = read_target(cursor)?;
                let setter = if cursor.eat(b',') {
                    cursor.skip_blanks();
                    Some(read_name(cursor)?)
                } else {
                    None
                };
                class.properties.insert(name, Property { getter, setter });
            }
            "forward_pre_hook" => class.forward_pre_hooks.push(name),
            _ => class.forward_hooks.push(name),
        }
        Ok(())
    }

    fn interface(&mut self) -> Parsed<()> {
        let (name, is_module) = self.declared()?;
        self.cursor().expect(b':')?;
        let mut methods = IndexMap::new();
        while self.next_member()? {
            let cursor = self.cursor();
            if cursor.name() != "method" {
                return Err(cursor.expected("`method` and a schema"));
            }
            cursor.skip_blanks();
            let schema = read_schema(cursor)?;
            methods.insert(schema.name, schema);
        }
        self.parsed.module.interfaces.insert(name, InterfaceDef { name, is_module, methods });
        Ok(())
    }

    fn enumeration(&mut self) -> Parsed<()> {
        let (name, _) = self.declared()?;
        let value_type = read_declared_type(self.cursor())?;
        self.cursor().expect(b':')?;
        let mut members = Vec::new();
        while self.next_member()? {
            let cursor = self.cursor();
            let member = read_member(cursor)?;
            cursor.expect(b'=')?;
            cursor.skip_blanks();
            members.push((member, read_line_value(cursor, Some(&value_type))?));
        }
        self.parsed.module.enums.insert(name, EnumDef { name, value_type, members });
        Ok(())
    }

    fn named_tuple(&mut self) -> Parsed<()> {
        let (name, _) = self.declared()?;
        self.cursor().expect(b':')?;
        let (mut fields, mut elements, mut defaults, mut texts) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        while self.next_member()? {
            let cursor = self.cursor();
            fields.push(read_member(cursor)?);
            let ty = read_declared_type(cursor)?;
            cursor.skip_blanks();
            if cursor.eat(b'=') {
                cursor.skip_blanks();
                let value = read_line_value(cursor, Some(&ty))?;
                texts.push(Symbol::new(&default_text(&value, &ty)));
                defaults.push(value);
            } else if !defaults.is_empty() {
                return Err(cursor.expected("a default, as the field before has one"));
            }
            elements.push(ty);
        }
        let ty = Type::named_tuple_with_defaults(name, fields, elements, texts);
        self.parsed.module.named_tuples.insert(name, NamedTupleDef { ty, defaults });
        Ok(())
    }
}

/// A default as the type's own text shows it: strings without quotes.
fn default_text(value: &Attr, ty: &Type) -> String {
    match value {
        Attr::Str(text) => text.to_string(),
        _ => {
            let mut out = String::new();
            super::attr::write_value(&mut out, value, Some(ty), super::attr::Detail::Shown);
            out
        }
    }
}

fn read_member(cursor: &mut Cursor) -> Parsed<Symbol> {
    let start = cursor.pos();
    if cursor.peek() == b'"' {
        let name = cursor.string()?;
        let name = name.ok_or_else(|| TextError::meaning(start, cursor.pos(), "the name is not UTF-8"))?;
        return Ok(Symbol::new(&name));
    }
    while is_name_byte(cursor.peek()) {
        cursor.advance(1);
    }
    match cursor.slice(start, cursor.pos()) {
        "" => Err(cursor.expected("a name")),
        name => Ok(Symbol::new(name)),
    }
}

fn read_name(cursor: &mut Cursor) -> Parsed<Symbol> {
    match cursor.dotted_name() {
        "" => Err(cursor.expected("a name")),
        name => Ok(Symbol::new(name)),
    }
}

/// ` : int`
fn read_declared_type(cursor: &mut Cursor) -> Parsed<Type> {
    cursor.expect(b':')?;
    cursor.skip_blanks();
    Ok(program_type(&read_type(cursor)?))
}

/// ` = __torch__.M.forward`
fn read_target(cursor: &mut Cursor) -> Parsed<Symbol> {
    cursor.expect(b'=')?;
    cursor.skip_blanks();
    read_name(cursor)
}

/// A value up to the end of the line.
fn read_line_value(cursor: &mut Cursor, expected: Option<&Type>) -> Parsed<Attr> {
    let start = cursor.pos();
    let line = cursor.rest().split('\n').next().unwrap_or("").trim_end();
    // Values end at the bracket of an op's attributes; here the end of the line takes its place.
    let closed = format!("{line}]");
    let mut inner = Cursor::new(&closed);
    let value = read_attr(&mut inner, expected);
    if inner.pos() < line.len() || value.is_err() || line.is_empty() {
        let at = start + inner.pos().min(line.len());
        cursor.set_pos(at);
        return Err(TextError::new(
            at,
            start + line.len().max(1),
            "expected a value and the end of the line",
        ));
    }
    cursor.set_pos(start + line.len());
    value
}

/// Gives a graph and those inside of it their resources. `number` counts the graphs in the order of printing.
fn fill(
    graph: &mut Graph,
    number: &mut usize,
    wanted: &mut BTreeMap<usize, Vec<Resource<'_>>>,
    misses: &mut Misses,
) {
    let own = wanted.remove(number).unwrap_or_default();
    *number += 1;
    if !own.is_empty() {
        fill_one(graph, own, misses);
    }
    for op in graph.all_ops() {
        let Some(Attr::Graph(subgraph)) = graph.attr(op, "Subgraph") else { continue };
        let end = *number + 1 + subgraph_count(subgraph);
        if wanted.range(*number..end).next().is_none() {
            *number = end;
            continue;
        }
        let subgraph = Arc::clone(subgraph);
        // The last handle is kept here, so that the subgraph need not be copied.
        graph.set_attr(op, "Subgraph", Attr::None);
        let mut inner = Arc::unwrap_or_clone(subgraph);
        fill(&mut inner, number, wanted, misses);
        graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(inner)));
    }
}

fn fill_one(graph: &mut Graph, resources: Vec<Resource<'_>>, misses: &mut Misses) {
    let ops = graph.all_ops();
    let mut named: HashMap<String, OpId> = HashMap::new();
    for op in ops.iter().filter(|op| !graph.attrs(**op).is_empty()) {
        if let Some(result) = graph.result(*op, 0) {
            named.entry(graph.display_name(result)).or_insert(*op);
        }
    }
    for resource in resources {
        let op = match resource.by_place {
            true => resource.op.parse().ok().and_then(|n: usize| ops.get(n)).copied(),
            false => named.get(resource.op).copied(),
        };
        match op.filter(|op| graph.attr(*op, resource.attribute).is_some()) {
            Some(op) => graph.set_attr(op, resource.attribute, resource.value),
            None => misses.push((resource.start, resource.end)),
        }
    }
}

/// Number of subgraphs inside a graph, however deep.
fn subgraph_count(graph: &Graph) -> usize {
    let mut count = 0;
    let mut work = vec![graph];
    while let Some(graph) = work.pop() {
        for op in graph.all_ops() {
            if let Some(Attr::Graph(subgraph)) = graph.attr(op, "Subgraph") {
                count += 1;
                work.push(subgraph);
            }
        }
    }
    count
}

// --- what type text leaves out ---

/// Completes types from the module's declarations: the value types of enums, the full names of interfaces, the
/// names of named tuples, classes that are interfaces.
pub(in crate::ir) fn resolve(module: &mut Module) {
    if module.enums.is_empty() && module.interfaces.is_empty() && module.named_tuples.is_empty() {
        return;
    }
    let (mut functions, mut classes) =
        (std::mem::take(&mut module.functions), std::mem::take(&mut module.classes));
    let mut resolver = Resolver { module, known: HashMap::new(), named: HashMap::new() };
    resolver.learn_names();
    for function in functions.values_mut() {
        resolver.graph(&mut function.graph);
        for argument in function.schema.arguments.iter_mut().chain(&mut function.schema.returns) {
            argument.ty = resolver.resolved(&argument.ty);
            argument.real_ty = resolver.resolved(&argument.real_ty);
        }
    }
    for class in classes.values_mut() {
        class.attributes.iter_mut().for_each(|a| a.ty = resolver.resolved(&a.ty));
        class.constants.values_mut().for_each(|(ty, _)| *ty = resolver.resolved(ty));
    }
    (module.functions, module.classes) = (functions, classes);
}

/// Completes types; each one once.
struct Resolver<'a> {
    module: &'a Module,
    known: HashMap<Type, Type>,
    /// The first declared named tuple with these fields and elements.
    named: HashMap<(Vec<Symbol>, Vec<Type>), Symbol>,
}

impl Resolver<'_> {
    /// Names of tuples inside of others count, wherever those stand in the text: until nothing new is found.
    fn learn_names(&mut self) {
        let module = self.module;
        for _ in 0..=module.named_tuples.len() {
            let mut found = HashMap::new();
            for def in module.named_tuples.values() {
                if let TypeKind::Tuple(elements, Some(names)) = def.ty.kind() {
                    let elements = elements.iter().map(|e| self.resolved(e)).collect();
                    found.entry((names.fields.clone(), elements)).or_insert(names.name);
                }
            }
            self.known.clear();
            if found == self.named {
                break;
            }
            self.named = found;
        }
    }

    fn graph(&mut self, graph: &mut Graph) {
        graph.map_types(&mut |ty| self.resolved(ty));
        for op in graph.all_ops() {
            if let Some(Attr::Graph(subgraph)) = graph.attr(op, "Subgraph") {
                let mut copy = Graph::clone(subgraph);
                self.graph(&mut copy);
                graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(copy)));
            }
        }
    }

    fn resolved(&mut self, ty: &Type) -> Type {
        if let Some(new) = self.known.get(ty) {
            return new.clone();
        }
        let new = self.resolve(ty);
        self.known.insert(ty.clone(), new.clone());
        new
    }

    fn resolve(&mut self, ty: &Type) -> Type {
        let module = self.module;
        match ty.kind() {
            TypeKind::Enum(name, _) => match module.enums.get(name) {
                Some(def) => Type::new(TypeKind::Enum(*name, def.value_type.clone())),
                None => ty.clone(),
            },
            TypeKind::Class(name) if module.interfaces.contains_key(name) => Type::interface(*name),
            TypeKind::Interface(short) if !module.interfaces.contains_key(short) => {
                let is_it = |name: &&Symbol| name.as_str().rsplit('.').next() == Some(short.as_str());
                module.interfaces.keys().find(is_it).map_or(ty.clone(), |name| Type::interface(*name))
            }
            TypeKind::Class(name) => match module.named_tuples.get(name) {
                Some(def) => def.ty.clone(),
                None => ty.clone(),
            },
            TypeKind::Tuple(elements, names) => {
                let elements: Vec<Type> = elements.iter().map(|t| self.resolved(t)).collect();
                let Some(names) = names else { return Type::tuple(elements) };
                let mut name = names.name;
                if name == "" && !self.named.is_empty() {
                    let key = (names.fields.clone(), elements.clone());
                    name = self.named.get(&key).copied().unwrap_or(name);
                }
                Type::named_tuple_with_defaults(name, names.fields.clone(), elements, names.defaults.clone())
            }
            TypeKind::List(t) => Type::list(self.resolved(t)),
            TypeKind::Optional(t) => Type::optional(self.resolved(t)),
            TypeKind::Future(t) => Type::future(self.resolved(t)),
            TypeKind::Dict(k, v) => Type::dict(self.resolved(k), self.resolved(v)),
            TypeKind::Union(members) => {
                let members: Vec<Type> = members.iter().map(|t| self.resolved(t)).collect();
                Type::new(TypeKind::Union(members.into()))
            }
            _ => ty.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_module;
    use crate::tensor::Tensor;

    fn parse(text: &str) -> Result<ParsedModule, Vec<Diagnostic>> {
        parse_module(&Source::new("t.ir", text), &ParseOptions { record_places: true, ..Default::default() })
    }

    const MODULE: &str = r#"class __torch__.M(Module):
  parameter weight : Tensor
  buffer 0 : Tensor
  attribute training : bool
  attribute "a b" : InterfaceType<Shape>
  constant k : int[] = [1, 2]
  constant t : Tensor = tensor(Float(2), "AACAPwAAAEA=")
  method forward = __torch__.M.forward
  static_method make = __torch__.M.make
  property p = get_p, set_p
  forward_pre_hook before
  forward_hook after

interface __torch__.a.Shape(Module):
  method area(InterfaceType<Shape> self, int n=1) -> Tensor

enum __torch__.Color : int:
  RED = 1
  GREEN = 2

named_tuple __torch__.Pair:
  lo : Tensor
  hi : int = 3

schema __torch__.M.forward(__torch__.M self, Tensor x, *, bool flag=False) -> Tensor
graph @__torch__.M.forward(%self : __torch__.M,
      %x.1 : Tensor,
      %flag : bool):
  %c : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
  %w : Float(12, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %p : NamedTuple(lo : Tensor, hi : int = 3) = test::pair(%x.1)
   = test::sink(%p)
  return (%x.1)

graph @other(%x : Tensor):
  return (%x)
"#;

    #[test]
    fn a_module_prints_back() {
        let parsed = parse(MODULE).map_err(|e| e[0].to_string()).unwrap();
        assert_eq!(parsed.module.to_string(), MODULE);
        let mut streamed = Vec::new();
        parsed.module.write_text(&mut streamed, &Default::default()).unwrap();
        assert_eq!(String::from_utf8(streamed).unwrap(), MODULE);
    }

    #[test]
    fn types_are_completed_from_declarations() {
        let module = parse(MODULE).map_err(|e| e[0].to_string()).unwrap().module;
        let class = module.class(Symbol::new("__torch__.M")).unwrap();
        assert_eq!(class.attribute("a b").unwrap().ty, Type::interface("__torch__.a.Shape"));
        let graph = &module.function("__torch__.M.forward").unwrap().graph;
        let ops = graph.all_ops();
        let ty = |n: usize| graph.ty(graph.result(ops[n], 0).unwrap());
        assert!(matches!(ty(0).kind(), TypeKind::Enum(_, value) if *value == Type::int()));
        assert_eq!(ty(2).unrefined(), "__torch__.Pair");
    }

    #[test]
    fn large_tensors_stand_in_resources() {
        let mut module = parse("graph():\n  %w : Tensor = prim::Constant[value=<Tensor>]()\n  return (%w)\n")
            .unwrap()
            .module;
        let tensor = Tensor::from_vec(&(0..12).map(|x| x as f32 / 3.0).collect::<Vec<_>>(), &[3, 4]).unwrap();
        let graph = &mut module.functions[0].graph;
        let op = graph.all_ops()[0];
        graph.set_attr(op, "value", Attr::Tensor(tensor.clone()));
        graph.set_attr(op, "more", Attr::Tensors(vec![tensor.clone(); 2].into()));
        let text = module.to_string();
        assert!(text.contains("prim::Constant[value=<Tensor>, more=[<Tensors>]]()"), "{text}");
        let again = parse(&text).map_err(|e| e[0].to_string()).unwrap().module;
        assert_eq!(again.to_string(), text);
        let graph = &again.functions[0].graph;
        let Some(Attr::Tensor(read)) = graph.attr(graph.all_ops()[0], "value") else { panic!("no tensor") };
        assert_eq!(read.to_vec::<f32>().unwrap(), tensor.to_vec::<f32>().unwrap());
    }

    #[test]
    fn one_graph_without_a_name_prints_alone() {
        let text = "graph(%x : Tensor):\n  return (%x)\n";
        assert_eq!(parse(text).unwrap().module.to_string(), text);
        let two = format!("{text}\n{text}");
        assert_eq!(parse(&two).unwrap().module.to_string(), two);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        let message =
            |text: &str| parse(text).err().map(|e| e.iter().map(|d| d.to_string()).collect::<Vec<_>>());
        let one = |text: &str| message(text).unwrap().remove(0);
        assert!(one("").starts_with("expected `graph(`"));
        assert!(one("module {\n}").contains("the text holds no `\"torch.graph\"`"));
        assert!(one("func.func @f() {\n}").contains("generic form"));
        assert_eq!(
            one("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%X)\n  return (%y)\n"),
            "no value `%X` is defined before (t.ir:2:28); did you mean `%x`?"
        );
        let two = "graph(%x : Tensr):\n  return (%x)\n";
        assert!(one(two).starts_with("there is no type `Tensr` (t.ir:1:12)"));
        let several = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%a)\n  %z : Tensor = aten::relu(%b)\n  return (%y)\n";
        assert_eq!(message(several).unwrap().len(), 2);
        assert!(one("class __torch__.M:\n  paramter x : Tensor\n").starts_with("expected `parameter`"));
        assert!(one("schema f(int x) -> int\n").starts_with("expected the graph of `f`"));
        assert!(
            one("graph(%x : int):\n  return (%x)\nresource %y value = 1\n").contains("no op and attribute")
        );
        let deep = format!("graph(%x : int):\n{}", "  %y : int = a::b(%x)\n  block0():\n".repeat(100_000));
        assert!(one(&deep).contains("nest deeper"));
    }

    #[test]
    fn comments_and_check_lines_are_skipped() {
        let text = "# RUN: flambeau opt %s\n// CHECK: graph\ngraph(%x : Tensor):\n  # CHECK-NEXT: relu\n  %y : Tensor = aten::relu(%x) # a comment\n  // more\n\n  return (%y) # end\n# CHECK: bar\n";
        let module = parse(text).map_err(|e| e[0].to_string()).unwrap().module;
        assert_eq!(
            module.to_string(),
            "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n"
        );
    }
}
