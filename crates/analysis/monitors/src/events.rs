//! Blocks about interrupts and the network: the most frequent interrupts and softirqs, and network
//! traffic.

use std::collections::BTreeMap;

use model::{Counters, MonitorFile, Observation};

use super::block::{Block, BlockRow, Form, MonitorValue};

/// Most lines of a block.
const LINES_MAX: usize = 6;
/// Longest name of a line, in characters; descriptions of hardware can be longer.
const NAME_MAX: usize = 28;

/// Returns the most frequent interrupts, summed over processors.
pub(super) fn interrupts(seen: &[&Observation]) -> Block {
    lines(seen, MonitorFile::Interrupts, "Interrupts", "IRQ")
}

/// Returns the most frequent softirqs, summed over processors.
pub(super) fn softirqs(seen: &[&Observation]) -> Block {
    lines(seen, MonitorFile::Softirqs, "Softirqs", "Softirq")
}

fn lines(
    seen: &[&Observation],
    file: MonitorFile,
    title: &'static str,
    word: &'static str,
) -> Block {
    let mut counts: Vec<BTreeMap<String, u64>> = Vec::new();
    for observation in seen {
        counts.push(growth_of_groups(observation, file, |grew| {
            grew.iter()
                .map(|(_, count)| count)
                .fold(0_u64, u64::saturating_add)
        }));
    }
    let mut rows = Vec::new();
    for name in most(&counts).into_iter().take(LINES_MAX) {
        let values = counts
            .iter()
            .map(|counts| MonitorValue::from_count(counts.get(name).copied()));
        rows.push(BlockRow::new(
            document::cut_middle(name, NAME_MAX),
            Form::Count,
            values.collect(),
        ));
    }
    Block::new(title, word, rows)
}

/// Returns a number for each group of a file, from how its counters grew.
fn growth_of_groups(
    observation: &Observation,
    file: MonitorFile,
    number: impl Fn(&Counters) -> u64,
) -> BTreeMap<String, u64> {
    let last = observation.copies_of(file).last();
    let groups = last.into_iter().flat_map(|timed| timed.reading.groups());
    groups
        .filter_map(|(group, _)| {
            let grew = observation.growth(file, group)?;
            Some((group.to_owned(), number(&grew)))
        })
        .collect()
}

/// Returns the names with a count on any kernel, most frequent first.
fn most(counts: &[BTreeMap<String, u64>]) -> Vec<&str> {
    let mut largest: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in counts.iter().flatten() {
        let most = largest.entry(name).or_default();
        *most = (*most).max(*count);
    }
    let mut names: Vec<(&str, u64)> = largest
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    names.into_iter().map(|(name, _)| name).collect()
}

/// Columns of a network device, and their names in reports.
const OF_DEVICE: [(&str, &str, Form); 6] = [
    ("receive_bytes", "received", Form::Kib),
    ("receive_packets", "packets received", Form::Count),
    ("receive_drop", "dropped at receipt", Form::Count),
    ("transmit_bytes", "sent", Form::Kib),
    ("transmit_packets", "packets sent", Form::Count),
    ("transmit_drop", "dropped at sending", Form::Count),
];
const OF_PROTOCOL: [(MonitorFile, &str, &str, &str); 6] = [
    (MonitorFile::NetSnmp, "Tcp", "OutSegs", "TCP segments sent"),
    (
        MonitorFile::NetSnmp,
        "Tcp",
        "RetransSegs",
        "TCP segments sent again",
    ),
    (
        MonitorFile::NetNetstat,
        "TcpExt",
        "TCPTimeouts",
        "TCP timeouts",
    ),
    (
        MonitorFile::NetSnmp,
        "Udp",
        "OutDatagrams",
        "UDP datagrams sent",
    ),
    (
        MonitorFile::NetSnmp,
        "Udp",
        "InDatagrams",
        "UDP datagrams received",
    ),
    (
        MonitorFile::NetSnmp,
        "Udp",
        "InErrors",
        "UDP datagrams lost at receipt",
    ),
];

