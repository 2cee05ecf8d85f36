//! IPMI over the network, by ipmitool(1). The password goes by its environment.

use model::{BootDevice, Ipmi};
use subprocess::Program;

use super::{NextBoot, PowerState, Refusal, Switch, ask, login};

#[derive(Debug)]
pub(crate) struct IpmiTool {
    pub(crate) name: String,
    pub(crate) ipmi: Ipmi,
}

impl IpmiTool {
    /// Returns all arguments for a command, and the password.
    pub(crate) fn arguments(&self, subcommand: &[&str]) -> Result<(Vec<String>, String), Refusal> {
        let Ipmi {
            host,
            port,
            login: known,
            cipher,
        } = &self.ipmi;
        let (user, password) = login(&self.name, known.as_ref())?;
        let port = port.to_string();
        let cipher = cipher.map(|cipher| cipher.to_string());
        // With -E ipmitool asks no terminal, whether there is a password or not.
        let mut all = vec!["-I", "lanplus", "-H", host, "-p", &port, "-E"];
        if !user.is_empty() {
            all.extend(["-U", &user]);
        }
        all.extend(cipher.iter().flat_map(|cipher| ["-C", cipher]));
        all.extend(subcommand);
        Ok((all.into_iter().map(str::to_owned).collect(), password))
    }

    /// Returns the program for a command.
    pub(crate) fn program(&self, subcommand: &[&str]) -> Result<Program, Refusal> {
        let (arguments, password) = self.arguments(subcommand)?;
        Ok(Program::new("ipmitool")
            .args(arguments)
            .variable("IPMI_PASSWORD", password))
    }

    fn run(&self, subcommand: &[&str]) -> Result<String, Refusal> {
        let ended = ask(
            &self.name,
            self.program(subcommand)?,
            Some(("ipmitool", "ipmitool")),
            "",
        )?;
        if ended.code == Some(0) {
            Ok(ended.text())
        } else {
            Err(Refusal::Passing(ended.reason()))
        }
    }
}

impl Switch for IpmiTool {
    fn state(&self) -> Result<PowerState, Refusal> {
        // "Chassis Power is on"
        let answer = self.run(&["chassis", "power", "status"])?;
        let word = answer.split_whitespace().next_back().unwrap_or_default();
        PowerState::of_word(word)
            .ok_or_else(|| Refusal::Passing(format!("ipmitool says: {}", answer.trim())))
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        self.run(&["chassis", "power", if is_on { "on" } else { "off" }])
            .map(drop)
    }

    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal> {
        // Without options it is for one boot.
        self.run(&["chassis", "bootdev", device.name()]).map(drop)
    }

    fn next_boot(&self) -> Result<NextBoot, Refusal> {
        let answer = self.run(&["chassis", "bootparam", "get", "5"])?;
        Ok(boot_flags(&answer))
    }
}

/// Reads the boot flags as ipmitool prints them: `Boot parameter data: 8004000000` (IPMI 2.0, table
/// 28-14, parameter 5).
fn boot_flags(answer: &str) -> NextBoot {
    const VALID: u8 = 0x80;
    const PERSISTENT: u8 = 0x40;
    let data = answer
        .lines()
        .find_map(|line| line.trim().strip_prefix("Boot parameter data: "));
    let byte = |at: usize| {
        data.and_then(|data| u8::from_str_radix(data.get(2 * at..2 * at + 2)?, 16).ok())
    };
    let (Some(flags), Some(device)) = (byte(0), byte(1)) else {
        return NextBoot::Unknown;
    };
    let device = (device >> 2) & 0xf;
    // Some report a device as not valid that they are about to use (ipmi_sim does), others one that
    // they used: that proves nothing.
    if flags & VALID == 0 {
        return if device == 0 {
            NextBoot::Other
        } else {
            NextBoot::Unknown
        };
    }
    // A device for all boots from now on is not what was asked for.
    if flags & PERSISTENT != 0 {
        return NextBoot::Other;
    }
    match device {
        0b0001 => NextBoot::From(BootDevice::Pxe),
        0b0010 => NextBoot::From(BootDevice::Disk),
        0b0110 => NextBoot::From(BootDevice::Bios),
        _ => NextBoot::Other,
    }
}

#[cfg(test)]
mod tests {
    use model::BootDevice;

    use super::boot_flags;
    use crate::power::NextBoot;

    #[test]
    fn boot_flags_name_the_device_of_one_boot() {
        let flags_of = |data: &str| {
            boot_flags(&format!(
                "Boot parameter version: 1\nBoot parameter data: {data}\n Boot Flags :\n"
            ))
        };
        assert_eq!(flags_of("8004000000"), NextBoot::From(BootDevice::Pxe));
        assert_eq!(flags_of("8008000000"), NextBoot::From(BootDevice::Disk));
        assert_eq!(
            flags_of("a018000000"),
            NextBoot::From(BootDevice::Bios),
            "by UEFI"
        );
        assert_eq!(flags_of("c004000000"), NextBoot::Other, "for each boot");
        assert_eq!(flags_of("0000000000"), NextBoot::Other);
        assert_eq!(
            flags_of("0004000000"),
            NextBoot::Unknown,
            "not yet valid, or no longer"
        );
        assert_eq!(flags_of("8014000000"), NextBoot::Other, "CD");
        assert_eq!(flags_of("80"), NextBoot::Unknown);
        assert_eq!(boot_flags(""), NextBoot::Unknown);
    }
}
