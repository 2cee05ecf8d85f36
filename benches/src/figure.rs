//! A figure and its output line.

use std::io::Write;

/// The reference of a figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Against {
    Nothing,
    /// The goal: an upper limit in the figure's unit.
    Goal(f64),
    /// The same work done by another program, in the figure's unit.
    Peer(&'static str, f64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    pub against: Against,
}

impl Figure {
    fn line(&self) -> String {
        let Self {
            name,
            value,
            unit,
            against,
        } = self;
        let measured = format!("{value:.*} {unit}", decimals(*value));
        let (other, ratio) = match against {
            Against::Nothing => return format!("{name:<52} {measured:>12}"),
            Against::Goal(goal) => (format!("goal {goal} {unit}"), value / goal),
            Against::Peer(peer, other) => (
                format!("{peer} {other:.*} {unit}", decimals(*other)),
                value / other,
            ),
        };
        format!("{name:<52} {measured:>12}    {other:<16} {ratio:.2} of it")
    }
}

/// Significant digits: about three.
fn decimals(value: f64) -> usize {
    match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        0.1.. => 2,
        _ => 3,
    }
}

/// Prints figures as they come.
#[derive(Debug)]
pub struct Figures;

impl Figures {
    pub fn print(&mut self, figure: &Figure) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", figure.line())?;
        out.flush()
    }

    /// Warns if other processes compete for the processors.
    pub fn doubt_load(&mut self, load: f64) -> std::io::Result<()> {
        if load > 1.0 {
            self.doubt(&format!(
                "{load} processes want to run: processor seconds are larger than on a quiet host"
            ))?;
        }
        Ok(())
    }

    pub fn doubt(&mut self, why: &str) -> std::io::Result<()> {
        writeln!(std::io::stderr(), "benches: beware: {why}")
    }
}

/// Prints a figure by its parts.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(
    figures: &mut Figures,
    name: &str,
    value: f64,
    unit: &'static str,
    against: Against,
) -> anyhow::Result<()> {
    Ok(figures.print(&Figure {
        name: name.to_owned(),
        value,
        unit,
        against,
    })?)
}

#[cfg(test)]
mod tests {
    use super::{Against, Figure};

    fn line(value: f64, unit: &'static str, against: Against) -> String {
        Figure {
            name: "a figure".into(),
            value,
            unit,
            against,
        }
        .line()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
    }

    #[test]
    fn figure_line_names_measurement_and_reference() {
        assert_eq!(
            line(21.44, "s", Against::Goal(30.0)),
            "a figure 21.4 s goal 30 s 0.71 of it"
        );
        assert_eq!(
            line(300.4, "MIPS", Against::Peer("host", 6000.0)),
            "a figure 300 MIPS host 6000 MIPS 0.05 of it"
        );
        assert_eq!(line(0.461, "MB", Against::Nothing), "a figure 0.46 MB");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let line = |name: &str, value| {
            Figure {
                name: name.into(),
                value,
                unit: "s",
                against: Against::Goal(8.0),
            }
            .line()
            .find("goal")
        };
        assert_eq!(
            line("short", 1.0),
            line("a much longer name of a figure", 123.0)
        );
    }
}
