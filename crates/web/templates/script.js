// What pages can do more with a script: filter rows while typing, `/` goes to the filter, Escape leaves it.
"use strict";
const field = document.querySelector("input[name=filter]");
const rows = Array.from(document.querySelectorAll("tr[data-n]"));
if (field && rows.length) {
  const status = document.querySelector("[role=status]");
  const before = status ? status.textContent : "";
  const apply = () => {
    const words = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.n.includes(words);
    for (const head of document.querySelectorAll("tr.sub")) {
      let next = head.nextElementSibling, seen = false;
      for (; next && !next.matches("tr.sub"); next = next.nextElementSibling) seen = seen || !next.hidden;
      head.hidden = !seen;
    }
    const shown = rows.filter((row) => !row.hidden).length;
    if (status) status.textContent = shown === rows.length ? before : shown + " of the " + rows.length + " rows here fit; Enter asks for all.";
  };
  field.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; apply(); field.blur(); }
  });
}
for (const pick of document.querySelectorAll("select[data-now]")) {
  // With the arrow keys one passes by what one does not want: only a choice that the list was left with counts.
  let keyed = false;
  pick.addEventListener("keydown", (event) => { keyed = event.key !== "Enter"; });
  pick.addEventListener("pointerdown", () => { keyed = false; });
  pick.addEventListener("change", () => { if (!keyed) pick.form.submit(); });
}