/// Returns traffic by device and protocol; omits rows without a count on any kernel.
pub(super) fn network(seen: &[&Observation]) -> Block {
    let mut devices: Vec<BTreeMap<String, u64>> = Vec::new();
    for observation in seen {
        devices.push(growth_of_groups(observation, MonitorFile::NetDev, |grew| {
            let packets = ["receive_packets", "transmit_packets"]
                .iter()
                .filter_map(|key| grew.get(key));
            packets.fold(0_u64, u64::saturating_add)
        }));
    }
    let row = |(file, group, key): (MonitorFile, &str, &str), name: String, form: Form| {
        let scale = if form == Form::Kib { 1024.0 } else { 1.0 };
        let values = seen.iter().map(|observation| {
            let grew = observation.growth(file, group);
            let count = grew.and_then(|grew| grew.get(key));
            count.map_or(MonitorValue::Absent, |count| {
                MonitorValue::Number(count as f64 / scale)
            })
        });
        BlockRow::new(name, form, values.collect())
    };
    let of_devices = most(&devices)
        .into_iter()
        .take(LINES_MAX)
        .flat_map(|device| {
            OF_DEVICE.map(|(key, word, form)| {
                row(
                    (MonitorFile::NetDev, device, key),
                    format!("{device} {word}"),
                    form,
                )
            })
        });
    let of_protocols = OF_PROTOCOL
        .map(|(file, group, key, name)| row((file, group, key), name.to_owned(), Form::Count));
    let rows = of_devices
        .chain(of_protocols)
        .filter(BlockRow::has_news)
        .collect();
    Block::new("Network", "Net", rows)
}

#[cfg(test)]
mod tests {
    use model::{MonitorFile, Observation, Phase, Reading, TimedReading};

    use super::super::block::MonitorValue;
    use super::{interrupts, network};

    fn seen(file: MonitorFile, copies: [&[(&str, &str, u64)]; 2]) -> Observation {
        let readings = copies.iter().zip([1, 5]).map(|(counters, at_ns)| {
            let mut reading = Reading::default();
            counters
                .iter()
                .for_each(|(group, key, value)| reading.put(group, key, *value));
            TimedReading {
                file,
                at_ns,
                phase: Phase::Interval,
                reading,
            }
        });
        Observation {
            readings: readings.collect(),
        }
    }

    #[test]
    fn interrupts_are_summed_over_cpus_busiest_first() {
        let before: &[(&str, &str, u64)] = &[
            ("LOC timer", "CPU0", 1),
            ("LOC timer", "CPU1", 2),
            ("4 ttyS0", "CPU0", 9),
            ("NMI", "CPU0", 3),
        ];
        let after: &[(&str, &str, u64)] = &[
            ("LOC timer", "CPU0", 11),
            ("LOC timer", "CPU1", 7),
            ("4 ttyS0", "CPU0", 10),
            ("NMI", "CPU0", 3),
        ];
        let block = interrupts(&[&seen(MonitorFile::Interrupts, [before, after])]);
        let rows: Vec<_> = block
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.values[0]))
            .collect();
        assert_eq!(
            rows,
            [
                ("LOC timer", MonitorValue::Number(15.0)),
                ("4 ttyS0", MonitorValue::Number(1.0))
            ]
        );
    }

    #[test]
    fn bytes_are_kib_and_idle_devices_are_omitted() {
        let before: &[(&str, &str, u64)] = &[
            ("lo", "receive_bytes", 0),
            ("lo", "receive_packets", 0),
            ("eth0", "receive_packets", 4),
        ];
        let after: &[(&str, &str, u64)] = &[
            ("lo", "receive_bytes", 4096),
            ("lo", "receive_packets", 2),
            ("eth0", "receive_packets", 4),
        ];
        let block = network(&[&seen(MonitorFile::NetDev, [before, after])]);
        let rows: Vec<_> = block
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.values[0]))
            .collect();
        assert_eq!(
            rows,
            [
                ("lo received", MonitorValue::Number(4.0)),
                ("lo packets received", MonitorValue::Number(2.0))
            ]
        );
    }
}
