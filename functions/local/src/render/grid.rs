//! Tables without lines: a bold head, columns two spaces apart.

use comfy_table::{
    Attribute, Cell as Drawn, CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, Table, presets::NOTHING,
};

use super::words::clip;
use crate::terminal::{Style, Terminal};

/// The text of a cell, and what it looks like.
pub(crate) type Cell = (String, Option<Style>);

/// A table being filled.
pub(crate) struct Grid {
    table: Table,
    terminal: Terminal,
    rows: Vec<Vec<Cell>>,
    /// The column whose texts are cut to the room that the others leave.
    clipped: Option<usize>,
}

/// Spaces between two columns.
const GAP: u16 = 2;

/// The head of the column of names.
const RUNTIME: &str = "RUNTIME";

/// No column is cut to less.
const NARROWEST: usize = 20;

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
        for (column, text) in table.column_iter_mut().zip(head) {
            column.set_padding((0, GAP));
            // What is copied into the next command is never broken.
            if *text == RUNTIME {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        Self { table, terminal, rows: Vec::new(), clipped: None }
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

    /// On a terminal this column's texts lose their middle rather than be broken within a word: paths.
    pub(crate) fn clipped(mut self, column: usize) -> Self {
        self.clipped = Some(column);
        self
    }

    /// One line; a cell has at most one style.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// The table as text, `indent` spaces in, nothing at the end of any line.
    pub(crate) fn text(&self, indent: usize) -> String {
        let room = self.room();
        let mut table = self.table.clone();
        for cells in &self.rows {
            let cells = cells.iter().enumerate().map(|(column, (text, style))| {
                let text = match room {
                    Some(room) if self.clipped == Some(column) => clip(text, room),
                    _ => text.into(),
                };
                match style {
                    Some(style) if self.terminal.colours => styled(Drawn::new(text), *style),
                    _ => Drawn::new(text),
                }
            });
            let cells: Row = cells.collect::<Vec<_>>().into();
            table.add_row(cells);
        }
        let lines = table.lines().map(|line| format!("{:indent$}{}", "", line.trim_end()));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What the other columns leave of the terminal's width for the one that is clipped.
    fn room(&self) -> Option<usize> {
        let clipped = self.clipped?;
        let width = usize::from(self.table.width().filter(|width| *width > 0)?);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count());
            let head = self.table.header().and_then(|head| head.cell_iter().nth(column));
            cells.max().max(head.map(|head| head.content().chars().count())).unwrap_or(0)
        };
        let columns = self.rows.first()?.len();
        let others: usize = (0..columns).filter(|column| *column != clipped).map(widest).sum();
        Some(width.saturating_sub(others + columns * usize::from(GAP)).max(NARROWEST))
    }

    /// Whether it has no line but its head.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A table on a terminal of `width`.
    fn on(width: u16) -> Grid {
        let terminal = Terminal { colours: false, watched: true, json: false };
        let mut grid = Grid::new(terminal, &["WHAT", "FROM"]);
        grid.table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        grid
    }

    const PATH: &str = "/srv/conversation-worktrees/3c9e12d4-6f08-4a1b-8b52-0d4e9a7c2f02/shop";

    #[test]
    fn a_path_that_is_too_long_loses_its_middle_and_is_not_broken() {
        let mut grid = on(60).clipped(1);
        grid.row([plain("dependencies"), plain(PATH)]);
        let text = grid.text(0);
        assert_eq!(text.lines().count(), 2, "{text}");
        let path = text.lines().last().unwrap().split_whitespace().last().unwrap();
        assert!(path.contains('…') && path.ends_with("/shop") && path.chars().count() == 44, "{text}");
    }

    #[test]
    fn where_there_is_room_or_no_terminal_it_is_whole() {
        let mut wide = on(120).clipped(1);
        wide.row([plain("dependencies"), plain(PATH)]);
        let mut file = on(0).clipped(1);
        file.table.set_content_arrangement(ContentArrangement::Disabled);
        file.row([plain("dependencies"), plain(PATH)]);
        for grid in [wide, file] {
            assert!(grid.text(0).ends_with(PATH), "{}", grid.text(0));
        }
    }
}
