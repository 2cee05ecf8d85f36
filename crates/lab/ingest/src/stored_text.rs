//! Stored forms of results beside runs. Profiles: text, a line for each region and each function,
//! fields separated by tabs. Copies of monitors: for each a line `PHASE BEGUN ENDED LENGTH PATH`,
//! and the bytes as they were read.

use std::fmt::Write as _;

use model::{Costly, CostlyCounts, MonitorCopy, Phase, Profile, ProfileLine, Region, Share};

const HEAD: &str = "marvin-profile 2";
/// Of profiles from before costly instructions were counted.
const FIRST_HEAD: &str = "marvin-profile 1";

/// Returns a profile as text.
#[must_use]
pub fn profile_to_text(profile: &Profile) -> String {
    let mut text = format!("{HEAD}\noperations\t{}\n", profile.operations);
    let mut line = |content: std::fmt::Arguments<'_>| text.write_fmt(content).unwrap_or_default();
    for Region {
        user,
        kernel,
        interrupt,
        other,
        costly,
    } in &profile.regions
    {
        line(format_args!(
            "region\t{user}\t{kernel}\t{interrupt}\t{other}\t{}\n",
            costly_to_text(costly)
        ));
    }
    for ProfileLine {
        share,
        symbol,
        instructions,
        repeated,
        calls,
        costly,
    } in &profile.lines
    {
        line(format_args!(
            "{}\t{instructions}\t{repeated}\t{calls}\t{}\t{symbol}\n",
            share.name(),
            costly_to_text(costly)
        ));
    }
    text
}

/// Returns costly instructions as `locked=2,clock=1`, or `-` if there are none.
fn costly_to_text(costly: &CostlyCounts) -> String {
    let kinds: Vec<String> = Costly::ALL
        .into_iter()
        .zip(costly)
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{}={count}", kind.name()))
        .collect();
    if kinds.is_empty() {
        "-".to_owned()
    } else {
        kinds.join(",")
    }
}

/// Parses that; `None` if it is anything else.
fn costly_from_text(text: &str) -> Option<CostlyCounts> {
    let mut costly = CostlyCounts::default();
    if text == "-" {
        return Some(costly);
    }
    for part in text.split(',') {
        let (name, count) = part.split_once('=')?;
        let kind = Costly::ALL.into_iter().find(|kind| kind.name() == name)?;
        costly[kind as usize] = count.parse().ok()?;
    }
    Some(costly)
}

/// Parses that text; `None` if it is anything else.
#[must_use]
pub fn profile_from_text(text: &str) -> Option<Profile> {
    let mut lines = text.lines();
    let has_costly = match lines.next()? {
        HEAD => true,
        FIRST_HEAD => false,
        _ => return None,
    };
    let mut profile = Profile::default();
    for line in lines {
        let (word, rest) = line.split_once('\t')?;
        let mut fields = rest.splitn(if has_costly { 5 } else { 4 }, '\t');
        let mut number = || fields.next()?.parse::<u64>().ok();
        match word {
            "operations" => profile.operations = number()?,
            "region" => {
                let mut region = Region {
                    user: number()?,
                    kernel: number()?,
                    interrupt: number()?,
                    other: number()?,
                    ..Region::default()
                };
                if has_costly {
                    region.costly = costly_from_text(fields.next()?)?;
                }
                profile.regions.push(region);
            }
            word => {
                let share = Share::ALL.into_iter().find(|share| share.name() == word)?;
                let instructions = number()?;
                let repeated = number()?;
                let calls = number()?;
                let costly = if has_costly {
                    costly_from_text(fields.next()?)?
                } else {
                    CostlyCounts::default()
                };
                let symbol = fields.next()?.to_owned();
                profile.lines.push(ProfileLine {
                    share,
                    symbol,
                    instructions,
                    repeated,
                    calls,
                    costly,
                });
            }
        }
    }
    Some(profile)
}

