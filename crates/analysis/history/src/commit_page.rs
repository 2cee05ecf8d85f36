//! A series as a page: the verdicts counted, a row for each commit with the workloads that it
//! changed most, the functions that it changes, and the command that gives the same answer.

use document::number::count;
use document::{
    Block, Column, ColumnKind, Details, Document, RenderError, Table, TableCell, TableRow, Width,
};

use crate::commit_formats::SeriesAnswer;
use crate::commit_table::{
    CommitCell, CommitRow, CommitVerdict, Entered, State, changed_columns, workloads,
};

/// Workloads with a column: more make a table that only scrolls.
const COLUMNS_MAX: usize = 8;

impl SeriesAnswer<'_> {
    /// Returns one self-contained page.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html(&self) -> Result<String, RenderError> {
        self.page().html()
    }

    fn page(&self) -> Document {
        let mut blocks = vec![
            Block::Paragraph(format!(
                "{}: {} in {}",
                count(self.commits().count(), "commit"),
                self.count_verdicts(),
                workloads(self.workloads.len())
            )),
            Block::Note(
                "Each commit is compared with the one before it; positive is better.".to_owned(),
            ),
        ];
        let columns = changed_columns(self.rows, self.workloads);
        let (shown, more) = columns.split_at(columns.len().min(COLUMNS_MAX));
        blocks.push(Block::Table(self.verdicts(shown)));
        if !more.is_empty() {
            let rest = [more].concat();
            blocks.push(Block::Details(Details {
                summary: format!("{} more that changed", workloads(more.len())),
                blocks: vec![Block::Table(self.verdicts(&rest))],
                pages_only: false,
            }));
        }
        let functions = self.functions();
        if !functions.rows.is_empty() {
            blocks.push(Block::Heading("Functions that the commits change".into()));
            blocks.push(Block::Note(
                "Of each, the workload that spends the largest part in it; instructions are its own with what is inlined into it."
                    .to_owned(),
            ));
            blocks.push(Block::Table(functions));
        }
        let lines = self.lines();
        if !lines.rows.is_empty() {
            blocks.push(Block::Heading("Lines that the commits change".into()));
            blocks.push(Block::Note(
                "Those with code; of each, the workload that executes it most.".to_owned(),
            ));
            blocks.push(Block::Table(lines));
        }
        let origins = self.origins();
        if !origins.rows.is_empty() {
            blocks.push(Block::Heading("Where the differences come from".into()));
            blocks.push(Block::Note(
                "Additional instructions per operation. Compiled differently: the source is the same, with what is inlined, and the code is not."
                    .to_owned(),
            ));
            blocks.push(Block::Table(origins));
        }
        blocks.push(Block::Command(self.reproduce.clone()));
        Document {
            warnings: Vec::new(),
            title: self.title.clone(),
            blocks,
        }
    }

    /// Counts the verdicts in words, the gravest first.
    pub(crate) fn count_verdicts(&self) -> String {
        use CommitVerdict::{
            Better, CompiledDifferently, Equal, Failed, NotMeasured, Same, Unclear, Worse,
        };
        let kinds = [
            Failed,
            Worse,
            Unclear,
            NotMeasured,
            Better,
            CompiledDifferently,
            Same,
            Equal,
        ];
        let counts: Vec<String> = kinds
            .into_iter()
            .filter_map(|kind| {
                let of_kind = self.commits().filter(|row| row.verdict() == kind).count();
                (of_kind > 0).then(|| format!("{of_kind} {}", kind.word()))
            })
            .collect();
        counts.join(", ")
    }

    /// Returns the table of commits with these workloads.
    fn verdicts(&self, shown: &[usize]) -> Table {
        let mut columns = vec![
            Column::new("commit", ColumnKind::Name, Width::Fit(16)),
            Column::new("subject", ColumnKind::Words, Width::Fit(60)),
            Column::new("verdict", ColumnKind::Words, Width::Fit(12)),
        ];
        columns.extend(shown.iter().map(|column| {
            Column::new(self.workloads[*column], ColumnKind::Number, Width::Fit(18))
        }));
        let rows = self.rows.iter().map(|row| self.verdict_row(row, shown));
        Table {
            columns,
            rows: rows.collect(),
            ..Table::default()
        }
    }

    fn verdict_row(&self, row: &CommitRow, shown: &[usize]) -> TableRow {
        let verdict = row.verdict();
        let texts = [&*row.commit, &*row.subject, verdict.word()];
        let mut cells: Vec<TableCell> = texts
            .into_iter()
            .map(|text| TableCell::new(text.to_owned()))
            .collect();
        cells.extend(shown.iter().map(|column| match &row.state {
            State::Compared(of_row) => cell(of_row[*column]),
            _ => TableCell::default(),
        }));
        TableRow {
            cells,
            anchor: anchor(row),
            about: self.explain(row),
            ..TableRow::default()
        }
    }

    /// Says below a row what its cells do not: why it failed, and what is not measured.
    fn explain(&self, row: &CommitRow) -> String {
        match row.verdict() {
            CommitVerdict::Base => "before the series".to_owned(),
            CommitVerdict::Failed | CommitVerdict::NotMeasured | CommitVerdict::Equal => {
                self.describe(row)
            }
            CommitVerdict::Same => "another image, no change".to_owned(),
            _ if !row.not_compiled.is_empty() => {
                format!("not compiled: {}", row.not_compiled.join(", "))
            }
            _ => String::new(),
        }
    }

    /// Returns the table of the functions that commits change.
    fn functions(&self) -> Table {
        let heads = [
            ("commit", ColumnKind::Name),
            ("function", ColumnKind::Name),
            ("workload", ColumnKind::Words),
            ("calls/op", ColumnKind::Number),
            ("instructions/op before", ColumnKind::Number),
            ("after", ColumnKind::Number),
        ];
        let columns = heads.map(|(head, kind)| Column::new(head, kind, Width::Fit(40)));
        let mut rows = Vec::new();
        for row in self.commits() {
            if !matches!(row.state, State::Compared(_)) {
                continue;
            }
            for function in &row.functions {
                let words = match &function.entered {
                    Entered::By {
                        workload,
                        calls,
                        instructions,
                        before,
                    } => [
                        workload.clone(),
                        format!("{calls:.2}"),
                        before.map_or("none".to_owned(), |before| format!("{before:.2}")),
                        format!("{instructions:.2}"),
                    ],
                    Entered::Within {
                        host,
                        workload,
                        calls,
                    } => [
                        format!("{workload}, within {host}"),
                        format!("{calls:.2}"),
                        String::new(),
                        String::new(),
                    ],
                    Entered::Never(reached) => {
                        let words = reached.words().map(|words| format!(": {words}"));
                        let words = words.unwrap_or_default();
                        let never = format!("not entered by these workloads{words}");
                        [never, String::new(), String::new(), String::new()]
                    }
                    Entered::NotCompiled => {
                        ["without code in this config", "", "", ""].map(str::to_owned)
                    }
                    Entered::NoOwnCode => {
                        ["inlined or renamed, so not looked for", "", "", ""].map(str::to_owned)
                    }
                };
                let names = [row.commit.clone(), function.name.clone()];
                let cells = names.into_iter().chain(words).map(TableCell::new);
                rows.push(TableRow {
                    cells: cells.collect(),
                    ..TableRow::default()
                });
            }
        }
        Table {
            columns: columns.into(),
            rows,
            ..Table::default()
        }
    }
}

