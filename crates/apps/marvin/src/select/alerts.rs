//! Finds an alert by its name.

use history::Triaged;

use crate::exit::WrongInput;

/// Finds an alert by its name or the end of its name.
pub(crate) fn find_alert<'a>(found: &'a [Triaged], text: &str) -> anyhow::Result<&'a Triaged> {
    let meant: Vec<&Triaged> = found
        .iter()
        .filter(|one| {
            let name = &one.alert.name;
            let kernel = name.rsplit_once('@').map(|(_, kernel)| kernel);
            *name == text || kernel == Some(text)
        })
        .collect();
    let [one] = meant.as_slice() else {
        let names: Vec<&str> = meant.iter().map(|one| one.alert.name.as_str()).collect();
        return Err(WrongInput(if names.is_empty() {
            format!("no alert `{text}`: `marvin alerts` lists them")
        } else {
            format!("several alerts end with `{text}`: {}", names.join(", "))
        })
        .into());
    };
    Ok(one)
}
