//! The tables of the formats that come with Marvin and of the tests of MMTests, for docs/import.md.

use super::manifest::{FindValue, Format, Layout};
use super::shipped::{MMTESTS_FORMATS, SHIPPED_FORMATS};

/// Most rows of a format that are listed.
const ROWS_MAX: usize = 12;

/// Returns the table in markdown: what each format is, and its rows with unit and direction.
///
/// # Errors
/// If a manifest is wrong; tests read them all.
pub fn describe_formats() -> Result<String, String> {
    let mut page = "| format | what | rows |\n|---|---|---|\n".to_owned();
    for (name, text) in SHIPPED_FORMATS {
        let format = super::format(text).map_err(|error| format!("{name}: {error}"))?;
        page.push_str(&describe(&format));
    }
    Ok(page)
}

/// Returns the table of the tests of MMTests in markdown: their files, and rows with unit and
/// direction.
///
/// # Errors
/// If a manifest is wrong; tests read them all.
pub fn describe_mmtests() -> Result<String, String> {
    let mut page = "| test | rows |\n|---|---|\n".to_owned();
    for (name, text) in MMTESTS_FORMATS {
        let format = super::format(text).map_err(|error| format!("{name}: {error}"))?;
        let tests = format.tests.join(", ");
        page.extend(["| ", &tests, " | ", &describe_rows(&format), " |\n"]);
    }
    Ok(page)
}

fn describe(format: &Format) -> String {
    let layout = match format.layout {
        Layout::Lines => "text",
        Layout::Table => "table",
        Layout::Json => "JSON",
        Layout::JsonLines => "JSON lines",
        Layout::Xml => "XML",
    };
    let about = format.about.replace('|', "\\|");
    let rows = describe_rows(format);
    format!("| {} ({layout}) | {about} | {rows} |\n", format.name)
}

fn describe_rows(format: &Format) -> String {
    let mut rows: Vec<String> = Vec::new();
    for metric in &format.metrics {
        let better = match &metric.better {
            None => "direction by its unit".to_owned(),
            Some(better) => match better.written() {
                "none" => "no direction".to_owned(),
                word if word.contains('{') => format!("direction from {word}"),
                word => format!("{word} is better"),
            },
        };
        let unit = metric.unit.written();
        let sum = match (&metric.find, metric.pick) {
            (_, model::Pick::Sum) => ", the sum",
            (_, model::Pick::Last) => ", the last",
            (FindValue::Tree { per: Some(_), .. }, _) => ", each by its iterations",
            _ => "",
        };
        let row = format!("`{}` ({unit}{sum}; {better})", metric.name.written());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    if more > 0 {
        rows.push(format!("{more} more"));
    }
    // A bar ends a cell.
    rows.join(", ").replace('|', " or ")
}
