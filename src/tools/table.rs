//! Tables for people: columns of the width of what is in them. Must not know what the rows mean.

use std::fmt;

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells under a header.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of columns that hold text (`name`) or numbers (`>median`).
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Table {
        let column = |text: &str| match text.strip_prefix('>') {
            Some(text) => (text.to_string(), Side::Right),
            None => (text.to_string(), Side::Left),
        };
        Table { header: columns.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |text: &str| text.chars().count();
        let cell = |row: &[String], n: usize| row.get(n).cloned().unwrap_or_default();
        let widths: Vec<usize> = self
            .header
            .iter()
            .enumerate()
            .map(|(n, (name, _))| {
                self.rows.iter().map(|row| length(&cell(row, n))).max().unwrap_or(0).max(length(name))
            })
            .collect();
        let names: Vec<String> = self.header.iter().map(|(name, _)| name.clone()).collect();
        for row in std::iter::once(&names).chain(&self.rows) {
            let mut line = String::new();
            for (n, ((_, side), width)) in self.header.iter().zip(&widths).enumerate() {
                let text = cell(row, n);
                let blanks = " ".repeat(width.saturating_sub(length(&text)));
                line.push_str(if n > 0 { "  " } else { "" });
                line += &match side {
                    Side::Left => text + &blanks,
                    Side::Right => blanks + &text,
                };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time in the unit that suits it: `1.234 ms`.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} us", s * 1e6),
    }
}

/// A number of bytes in the unit that suits it: `52.1 MB`.
pub fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 30 => format!("{:.2} GB", n as f64 / (1u64 << 30) as f64),
        n if n >= 1 << 20 => format!("{:.1} MB", n as f64 / (1u64 << 20) as f64),
        n => format!("{:.0} kB", n as f64 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new(["name", ">calls"]);
        table.row(["a".to_string(), "10".to_string()]);
        table.row(["longer".to_string(), "7".to_string()]);
        assert_eq!(table.to_string(), "name    calls\na          10\nlonger      7\n");
        assert_eq!((time(0.0015), bytes(3 << 20)), ("1.500 ms".to_string(), "3.0 MB".to_string()));
    }
}
