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
    let byte = |text: String| u8::from_str_radix(&text, 16).ok();
    let bytes: Vec<u8> = match digits.len() {
        3 => digits
            .chars()
            .filter_map(|digit| byte(format!("{digit}{digit}")))
            .collect(),
        6 => (0..3)
            .filter_map(|n| byte(digits[n * 2..n * 2 + 2].to_owned()))
            .collect(),
        _ => return None,
    };
    // Relative luminance as WCAG 2.2 defines it.
    let linear = |byte: &u8| {
        let value = f64::from(*byte) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    };
    let light: Vec<f64> = bytes.iter().map(linear).collect();
    Some((
        name,
        0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2],
    ))
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
                let known = |name: &&&str| colours.contains_key(**name);
                let Some(front) = colours.get(text) else {
                    continue;
                };
                for back in behind.iter().filter(known) {
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
    let of = |text: &str| named(("x", text)).unwrap().1;
    assert!((contrast(of("000"), of("ffffff")) - 21.0).abs() < 1e-9);
    assert!((contrast(of("777777"), of("fff")) - 4.48).abs() < 0.01);
}
