//! System calls, page faults and processor seconds of filtering and copying a dump, mapped and by
//! read calls; writes no file.

use serde::Serialize;

use vmcore::{
    Codec, Counted, Dump, DumpError, Filter, Io, Level, Nowhere, Plan, Reader, Style, Work,
    write_kdump,
};

use crate::plot::{Axis, Plot, Series};
use crate::{Arguments, Outcome, Spent, Subject, least, seconds, ways};

/// Memory limit (bytes), as `--memory`.
const MEMORY: u64 = 64 << 20;
/// Limit on levels in one table.
const LEVELS: usize = 3;

#[derive(Debug, Serialize)]
pub(super) struct Calls {
    subject: Subject,
    rows: Vec<Row>,
    /// All calls since the dump was opened, including those of opening and warm-up.
    #[serde(serialize_with = "super::write_calls")]
    all_calls: Counted,
}

#[derive(Debug, Serialize)]
struct Row {
    io: &'static str,
    level: u8,
    spent: Spent,
}

pub(super) fn run(dump: &Dump, wish: &Arguments) -> Result<Calls, DumpError> {
    if wish.level.len() > LEVELS {
        return Err(DumpError::Usage(format!(
            "cannot compare more than {LEVELS} levels"
        )));
    }
    let folder = wish.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut rows = Vec::new();
    let mut pages = 0;
    for level in &wish.level {
        let mut save = |io: Io| {
            let work = Work {
                threads: 1,
                io,
                memory: MEMORY,
                folder: Some(folder.clone()),
            };
            let filter = Filter::for_level(&mut Reader::new(dump, io), *level)?;
            let plan = Plan::make(dump, filter.as_ref(), &work)?;
            pages = plan.memory();
            write_kdump(&plan, &style(*level), &work, &Nowhere).map(drop)
        };
        // Brings the whole file into the page cache.
        save(Io::Read)?;
        for (name, io) in ways(dump) {
            let spent = least(dump, wish, || save(io))?;
            rows.push(Row {
                io: name,
                level: level.number(),
                spent,
            });
        }
    }
    Ok(Calls {
        subject: Subject::new(dump, pages, wish),
        rows,
        all_calls: dump.calls(),
    })
}

fn style(level: Level) -> Style {
    Style {
        codec: Codec::None,
        effort: None,
        level,
        part: None,
        limit: None,
        names: <[String; 6]>::default(),
    }
}

impl Row {
    fn name(&self) -> String {
        format!("{} -d{}", self.io, self.level)
    }
}

impl Outcome for Calls {
    fn table(&self) -> String {
        let mut text = format!(
            "Filtering and copying without compression or output\n{}\n\n{:<12} {:>9} {:>9} {:>9} {:>9}\n",
            self.subject.lines(),
            "",
            "user s",
            "sys s",
            "= total",
            "wall s"
        );
        for row in &self.rows {
            let spent = &row.spent;
            let [user, sys, total, wall] =
                [spent.user_s, spent.sys_s, spent.cpu_s(), spent.wall_s].map(seconds);
            text.extend([format!(
                "{:<12} {user:>9} {sys:>9} {total:>9} {wall:>9}\n",
                row.name()
            )]);
        }
        text.extend([format!(
            "\n{:<12} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
            "", "mmap", "munmap", "read", "= sum", "page faults"
        )]);
        for row in &self.rows {
            let calls = row.spent.calls;
            let faults = row.spent.page_faults;
            text.extend([format!(
                "{:<12} {:>9} {:>9} {:>9} {:>9} {faults:>12}\n",
                row.name(),
                calls.mmap,
                calls.munmap,
                calls.read,
                calls.sum()
            )]);
        }
        text
    }

    fn plot(&self) -> Plot {
        let part = |name: &str, of: fn(&Spent) -> f64| {
            let points = self
                .rows
                .iter()
                .enumerate()
                .map(|(n, row)| (n as f64, of(&row.spent)));
            Series {
                name: name.to_owned(),
                points: points.collect(),
                level: false,
            }
        };
        let marks = self.rows.iter().enumerate().map(|(n, row)| {
            let calls = row.spent.calls.sum();
            // The drawing has room for four labels with counts.
            let name = if self.rows.len() <= 4 {
                format!("{}: {calls} calls", row.name())
            } else {
                row.name()
            };
            (n as f64, name)
        });
        Plot {
            title: "Mapped or read: processor time and system calls".to_owned(),
            subtitle: self.subject.line(),
            x: Axis {
                label: "read method and level",
                doubling: false,
                marks: marks.collect(),
            },
            y_label: "processor time [s]",
            series: vec![
                part("user", |spent| spent.user_s),
                part("system", |spent| spent.sys_s),
            ],
            bars: true,
        }
    }
}
