"use strict";
(() => {
  const folded = [...document.querySelectorAll("details.more")];
  let wasOpen = [];
  addEventListener("beforeprint", () => {
    wasOpen = folded.map((part) => part.open);
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => { folded.forEach((part, index) => { part.open = wasOpen[index]; }); });

  const source = document.getElementById("conflict-data");
  if (!source) return;
  const PAGE = 25, CUT = 1000, CELL = 300, TITLE = 240, PRINTED = 50, PAIRS = 200;
  const data = JSON.parse(source.textContent);
  const byId = (id) => document.getElementById(id);
  const [list, status, search, pair, previous, next] =
    ["conflict-list", "conflict-status", "conflict-search", "conflict-pair", "conflict-previous", "conflict-next"].map(byId);
  const number = new Intl.NumberFormat("en");
  let found = data.groups, page = 0, haystacks = null;

  // Everything from the audited file is written as text: by `text`, never as markup.
  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") node.textContent = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  const isolated = (text) => make("bdi", { text });
  const whole = (value) => (Array.isArray(value) ? value[0] : value);
  const clip = (text, most) => (text.length > most ? text.slice(0, most) + "…" : text);

  function textBlock(value, most = CUT) {
    const text = whole(value), lost = Array.isArray(value) ? value[1] : 0;
    const block = make("div", { class: "text", dir: "auto" });
    const box = make("div", {}, block);
    if (text === "") block.append(make("span", { class: "none", text: "(empty)" }));
    else block.textContent = clip(text, most);
    if (text.length > most) {
      const show = `show all ${number.format(text.length)} characters`;
      const button = make("button", { type: "button", class: "quiet", "aria-expanded": "false", text: show });
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        button.textContent = open ? "show less" : show;
        block.textContent = open ? text : clip(text, most);
      });
      box.append(button);
    }
    if (lost) {
      box.append(make("p", { class: "fine", text:
        `The text has ${number.format(lost)} characters; the file of --conflicts holds all of it.` }));
    }
    return box;
  }

  function rowTable(rows) {
    const names = [...new Set(rows.flatMap(([, , details]) => details.map(([name]) => name)))];
    const head = make("tr", {}, make("th", { scope: "col", class: "n", text: "row" }),
      make("th", { scope: "col", text: "label" }),
      ...names.map((name) => make("th", { scope: "col" }, isolated(name))));
    const body = rows.map(([row, label, details]) => {
      const values = new Map(details);
      return make("tr", {}, make("td", { class: "n", text: number.format(row) }),
        make("td", {}, label === "" ? make("span", { class: "none", text: "(empty)" }) : isolated(label)),
        ...names.map((name) => {
          const value = values.get(name);
          return make("td", {}, value === null || value === undefined ? "–" : textBlock(value, CELL));
        }));
    });
    const table = make("table", { class: "rows" }, make("thead", {}, head), make("tbody", {}, ...body));
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "labels of this item" }, table);
  }

  function fill(card, group) {
    if (card.querySelector(".body")) return;
    const body = make("div", { class: "body" });
    for (const [name, value] of group.item) body.append(make("h3", {}, isolated(name)), textBlock(value));
    body.append(rowTable(group.rows));
    card.append(body);
  }

  function makeCard(group) {
    const title = clip(group.item.map(([, value]) => whole(value).slice(0, TITLE)).join(" · "), TITLE);
    const labels = group.labels.map(([label, count]) =>
      make("span", { class: "chip" }, isolated(label || "(empty)"), ` × ${number.format(count)}`));
    const card = make("details", {}, make("summary", {},
      make("span", { class: "title", dir: "auto" }, isolated(title || "(empty)")),
      make("span", { class: "labels" }, ...labels),
      make("span", { class: "di", text: `d ${group.d}` })));
    card.addEventListener("toggle", () => { if (card.open) fill(card, group); });
    return make("li", { class: "conflict" }, card);
  }

  function show(groups, from, open = false) {
    list.replaceChildren(...groups.map(makeCard));
    list.start = from + 1;
    if (!open) return;
    list.querySelectorAll("details").forEach((card, index) => { fill(card, groups[index]); card.open = true; });
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(Math.max(page, 0), pages - 1);
    const from = page * PAGE, to = Math.min(from + PAGE, found.length);
    show(found.slice(from, to), from);
    const all = data.groups.length;
    const filtered = found.length < all ? ` found among ${number.format(all)}` : "";
    const range = found.length ? `${number.format(from + 1)}–${number.format(to)} of ${number.format(found.length)}` : "None";
    status.textContent = range + filtered;
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
  }

  function haystack(group) {
    const details = group.rows.flatMap(([, label, values]) => [label, ...values.map(([, value]) => whole(value) ?? "")]);
    return [...group.item.map(([, value]) => whole(value)), ...details].join("\n").toLowerCase();
  }

  function filter() {
    const query = search.value.trim().toLowerCase();
    const wanted = pair.value ? JSON.parse(pair.value) : null;
    if (query && !haystacks) haystacks = data.groups.map(haystack);
    found = data.groups.filter((group, index) => {
      if (wanted && !wanted.every((label) => group.labels.some(([name]) => name === label))) return false;
      return !query || haystacks[index].includes(query);
    });
    page = 0;
    draw();
  }

  function pairOptions() {
    const seen = new Map();
    for (const { labels } of data.groups) {
      const names = labels.slice(0, 20).map(([name]) => name).sort();
      names.forEach((one, index) => names.slice(index + 1).forEach((other) => {
        const key = JSON.stringify([one, other]);
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }));
    }
    const most = [...seen].sort((a, b) => b[1] - a[1]).slice(0, PAIRS);
    return most.map(([value, count]) => {
      const [one, other] = JSON.parse(value).map((name) => clip(name || "(empty)", 40));
      // Isolates (U+2068 … U+2069) keep a right-to-left name from turning the line around.
      return make("option", { value, text: `\u2068${one}\u2069 / \u2068${other}\u2069 (${number.format(count)})` });
    });
  }

  function turn(step) {
    page += step;
    draw();
    byId("conflicts").scrollIntoView();
  }
  function unfold(open) {
    list.querySelectorAll("details").forEach((card) => { card.open = open; });
  }

  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  pair.append(...pairOptions());
  pair.addEventListener("change", filter);
  previous.addEventListener("click", () => turn(-1));
  next.addEventListener("click", () => turn(1));
  byId("conflict-expand").addEventListener("click", () => unfold(true));
  byId("conflict-collapse").addEventListener("click", () => unfold(false));

  addEventListener("beforeprint", () => {
    show(found.slice(0, PRINTED), 0, true);
    byId("conflict-printed").textContent =
      `${number.format(Math.min(PRINTED, found.length))} of ${number.format(found.length)} conflicts are printed.`;
  });
  addEventListener("afterprint", draw);

  byId("conflict-tools").hidden = false;
  byId("conflict-pager").hidden = false;
  draw();
})();
