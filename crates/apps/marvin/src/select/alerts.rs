//! Finds an alert by its name.

use history::Triaged;

use crate::exit::WrongInput;

/// Finds an alert by its name or the end of its name.
pub(crate) fn find_alert<'a>(found: &'a [Triaged], text: &str) -> anyhow::Result<&'a Triaged> {
    let is_meant = |one: &&Triaged| {
        let name = &one.alert.name;
        *name == text
            || name
                .rsplit_once('@')
                .is_some_and(|(_, kernel)| kernel == text)
    };
    let meant: Vec<&Triaged> = found.iter().filter(is_meant).collect();
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
