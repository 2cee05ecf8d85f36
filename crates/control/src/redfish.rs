//! Redfish (DMTF DSP0266), by curl(1): five requests need no client of their own, and curl has the host's certificates. The
//! login and the addresses go by its configuration on standard input.
//!
//! BMCs differ (lab.md, section 5 of the references): some reject any field that they do not know, so a request has one;
//! which types of reset there are, the system says.

use model::Redfish;
use process::Program;
use serde_json::{Value, json};

use crate::{PowerState, Refusal, Switch, ask, login};

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
        let Redfish { address, login: known, insecure, .. } = &self.redfish;
        let url = format!("{}{path}", address.trim_end_matches('/'));
        let (user, password) = login(&self.name, known.as_ref())?;
        let (user, body) = (format!("{user}:{password}"), body.map(Value::to_string));
        let mut options = vec![("url", url.as_str()), ("header", "Accept: application/json")];
        if known.is_some() {
            options.push(("user", &user));
        }
        if let Some(body) = &body {
            options.extend([("header", "Content-Type: application/json"), ("data-raw", body)]);
        }
        let words = ["-q", "--silent", "--show-error", "--fail", "--max-time", "50", "--max-filesize", ANSWER_MAX];
        let mut program = Program::new("curl").inherit(&process::NETWORK).args(words).args(["--config", "-"]);
        if *insecure {
            program = program.args(["--insecure"]);
        }
        let ended = ask(&self.name, program, Some(("curl", "curl")), &process::curl_config(&options))?;
        match ended.code {
            Some(0) if ended.output.is_empty() => Ok(Value::Null),
            Some(0) => {
                serde_json::from_slice(&ended.output).map_err(|_| Refusal::Passing(format!("{path} is no JSON")))
            }
            _ => Err(Refusal::Passing(ended.reason())),
        }
    }

    /// Returns the path of the system.
    fn path(&self) -> Result<String, Refusal> {
        if let Some(path) = &self.redfish.system {
            return Ok(path.clone());
        }
        let systems = self.get(SYSTEMS, None)?;
        let members = systems["Members"].as_array().map(Vec::as_slice).unwrap_or_default();
        let paths: Vec<&str> = members.iter().filter_map(|member| member["@odata.id"].as_str()).collect();
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
        self.get(&target, Some(&json!({ "ResetType": kind }))).map(drop)
    }
}

/// Returns where to post a reset, and of which type.
fn reset(system: &Value, path: &str, types: [&'static str; 2]) -> (String, &'static str) {
    let action = &system["Actions"][RESET];
    let target = action["target"].as_str().filter(|target| target.starts_with('/'));
    let target = target.map_or_else(|| format!("{path}/Actions/ComputerSystem.Reset"), str::to_owned);
    let allowed = action["ResetType@Redfish.AllowableValues"].as_array();
    let is_allowed = |kind: &&&str| allowed.is_none_or(|allowed| allowed.iter().any(|known| known == **kind));
    (target, types.iter().find(is_allowed).copied().unwrap_or(types[0]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{OFF, ON, reset};

    #[test]
    fn reset_is_of_a_type_that_is_allowed() {
        let of = |system: &serde_json::Value, types| reset(system, "/redfish/v1/Systems/1", types);
        let plain = json!({});
        assert_eq!(of(&plain, OFF), ("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset".to_owned(), "ForceOff"));
        let few = json!({ "Actions": { "#ComputerSystem.Reset": {
            "target": "/x/Reset", "ResetType@Redfish.AllowableValues": ["ForceOn", "GracefulShutdown"] } } });
        assert_eq!(of(&few, ON), ("/x/Reset".to_owned(), "ForceOn"));
        assert_eq!(of(&few, OFF), ("/x/Reset".to_owned(), "GracefulShutdown"));
        let foreign = json!({ "Actions": { "#ComputerSystem.Reset": { "target": "https://elsewhere/Reset" } } });
        assert!(of(&foreign, ON).0.starts_with("/redfish/"), "a target on another host is not asked");
    }
}
