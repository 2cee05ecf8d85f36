// The controls of reports and of the dashboard: sort and filter rows, choose kernels, enlarge boxes of a flame graph.
// A page has all its content without this script.
"use strict";
(() => {
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const make = (tag, attributes, ...inner) => {
  const made = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...inner);
  return made;
};

// An item is what a filter shows or hides: a row with the remark below it, or an alert.
const items = [];
const tables = all("main table").map((table) => {
  const bodies = [...table.tBodies].map((body) => ({body, rows: [...body.rows]}));
  const own = [], heads = [];
  for (const {rows} of bodies) {
    for (const row of rows) {
      if (row.matches(".group, .sub")) heads.push(row);
      else if (row.matches(".about") && own.length) own.at(-1).nodes.push(row);
      else if (!row.matches(".total")) own.push({nodes: [row], head: heads.at(-1)});
    }
  }
  return {table, bodies, heads, items: own, column: -1, way: 0};
});
const alerts = all("section.alert");
if (alerts.length) items.push(...alerts.map((alert) => ({nodes: [alert]})));
else tables.forEach((table) => items.push(...table.items));
const asked = document.querySelector("input[name=filter]");
// The form of the dashboard's first page is about its grid only.
if (asked) items.splice(0, items.length, ...items.filter((item) => item.nodes[0].dataset.n));
const words = (item) => item.words ??= (item.nodes[0].dataset.n ?? item.nodes.map((node) => node.textContent).join(" ")).toLowerCase();

// A head of a group stays where a row below it does, as long as rows are in groups.
const settle = () => tables.forEach(({heads, items, way}) => heads.forEach((head) => {
  head.hidden = way !== 0 || !items.some((item) => item.head === head && !item.nodes[0].hidden);
}));

const NUMBER = /^[-+]?\d+(\.\d+)?(e[-+]?\d+)?(?=$|\s|%|\.\.|[^\d.,:-])/i;
const collator = new Intl.Collator("en", {numeric: true});
// A kernel's column is sorted by effect, others by what they show. Cells without a value come last.
const keyed = (list, at, byEffect) => {
  const texts = list.map((item) => {
    const cell = item.nodes[0].cells[at];
    const text = (byEffect ? cell?.querySelector("small") : cell)?.textContent.trim() ?? "";
    return text.replace(/^[-\u2013\u00b7]$|^>(?=\d)/, "");
  });
  const numbers = texts.map((text) => (NUMBER.test(text) ? parseFloat(text) : null));
  const filled = texts.filter(Boolean).length;
  return numbers.filter((number) => number !== null).length * 2 > filled ? numbers : texts.map((text) => text || null);
};
const sort = (state, at, byEffect) => {
  state.way = state.column === at ? (state.way + 1) % 3 : 1;
  state.column = at;
  const keys = keyed(state.items, at, byEffect);
  const order = state.items.map((item, n) => ({item, key: keys[n]}));
  const by = (a, b) => (typeof a === "number" ? a - b : collator.compare(a, b)) * (state.way === 2 ? -1 : 1);
  order.sort((a, b) => (a.key === null) - (b.key === null) || (a.key === null ? 0 : by(a.key, b.key)));
  if (state.way === 0) state.bodies.forEach(({body, rows}) => body.append(...rows));
  else state.bodies[0].body.prepend(...order.flatMap(({item}) => item.nodes));
  all("thead th", state.table).forEach((head, n) => {
    if (head.querySelector("button.sort")) head.setAttribute("aria-sort", n !== at ? "none" : ["none", "ascending", "descending"][state.way]);
  });
  settle();
};
for (const state of tables) {
  const heads = all("thead:not(.hidden) th", state.table);
  if (state.items.length < 3) continue;
  heads.forEach((head, at) => {
    const isFree = (node) => node.nodeType === 3 || !(node.matches(".hidden, .axis, a") || node.querySelector("a"));
    const nodes = [...head.childNodes], end = nodes.findIndex((node) => !isFree(node));
    const moved = end < 0 ? nodes : nodes.slice(0, end);
    const text = moved.map((node) => node.textContent).join("").trim();
    if (!text && (at > 0 || nodes.length)) return;
    const button = make("button", {type: "button", class: "sort", title: "Sort"}, ...(text ? moved : ["name"]));
    head.prepend(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const changes = state.items.some((item) => item.nodes[0].cells[at]?.querySelector("small:not(:empty)"));
      sort(state, at, "k" in head.dataset && changes);
    });
  });
}

