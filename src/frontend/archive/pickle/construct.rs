//! What the machine builds for each global of the allow-list: objects, enum members, devices, complex
//! numbers, typed lists and dicts. It only ever makes nodes.

use super::globals::{Element, Global};
use super::machine::Machine;
use super::tensors::device_name;
use super::tree::{Dict, Enum, Node, NodeId, Object, TENSOR_ID};
use crate::diag::{Diagnostic, Result};

impl Machine<'_> {
    pub(super) fn new_object(&mut self) -> Result<()> {
        let arguments = self.pop()?;
        let class = self.pop()?;
        let Node::Global(Global::Class(class)) = self.node(class) else {
            let kind = self.node(class).kind();
            return Err(Diagnostic::input(format!(
                "NEWOBJ makes an instance of {kind}; only classes of the model can have instances"
            )));
        };
        let class = class.clone();
        if !matches!(self.node(arguments), Node::Tuple(items) if items.is_empty()) {
            return Err(Diagnostic::input(format!("NEWOBJ gives arguments to `{class}`")));
        }
        self.charge((size_of::<Object>() + class.len()) as u64)?;
        self.push_new(Node::Object(Box::new(Object { class, state: None })))
    }

    pub(super) fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let target = self.top()?;
        let is_dict = matches!(self.node(state), Node::Dict(_));
        match self.nodes.get_mut(target.index()) {
            // Attributes of the object, such as `_metadata` of a `state_dict`.
            Some(Node::Dict(dict)) if dict.ordered && is_dict => {}
            Some(Node::Object(object)) if object.state.is_none() => object.state = Some(state),
            Some(Node::Object(object)) => {
                return Err(Diagnostic::input(format!(
                    "an instance of `{}` gets a second state",
                    object.class
                )));
            }
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("BUILD sets the state of {kind}, not of an object")));
            }
        }
        Ok(())
    }

    pub(super) fn reduce(&mut self) -> Result<()> {
        let arguments = self.pop()?;
        let function = self.pop()?;
        let Node::Global(global) = self.node(function) else {
            let kind = self.node(function).kind();
            return Err(Diagnostic::input(format!("REDUCE calls {kind}, not one of the known constructors")));
        };
        let global = global.clone();
        if let Global::Class(class) = global {
            return self.enum_member(class, arguments);
        }
        let Node::Tuple(items) = self.node(arguments) else {
            let kind = self.node(arguments).kind();
            return Err(Diagnostic::input(format!("REDUCE has {kind} as arguments, not a tuple")));
        };
        if items.len() > 8 {
            return Err(Diagnostic::input(format!(
                "REDUCE has {} arguments; no constructor takes that many",
                items.len()
            )));
        }
        let items: Vec<NodeId> = items.to_vec();
        match (&global, items.as_slice()) {
            (Global::Tensor, [storage, offset, sizes, strides, grad, hooks, rest @ ..])
                if rest.len() <= 1 =>
            {
                self.tensor([*storage, *offset, *sizes, *strides, *grad, *hooks], rest.first().copied())
            }
            (Global::QuantizedTensor, &[storage, offset, sizes, strides, scales, grad, hooks]) => {
                self.quantized_tensor([storage, offset, sizes, strides, grad, hooks], scales)
            }
            (Global::Parameter, &[tensor, grad, hooks]) => self.parameter(tensor, grad, hooks),
            (Global::OrderedDict, []) => {
                self.push_new(Node::Dict(Box::new(Dict { ordered: true, ..Dict::default() })))
            }
            (Global::Device, &[name]) => self.device(name),
            (Global::Complex, &[re, im]) => self.complex(re, im),
            (Global::TypedList(element), &[list]) => self.typed_list(*element, list),
            (Global::TensorId, &[id]) => {
                self.charge((size_of::<Object>() + TENSOR_ID.len()) as u64)?;
                let class = TENSOR_ID.into();
                self.push_new(Node::Object(Box::new(Object { class, state: Some(id) })))
            }
            (Global::TypeTag, &[value, text]) => self.type_tag(value, text),
            (Global::Storage(row), _) => Err(Diagnostic::input(format!(
                "REDUCE calls `{}`, which is not a known constructor",
                row.class
            ))),
            (_, items) => {
                Err(Diagnostic::input(format!("a constructor is called with {} arguments", items.len())))
            }
        }
    }

    /// A class is called for the members of an enum only; the argument is the bare value.
    fn enum_member(&mut self, class: Box<str>, value: NodeId) -> Result<()> {
        if !matches!(self.node(value), Node::Int(_) | Node::Float(_) | Node::Str(_)) {
            let kind = self.node(value).kind();
            return Err(Diagnostic::input(format!("the enum `{class}` has a member with {kind} as value")));
        }
        self.charge((size_of::<Enum>() + class.len()) as u64)?;
        self.push_new(Node::Enum(Box::new(Enum { class, value })))
    }

    fn device(&mut self, name: NodeId) -> Result<()> {
        let Node::Str(text) = self.node(name) else {
            return Err(Diagnostic::input("the name of a device is not a string"));
        };
        let text = device_name(text)?;
        self.push_new(Node::Device(text))
    }

    fn complex(&mut self, re: NodeId, im: NodeId) -> Result<()> {
        let (&Node::Float(re), &Node::Float(im)) = (self.node(re), self.node(im)) else {
            return Err(Diagnostic::input("the parts of a complex number are not floats"));
        };
        self.push_new(Node::Complex(re, im))
    }

    fn typed_list(&mut self, element: Element, list: NodeId) -> Result<()> {
        let Node::List(items) = self.node(list) else {
            let kind = self.node(list).kind();
            return Err(Diagnostic::input(format!("a {} is built from {kind}", element.list_type())));
        };
        let count = items.items.len() as u64;
        self.work(count)?;
        let Node::List(items) = self.node(list) else { return Ok(()) };
        for item in &items.items {
            let node = self.node(*item);
            let fits = match element {
                Element::Int => matches!(node, Node::Int(_)),
                Element::Float => matches!(node, Node::Float(_)),
                Element::Bool => matches!(node, Node::Bool(_)),
                Element::Tensor => match node {
                    Node::Object(object) => *object.class == *TENSOR_ID,
                    node => matches!(node, Node::Tensor(_) | Node::None),
                },
            };
            if !fits {
                return Err(Diagnostic::input(format!("a {} contains {}", element.list_type(), node.kind())));
            }
        }
        self.set_type(list, element.list_type().into())
    }

    fn type_tag(&mut self, value: NodeId, text: NodeId) -> Result<()> {
        let Node::Str(text) = self.node(text) else {
            return Err(Diagnostic::input("a type tag is not a string"));
        };
        if text.len() > self.limits.type_text_bytes {
            return Err(Diagnostic::input(format!(
                "a type tag has {} bytes, and the limit is {}",
                text.len(),
                self.limits.type_text_bytes
            )));
        }
        let text = text.clone();
        match Element::of_list_type(&text) {
            Some(element) => self.typed_list(element, value),
            None => self.set_type(value, text),
        }
    }

    /// Notes the type of a list or dict, whose identity stays, and pushes it.
    fn set_type(&mut self, value: NodeId, text: Box<str>) -> Result<()> {
        self.charge(text.len() as u64)?;
        let place = match self.nodes.get_mut(value.index()) {
            Some(Node::List(list)) => &mut list.type_text,
            Some(Node::Dict(dict)) => &mut dict.type_text,
            other => {
                let kind = other.map_or("nothing", |node| node.kind());
                return Err(Diagnostic::input(format!("a type tag is on {kind}, not on a list or dict")));
            }
        };
        if place.as_ref().is_some_and(|old| *old != text) {
            return Err(Diagnostic::input("a list or dict gets a second, different type"));
        }
        *place = Some(text);
        self.push(value)
    }
}
