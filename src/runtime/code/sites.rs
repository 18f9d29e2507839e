//! Where steps come from: places in source, with the calls that they were inlined through.

use super::Site;
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
    match &graph.location_of(location)?.place {
        Place::Unknown => None,
        Place::Span(span) => Some(span.clone()),
        Place::File { file, line, .. } => {
            Some(Span::new(&Source::starting_at(file.as_str(), "", *line as usize), 0, 0))
        }
    }
}
