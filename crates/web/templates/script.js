// What pages can do more with a script: filter rows while typing, `/` goes to the filter, Escape leaves it.
"use strict";
const field = document.querySelector("input[name=filter]");
const rows = Array.from(document.querySelectorAll("tr[data-n]"));
if (field && rows.length) {
  const apply = () => {
    const words = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.dataset.n.includes(words);
    for (const head of document.querySelectorAll("tr.sub")) {
      let next = head.nextElementSibling, seen = false;
      for (; next && !next.matches("tr.sub"); next = next.nextElementSibling) seen = seen || !next.hidden;
      head.hidden = !seen;
    }
  };
  field.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; apply(); field.blur(); }
  });
}
for (const pick of document.querySelectorAll("select[data-now]")) {
  pick.addEventListener("change", () => pick.form.submit());
}
