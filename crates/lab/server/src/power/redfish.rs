//! Redfish (DMTF DSP0266), by curl(1): five requests need no client of their own, and curl has the
//! host's certificates. The login and the addresses go by its configuration on standard input.
//!
//! BMCs differ (lab.md, section 5 of the references): some reject any field that they do not know,
//! so a request has no more than it needs; which types of reset there are, the system says. Some
//! reset the mode of a boot override that a request leaves out, so it has the mode that the system
//! reports.

use model::{BootDevice, Redfish};
use serde_json::{Value, json};
use subprocess::Program;

use super::{NextBoot, PowerError, PowerState, Refusal, Switch, ask, login};

/// Where the systems of a BMC are listed (DSP0266, 6.5).
const SYSTEMS: &str = "/redfish/v1/Systems";
/// The action that switches, and its types for each state, the best one first.
const RESET: &str = "#ComputerSystem.Reset";
const ON: [&str; 2] = ["On", "ForceOn"];
const OFF: [&str; 2] = ["ForceOff", "GracefulShutdown"];
/// Limit on an answer (bytes).
const ANSWER_MAX: &str = "4194304";

#[derive(Debug)]
pub(crate) struct Curl {
    pub(crate) name: String,
    pub(crate) redfish: Redfish,
}

impl Curl {
    /// Gets a resource, or posts a body to it.
    fn get(&self, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        self.send(path, body, &[])
    }

    /// Changes a resource; `etag` is the version of it that was read: some BMCs want it (HTTP
    /// status 428 without it).
    fn patch(&self, path: &str, body: &Value, etag: Option<&str>) -> Result<(), Refusal> {
        let version = etag
            .filter(|etag| !etag.contains(char::is_control))
            .map(|etag| format!("If-Match: {etag}"));
        let mut options = vec![("request", "PATCH")];
        options.extend(version.iter().map(|version| ("header", version.as_str())));
        self.send(path, Some(body), &options).map(drop)
    }

