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
    /// Returns all arguments for a command, and the password.
    pub(crate) fn arguments(&self, words: &[&str]) -> Result<(Vec<String>, String), Refusal> {
        let Ipmi { host, port, login: known, cipher } = &self.ipmi;
        let (user, password) = login(&self.name, known.as_ref())?;
        let (port, cipher) = (port.to_string(), cipher.map(|cipher| cipher.to_string()));
        // With -E ipmitool asks no terminal, whether there is a password or not.
        let mut all = vec!["-I", "lanplus", "-H", host, "-p", &port, "-E"];
        if !user.is_empty() {
            all.extend(["-U", &user]);
        }
        all.extend(cipher.iter().flat_map(|cipher| ["-C", cipher]));
        all.extend(words);
        Ok((all.into_iter().map(str::to_owned).collect(), password))
    }

    /// Returns the program for a command.
    pub(crate) fn program(&self, words: &[&str]) -> Result<Program, Refusal> {
        let (arguments, password) = self.arguments(words)?;
        Ok(Program::new("ipmitool").args(arguments).variable("IPMI_PASSWORD", password))
    }

    fn run(&self, words: &[&str]) -> Result<String, Refusal> {
        let ended = ask(&self.name, self.program(words)?, Some(("ipmitool", "ipmitool")), "")?;
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
