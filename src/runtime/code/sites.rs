//! Where steps come from: places in source, with the calls that they were inlined through.

use super::steps::Site;
use crate::diag::{Source, Span};
use crate::ir::{Graph, LocationId, Place};

/// How many inlined calls a traceback follows.
const MAX_INLINED: usize = 256;

pub(super) fn site(graph: &Graph, location: LocationId) -> Site {
    let mut inlined = Vec::new();
    let mut at = graph.location_of(location).and_then(|l| l.inlined_from);
    while let Some((function, call)) = at {
        inlined.push((function, span_of(graph, call)));
        at = graph.location_of(call).and_then(|l| l.inlined_from);
        if inlined.len() == MAX_INLINED {
            break;
        }
    }
    Site { span: span_of(graph, location), inlined }
}

/// The place of a location. One that was read from text is a place in a source whose text is not at hand.
pub(super) fn span_of(graph: &Graph, location: LocationId) -> Option<Span> {
    span(&graph.location_of(location)?.place)
}

/// The same of a place.
pub(in crate::runtime) fn span(place: &Place) -> Option<Span> {
    match place {
        Place::Unknown => None,
        Place::Span(span) => Some(span.clone()),
        Place::File { file, line, .. } => {
            Some(Span::new(&Source::starting_at(file.as_str(), "", *line as usize), 0, 0))
        }
    }
}

/// A place with its line: `f.py:3: return x + 1`; of Python's own stack, as a tracer noted it, the innermost line.
pub(in crate::runtime) fn shown_line(span: &Span) -> String {
    let (name, text) = (span.source().name(), span.source().text());
    let is_stack = !text.is_empty() && span.end() - span.start() == text.len() && name.is_empty();
    if is_stack {
        return text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_string();
    }
    let (line, _) = span.line_column();
    let start = text.get(..span.start()).and_then(|before| before.rfind('\n')).map_or(0, |n| n + 1);
    let code = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default().trim();
    match (name.is_empty() && code.is_empty(), code.is_empty()) {
        (true, _) => String::new(),
        (_, true) => format!("{name}:{line}"),
        (_, false) => format!("{name}:{line}: {code}"),
    }
}