impl SeriesAnswer<'_> {
    /// Returns the table of what the differences of the workloads add up from.
    fn origins(&self) -> Table {
        let heads = [
            ("commit", ColumnKind::Name),
            ("workload", ColumnKind::Name),
            ("difference", ColumnKind::Number),
            ("functions it changes", ColumnKind::Number),
            ("others, same code", ColumnKind::Number),
            ("compiled differently", ColumnKind::Number),
            ("not attributed", ColumnKind::Number),
        ];
        let columns = heads.map(|(head, kind)| Column::new(head, kind, Width::Fit(24)));
        let mut rows = Vec::new();
        for row in self.commits() {
            for origin in &row.origins {
                let parts = [
                    origin.total(),
                    origin.changed,
                    origin.others,
                    origin.compiler,
                    origin.unknown,
                ];
                let names = [row.commit.clone(), origin.workload.clone()];
                let numbers = parts.map(|part| format!("{part:+.2}"));
                let cells = names.into_iter().chain(numbers).map(TableCell::new);
                rows.push(TableRow {
                    cells: cells.collect(),
                    ..TableRow::default()
                });
            }
        }
        Table {
            columns: columns.into(),
            rows,
            ..Table::default()
        }
    }
}

impl SeriesAnswer<'_> {
    /// Returns the table of the lines that commits change.
    fn lines(&self) -> Table {
        let heads = [
            ("commit", ColumnKind::Name),
            ("file", ColumnKind::Name),
            ("function", ColumnKind::Name),
            ("line", ColumnKind::Number),
            ("workload", ColumnKind::Words),
            ("executions/op", ColumnKind::Number),
        ];
        let columns = heads.map(|(head, kind)| Column::new(head, kind, Width::Fit(40)));
        let mut rows = Vec::new();
        for row in self.commits() {
            for lines in &row.lines {
                for line in &lines.lines {
                    let (workload, times) = match &line.executed {
                        Some(by) => (by.workload.clone(), format!("{:.2}", by.per_operation)),
                        None => ("never executed".to_owned(), String::new()),
                    };
                    let removed = if line.is_removed { "removed " } else { "" };
                    let cells = [
                        row.commit.clone(),
                        lines.file.clone(),
                        lines.function.clone(),
                        format!("{removed}{}", line.line),
                        workload,
                        times,
                    ];
                    rows.push(TableRow {
                        cells: cells.map(TableCell::new).into(),
                        ..TableRow::default()
                    });
                }
            }
        }
        Table {
            columns: columns.into(),
            rows,
            ..Table::default()
        }
    }
}

