//! Reads `docs/outcome-tables.md`: its tables, their rows, and what each row names.

/// One table of the document.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its heading, without the number of rows.
    pub(crate) heading: String,
    /// The number of rows that its heading claims.
    pub(crate) claimed: usize,
    /// Its rows.
    pub(crate) rows: Vec<Row>,
}

/// One row of a table.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its number.
    pub(crate) number: String,
    /// What stands between backticks in the cell of answers.
    pub(crate) answers: Vec<String>,
    /// The tests that it names.
    pub(crate) tests: Vec<String>,
}

/// What stands between backticks.
fn spans(cell: &str) -> Vec<String> {
    let spans = cell.split('`').skip(1).step_by(2);
    spans.map(str::to_owned).collect()
}

/// The tables whose headings begin with this.
pub(crate) fn tables(start: &str) -> Vec<Table> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/outcome-tables.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let mut tables: Vec<Table> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let (heading, count) = heading.rsplit_once(" (").expect("a number of rows");
            let count = count.strip_suffix(" rows)").expect("a number of rows");
            tables.push(Table {
                heading: heading.to_owned(),
                claimed: count.parse().expect("a number"),
                rows: Vec::new(),
            });
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", number, answers, _, tests, ""] = cells[..] else {
            continue;
        };
        if number.parse::<usize>().is_ok() {
            let table = tables.last_mut().expect("a heading before its rows");
            table.rows.push(Row {
                number: number.to_owned(),
                answers: spans(answers),
                tests: spans(tests),
            });
        }
    }
    tables.retain(|table| table.heading.starts_with(start));
    tables
}

/// Each table has as many rows as it claims, numbered from 1, and each row a test.
pub(crate) fn check(tables: &[Table], expected: &[usize]) {
    let counts: Vec<usize> = tables.iter().map(|table| table.rows.len()).collect();
    assert_eq!(counts, expected);
    for table in tables {
        assert_eq!(table.rows.len(), table.claimed, "{}", table.heading);
        for (number, row) in (1..).zip(&table.rows) {
            assert_eq!(row.number, format!("{number}"), "{}", table.heading);
            assert!(!row.tests.is_empty(), "{} {number}", table.heading);
        }
    }
}
