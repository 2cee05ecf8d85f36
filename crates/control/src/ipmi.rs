//! IPMI over the network, by ipmitool(1). The password goes by its environment.

use model::Ipmi;
use process::Program;

use crate::{PowerState, Refusal, Switch, ask, login};

#[derive(Debug)]
pub(crate) struct IpmiTool {
    pub(crate) name: String,
    pub(crate) ipmi: Ipmi,
}

impl IpmiTool {
    fn run(&self, words: &[&str]) -> Result<String, Refusal> {
        let Ipmi { host, port, login: known, cipher } = &self.ipmi;
        let (user, password) = login(&self.name, known.as_ref())?;
        let mut program = Program::new("ipmitool").args(["-I", "lanplus", "-H", host, "-p", &port.to_string()]);
        if !user.is_empty() {
            program = program.args(["-U", &user]);
        }
        // With -E ipmitool asks no terminal, whether there is a password or not.
        program = program.args(["-E"]).variable("IPMI_PASSWORD", password);
        if let Some(cipher) = cipher {
            program = program.args(["-C", &cipher.to_string()]);
        }
        let ended = ask(&self.name, program.args(words), Some(("ipmitool", "ipmitool")), "")?;
        if ended.code == Some(0) { Ok(ended.text()) } else { Err(Refusal::Passing(ended.reason())) }
    }
}

impl Switch for IpmiTool {
    fn state(&self) -> Result<PowerState, Refusal> {
        // "Chassis Power is on"
        let said = self.run(&["chassis", "power", "status"])?;
        let word = said.split_whitespace().next_back().unwrap_or_default();
        PowerState::of_word(word).ok_or_else(|| Refusal::Passing(format!("ipmitool says: {}", said.trim())))
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        self.run(&["chassis", "power", if is_on { "on" } else { "off" }]).map(drop)
    }
}
