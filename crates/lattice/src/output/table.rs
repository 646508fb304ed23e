//! Rows in columns, and lines that are no wider than the terminal.

use unicode_width::UnicodeWidthChar;

use super::Style;

/// Between two columns.
const GAP: &str = "  ";

/// Lines with their cells below each other. Cells may be painted; of what is too wide, the end is cut.
pub(crate) fn table(rows: &[Vec<String>], style: Style) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let widths: Vec<_> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, wide)| format!("{cell}{}", " ".repeat(wide - width(cell))));
        let line = cells.collect::<Vec<_>>().join(GAP);
        format!("{}\n", cut(line.trim_end(), style))
    };
    rows.iter().map(line).collect()
}

/// How many columns of a terminal a text takes.
pub(crate) fn width(text: &str) -> usize {
    shown(text).map(|(_, wide)| wide).sum()
}

/// As much of a line as the terminal has room for.
pub(crate) fn cut(line: &str, style: Style) -> String {
    let Some(room) = style.columns.filter(|columns| width(line) > *columns) else { return line.to_owned() };
    let more = if style.ascii { "..." } else { "…" };
    let mut left = room.saturating_sub(width(more));
    let fits = |(_, wide): &(char, usize)| {
        let fits = *wide <= left;
        left = left.saturating_sub(*wide);
        fits
    };
    let kept: String = shown(line).take_while(fits).map(|(character, _)| character).collect();
    let end = if style.colour { "\u{1b}[0m" } else { "" };
    format!("{kept}{end}{more}")
}

/// Each character with its width; what paints has none.
fn shown(text: &str) -> impl Iterator<Item = (char, usize)> {
    let mut painting = false;
    text.chars().map(move |character| {
        painting |= character == '\u{1b}';
        let wide = if painting { 0 } else { character.width().unwrap_or(0) };
        painting &= character != 'm';
        (character, wide)
    })
}

#[cfg(test)]
mod tests {
    use super::{Style, cut, table};

    const PLAIN: Style = Style { colour: false, ascii: false, columns: None };

    #[test]
    fn columns_stand_below_each_other_whatever_is_in_them() {
        let rows = [["a", "日本", "end"], ["\u{1b}[31mred\u{1b}[0m", "b", ""], ["c", "d", "last"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = "a    日本  end\n\u{1b}[31mred\u{1b}[0m  b\nc    d     last\n";
        assert_eq!(table(&rows, PLAIN), text);
        assert_eq!(table(&[], PLAIN), "");
    }

    #[test]
    fn a_line_is_no_wider_than_its_terminal_and_leaves_no_colour_behind() {
        for (line, columns, ascii, colour, cut_to) in [
            ("short", Some(5), false, false, "short"),
            ("longer", Some(5), false, false, "long…"),
            ("longer", Some(5), true, false, "lo..."),
            ("longer", None, false, false, "longer"),
            ("日本語", Some(5), false, false, "日本…"),
            ("日本語", Some(4), false, false, "日…"),
            ("\u{1b}[31mlonger\u{1b}[0m", Some(5), false, true, "\u{1b}[31mlong\u{1b}[0m…"),
            ("longer", Some(0), false, false, "…"),
        ] {
            assert_eq!(cut(line, Style { colour, ascii, columns }), cut_to, "{line} in {columns:?}");
        }
    }
}
