//! Parses the agent's result of a cell of the experiment on reverse mappings.

use std::collections::BTreeMap;

use model::{
    FailureReason, RmapCost, RmapMeasured, RmapOperation, RmapOutcome, RmapSlab, RmapSpace,
};
use wire::{Frame, Stream};

/// Most slab caches; a kernel has some hundred.
const CACHES_MAX: usize = 2_000;

/// Returns the outcome of a cell. An invalid result is a failure with the reason.
#[must_use]
pub fn rmap(stream: &Stream) -> RmapOutcome {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for frame in &stream.frames {
        match frame {
            Frame::File { name, bytes } => files.entry(name).or_default().extend(bytes),
            Frame::Unsupported(why) => return RmapOutcome::Unsupported(why.clone()),
            Frame::Failed(what) => {
                return RmapOutcome::Failed(
                    FailureReason::WorkloadFailed(what.clone()).to_string(),
                );
            }
            Frame::Died(how) => {
                return RmapOutcome::Failed(FailureReason::AgentDied(how.clone()).to_string());
            }
            Frame::Hello { .. } | Frame::Samples(_) | Frame::End => {}
        }
    }
    let text = |name: &str| {
        String::from_utf8_lossy(files.get(name).map_or(&[], Vec::as_slice)).into_owned()
    };
    let slabs = find_grown(
        &text("with /proc/slabinfo"),
        &text("without /proc/slabinfo"),
    );
    outcome(&text("result"), slabs).unwrap_or_else(|| {
        let how = "the agent's result of a cell cannot be read".to_owned();
        RmapOutcome::Failed(FailureReason::BadStream(how).to_string())
    })
}

/// Parses the lines of a result; `None` if one of them is wrong or missing.
fn outcome(lines: &str, slabs: Vec<RmapSlab>) -> Option<RmapOutcome> {
    let mut costs = Vec::new();
    let mut entries = None;
    let mut tables_kib = None;
    for line in lines.lines() {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "entries" => entries = Some(rest.parse().ok()?),
            "tables_kib" => tables_kib = Some(rest.parse().ok()?),
            "does-not-fit" => {
                let (needed_kib, available_kib) = pair(rest)?;
                return Some(RmapOutcome::DoesNotFit {
                    needed_kib,
                    available_kib,
                });
            }
            word => {
                let operation = RmapOperation::ALL
                    .into_iter()
                    .find(|operation| operation.name() == word)?;
                costs.push((
                    operation,
                    match rest.strip_prefix("unsupported ") {
                        Some(why) => Err(why.to_owned()),
                        None => pair(rest).map(|(ticks, count)| Ok(RmapCost { ticks, count }))?,
                    },
                ));
            }
        }
    }
    let space = RmapSpace {
        slabs,
        tables_kib: tables_kib?,
        entries: entries?,
    };
    Some(RmapOutcome::Measured(RmapMeasured { costs, space }))
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(' ')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

/// Returns the caches with more objects in the presence of the mappings, largest first.
fn find_grown(with: &str, without: &str) -> Vec<RmapSlab> {
    let without = caches(without);
    let mut slabs: Vec<RmapSlab> = caches(with)
        .into_iter()
        .filter_map(|(name, (objects, object_bytes))| {
            let before = without.get(name).map_or(0, |(objects, _)| *objects);
            let objects = i64::try_from(objects)
                .ok()?
                .checked_sub(i64::try_from(before).ok()?)?;
            (objects > 0).then(|| RmapSlab {
                name: name.to_owned(),
                objects,
                object_bytes,
            })
        })
        .collect();
    slabs.sort_by(|a, b| b.bytes().cmp(&a.bytes()).then_with(|| a.name.cmp(&b.name)));
    slabs
}

