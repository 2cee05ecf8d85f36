//! For tests of this crate and, with the feature `fixtures`, of higher ones: a small check of
//! documents against their JSON schemas (types, required keys, and no key that the schema lacks),
//! and pages without their script.
#![expect(clippy::unwrap_used, reason = "only tests call this")]

use schemars::Schema;
use serde_json::Value;

/// Returns what contradicts the schema in a document. Stricter than JSON schema: a key without a
/// schema is a mistake.
#[must_use]
pub fn mistakes(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check {
        root: schema,
        found: &mut found,
    }
    .value(schema, document, "$");
    found
}

/// Fails unless a JSON document fits the schema.
pub fn assert_fits(schema: &Schema, document: &str) {
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(mistakes(schema.as_value(), &document), Vec::<String>::new());
}

/// Returns a page without its styles, its script and the script's hash, for snapshots; panics if the
/// page lacks styles or script.
pub fn without_assets(page: &str) -> String {
    let (head, rest) = page.split_once(crate::SCRIPT).unwrap();
    let (before, hash) = head.split_once("'sha256-").unwrap();
    let (_, after) = hash.split_once('\'').unwrap();
    let (after, body) = after.split_once(crate::DOCUMENT_STYLES).unwrap();
    format!("{before}'HASH'{after}{body}{rest}")
}

struct Check<'a> {
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let definition = name.rsplit('/').next().unwrap_or_default();
            let root = self.root;
            return self.value(&root["$defs"][definition], value, at);
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            let fits = |choice: &&Value| {
                let mut found = Vec::new();
                Check {
                    root: self.root,
                    found: &mut found,
                }
                .value(choice, value, at);
                found.is_empty()
            };
            if !choices.iter().any(|choice| fits(&choice)) {
                self.found.push(format!("{at}: fits no choice"));
            }
            return;
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        if !types.iter().any(|name| is_of(name, value)) {
            self.found
                .push(format!("{at}: not of type {}", types.join(" or ")));
        }
        if let Value::Object(fields) = value {
            self.object(schema, fields, at);
        }
        for (n, item) in value.as_array().into_iter().flatten().enumerate() {
            let schema = schema["prefixItems"].get(n).unwrap_or(&schema["items"]);
            self.value(schema, item, &format!("{at}[{n}]"));
        }
    }

    fn object(&mut self, schema: &Value, fields: &serde_json::Map<String, Value>, at: &str) {
        for name in schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if !fields.contains_key(name) {
                self.found.push(format!("{at}.{name}: missing"));
            }
        }
        for (name, value) in fields {
            let at = format!("{at}.{name}");
            match schema["properties"].get(name) {
                Some(schema) => self.value(schema, value, &at),
                None => self.found.push(format!("{at}: not in the schema")),
            }
        }
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::mistakes;

    #[test]
    fn mistakes_are_named_by_their_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "array", "items": {"$ref": "#/$defs/B"}},
                "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["a", "b"],
            "$defs": {"B": {"type": ["number", "null"]}},
        });
        assert_eq!(
            mistakes(&schema, &json!({"a": 1, "b": [0.5, null], "c": null})),
            Vec::<String>::new()
        );
        assert_eq!(
            mistakes(&schema, &json!({"b": ["x"], "c": 1, "d": 2})),
            [
                "$.a: missing",
                "$.b[0]: not of type number or null",
                "$.c: fits no choice",
                "$.d: not in the schema"
            ]
        );
    }
}
