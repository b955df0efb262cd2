//! Tables without lines: a bold head, columns two spaces apart.

use comfy_table::{Attribute, Cell as Drawn, CellAlignment, Color, ContentArrangement, Row, Table, presets::NOTHING};

use crate::terminal::{Style, Terminal};

/// The text of a cell, and what it looks like.
pub(crate) type Cell = (String, Option<Style>);

/// A table being filled.
pub(crate) struct Grid {
    table: Table,
    terminal: Terminal,
}

impl Grid {
    /// With this head.
    pub(crate) fn new(terminal: Terminal, head: &[&str]) -> Self {
        let mut table = Table::new();
        // A terminal's lines are wrapped cell by cell; in a file or a pipe a line stays one line, to be searched.
        let (arrangement, width) = match table.width() {
            Some(width) => (ContentArrangement::Dynamic, width.clamp(60, 160)),
            None => (ContentArrangement::Disabled, 0),
        };
        table.load_style(NOTHING).set_content_arrangement(arrangement).set_width(width).force_no_tty();
        if terminal.colours {
            table.enforce_styling();
        }
        table.set_header(head.iter().map(|text| Drawn::new(text).add_attribute(Attribute::Bold)));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self { table, terminal }
    }

    /// Wrapped in a file or a pipe too: what is read, not searched.
    pub(crate) fn wrapped(mut self) -> Self {
        let width = self.table.width().filter(|width| *width > 0).unwrap_or(100);
        self.table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        self
    }

    /// Numbers are read from their end.
    pub(crate) fn right(mut self, column: usize) -> Self {
        if let Some(column) = self.table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        self
    }

    /// One line; a cell has at most one style.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        let cells = cells.into_iter().map(|(text, style)| match style {
            Some(style) if self.terminal.colours => styled(Drawn::new_owned(text), style),
            _ => Drawn::new_owned(text),
        });
        let cells: Row = cells.collect::<Vec<_>>().into();
        self.table.add_row(cells);
    }

    /// The table as text, `indent` spaces in, nothing at the end of any line.
    pub(crate) fn text(&self, indent: usize) -> String {
        let lines = self.table.lines().map(|line| format!("{:indent$}{}", "", line.trim_end()));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Whether it has no line but its head.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

fn styled(cell: Drawn, style: Style) -> Drawn {
    match style {
        Style::Bold => cell.add_attribute(Attribute::Bold),
        Style::Dim => cell.add_attribute(Attribute::Dim),
        Style::Green => cell.fg(Color::DarkGreen),
        Style::Yellow => cell.fg(Color::DarkYellow),
        Style::Red => cell.fg(Color::DarkRed),
        Style::Cyan => cell.fg(Color::DarkCyan),
    }
}

/// A cell without a style.
pub(crate) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), None)
}

/// A cell with one.
pub(crate) fn in_style(style: Style, text: impl Into<String>) -> Cell {
    (text.into(), Some(style))
}
