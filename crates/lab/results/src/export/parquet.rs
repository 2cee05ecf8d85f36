//! Tables as Parquet, in the subset that every reader knows: one data page (version 1) for each
//! column of a row group, values plain, compressed with zstd, and the metadata in Thrift's compact
//! protocol.
//!
//! Written after the specification in apache/parquet-format (`README.md`, `Encodings.md`,
//! `src/main/thrift/parquet.thrift`) and apache/thrift (`doc/specs/thrift-compact-protocol.md`).
//! The crate `parquet` would bring many dependencies.

use super::{CellValue, Column, ColumnType, Table};

const MAGIC: &[u8; 4] = b"PAR1";

/// Rows of a row group: its columns are in memory one at a time.
const GROUP: usize = 100_000;

const LEVEL: i32 = 3;

/// From `parquet.thrift`: physical types, repetitions, converted types, encodings, the codec, the
/// type of page.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;
const UINT_64: i64 = 14;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const ZSTD: i64 = 6;
const DATA_PAGE: i64 = 0;

/// Types of Thrift's compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A column of a row group, written.
struct Chunk {
    offset: usize,
    /// Bytes with the page's header, compressed and uncompressed.
    sizes: [usize; 2],
    values: usize,
}

/// Renders a table as Parquet. The file's metadata has the units as `unit.COLUMN`.
///
/// # Errors
/// If zstd fails.
pub fn parquet(table: &Table) -> std::io::Result<Vec<u8>> {
    let mut file = MAGIC.to_vec();
    let mut groups = Vec::new();
    for rows in table.rows.chunks(GROUP) {
        let mut chunks = Vec::with_capacity(table.columns.len());
        for (place, column) in table.columns.iter().enumerate() {
            let values: Vec<&CellValue> = rows.iter().map(|row| &row[place]).collect();
            chunks.push(chunk(&mut file, column, &values)?);
        }
        groups.push((chunks, rows.len()));
    }
    let metadata = metadata(table, &groups);
    file.extend_from_slice(&metadata);
    // Names and numbers of row groups: far below 4 GiB.
    file.extend_from_slice(
        &u32::try_from(metadata.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes(),
    );
    file.extend_from_slice(MAGIC);
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, column: &Column, values: &[&CellValue]) -> std::io::Result<Chunk> {
    let mut page = Vec::new();
    if !column.is_required {
        let levels = levels(values);
        page.extend_from_slice(
            &u32::try_from(levels.len())
                .unwrap_or(u32::MAX)
                .to_le_bytes(),
        );
        page.extend_from_slice(&levels);
    }
    values.iter().for_each(|value| plain(&mut page, value));
    let packed = zstd::bulk::compress(&page, LEVEL)?;
    let mut head = Thrift::default();
    head.number(1, I32, DATA_PAGE);
    head.number(2, I32, to_integer(page.len()));
    head.number(3, I32, to_integer(packed.len()));
    head.field(5, STRUCT);
    let mut of_data = Thrift::default();
    of_data.number(1, I32, to_integer(values.len()));
    of_data.number(2, I32, PLAIN);
    of_data.number(3, I32, RLE);
    of_data.number(4, I32, RLE);
    head.bytes.extend(of_data.end());
    let head = head.end();
    let offset = file.len();
    file.extend_from_slice(&head);
    file.extend_from_slice(&packed);
    Ok(Chunk {
        offset,
        sizes: [head.len() + packed.len(), head.len() + page.len()],
        values: values.len(),
    })
}

fn plain(page: &mut Vec<u8>, value: &CellValue) {
    match value {
        CellValue::None => {}
        CellValue::Text(text) => {
            page.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            page.extend_from_slice(text.as_bytes());
        }
        CellValue::Whole(number) => page.extend_from_slice(&number.to_le_bytes()),
        CellValue::Unsigned(number) => page.extend_from_slice(&number.to_le_bytes()),
        CellValue::Number(number) => page.extend_from_slice(&number.to_le_bytes()),
    }
}

/// Encodes which values exist: runs of equal levels, each as its doubled length and the level
/// (`Encodings.md`, RLE).
fn levels(values: &[&CellValue]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in values.chunk_by(|a, b| (**a == CellValue::None) == (**b == CellValue::None)) {
        varint(&mut bytes, (run.len() as u64) << 1);
        bytes.push(u8::from(*run[0] != CellValue::None));
    }
    bytes
}

fn metadata(table: &Table, groups: &[(Vec<Chunk>, usize)]) -> Vec<u8> {
    let mut all = Thrift::default();
    all.number(1, I32, 1);
    let root = {
        let mut root = Thrift::default();
        root.text(4, "marvin");
        root.number(5, I32, to_integer(table.columns.len()));
        root.end()
    };
    let elements: Vec<Vec<u8>> = std::iter::once(root)
        .chain(table.columns.iter().map(element))
        .collect();
    all.list(2, STRUCT, &elements);
    all.number(3, I64, to_integer(table.rows.len()));
    let groups: Vec<Vec<u8>> = groups
        .iter()
        .map(|group| row_group(&table.columns, group))
        .collect();
    all.list(4, STRUCT, &groups);
    let units: Vec<Vec<u8>> = table.columns.iter().map(unit).collect();
    all.list(5, STRUCT, &units);
    all.text(
        6,
        concat!(
            "marvin version ",
            env!("CARGO_PKG_VERSION"),
            " (build none)"
        ),
    );
    all.end()
}

fn element(column: &Column) -> Vec<u8> {
    let mut element = Thrift::default();
    element.number(1, I32, physical(column.kind));
    element.number(
        3,
        I32,
        if column.is_required {
            REQUIRED
        } else {
            OPTIONAL
        },
    );
    element.text(4, column.name);
    match column.kind {
        ColumnType::Text => element.number(6, I32, UTF8),
        ColumnType::Unsigned => element.number(6, I32, UINT_64),
        ColumnType::Whole | ColumnType::Number => {}
    }
    element.end()
}

fn physical(kind: ColumnType) -> i64 {
    match kind {
        ColumnType::Text => BYTE_ARRAY,
        ColumnType::Whole | ColumnType::Unsigned => INT64,
        ColumnType::Number => DOUBLE,
    }
}

fn row_group(columns: &[Column], (chunks, rows): &(Vec<Chunk>, usize)) -> Vec<u8> {
    let of_chunk = |(column, chunk): (&Column, &Chunk)| {
        let mut of_column = Thrift::default();
        of_column.number(1, I32, physical(column.kind));
        of_column.list(2, I32, &[zigzag(PLAIN), zigzag(RLE)]);
        of_column.list(3, BINARY, &[binary(column.name)]);
        of_column.number(4, I32, ZSTD);
        of_column.number(5, I64, to_integer(chunk.values));
        of_column.number(6, I64, to_integer(chunk.sizes[1]));
        of_column.number(7, I64, to_integer(chunk.sizes[0]));
        of_column.number(9, I64, to_integer(chunk.offset));
        let mut all = Thrift::default();
        all.number(2, I64, to_integer(chunk.offset));
        all.field(3, STRUCT);
        all.bytes.extend(of_column.end());
        all.end()
    };
    let mut group = Thrift::default();
    group.list(
        1,
        STRUCT,
        &columns.iter().zip(chunks).map(of_chunk).collect::<Vec<_>>(),
    );
    group.number(
        2,
        I64,
        to_integer(chunks.iter().map(|chunk| chunk.sizes[1]).sum()),
    );
    group.number(3, I64, to_integer(*rows));
    group.end()
}

fn unit(column: &Column) -> Vec<u8> {
    let mut pair = Thrift::default();
    pair.text(1, &format!("unit.{}", column.name));
    pair.text(2, column.unit);
    pair.end()
}

/// A structure of Thrift's compact protocol; fields in ascending order.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

impl Thrift {
    /// Begins a field. Field numbers here are less than 16 apart, so one byte holds both.
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn number(&mut self, number: u8, kind: u8, value: i64) {
        self.field(number, kind);
        self.bytes.extend(zigzag(value));
    }

    fn text(&mut self, number: u8, text: &str) {
        self.field(number, BINARY);
        self.bytes.extend(binary(text));
    }

    fn list(&mut self, number: u8, kind: u8, items: &[Vec<u8>]) {
        self.field(number, LIST);
        match u8::try_from(items.len()) {
            Ok(length) if length < 15 => self.bytes.push(length << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, items.len() as u64);
            }
        }
        items
            .iter()
            .for_each(|item| self.bytes.extend_from_slice(item));
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn to_integer(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn binary(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn zigzag(number: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, (number << 1 ^ number >> 63).cast_unsigned());
    bytes
}

fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests;