/// Returns the id of a row: a number of a patch has a slash, which links escape.
fn anchor(row: &CommitRow) -> String {
    let letters = row.commit.chars();
    let safe = letters.map(|letter| {
        if letter.is_alphanumeric() {
            letter
        } else {
            '-'
        }
    });
    format!("commit-{}", safe.collect::<String>())
}

fn cell(cell: CommitCell) -> TableCell {
    let tone = match cell {
        CommitCell::Same | CommitCell::CompiledDifferently(_) => "",
        CommitCell::Better(_) => "better",
        CommitCell::Worse(_) => "worse",
        CommitCell::Unclear => "unclear",
    };
    TableCell {
        tone,
        ..TableCell::new(cell.format())
    }
}

#[cfg(test)]
mod tests {
    use crate::commit_formats::tests::{answer, rows};
    use crate::commit_table::{CommitCell, CommitRow, State};

    #[test]
    fn page_has_rows_functions_and_command() {
        let rows = rows();
        let page = answer(&rows).page();
        insta::assert_snapshot!("page", page.markdown());
        let html = page.html().unwrap();
        assert!(
            html.contains("mm: &#60;b&#62;") && !html.contains("<b>&"),
            "{html}"
        );
    }

    #[test]
    fn many_workloads_are_folded_away() {
        let names: Vec<String> = (0..30).map(|number| format!("row-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let rows = ["0", "1/1"].map(|commit| CommitRow {
            commit: commit.to_owned(),
            subject: "mm: all".to_owned(),
            state: State::Compared(vec![CommitCell::Worse(-2.0); 30]),
            not_compiled: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
            executes_more: false,
            executes_the_same: false,
            origins: Vec::new(),
            same_code: crate::commit_table::SameCode::default(),
        });
        let answer = crate::commit_formats::SeriesAnswer {
            title: "1 patch".to_owned(),
            reproduce: "marvin series".to_owned(),
            rows: &rows,
            workloads: &names,
            alone: None,
        };
        let html = answer.html().unwrap();
        assert!(html.contains("22 workloads more that changed"), "{html}");
        assert!(html.contains("row-29"), "all are on the page");
    }
}
