//! Pictures of a loss over steps: text for terminals, SVG for documents. Must not know how losses are made.

use crate::diag::{Diagnostic, Result};
use std::fmt::Write;
use std::path::Path;

/// Columns and lines of the text.
const COLUMNS: usize = 64;
const LINES: usize = 10;
/// Sizes of the picture, and the margin for numbers.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 70.0;

/// Losses step by step, and a second loss at some of the steps.
pub struct Curve {
    losses: Vec<f64>,
    marks: Vec<(usize, f64)>,
}

impl Curve {
    /// A curve that goes on from losses.
    pub fn new(losses: Vec<f64>) -> Curve {
        Curve { losses, marks: Vec::new() }
    }

    /// Fails for names of files that no curve is written to.
    pub fn check_name(file: &Path) -> Result<()> {
        match file.extension().and_then(|end| end.to_str()) {
            Some("svg" | "txt") => Ok(()),
            _ => {
                let message = format!("{}: curves are written to .svg or .txt", file.display());
                Err(Diagnostic::usage(message))
            }
        }
    }

    /// The loss of the next step.
    pub fn push(&mut self, loss: f64) {
        self.losses.push(loss);
    }

    /// The second loss after the last step.
    pub fn mark(&mut self, loss: f64) {
        self.marks.push((self.losses.len(), loss));
    }

    /// All losses.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// What a file of this name holds.
    pub fn picture(&self, file: &Path) -> String {
        if file.extension().is_some_and(|end| end == "svg") { self.svg() } else { self.text() }
    }

    /// The least and the largest finite loss.
    fn range(&self) -> (f64, f64) {
        let all = self.losses.iter().copied().chain(self.marks.iter().map(|(_, loss)| *loss));
        let (low, high) = all
            .filter(|loss| loss.is_finite())
            .fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        match high > low {
            true => (low, high),
            false if high == low => (low - 0.5, high + 0.5),
            false => (0.0, 1.0),
        }
    }

    /// Columns of blocks; each is the mean of its steps.
    pub fn text(&self) -> String {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let (low, high) = self.range();
        let columns = self.losses.len().clamp(1, COLUMNS);
        let part = |n: usize| self.losses.len() * n / columns;
        let mean = |n: usize| {
            let steps = self.losses.get(part(n)..part(n + 1)).unwrap_or_default();
            steps.iter().sum::<f64>() / steps.len().max(1) as f64
        };
        let heights: Vec<f64> = (0..columns).map(|n| (mean(n) - low) / (high - low)).collect();
        let mut out = String::new();
        for line in (0..LINES).rev() {
            let label = match line {
                0 => format!("{low:.4}"),
                _ if line + 1 == LINES => format!("{high:.4}"),
                _ => String::new(),
            };
            let _ = write!(out, "{label:>10} │");
            for height in &heights {
                // The least loss keeps an eighth, so that every step shows.
                let eighths = (height * (LINES * 8 - 1) as f64).round() as i64 + 1 - line as i64 * 8;
                out.push(EIGHTHS[eighths.clamp(0, 8) as usize]);
            }
            out = out.trim_end().to_string() + "\n";
        }
        let end = self.losses.len();
        let _ = writeln!(out, "{:>10} └{}", "", "─".repeat(columns));
        let _ = writeln!(out, "{:>12}1{:>width$}", "", end, width = columns.saturating_sub(1));
        out
    }

    /// A line, and points for the second loss.
    fn svg(&self) -> String {
        let (low, high) = self.range();
        let steps = self.losses.len().max(2) as f64;
        let x = |step: usize| MARGIN + (WIDTH - MARGIN - 20.0) * (step as f64 - 1.0) / (steps - 1.0);
        let y = |loss: f64| 20.0 + (HEIGHT - 60.0) * (high - loss) / (high - low);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\" aria-label=\"loss over {} steps\">\n\
             <style>text{{font:13px system-ui,sans-serif;fill:#57606a}}.end{{text-anchor:end}}.axis{{stroke:#d0d7de}}\
             .loss{{fill:none;stroke:#0969da;stroke-width:1.5}}.valid{{fill:#bc4c00}}\
             @media (prefers-color-scheme:dark){{svg{{background:#0d1117}}text{{fill:#9198a1}}.axis{{stroke:#3d444d}}\
             .loss{{stroke:#4493f8}}.valid{{fill:#f0883e}}}}</style>\n",
            self.losses.len()
        );
        for n in 0..=4 {
            let loss = low + (high - low) * f64::from(n) / 4.0;
            let at = y(loss);
            let _ = writeln!(
                out,
                "<line class=\"axis\" x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{loss:.4}</text>",
                WIDTH - 20.0,
                MARGIN - 8.0,
                at + 4.0
            );
        }
        let bottom = HEIGHT - 14.0;
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{bottom}\">step 1</text>\
             <text class=\"end\" x=\"{:.1}\" y=\"{bottom}\">{}</text>",
            WIDTH - 20.0,
            self.losses.len()
        );
        let finite = self.losses.iter().enumerate().filter(|(_, loss)| loss.is_finite());
        let points: Vec<String> =
            finite.map(|(n, loss)| format!("{:.1},{:.1}", x(n + 1), y(*loss))).collect();
        let _ = writeln!(out, "<polyline class=\"loss\" points=\"{}\"/>", points.join(" "));
        for (step, loss) in self.marks.iter().filter(|(_, loss)| loss.is_finite()) {
            let _ = writeln!(
                out,
                "<circle class=\"valid\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>validation {loss:.6} after step \
                 {step}</title></circle>",
                x(*step),
                y(*loss)
            );
        }
        out + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_drawn_of_any_losses() {
        for losses in
            [vec![], vec![1.0], vec![2.0; 5], vec![f64::NAN, 1.0], (0..500).map(f64::from).collect()]
        {
            let mut curve = Curve::new(losses);
            curve.mark(0.5);
            assert_eq!(curve.text().lines().count(), LINES + 2);
            assert!(curve.svg().ends_with("</svg>\n") && !curve.svg().contains("NaN"));
        }
        let falling = Curve::new(vec![4.0, 2.0, 0.0]).text();
        assert!(falling.lines().next().is_some_and(|top| top.ends_with("4.0000 │█")), "{falling}");
        assert!(Curve::check_name(Path::new("a.png")).is_err());
    }
}
