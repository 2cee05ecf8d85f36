//! The pages in a real browser; checks contrast, labels, keyboard, and use without scripts.

use super::browser::Browser;
use crate::Limits;
use crate::testing::Lab;

const WIDE: (u32, u32) = (1400, 900);
const NARROW: (u32, u32) = (400, 800);

/// Serves a lab and opens its first page; `None` without a browser.
fn open_lab(lab: &Lab) -> Option<(Browser, String)> {
    let mut browser = Browser::start()?;
    let top = format!("http://{}/", lab.serve(Limits::default()));
    browser.open(&top);
    Some((browser, top))
}

/// One page of each kind, by its path.
const PAGES: [(&str, &str); 7] = [
    ("first", ""),
    ("series", "s/aa0000000000/cloud-amd64/fault-anon.html"),
    ("comparison", "c/aa0000000000/6.1.192/6.12.117.html"),
    ("alerts", "alerts.html"),
    ("runs", "runs.html"),
    ("lab", "lab.html"),
    ("run", "r/0000000000000001/index.html"),
];

#[test]
fn three_clicks_lead_to_a_regression() {
    let lab = Lab::usual();
    let Some((mut browser, _)) = open_lab(&lab) else {
        return;
    };
    assert_eq!(browser.text("h1"), "6.12.117 against 6.1.192");
    assert!(browser.text(".counts .worse").contains("2 worse"));
    let card = browser.text(".card:has(a[href$='fault-anon.html'])");
    for text in [
        "First seen in 6.12.100",
        "fault-anon",
        "2 of 2 machines",
        "-4.55%",
        "not in 6.1.192",
    ] {
        assert!(card.contains(text), "{text}: {card}");
    }
    browser.click(".card a[href$='fault-anon.html']");
    browser.loaded();
    assert!(browser.text("h1").starts_with("fault-anon"));
    assert!(browser.text(".change").contains("▼ -4.55% since 6.12.100"));
    browser.click(".change a");
    browser.loaded();
    assert!(browser.text("h1").contains("6.12.100"));
    assert!(browser.text("table.drawn").contains("fault-anon"));
    browser.click("main a[href$='index.html']");
    browser.loaded();
    assert_eq!(browser.text("h1"), "6.12.117 against 6.1.192");
}

#[test]
fn cell_links_to_its_series() {
    let lab = Lab::usual();
    let Some((mut browser, _)) = open_lab(&lab) else {
        return;
    };
    assert_eq!(
        browser.text("tr[data-n^='fault-anon'] td.worse a"),
        "0.96 ▼"
    );
    browser.click("tr[data-n^='fault-anon'] td.worse a");
    browser.loaded();
    let rows = browser
        .value("[...document.querySelectorAll('tbody tr')].map(r => r.innerText.split('\\t').slice(1, 4).join(' '))");
    let rows: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row.as_str())
        .collect();
    let expected = [
        "6.1.170 330.00 ",
        "6.1.192 330.00 0.00%",
        "6.12.100 345.00 -4.55%",
        "6.12.107 345.00 0.00%",
        "6.12.117 345.00 0.00%",
    ];
    assert_eq!(rows, expected);
    let text = browser
        .value("[...document.querySelectorAll('svg.plot circle title')].map(t => t.textContent)");
    assert_eq!(text[2], "6.12.100: 345.00");
}

#[test]
fn filter_works_live_and_by_keyboard() {
    let lab = Lab::usual();
    let Some((mut browser, top)) = open_lab(&lab) else {
        return;
    };
    let rows = "[...document.querySelectorAll('tr[data-n]')].filter(r => !r.hidden).map(r => r.cells[0].innerText).join()";
    assert_eq!(browser.value(rows), "fault-anon,getppid,switch-yield");
    browser.write("/");
    browser.write("fault");
    assert_eq!(browser.value("document.activeElement.name"), "filter");
    assert_eq!(browser.value(rows), "fault-anon");
    assert!(browser.text("[role=status]").contains("1 of the 3 rows"));
    browser.key("Escape", 27);
    assert_eq!(browser.value(rows), "fault-anon,getppid,switch-yield");
    browser.open(&format!("{top}?filter=fualt"));
    assert!(
        browser
            .text("[role=status]")
            .contains("did you mean fault?")
    );
    // Tab by tab from the top: past the header through the form into the cards and the table, in
    // the order of the page.
    browser.open(&top);
    let mut met = Vec::new();
    for _ in 0..40 {
        browser.key("Tab", 9);
        let at = browser
            .value("(e => e.innerText?.trim() || e.name || e.className)(document.activeElement)");
        met.push(
            at.as_str()
                .unwrap_or_default()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    let place = |text: &str| {
        met.iter()
            .position(|at| at == text)
            .unwrap_or_else(|| panic!("{text} is not in {met:?}"))
    };
    let order = [
        "Skip to content",
        "Overview",
        "▼ 2 worse",
        "filter",
        "Show",
        "All of this alert",
        "0.96 ▼",
    ]
    .map(place);
    assert!(order.is_sorted(), "{met:?}");
    assert_eq!(met[0], "Skip to content");
    assert_ne!(
        browser.value("getComputedStyle(document.activeElement).outlineStyle"),
        "none"
    );
}

#[test]
fn pages_are_complete_without_scripts_and_printed() {
    let lab = Lab::usual();
    let Some((mut browser, top)) = open_lab(&lab) else {
        return;
    };
    browser.without_scripts();
    browser.open(&format!("{top}?base=6.1.170&target=6.1.192&show=all"));
    assert_eq!(browser.text("h1"), "6.1.192 against 6.1.170");
    assert!(browser.text("table.grid").contains("getppid"));
    browser.print();
    browser.open(&top);
    browser.picture("first-print");
    assert_eq!(
        browser.value("getComputedStyle(document.querySelector('header')).display"),
        "none"
    );
    assert!(browser.text("table.grid").contains("getppid"));
}

/// Finds text with too little contrast: less than 4.5 to 1, or 3 to 1 for large text (WCAG 2.2,
/// 1.4.3).
const PALE: &str = r"(() => {
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = (c) => { const l = c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0.5) return c; } return rgb(getComputedStyle(document.documentElement).backgroundColor); };
  const pale = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.textContent.trim() || !e.getClientRects().length || /SCRIPT|STYLE|TITLE|OPTION/i.test(e.tagName)) continue;
    const front = e instanceof SVGElement ? rgb(style.fill) : rgb(style.color);
    const [a, b] = [light(front), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 ? 3 : 4.5)) pale.add(e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + ratio.toFixed(2));
  }
  return [...pale];
})()";

