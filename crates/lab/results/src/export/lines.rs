//! Tables as lines of text: CSV as in RFC 4180, and JSON, one object a line.

use model::{escape_json, sanitize_text};

use super::{CellValue, Column, Table};

/// Renders a table as CSV with a header line. A missing value is an empty field, an empty text a
/// quoted one.
pub fn csv(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let mut text = names.join(",") + "\n";
    for row in &table.rows {
        let fields: Vec<String> = row.iter().map(field).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn field(value: &CellValue) -> String {
    match value {
        CellValue::None => String::new(),
        CellValue::Text(cell) => quote(cell),
        CellValue::Whole(number) => number.to_string(),
        CellValue::Unsigned(number) => number.to_string(),
        // The shortest form that parses to the same bits.
        CellValue::Number(number) => number.to_string(),
    }
}

/// Quotes a text. A program for tables takes one that begins like a formula for a formula, and
/// computes it: an apostrophe prevents that.
fn quote(cell: &str) -> String {
    let cell = sanitize_text(cell);
    let cell = if cell.starts_with(['=', '+', '-', '@', '\t']) {
        format!("'{cell}")
    } else {
        cell
    };
    if cell.is_empty() || cell.contains([',', '"', '\n']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell
}

/// Renders a table as JSON, one row a line, with every column in every row. Numbers that are not
/// finite become null.
pub fn json_lines(table: &Table) -> String {
    let mut text = String::new();
    for row in &table.rows {
        let named =
            |(column, value): (&Column, &CellValue)| format!("\"{}\":{}", column.name, json(value));
        let fields: Vec<String> = table.columns.iter().zip(row).map(named).collect();
        text.push('{');
        text.push_str(&fields.join(","));
        text.push_str("}\n");
    }
    escape_json(&text)
}

fn json(value: &CellValue) -> serde_json::Value {
    match value {
        CellValue::None => serde_json::Value::Null,
        CellValue::Text(cell) => cell.as_str().into(),
        CellValue::Whole(number) => (*number).into(),
        CellValue::Unsigned(number) => (*number).into(),
        CellValue::Number(number) => (*number).into(),
    }
}