const tools = make("div", {class: "tools", role: "group", "aria-label": "Rows and kernels"});
let field = asked, status = document.querySelector("[role=status]");
// Rows that are folded away are filtered, but not counted.
const counted = new Set(items.filter((item) => !item.nodes[0].closest("details")));
if (!asked && counted.size >= 8) {
  field = make("input", {type: "search", name: "filter", placeholder: "any word of a row", autocomplete: "off"});
  status = make("span", {role: "status"});
  tools.append(make("label", {}, "Filter", field), status);
}
if (field && items.length) {
  const before = status ? status.textContent : "";
  const apply = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item) => wanted.every((word) => words(item).includes(word));
    let shown = 0;
    for (const item of items) {
      const isShown = fits(item);
      shown += isShown && counted.has(item);
      item.nodes.forEach((node) => { node.hidden = !isShown; });
    }
    settle();
    const some = asked ? shown + " of the " + counted.size + " rows here fit; Enter asks for all." : shown + " of " + counted.size;
    if (status) status.textContent = shown === counted.size ? before : some;
  };
  field.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; apply(); field.blur(); }
  });
}

// Columns of a kernel go from its head to the next kernel's.
const kernels = new Map();
for (const {table} of tables) {
  const heads = all("thead th", table);
  const starts = heads.flatMap((head, at) => ("k" in head.dataset ? [at] : []));
  starts.forEach((from, n) => {
    const to = starts[n + 1] ?? heads.length, name = heads[from].textContent.trim();
    if (!kernels.has(name)) kernels.set(name, []);
    kernels.get(name).push({table, from, to});
  });
}
if (kernels.size > 1) {
  const boxes = [...kernels].map(([name, places]) => {
    const box = make("input", {type: "checkbox", value: name});
    box.checked = true;
    box.addEventListener("change", () => {
      for (const {table, from, to} of places) {
        for (const row of table.rows) {
          if (!row.matches(".group, .about, .sub")) [...row.cells].slice(from, to).forEach((cell) => { cell.hidden = !box.checked; });
        }
      }
    });
    return make("label", {}, box, name);
  });
  tools.append(make("fieldset", {class: "kernels"}, make("legend", {}, "Kernels"), ...boxes));
}
const first = alerts[0] ?? all("main .wide").find((wide) => wide.querySelector("table") && !wide.closest("details"));
if (tools.childNodes.length && first) first.before(tools);

for (const pick of all("select[data-now]")) {
  // The arrow keys pass by choices that are not wanted: only the one that the list is left with counts.
  let keyed = false;
  pick.addEventListener("keydown", (event) => { keyed = event.key !== "Enter"; });
  pick.addEventListener("pointerdown", () => { keyed = false; });
  pick.addEventListener("change", () => { if (!keyed) pick.form.submit(); });
}

// Enlarges the box that is clicked to the whole width, with what is below it; what is above it fills the width as well.
all("svg.flame").forEach((svg) => {
  const boxes = all("g", svg).map((g) => {
    const r = g.querySelector("rect");
    return {g, r, x: +r.getAttribute("x"), w: +r.getAttribute("width"), y: +r.getAttribute("y")};
  });
  const show = (to) => boxes.forEach((b) => {
    const above = b.y < to.y, x0 = Math.max(b.x, to.x), x1 = Math.min(b.x + b.w, to.x + to.w);
    const x = (x0 - to.x) * 1000 / to.w, w = (x1 - x0) * 1000 / to.w;
    b.g.style.display = w < (above ? 500 : .5) ? "none" : "";
    b.r.setAttribute("x", x); b.r.setAttribute("width", Math.max(w, 0));
    let t = b.g.querySelector("text");
    if (!t) {
      t = document.createElementNS(svg.namespaceURI, "text");
      t.setAttribute("dx", 3); t.setAttribute("y", b.y + 12); b.g.append(t);
    }
    const name = b.g.dataset.n, room = Math.floor(w / 6.7);
    t.setAttribute("x", x); t.textContent = name.length <= room ? name : room < 4 ? "" : name.slice(0, room - 1) + "\u2026";
  });
  boxes.forEach((b) => b.g.addEventListener("click", () => show(b)));
});
})();