/// Finds elements without an accessible name, and headings out of order.
const NAMELESS: &str = r"(() => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  if (!document.documentElement.lang) wrong.push('no language');
  if (!document.title) wrong.push('no title');
  if (all('h1').length !== 1) wrong.push(all('h1').length + ' first headings');
  if (all('main').length !== 1) wrong.push('no main part');
  for (const e of all('input, select, textarea')) if (!e.labels.length && !e.ariaLabel) wrong.push('no label: ' + e.outerHTML);
  for (const e of all('a[href], button')) if (!e.textContent.trim() && !e.ariaLabel) wrong.push('no words: ' + e.outerHTML);
  for (const e of all('svg')) if (!e.closest('[aria-hidden]') && !e.getAttribute('aria-label')) wrong.push('no words: ' + e.outerHTML.slice(0, 80));
  for (const e of all('td.c, td.verdict')) if (!/[▼▲=?○✖·BWSUbw~!-]/.test(e.textContent)) wrong.push('colour only: ' + e.outerHTML.slice(0, 80));
  for (const e of all('table')) if (!e.querySelector('th')) wrong.push('a table without heads');
  let last = 1;
  for (const e of all('h1, h2, h3, h4')) { const level = +e.tagName[1]; if (level > last + 1) wrong.push('skips to ' + e.outerHTML); last = level; }
  const ids = all('[id]').map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push('two of ' + id);
  return wrong;
})()";

#[test]
fn every_page_is_accessible_in_each_layout() {
    let lab = Lab::usual();
    lab.queue_jobs();
    let Some((mut browser, top)) = open_lab(&lab) else {
        return;
    };
    for (scheme, size) in [
        ("light", WIDE),
        ("dark", WIDE),
        ("light", NARROW),
        ("dark", NARROW),
    ] {
        browser.show(size.0, size.1, scheme);
        for (name, path) in PAGES {
            browser.open(&format!("{top}{path}"));
            let shown = format!("{name}-{scheme}-{}", size.0);
            browser.picture(&shown);
            assert_eq!(
                browser.value(PALE),
                serde_json::json!([]),
                "{shown}: text that is too pale"
            );
            assert_eq!(browser.value(NAMELESS), serde_json::json!([]), "{shown}");
            let width = browser
                .value("document.documentElement.scrollWidth")
                .as_u64()
                .unwrap();
            assert!(width <= u64::from(size.0), "{shown}: {width} pixels wide");
            let is_dark = browser.value("getComputedStyle(document.body).backgroundColor")
                != "rgb(255, 255, 255)";
            assert_eq!(is_dark, scheme == "dark", "{shown}");
        }
    }
}

/// The rows whose verdict begins right of the window.
const BEHIND: &str = r"[...document.querySelectorAll('tr')]
  .map((row) => row.querySelector('td.verdict, td.c, td.worse, td.better, td.unclear, td.same'))
  .filter((cell) => cell && cell.offsetParent && cell.getBoundingClientRect().right > innerWidth + 1)
  .map((cell) => cell.parentElement.innerText.slice(0, 80))";

#[test]
fn verdicts_are_visible_on_narrow_screens() {
    let lab = Lab::usual();
    let Some((mut browser, top)) = open_lab(&lab) else {
        return;
    };
    browser.show(NARROW.0, NARROW.1, "light");
    for (name, path) in PAGES {
        browser.open(&format!("{top}{path}"));
        assert_eq!(browser.value(BEHIND), serde_json::json!([]), "{name}");
    }
}

#[test]
fn hostile_names_do_nothing_in_a_browser() {
    let lab = Lab::hostile();
    let Some((mut browser, top)) = open_lab(&lab) else {
        return;
    };
    for path in [
        "",
        "alerts.html",
        "runs.html",
        "?filter=%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        // A dialog would block the page, and the next answer would not come.
        browser.open(&format!("{top}{path}"));
        let scripts =
            browser.value("[...document.scripts].map(s => new URL(s.src).pathname).join()");
        assert_eq!(scripts, "/script.js", "{path}");
        assert_eq!(
            browser.value("document.querySelectorAll('img, [onmouseover], [onerror]').length"),
            0,
            "{path}"
        );
    }
}