    fn send(
        &self,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> Result<Value, Refusal> {
        let Redfish {
            address,
            login: known,
            insecure,
            ..
        } = &self.redfish;
        let url = format!("{}{path}", address.trim_end_matches('/'));
        let (user, password) = login(&self.name, known.as_ref())?;
        let user = format!("{user}:{password}");
        let body = body.map(Value::to_string);
        let mut options = vec![
            ("url", url.as_str()),
            ("header", "Accept: application/json"),
        ];
        options.extend(more);
        if known.is_some() {
            options.push(("user", &user));
        }
        if let Some(body) = &body {
            options.extend([
                ("header", "Content-Type: application/json"),
                ("data-raw", body),
            ]);
        }
        let arguments = [
            "-q",
            "--silent",
            "--show-error",
            "--fail",
            // Less than the deadline of a question, so that curl still says why.
            "--max-time",
            "50",
            "--max-filesize",
            ANSWER_MAX,
        ];
        let mut program = Program::new("curl")
            .inherit(&subprocess::NETWORK)
            .args(arguments)
            .args(["--config", "-"]);
        if *insecure {
            program = program.args(["--insecure"]);
        }
        let ended = ask(
            &self.name,
            program,
            Some(("curl", "curl")),
            &subprocess::curl_config(&options),
        )?;
        match ended.code {
            Some(0) if ended.output.is_empty() => Ok(Value::Null),
            Some(0) => serde_json::from_slice(&ended.output)
                .map_err(|_| Refusal::Passing(format!("{path} is no JSON"))),
            _ => Err(Refusal::Passing(ended.reason())),
        }
    }

    /// Returns the path of the system.
    fn path(&self) -> Result<String, Refusal> {
        if let Some(path) = &self.redfish.system {
            return Ok(path.clone());
        }
        let systems = self.get(SYSTEMS, None)?;
        let members = systems["Members"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let paths: Vec<&str> = members
            .iter()
            .filter_map(|member| path_of(&member["@odata.id"]))
            .collect();
        match paths.as_slice() {
            [path] => Ok((*path).to_owned()),
            [] => Err(Refusal::Passing(format!("{SYSTEMS} lists no system"))),
            several => Err(Refusal::Passing(format!(
                "it has several systems: set `system` of [machine.power] to one of {}",
                several.join(", ")
            ))),
        }
    }
}

impl Switch for Curl {
    fn state(&self) -> Result<PowerState, Refusal> {
        let system = self.get(&self.path()?, None)?;
        match system["PowerState"].as_str() {
            Some("PoweringOn" | "PoweringOff" | "Paused") => Ok(PowerState::Changing),
            Some(word) if PowerState::of_word(word).is_some() => {
                Ok(PowerState::of_word(word).unwrap_or(PowerState::Unknown))
            }
            _ => Err(Refusal::Passing("the system has no PowerState".to_owned())),
        }
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        let path = self.path()?;
        let system = self.get(&path, None)?;
        let (target, kind) = reset(&system, &path, if is_on { ON } else { OFF });
        self.get(&target, Some(&json!({ "ResetType": kind })))
            .map(drop)
    }

    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal> {
        let path = self.path()?;
        let system = self.get(&path, None)?;
        let body = boot_override(&system, device).map_err(|why| {
            Refusal::Lasting(PowerError::NoBoot {
                name: self.name.clone(),
                device,
                why,
            })
        })?;
        match (
            self.patch(&path, &body, system["@odata.etag"].as_str()),
            settings_of(&system),
        ) {
            // Some BMCs take what is for the next boot at another address only (DSP0266, 9.10).
            (Err(Refusal::Passing(_)), Some(settings)) => {
                let etag = self.get(settings, None)?["@odata.etag"]
                    .as_str()
                    .map(str::to_owned);
                self.patch(settings, &body, etag.as_deref())
            }
            (answer, _) => answer,
        }
    }

    fn next_boot(&self) -> Result<NextBoot, Refusal> {
        let system = self.get(&self.path()?, None)?;
        match (next_boot(&system), settings_of(&system)) {
            // What the other address took is here only after the next start.
            (NextBoot::Other, Some(settings)) => Ok(next_boot(&self.get(settings, None)?)),
            (known, _) => Ok(known),
        }
    }
}

/// The names of a boot override's parts (DSP2046, ComputerSystem).
const TARGET: &str = "BootSourceOverrideTarget";
const ENABLED: &str = "BootSourceOverrideEnabled";
const MODE: &str = "BootSourceOverrideMode";

const fn target_of(device: BootDevice) -> &'static str {
    match device {
        BootDevice::Pxe => "Pxe",
        BootDevice::Disk => "Hdd",
        BootDevice::Bios => "BiosSetup",
    }
}

/// Returns the address for what takes effect at the next start, if it is another one.
fn settings_of(system: &Value) -> Option<&str> {
    path_of(&system["@Redfish.Settings"]["SettingsObject"]["@odata.id"])
}

/// Returns a path that a BMC names. Behind the address, any other text could name another host, to
/// which the login would go.
fn path_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|path| path.starts_with('/'))
}

/// Returns the request for a boot from a device; why not, if the system does not offer it.
fn boot_override(system: &Value, device: BootDevice) -> Result<Value, String> {
    let boot = &system["Boot"];
    let target = target_of(device);
    let offered = boot[format!("{TARGET}@Redfish.AllowableValues")]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if !offered.is_empty() && !offered.iter().any(|known| known == target) {
        let offered: Vec<&str> = offered.iter().filter_map(Value::as_str).collect();
        return Err(format!(
            "the BMC offers only {}",
            model::sanitize_line(&offered.join(", "))
        ));
    }
    let mut request = json!({ ENABLED: "Once", TARGET: target });
    if let Some(mode) = boot[MODE].as_str() {
        request[MODE] = json!(mode);
    }
    Ok(json!({ "Boot": request }))
}

