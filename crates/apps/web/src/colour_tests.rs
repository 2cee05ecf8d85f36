//! Checks the pages' colours for sufficient contrast, without a browser.

use std::collections::BTreeMap;

/// Text and background colours, by name in the style sheets.
const PAIRS: [(&str, &[&str]); 6] = [
    (
        "ink",
        &["paper", "shade", "w", "ww", "b", "bb", "s", "f", "u"],
    ),
    ("faint", &["paper", "shade", "s"]),
    ("link", &["paper", "shade"]),
    ("worse", &["paper", "shade", "w"]),
    ("better", &["paper", "shade", "b"]),
    ("failed", &["paper", "shade", "f"]),
];

/// Colours of lines and areas with a meaning.
const SIGNS: [&str; 4] = ["worse", "better", "bar-w", "bar-b"];

/// Returns the colours of a style sheet, light and dark.
fn schemes(css: &str) -> [BTreeMap<&str, f64>; 2] {
    let (light, dark) = css.split_once("prefers-color-scheme: dark").unwrap();
    let dark = dark.split("\n}").next().unwrap();
    [light, dark].map(|part| {
        part.split("--")
            .filter_map(|text| text.split_once(": #"))
            .filter_map(named)
            .collect()
    })
}

fn named<'a>((name, rest): (&'a str, &str)) -> Option<(&'a str, f64)> {
    let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    let digits = match digits.len() {
        // Each digit counts twice.
        3 => digits.chars().flat_map(|digit| [digit; 2]).collect(),
        6 => digits,
        _ => return None,
    };
    let [_, red, green, blue] = u32::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    Some((
        name,
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue),
    ))
}

/// Returns the relative luminance of one colour as WCAG 2.2 defines it.
fn linear(byte: u8) -> f64 {
    let value = f64::from(byte) / 255.0;
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

fn contrast(one: f64, other: f64) -> f64 {
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_has_enough_contrast() {
    let sheets = [
        ("style.css", include_str!("../templates/style.css")),
        (
            "comparison.css",
            include_str!("../../../analysis/document/templates/comparison.css"),
        ),
    ];
    for (sheet, css) in sheets {
        for (scheme, colours) in ["light", "dark"].into_iter().zip(schemes(css)) {
            let mut held = 0;
            for (text, behind) in PAIRS {
                let Some(front) = colours.get(text) else {
                    continue;
                };
                for back in behind.iter().filter(|name| colours.contains_key(**name)) {
                    let ratio = contrast(*front, colours[back]);
                    assert!(
                        ratio >= 4.5,
                        "{sheet}, {scheme}: {text} on {back} is {ratio:.2} to 1"
                    );
                    held += 1;
                }
            }
            for sign in SIGNS.iter().filter(|sign| colours.contains_key(**sign)) {
                let ratio = contrast(colours[sign], colours["paper"]);
                assert!(
                    ratio >= 3.0,
                    "{sheet}, {scheme}: {sign} on paper is {ratio:.2} to 1"
                );
            }
            assert!(held >= 5, "{sheet}, {scheme}: {held} pairs");
        }
    }
}

#[test]
fn contrast_follows_wcag() {
    for (one, other, expected, error) in
        [("000", "ffffff", 21.0, 1e-9), ("777777", "fff", 4.48, 0.01)]
    {
        let [one, other] = [one, other].map(|text| named(("x", text)).unwrap().1);
        assert!((contrast(one, other) - expected).abs() < error);
    }
}