/// Returns objects in use and object size, by cache: the lines of /proc/slabinfo begin `name active
/// total size` (`mm/slab_common.c`, `cache_show`).
fn caches(text: &str) -> BTreeMap<&str, (u64, u64)> {
    text.lines()
        .filter_map(|line| -> Option<(&str, (u64, u64))> {
            let line: &str = line;
            let mut fields = line.split_whitespace();
            let name = fields.next()?;
            let active = fields.next()?;
            let _ = fields.next()?;
            let size = fields.next()?;
            Some((name, (active.parse().ok()?, size.parse().ok()?)))
        })
        .take(CACHES_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rmap;
    use model::{RmapCost, RmapOperation, RmapOutcome};
    use wire::{Frame, Stream};

    const WITH: &str = "slabinfo - version: 2.1\n\
        # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables\n\
        vm_area_struct      1500   1530    184   22    1 : tunables    0    0    0 : slabdata     70     70      0\n\
        anon_vma             700    700    104   39    1 : tunables    0    0    0 : slabdata     18     18      0\n\
        dentry               100    100    192   21    1 : tunables    0    0    0 : slabdata      5      5      0\n";
    const WITHOUT: &str =
        "vm_area_struct 500 1530 184 22 1\nanon_vma 650 700 104 39 1\ndentry 120 120 192 21 1\n";

    fn stream(files: &[(&str, &str)]) -> Stream {
        Stream {
            frames: files
                .iter()
                .map(|(name, text): &(&str, &str)| Frame::File {
                    name: (*name).into(),
                    bytes: text.as_bytes().to_vec(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_cell_is_read() {
        let result = "map 5000 10\nfork 100 10\ndrop-one unsupported anonymous memory is of no file\n\
                      unmap 30 10\nentries 10\ntables_kib 4\n";
        let files = [
            ("result", result),
            ("with /proc/slabinfo", WITH),
            ("without /proc/slabinfo", WITHOUT),
        ];
        let RmapOutcome::Measured(measured) = rmap(&stream(&files)) else {
            panic!("not measured")
        };
        assert_eq!(
            measured.costs[0],
            (
                RmapOperation::Map,
                Ok(RmapCost {
                    ticks: 5000,
                    count: 10
                })
            )
        );
        assert_eq!(
            measured.costs[2].1,
            Err("anonymous memory is of no file".to_owned())
        );
        let slabs: Vec<_> = measured
            .space
            .slabs
            .iter()
            .map(|slab| (slab.name.as_str(), slab.objects))
            .collect();
        assert_eq!(
            slabs,
            [("vm_area_struct", 1000), ("anon_vma", 50)],
            "those that grew, the largest first"
        );
        assert_eq!((measured.space.entries, measured.space.tables_kib), (10, 4));
    }

    #[test]
    fn non_measurement_reports_its_outcome() {
        let fits = rmap(&stream(&[("result", "does-not-fit 4000000 950000\n")]));
        assert_eq!(
            fits,
            RmapOutcome::DoesNotFit {
                needed_kib: 4_000_000,
                available_kib: 950_000
            }
        );
        let frame = |frame| {
            rmap(&Stream {
                frames: vec![frame],
            })
        };
        assert_eq!(
            frame(Frame::Unsupported("no ramfs".into())),
            RmapOutcome::Unsupported("no ramfs".into())
        );
        assert_eq!(
            frame(Frame::Died("killed".into())),
            RmapOutcome::Failed("agent died: killed".into())
        );
        for nonsense in [
            "",
            "map 1\n",
            "walk 1 1\n",
            "map 1 1\nentries 1\n",
            "map -1 1\nentries 1\ntables_kib 1\n",
        ] {
            let outcome = rmap(&stream(&[("result", nonsense)]));
            assert!(
                matches!(&outcome, RmapOutcome::Failed(how) if how.contains("damaged")),
                "{nonsense}: {outcome:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(result: String, with: String) {
            let _outcome = rmap(&stream(&[("result", &result), ("with /proc/slabinfo", &with)]));
        }
    }
}
