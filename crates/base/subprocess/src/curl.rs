//! curl's configuration, which it reads from standard input: other users of the host can see a
//! program's arguments, and addresses and logins are secrets.

/// Returns the configuration with these options (curl(1), `--config`).
#[must_use]
pub fn curl_config(options: &[(&str, &str)]) -> String {
    let lines = options.iter().map(|(name, value)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name} = \"{value}\"\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::curl_config;

    #[test]
    fn value_with_quotes_stays_one_option() {
        let config = curl_config(&[("url", "http://a/?\"\nuser = x"), ("user", r"a:b\")]);
        assert_eq!(
            config,
            "url = \"http://a/?\\\"\\nuser = x\"\nuser = \"a:b\\\\\"\n"
        );
    }
}
