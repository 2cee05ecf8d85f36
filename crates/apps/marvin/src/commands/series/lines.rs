//! How often workloads execute the lines that a commit changes. `kernel` has the code of each line,
//! `lab` the executions of each instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use history::commit_lines::{LineExecution, PatchedLine, PatchedLines};
use kernel::{ChangedLines, FunctionChanges, FunctionLines, LinePlace, LineSpan};
use lab::{Lab, Measurement};
use model::{Availability, Executions, Offsets, Workload};

use super::origins::Pair;

/// A side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SideOf {
    After,
    /// Only of lines in whose place nothing new stands.
    Before,
}

impl SideOf {
    fn index(self) -> usize {
        match self {
            Self::Before => 0,
            Self::After => 1,
        }
    }

    fn lines(self, changed: &ChangedLines) -> &BTreeSet<u32> {
        match self {
            Self::Before => &changed.removed,
            Self::After => &changed.added,
        }
    }
}

/// Returns the functions, by symbol, that have code of a changed line.
fn functions(changes: &FunctionChanges, side: SideOf) -> Vec<&FunctionLines> {
    let has = |file: &str, line| has(changes, side, file, line);
    changes.lines()[side.index()].functions_with(&has)
}

fn has(changes: &FunctionChanges, side: SideOf, file: &str, line: u32) -> bool {
    let changed = changes.changed_lines().get(file);
    changed.is_some_and(|changed| side.lines(changed).contains(&line))
}

/// Returns the symbols of all functions that have code of a line that the series changes.
pub(super) fn watched(changes: &[FunctionChanges]) -> BTreeSet<String> {
    let mut symbols = BTreeSet::new();
    for changes in changes {
        for side in [SideOf::Before, SideOf::After] {
            let of_side = functions(changes, side).into_iter();
            symbols.extend(of_side.map(|function| function.symbol.clone()));
        }
    }
    symbols
}

/// A changed line with code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line<'a> {
    file: &'a str,
    function: &'a str,
    side: SideOf,
    line: u32,
}

/// The changed lines with code, and their executions.
type Lines<'a> = BTreeMap<Line<'a>, Option<LineExecution>>;

