//! Reads written files back with an independent reader: Thrift without knowledge of the fields,
//! pages as the metadata describes them.

use std::collections::BTreeMap;

use super::super::tests::runs;
use super::super::{CellValue, Column, ColumnType, Rows, Table, table};
use super::{GROUP, parquet};

/// A value of Thrift.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Number(i64),
    Text(String),
    List(Vec<Seen>),
    Fields(BTreeMap<u8, Seen>),
}

impl Seen {
    fn at(&self, field: u8) -> &Seen {
        match self {
            Self::Fields(fields) => &fields[&field],
            other => panic!("{other:?}"),
        }
    }
    fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?}"),
        }
    }
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
    fn list(&self) -> &[Seen] {
        match self {
            Self::List(list) => list,
            other => panic!("{other:?}"),
        }
    }
}

fn take(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().unwrap();
    *bytes = rest;
    *first
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = take(bytes);
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return number;
        }
    }
    unreachable!()
}

fn some<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (some, rest) = bytes.split_at(length);
    *bytes = rest;
    some
}

fn value(bytes: &mut &[u8], kind: u8) -> Seen {
    match kind {
        5 | 6 => {
            let number = varint(bytes);
            Seen::Number((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
        }
        8 => {
            let length = varint(bytes) as usize;
            Seen::Text(String::from_utf8(some(bytes, length).to_vec()).unwrap())
        }
        9 => {
            let head = take(bytes);
            let length = if head >> 4 == 15 {
                varint(bytes)
            } else {
                u64::from(head >> 4)
            };
            Seen::List((0..length).map(|_| value(bytes, head & 15)).collect())
        }
        12 => fields(bytes),
        other => panic!("type {other}"),
    }
}

fn fields(bytes: &mut &[u8]) -> Seen {
    let mut fields = BTreeMap::new();
    let mut last = 0;
    loop {
        let head = take(bytes);
        if head == 0 {
            return Seen::Fields(fields);
        }
        last += head >> 4;
        fields.insert(last, value(bytes, head & 15));
    }
}

fn metadata(file: &[u8]) -> Seen {
    assert_eq!(
        (&file[..4], &file[file.len() - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );
    let length =
        u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    fields(&mut &file[file.len() - 8 - length..])
}

fn column(file: &[u8], chunk: &Seen, column: &Column) -> Vec<CellValue> {
    let chunk_metadata = chunk.at(3);
    assert_eq!(chunk_metadata.at(3).list()[0].text(), column.name);
    let mut rest = &file[chunk_metadata.at(9).number() as usize..];
    let head = fields(&mut rest);
    let page = zstd::decode_all(some(&mut rest, head.at(3).number() as usize)).unwrap();
    assert_eq!(page.len() as i64, head.at(2).number());
    let count = head.at(5).at(1).number() as usize;
    let mut page = &page[..];
    let mut there = vec![true; count];
    if !column.is_required {
        let length = u32::from_le_bytes(some(&mut page, 4).try_into().unwrap()) as usize;
        let mut levels = some(&mut page, length);
        there.clear();
        while !levels.is_empty() {
            let run = varint(&mut levels) as usize >> 1;
            there.extend(std::iter::repeat_n(take(&mut levels) == 1, run));
        }
        assert_eq!(there.len(), count);
    }
    let values = there.into_iter().map(|is_there| match column.kind {
        _ if !is_there => CellValue::None,
        ColumnType::Whole => CellValue::Whole(i64::from_le_bytes(eight(&mut page))),
        ColumnType::Unsigned => CellValue::Unsigned(u64::from_le_bytes(eight(&mut page))),
        ColumnType::Number => CellValue::Number(f64::from_le_bytes(eight(&mut page))),
        ColumnType::Text => {
            let length = u32::from_le_bytes(some(&mut page, 4).try_into().unwrap()) as usize;
            CellValue::Text(String::from_utf8(some(&mut page, length).to_vec()).unwrap())
        }
    });
    let values = values.collect();
    assert!(page.is_empty());
    values
}

fn eight(page: &mut &[u8]) -> [u8; 8] {
    <[u8; 8]>::try_from(some(page, 8)).unwrap()
}

/// Reads a file written from a table with these columns.
fn read(file: &[u8], columns: &[Column]) -> Vec<Vec<CellValue>> {
    let metadata = metadata(file);
    let names: Vec<&str> = metadata.at(2).list()[1..]
        .iter()
        .map(|element| element.at(4).text())
        .collect();
    assert_eq!(
        names,
        columns.iter().map(|column| column.name).collect::<Vec<_>>()
    );
    let mut rows = Vec::new();
    for group in metadata.at(4).list() {
        let chunks = group.at(1).list();
        let of_columns: Vec<Vec<CellValue>> = chunks
            .iter()
            .zip(columns)
            .map(|(chunk, of)| column(file, chunk, of))
            .collect();
        let number = group.at(3).number() as usize;
        rows.extend((0..number).map(|row| {
            of_columns
                .iter()
                .map(|values| values[row].clone())
                .collect::<Vec<_>>()
        }));
    }
    assert_eq!(rows.len() as i64, metadata.at(3).number());
    rows
}

/// NaN does not equal itself; compare as text.
fn shown(rows: &[Vec<CellValue>]) -> String {
    format!("{rows:?}")
}

#[test]
fn written_tables_are_read_back() {
    for rows in [Rows::Runs, Rows::Results, Rows::Samples] {
        let table = table(&runs(), rows, |_| true);
        let file = parquet(&table).unwrap();
        assert_eq!(shown(&read(&file, &table.columns)), shown(&table.rows));
    }
}

#[test]
fn empty_and_grouped_tables_are_read_back() {
    let empty = Table {
        rows: Vec::new(),
        ..table(&runs(), Rows::Samples, |_| true)
    };
    assert!(read(&parquet(&empty).unwrap(), &empty.columns).is_empty());
    let column = |kind, is_required| Column {
        name: "c",
        kind,
        is_required,
        unit: "",
    };
    let rows = (0..GROUP + 7)
        .map(|n| {
            vec![
                (if n.is_multiple_of(3) {
                    CellValue::None
                } else {
                    CellValue::Whole(n as i64)
                }),
                CellValue::Number(n as f64),
            ]
        })
        .collect();
    let many = Table {
        columns: vec![
            column(ColumnType::Whole, false),
            column(ColumnType::Number, true),
        ],
        rows,
    };
    assert!(read(&parquet(&many).unwrap(), &many.columns) == many.rows);
}

#[test]
fn units_are_in_the_file() {
    let table = table(&runs(), Rows::Runs, |_| true);
    let metadata = metadata(&parquet(&table).unwrap());
    let units = metadata.at(5).list();
    assert_eq!(units[8].at(1).text(), "unit.started_unix");
    assert_eq!(
        units[8].at(2).text(),
        "seconds since 1970-01-01 UTC; none if not known"
    );
}
