//! Tables as aligned Markdown.

use crate::goal::Verdict;

/// Prints a title and a table below it.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
pub(crate) fn print(title: &str, head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<_> = head.iter().map(ToString::to_string).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(cell, width): (&String, &usize)| format!(" {cell:<width$} |");
        format!("|{}", row.iter().zip(&widths).map(cell).collect::<String>())
    };
    let rule: Vec<_> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    println!("\n{title}\n\n{}\n|{}|", line(&head), rule.join("|"));
    for row in rows {
        println!("{}", line(row));
    }
}

/// Prints the table of the issue.
pub(crate) fn print_goals(verdicts: &[Verdict]) {
    let row = |it: &Verdict| {
        vec![
            it.row.clone(),
            it.figure(),
            it.goal.to_string(),
            it.word().to_owned(),
        ]
    };
    let rows: Vec<_> = verdicts.iter().map(row).collect();
    print("All goals", &["row", "measured", "goal", "verdict"], &rows);
}