/// Returns the device of the next boot. Some services report `Continuous` for `Once`: the target
/// counts.
fn next_boot(system: &Value) -> NextBoot {
    let boot = &system["Boot"];
    match (boot[ENABLED].as_str(), boot[TARGET].as_str()) {
        (_, None) => NextBoot::Other,
        (Some("Disabled"), _) => NextBoot::Other,
        (_, Some(target)) => {
            let known = BootDevice::ALL
                .into_iter()
                .find(|device| target_of(*device) == target);
            known.map_or(NextBoot::Other, NextBoot::From)
        }
    }
}

/// Returns where to post a reset, and of which type.
fn reset(system: &Value, path: &str, types: [&'static str; 2]) -> (String, &'static str) {
    let action = &system["Actions"][RESET];
    let target = action["target"]
        .as_str()
        .filter(|target| target.starts_with('/'));
    let target = target.map_or_else(
        || format!("{path}/Actions/ComputerSystem.Reset"),
        str::to_owned,
    );
    let allowed = action["ResetType@Redfish.AllowableValues"].as_array();
    let is_allowed =
        |kind: &&&str| allowed.is_none_or(|allowed| allowed.iter().any(|known| known == **kind));
    (
        target,
        types.iter().find(is_allowed).copied().unwrap_or(types[0]),
    )
}

#[cfg(test)]
mod tests {
    use model::BootDevice;
    use serde_json::json;

    use super::{OFF, ON, boot_override, next_boot, reset};
    use crate::power::NextBoot;

    #[test]
    fn boot_override_has_what_bmcs_want() {
        let bare = boot_override(&json!({}), BootDevice::Pxe).unwrap();
        assert_eq!(
            bare,
            json!({ "Boot": { "BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe" } })
        );
        let system = json!({ "Boot": { "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Hdd"] } });
        let disk = boot_override(&system, BootDevice::Disk).unwrap();
        assert_eq!(
            disk["Boot"]["BootSourceOverrideMode"], "UEFI",
            "one that is left out is reset by some"
        );
        assert_eq!(
            boot_override(&system, BootDevice::Pxe).unwrap_err(),
            "the BMC offers only None, Hdd"
        );
        let boot_of = |enabled: &str| {
            next_boot(
                &json!({ "Boot": { "BootSourceOverrideEnabled": enabled, "BootSourceOverrideTarget": "Pxe" } }),
            )
        };
        assert_eq!(
            ["Once", "Continuous"].map(boot_of),
            [NextBoot::From(BootDevice::Pxe); 2]
        );
        assert_eq!(
            [boot_of("Disabled"), next_boot(&json!({}))],
            [NextBoot::Other; 2]
        );
    }

    #[test]
    fn reset_is_of_a_type_that_is_allowed() {
        let reset_of =
            |system: &serde_json::Value, types| reset(system, "/redfish/v1/Systems/1", types);
        let plain = json!({});
        assert_eq!(
            reset_of(&plain, OFF),
            (
                "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset".to_owned(),
                "ForceOff"
            )
        );
        let few = json!({ "Actions": { "#ComputerSystem.Reset": {
            "target": "/x/Reset", "ResetType@Redfish.AllowableValues": ["ForceOn", "GracefulShutdown"] } } });
        assert_eq!(reset_of(&few, ON), ("/x/Reset".to_owned(), "ForceOn"));
        assert_eq!(
            reset_of(&few, OFF),
            ("/x/Reset".to_owned(), "GracefulShutdown")
        );
        let foreign = json!({ "Actions": { "#ComputerSystem.Reset": { "target": "https://elsewhere/Reset" } } });
        assert!(
            reset_of(&foreign, ON).0.starts_with("/redfish/"),
            "a target on another host is not asked"
        );
    }
}
