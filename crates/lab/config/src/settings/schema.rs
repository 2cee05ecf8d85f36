//! The JSON schema of marvin.toml, for editors, from the same keys as the check of the file.

use serde_json::{Map, Value, json};

use super::keys::{FILE, Key, Kind, Presence, Preset, Table};

/// Returns the schema in the form of docs/marvin.schema.json.
#[must_use]
pub fn settings_schema() -> String {
    let mut schema = of_table(&FILE);
    if let Some(object) = schema.as_object_mut() {
        object.insert(
            "$schema".into(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        object.insert("title".into(), json!("marvin.toml"));
    }
    format!("{schema:#}\n")
}

fn of_table(table: &Table) -> Value {
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), of_key(key)))
        .collect();
    let needed: Vec<&str> = table
        .keys
        .iter()
        .filter(|key| matches!(key.presence, Presence::Needed))
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "description": table.about,
        "properties": properties,
        "required": needed,
        "additionalProperties": false,
    })
}

fn of_key(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Name => json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,31}$" }),
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Texts => {
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } })
        }
        Kind::Span => json!({ "type": "string", "pattern": "^[0-9]+[smhd]$" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::One(table) => of_table(table),
        Kind::Many(table) => json!({ "type": "array", "items": of_table(table) }),
    };
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), json!(key.about));
        if let Presence::Preset(preset) = key.presence {
            object.insert("default".into(), of_preset(preset));
        }
    }
    schema
}

fn of_preset(preset: Preset) -> Value {
    match preset {
        Preset::Text(text) | Preset::Span(_, text) => json!(text),
        Preset::Flag(flag) => json!(flag),
        Preset::Whole(number) => json!(number),
    }
}
