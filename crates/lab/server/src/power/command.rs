//! A program of the site that switches power: `PROGRAM… status|on|off`, and `PROGRAM… boot
//! pxe|disk|bios` for the next boot. `status` prints `on` or `off` as its last word, as
//! ipmitool, fence agents and power strips' programs do; a program without `status` fails, and then
//! nothing is verified.

use model::BootDevice;
use subprocess::Program;

use super::{NextBoot, PowerState, Refusal, Switch, ask};

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
}

impl Command {
    fn run(&self, command: &[&str]) -> Result<subprocess::Ended, Refusal> {
        let (program, arguments) = self
            .command
            .split_first()
            .map_or(("", &[][..]), |(program, rest)| (program, rest));
        ask(
            &self.name,
            Program::new(program).args(arguments).args(command),
            None,
            "",
        )
    }
}

impl Switch for Command {
    fn state(&self) -> Result<PowerState, Refusal> {
        let ended = self.run(&["status"])?;
        let text = ended.text();
        let last = text.split_whitespace().next_back().unwrap_or_default();
        match ended.code {
            Some(0) => Ok(PowerState::of_word(last).unwrap_or(PowerState::Unknown)),
            _ => Ok(PowerState::Unknown),
        }
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        let ended = self.run(&[if is_on { "on" } else { "off" }])?;
        if ended.code == Some(0) {
            Ok(())
        } else {
            Err(Refusal::Passing(ended.reason()))
        }
    }

    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal> {
        let ended = self.run(&["boot", device.name()])?;
        if ended.code == Some(0) {
            Ok(())
        } else {
            Err(Refusal::Passing(ended.reason()))
        }
    }

    fn next_boot(&self) -> Result<NextBoot, Refusal> {
        Ok(NextBoot::Unknown)
    }
}
