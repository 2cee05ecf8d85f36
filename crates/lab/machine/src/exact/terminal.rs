//! An exact machine whose serial line a user has: it starts where measured jobs start, from the
//! same snapshot. What is typed comes at any instruction, so nothing is exact there, and the plugin,
//! which only keeps the machine exact and counts, is left out.

use model::{Stage, SubjectFailure};
use wire::Job;

use super::{Exact, RAM, Snapshot, Start, memory};
use crate::MachineError;
use crate::backend::Observe;
use crate::guest_terminal::{GuestTerminal, LINE, Pace, SERIAL};
use crate::qemu::{CONSOLE, Ended, Process, failure, restore};

impl Exact {
    /// Starts a job whose guest has a terminal; the inner error is a kernel that does not boot.
    pub(super) fn open_terminal(
        &self,
        start: &Start,
        job: &Job,
        pace: Pace,
    ) -> Result<Result<GuestTerminal, SubjectFailure>, MachineError> {
        let mut scratch = self.prepare(&start.load, &job.encode()?)?;
        let arguments = self.arguments(&start.load, "quiet", Observe::Nothing);
        let mut arguments = with_terminal(arguments, pace);
        let process = match &start.snapshot {
            // QEMU would wait for a missing memory file.
            Snapshot::Saved(folder) if folder.join(RAM).is_file() => {
                let share = self.link_snapshot(folder, &mut scratch)?;
                arguments.extend(memory(self.memory_mib(), &share));
                arguments.extend(["-S", "-incoming", "defer"].map(str::to_owned));
                let mut process = Process::start(&self.qemu, &arguments, &scratch)?;
                restore(&mut process, &scratch)?;
                process
            }
            _ => {
                arguments.extend(["-m".to_owned(), self.memory_mib().to_string()]);
                let mut process = Process::start(&self.qemu, &arguments, &scratch)?;
                let ended = process.wait_for_end(&self.boot_budget(Observe::Nothing))?;
                if ended != Ended::Stopped {
                    return Ok(Err(failure(Stage::Boot, ended, &[])));
                }
                process
            }
        };
        GuestTerminal::connect(process, scratch, job.id).map(Ok)
    }
}

/// Returns a machine's arguments with a serial line that Marvin connects to, without the plugin.
fn with_terminal(arguments: Vec<String>, pace: Pace) -> Vec<String> {
    let mut chosen = Vec::with_capacity(arguments.len() + 2);
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-plugin" => drop(words.next()),
            "-icount" if pace == Pace::RealTime => {
                // Else a guest at a prompt would have no pause: QEMU moves its clock from timer to
                // timer, and takes a processor of the host for that.
                chosen.extend([word, "shift=0,sleep=on".to_owned()]);
                drop(words.next());
            }
            _ if word == format!("file:{CONSOLE}") => chosen.push(SERIAL.to_owned()),
            _ => chosen.push(word),
        }
    }
    chosen.extend(LINE.split(' ').map(str::to_owned));
    chosen
}

#[cfg(test)]
mod tests {
    use super::{Pace, with_terminal};

    #[test]
    fn terminal_replaces_file_and_plugin() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let arguments = "-icount shift=0,sleep=off -serial file:console -plugin ./tracer.so -m 9";
        let line = "-chardev socket,id=line,path=line,server=on,wait=off";
        assert_eq!(
            with_terminal(words(arguments), Pace::Measured),
            words(&format!(
                "-icount shift=0,sleep=off -serial chardev:line -m 9 {line}"
            ))
        );
        assert_eq!(
            with_terminal(words(arguments), Pace::RealTime)[1],
            "shift=0,sleep=on"
        );
    }
}