const MONITORS_HEAD: &[u8] = b"marvin-monitors 1\n";

/// Returns copies of monitors in their stored form.
#[must_use]
pub fn monitors_to_bytes(copies: &[MonitorCopy]) -> Vec<u8> {
    let mut bytes = MONITORS_HEAD.to_vec();
    for MonitorCopy {
        path,
        begun_ns,
        ended_ns,
        phase,
        bytes: copied,
    } in copies
    {
        let phase = match phase {
            Phase::Start => "start",
            Phase::Interval => "interval",
            Phase::End => "end",
        };
        bytes.extend(
            format!("{phase} {begun_ns} {ended_ns} {} {path}\n", copied.len()).into_bytes(),
        );
        bytes.extend(copied);
    }
    bytes
}

/// Parses the stored form; `None` if it is anything else, or truncated.
#[must_use]
pub fn monitors_from_bytes(bytes: &[u8]) -> Option<Vec<MonitorCopy>> {
    let mut rest = bytes.strip_prefix(MONITORS_HEAD)?;
    let mut copies = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(&rest[..end]).ok()?;
        let mut fields = head.splitn(5, ' ');
        let phase = match fields.next()? {
            "start" => Phase::Start,
            "interval" => Phase::Interval,
            "end" => Phase::End,
            _ => return None,
        };
        let mut number = || fields.next()?.parse::<u64>().ok();
        let begun_ns = number()?;
        let ended_ns = number()?;
        let length = usize::try_from(number()?).ok()?;
        let path = fields.next()?.to_owned();
        let copied = rest.get(end + 1..)?.get(..length)?;
        copies.push(MonitorCopy {
            path,
            begun_ns,
            ended_ns,
            phase,
            bytes: copied.to_vec(),
        });
        rest = &rest[end + 1 + length..];
    }
    Some(copies)
}

#[cfg(test)]
mod tests {
    use super::{monitors_from_bytes, monitors_to_bytes, profile_from_text, profile_to_text};
    use model::{MonitorCopy, Phase, Profile, ProfileLine, Region, Share};

    #[test]
    fn profile_round_trips_through_text() {
        let line = |share, symbol: &str| ProfileLine {
            share,
            symbol: symbol.to_owned(),
            instructions: 10,
            repeated: 512,
            calls: 1,
            costly: model::CostlyCounts::default(),
        };
        let profile = Profile {
            operations: 8,
            regions: vec![Region {
                user: 522,
                kernel: 522,
                interrupt: 0,
                other: 0,
                ..Region::default()
            }],
            lines: vec![
                line(Share::User, "[user]"),
                line(Share::Kernel, "crypt some_module"),
            ],
        };
        assert_eq!(profile_from_text(&profile_to_text(&profile)), Some(profile));
        assert_eq!(profile_from_text("something else"), None);
    }

    #[test]
    fn monitor_copies_are_read_except_truncated_parts() {
        let copy = |phase, bytes: &[u8]| MonitorCopy {
            path: "/proc/vmstat".to_owned(),
            begun_ns: 5,
            ended_ns: u64::MAX,
            phase,
            bytes: bytes.to_vec(),
        };
        let copies = [
            copy(Phase::Start, b"a 1\nb"),
            copy(Phase::Interval, b""),
            copy(Phase::End, b"\xff\n\n"),
        ];
        let bytes = monitors_to_bytes(&copies);
        assert_eq!(monitors_from_bytes(&bytes).as_deref(), Some(&copies[..]));
        assert_eq!(monitors_from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(monitors_from_bytes(b"start 1 2 3 /x\nabc"), None);
        assert_eq!(
            monitors_from_bytes(b"marvin-monitors 1\nend 1 2 18446744073709551615 /x\nabc"),
            None
        );
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(text: String) {
            let _profile = profile_from_text(&format!("marvin-profile 1\n{text}"));
        }
    }
}
