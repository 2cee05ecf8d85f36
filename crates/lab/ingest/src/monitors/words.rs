//! Files whose lines begin with a name: vmstat, meminfo, status, pressure.

use model::Reading;

use super::Taken;

pub(super) fn pairs(text: &str, taken: &mut Taken) {
    for line in text.lines() {
        let value = line
            .split_once(' ')
            .and_then(|(key, value)| Some((key, value.trim().parse().ok()?)));
        match value {
            Some((key, value)) => taken.put(Reading::WHOLE, key, value),
            None => taken.unread(),
        }
    }
}

/// Parses `Name: value kB`. Other values, such as a process's name, are skipped without an error.
pub(super) fn fields(text: &str, group: &str, taken: &mut Taken) {
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else {
            taken.unread();
            continue;
        };
        let mut columns = rest.split_whitespace();
        let value = columns.next().and_then(|word| word.parse().ok());
        if let (Some(value), None | Some("kB"), None) = (value, columns.next(), columns.next()) {
            taken.put(group, key.trim(), value);
        }
    }
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=63209204`: the total, in us. The averages
/// are smoothed by the kernel; the growth of the total is exact over any interval
/// (Documentation/accounting/psi.rst).
pub(super) fn pressure(text: &str, taken: &mut Taken) {
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let total = rest
            .split(' ')
            .find_map(|word| word.strip_prefix("total=")?.parse().ok());
        match total {
            Some(total) => taken.put(kind, "total_us", total),
            None => taken.unread(),
        }
    }
}