impl Pair<'_> {
    /// Returns the changed lines with code; empty if that is not known of all workloads.
    pub(super) fn executed_lines(
        &self,
        lab: &Lab,
        workloads: &[Arc<Workload>],
    ) -> anyhow::Result<Vec<PatchedLines>> {
        let mut lines = Lines::new();
        for side in [SideOf::After, SideOf::Before] {
            let functions = functions(self.changes, side);
            for function in &functions {
                for (line, _) in self.lines_of(side, function) {
                    lines.entry(line).or_default();
                }
            }
            if !self.count(lab, workloads, side, &functions, &mut lines)? {
                return Ok(Vec::new());
            }
        }
        Ok(by_function(lines))
    }

    /// Returns whether one of these functions has no code of a changed line: it differs all the
    /// same, by a macro or a type.
    pub(super) fn has_more(&self, executed: &BTreeSet<String>) -> bool {
        let sides = [SideOf::Before, SideOf::After].into_iter();
        let symbols = sides.flat_map(|side| functions(self.changes, side));
        let with_lines: BTreeSet<&str> = symbols
            .map(|function| model::without_suffix(&function.symbol))
            .collect();
        let mut plain = executed
            .iter()
            .map(|name| name.split(' ').next().unwrap_or(name));
        plain.any(|name| !with_lines.contains(name))
    }

    /// Counts the executions of the lines of one side; returns whether all are known.
    fn count<'a>(
        &'a self,
        lab: &Lab,
        workloads: &[Arc<Workload>],
        side: SideOf,
        functions: &[&'a FunctionLines],
        lines: &mut Lines<'a>,
    ) -> anyhow::Result<bool> {
        let symbols = functions.iter().map(|function| function.symbol.clone());
        let symbols: BTreeSet<String> = symbols.collect();
        let runs = self.runs[side.index()];
        let Some(first) = runs.iter().map(|run| run.seed).min() else {
            return Ok(functions.is_empty());
        };
        for workload in workloads {
            let has_result = |name: &str| name == workload.name;
            let run = runs.iter().find(|run| {
                run.seed == first && run.results.iter().any(|one| has_result(&one.workload))
            });
            let Some(run) = run else { continue };
            let measurement = Measurement {
                build: self.builds[side.index()],
                workload,
                replicate: run.seed,
            };
            let offsets = match lab.offsets(&run.id, measurement, &symbols)? {
                None => continue,
                Some(Availability::Unavailable(_)) => return Ok(false),
                Some(Availability::Available(offsets)) => offsets,
            };
            let mut counts: BTreeMap<Line<'_>, u64> = BTreeMap::new();
            for function in functions {
                let executed = Executed::new(function, &offsets);
                for (line, spans) in self.lines_of(side, function) {
                    *counts.entry(line).or_default() += executed.times(&spans);
                }
            }
            for (line, times) in counts.into_iter().filter(|(_, times)| *times > 0) {
                let per_operation = times as f64 / offsets.operations.max(1) as f64;
                let known = lines.entry(line).or_default();
                if known
                    .as_ref()
                    .is_none_or(|most| most.per_operation < per_operation)
                {
                    *known = Some(LineExecution {
                        workload: workload.name.to_string(),
                        per_operation,
                    });
                }
            }
        }
        Ok(true)
    }

    /// Returns the changed lines of a function with their code.
    fn lines_of<'a>(
        &self,
        side: SideOf,
        function: &'a FunctionLines,
    ) -> BTreeMap<Line<'a>, Vec<CodeOfLine<'a>>> {
        let mut found: BTreeMap<Line<'a>, Vec<CodeOfLine<'a>>> = BTreeMap::new();
        for span in &function.spans {
            for (depth, place) in span.places.iter().enumerate() {
                if has(self.changes, side, &place.file, place.line) {
                    let line = Line {
                        file: &place.file,
                        function: &place.function,
                        side,
                        line: place.line,
                    };
                    found.entry(line).or_default().push(CodeOfLine {
                        span,
                        around: &span.places[depth + 1..],
                        is_innermost: depth == 0,
                    });
                }
            }
        }
        found
    }
}

/// Code of a line.
#[derive(Debug, Clone, Copy)]
struct CodeOfLine<'a> {
    span: &'a LineSpan,
    /// Where it is inlined: code of a line may be there several times.
    around: &'a [LinePlace],
    /// Whether the code is the line's own, and not that of what is inlined there.
    is_innermost: bool,
}

/// A function with the executions of its instructions.
struct Executed<'a>(Option<&'a BTreeMap<u64, Executions>>);

impl<'a> Executed<'a> {
    fn new(function: &FunctionLines, offsets: &'a Offsets) -> Self {
        let exactly = offsets.functions.get(&function.symbol);
        // A module or a file is behind the name.
        let with_more = || {
            let prefix = format!("{} ", function.symbol);
            let mut named = offsets.functions.range(prefix.clone()..);
            let (name, executed) = named.next()?;
            name.starts_with(&prefix).then_some(executed)
        };
        Self(exactly.or_else(with_more))
    }

    /// Returns how often a line is executed: of its own code the instruction that is executed most,
    /// of code that is inlined there the first one; all copies of it together.
    fn times(&self, code: &[CodeOfLine<'_>]) -> u64 {
        let mut copies: BTreeMap<&[LinePlace], (u64, u64)> = BTreeMap::new();
        for part in code {
            let (own, inlined) = copies.entry(part.around).or_default();
            if part.is_innermost {
                *own = (*own).max(self.most(part.span));
            } else if *inlined == 0 {
                *inlined = self.first(part.span);
            }
        }
        let times = copies.into_values();
        times
            .map(|(own, inlined)| if own > 0 { own } else { inlined })
            .fold(0, u64::saturating_add)
    }

    fn within(&self, span: &LineSpan) -> impl Iterator<Item = &'a Executions> {
        let offsets = span.offsets.clone();
        let executed = self.0.into_iter();
        executed.flat_map(move |executed| executed.range(offsets.clone()).map(|(_, one)| one))
    }

