//! The description of an external tool for the agent, as lines of a job.

use crate::escape::{escape, unescape};

/// A program and its arguments.
pub type Command = Vec<String>;

/// The name of the file in which an agent on a host describes the programs that it ran, a line
/// `NAME=…` each.
pub const PROGRAMS: &str = "programs";
/// How an agent on a host says that a program is missing; its path follows.
pub const NOT_INSTALLED: &str = "not installed: ";

/// An external tool, as far as the guest needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolTask {
    /// Its environment, in order.
    pub environment: Vec<(String, String)>,
    /// Programs to run first.
    pub setup: Vec<Command>,
    /// A server that runs beside it, and the TCP port on which it listens.
    pub server: Option<(Command, u16)>,
    /// Programs to run when the server listens.
    pub prepare: Vec<Command>,
    /// The measured program.
    pub command: Command,
    /// The number of runs.
    pub runs: u32,
    /// Output files to send.
    pub files: Vec<String>,
    /// The time limit for everything, in seconds of guest time.
    pub limit_s: u32,
    /// Where it runs as on a whole system; `None` for a program of packages, in its own directory.
    pub system: Option<SystemTask>,
}

/// What a user's own program expects of the system that it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemTask {
    /// Its working directory.
    pub directory: String,
    /// The file that is its standard input; empty input without one.
    pub stdin: Option<String>,
    /// Exit statuses beside 0 with which it has done its work.
    pub accepted: Vec<u8>,
    /// Whether the program marks by itself what is measured, instead of the agent around it.
    pub marks: bool,
}

impl ToolTask {
    /// Returns it as lines of a job.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = |word: &String| escape(word.as_bytes());
        let line = |key: &str, command: &Command| {
            let words: Vec<String> = command.iter().map(text).collect();
            format!("{key}={}", words.join(" "))
        };
        let mut lines: Vec<String> = self
            .environment
            .iter()
            .map(|(name, value)| format!("env={} {}", text(name), text(value)))
            .collect();
        lines.extend(self.setup.iter().map(|command| line("setup", command)));
        if let Some((command, port)) = &self.server {
            lines.push(line("server", command));
            lines.push(format!("port={port}"));
        }
        lines.extend(self.prepare.iter().map(|command| line("prepare", command)));
        lines.push(line("command", &self.command));
        lines.push(format!("runs={}", self.runs));
        lines.extend(self.files.iter().map(|file| format!("file={}", text(file))));
        lines.push(format!("limit_s={}", self.limit_s));
        if let Some(system) = &self.system {
            lines.push(format!("directory={}", text(&system.directory)));
            lines.extend(
                system
                    .stdin
                    .iter()
                    .map(|file| format!("stdin={}", text(file))),
            );
            lines.extend(
                system
                    .accepted
                    .iter()
                    .map(|status| format!("accepted={status}")),
            );
            lines.extend(system.marks.then(|| "marks=own".to_owned()));
        }
        lines
    }

    /// Reads it from a job's body.
    pub(crate) fn from_body(body: &str) -> Option<Self> {
        let all = |key: &'static str| {
            body.lines()
                .filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
                .map(words)
        };
        let number = |key: &'static str| all(key).next()??.pop()?.parse::<u32>().ok();
        let pair = |words: Option<Command>| {
            <[String; 2]>::try_from(words?)
                .ok()
                .map(|[name, value]| (name, value))
        };
        let server = match all("server").next() {
            Some(command) => Some((command?, u16::try_from(number("port")?).ok()?)),
            None => None,
        };
        let system = match all("directory").next() {
            Some(directory) => Some(SystemTask {
                directory: directory?.pop()?,
                stdin: match all("stdin").next() {
                    Some(file) => Some(file?.pop()?),
                    None => None,
                },
                accepted: all("accepted")
                    .map(|words| words?.pop()?.parse().ok())
                    .collect::<Option<_>>()?,
                marks: all("marks").next().is_some(),
            }),
            None => None,
        };
        Some(Self {
            environment: all("env").map(pair).collect::<Option<_>>()?,
            setup: all("setup").collect::<Option<_>>()?,
            server,
            prepare: all("prepare").collect::<Option<_>>()?,
            command: all("command").next()??,
            runs: number("runs")?,
            files: all("file")
                .map(|words| words?.pop())
                .collect::<Option<_>>()?,
            limit_s: number("limit_s")?,
            system,
        })
    }
}

fn words(line: &str) -> Option<Command> {
    line.split(' ')
        .map(|word| String::from_utf8(unescape(word)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SystemTask, ToolTask};

    proptest! {
        #[test]
        fn task_round_trips(
            words in prop::collection::vec("\\PC{0,12}", 1..5),
            pairs in prop::collection::vec(("[A-Z]{1,4}", any::<String>()), 0..3),
            port in prop::option::of(any::<u16>()),
            runs: u32,
            accepted in prop::collection::vec(any::<u8>(), 0..3),
            own: bool,
        ) {
            let system = own.then(|| SystemTask {
                directory: words[0].clone(),
                stdin: words.get(1).cloned(),
                accepted,
                marks: own,
            });
            let task = ToolTask {
                environment: pairs,
                setup: vec![words.clone(); 2],
                server: port.map(|port| (words.clone(), port)),
                prepare: vec![words.clone()],
                command: words.clone(),
                runs,
                files: words,
                limit_s: 7,
                system,
            };
            let body = task.lines().join("\n");
            prop_assert_eq!(ToolTask::from_body(&body), Some(task));
        }

        #[test]
        fn garbage_never_panics(body: String) {
            let _either = ToolTask::from_body(&body).is_some();
        }
    }
}