    /// Iterations of a string instruction are no executions, unless there is nothing else.
    fn most(&self, span: &LineSpan) -> u64 {
        let once = self.within(span).filter(|one| !one.is_repeated);
        let repeated = || self.within(span).map(|one| one.times).max();
        once.map(|one| one.times)
            .max()
            .or_else(repeated)
            .unwrap_or(0)
    }

    fn first(&self, span: &LineSpan) -> u64 {
        self.within(span).next().map_or(0, |one| one.times)
    }
}

/// Puts the lines of a function together, functions in the order of their files.
fn by_function(lines: Lines<'_>) -> Vec<PatchedLines> {
    let mut found: Vec<PatchedLines> = Vec::new();
    for (line, executed) in lines {
        let patched = PatchedLine {
            line: line.line,
            is_removed: line.side == SideOf::Before,
            executed,
        };
        match found.last_mut() {
            Some(last) if last.function == line.function && last.file == line.file => {
                last.lines.push(patched);
            }
            _ => found.push(PatchedLines {
                function: line.function.to_owned(),
                file: line.file.to_owned(),
                lines: vec![patched],
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kernel::{FunctionLines, LinePlace, LineSpan};
    use model::{Executions, Offsets};

    use super::{CodeOfLine, Executed};

    fn place(function: &str, line: u32) -> LinePlace {
        LinePlace {
            function: function.to_owned(),
            file: "mm/memory.c".to_owned(),
            line,
        }
    }

    fn span(start: u64, end: u64) -> LineSpan {
        LineSpan {
            offsets: start..end,
            places: Vec::new(),
        }
    }

    #[test]
    fn copies_of_a_line_are_added_up() {
        let executions = |times, is_repeated| Executions { times, is_repeated };
        let executed = BTreeMap::from([
            (0, executions(4, false)),
            (3, executions(40, false)),
            (6, executions(512, true)),
            (9, executions(7, false)),
        ]);
        let offsets = Offsets {
            operations: 1,
            functions: [("walk (mm/memory.c)".to_owned(), executed)].into(),
        };
        let function = FunctionLines {
            symbol: "walk".to_owned(),
            size: 12,
            spans: Vec::new(),
        };
        let executed = Executed::new(&function, &offsets);
        let [loop_, string, other] = [span(0, 6), span(6, 9), span(9, 12)];
        let [once, twice] = [[place("walk", 1)], [place("walk", 2)]];
        let code = |span, around, is_innermost| CodeOfLine {
            span,
            around,
            is_innermost,
        };
        let times = |all: &[CodeOfLine<'_>]| executed.times(all);
        assert_eq!(
            times(&[code(&loop_, &once, true), code(&other, &once, true)]),
            40
        );
        assert_eq!(
            times(&[code(&loop_, &once, true), code(&other, &twice, true)]),
            47
        );
        // A call of inlined code is not as often as a loop in it.
        assert_eq!(
            times(&[code(&loop_, &[], false), code(&other, &[], false)]),
            4
        );
        assert_eq!(
            times(&[code(&string, &[], true), code(&other, &[], true)]),
            512
        );
        let behind = span(12, 20);
        assert_eq!(times(&[code(&behind, &[], true)]), 0);
        let another = FunctionLines {
            symbol: "wal".to_owned(),
            ..function
        };
        assert_eq!(
            Executed::new(&another, &offsets).times(&[code(&loop_, &[], true)]),
            0
        );
    }
}
