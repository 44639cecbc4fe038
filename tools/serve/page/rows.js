"use strict";
// The rows that were loaded, and the table of those in sight.

const MOST_CHARACTERS = 256e6; // rows beyond that are counted, and not kept
const HIGHEST = 8e6; // pixels that browsers place exactly at twice the size

const rows = {
  names: [],
  blocks: [],
  kept: 0,
  count: 0,
  characters: 0,
  numeric: [],

  clear() {
    Object.assign(this, { names: [], blocks: [], kept: 0, count: 0,
                          characters: 0, numeric: [] });
  },

  add(block) {
    this.count += block.starts.length;
    if (this.characters + block.text.length > MOST_CHARACTERS) return;
    block.first = this.kept;
    block.starts = Uint32Array.from(block.starts);
    this.blocks.push(block);
    this.kept += block.starts.length;
    this.characters += block.text.length;
    plot.take(block);
  },

  find(row) {
    let low = 0;
    let high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].first <= row) low = middle;
      else high = middle - 1;
    }
    return this.blocks[low];
  },

  record(block, i) {
    const end = i + 1 < block.starts.length ? block.starts[i + 1]
                                            : block.text.length;
    return parseRecord(block.text.slice(block.starts[i], end - 1));
  },

  get(row) {
    const block = this.find(row);
    return this.record(block, row - block.first);
  },
};

// Which rows are shown, and in which order: as they came, or as a worker has
// picked them.
const view = {
  clear() {
    Object.assign(this, { order: null, of: 0, column: -1, descending: false });
    byId("filter").value = "";
    byId("shown").textContent = "";
    current.order++;
  },

  count() {
    return this.order ? this.order.length : rows.kept;
  },

  row(at) {
    return this.order ? this.order[at] : at;
  },

  // A column is sorted upwards, then downwards, then not.
  sort(column) {
    if (column !== this.column)
      Object.assign(this, { column, descending: false });
    else if (!this.descending)
      this.descending = true;
    else
      Object.assign(this, { column: -1, descending: false });
    return this.apply();
  },

  isPlain() {
    return this.column < 0 && byId("filter").value === "";
  },

  async apply() {
    const filter = byId("filter").value;
    table.markNames();
    if (this.isPlain()) {
      current.order++;
      this.order = null;
    } else {
      byId("shown").textContent = "Working.";
      const kept = rows.kept;
      const result = await work({ kind: "order", filter, column: this.column,
                                  within: Number(byId("within").value),
                                  descending: this.descending });
      if (result === null) return;
      Object.assign(this, { order: result.order, of: kept });
    }
    this.state();
    byId("scroller").scrollTop = 0;
    table.drawn = "";
    draw();
  },

  state() {
    byId("shown").textContent = !this.order ? ""
      : this.order.length < this.of
        ? `${format(this.order.length)} of ${amount(this.of, "row")} fit.`
        : this.of < rows.kept
          ? `The first ${format(this.of)} rows are sorted.` : "";
  },
};

// ---- the table -------------------------------------------------------------

// A value as one line: each line break is shown as a mark, so all rows are of
// one height.
function oneLine(text) {
  const cut = text.length > 500 ? text.slice(0, 500) + "…" : text;
  return cut.replace(/\r\n|[\n\v\f\r\x85\u2028\u2029]/g, "↵");
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const table = {
  drawn: "",
  row: 22, // pixels, until a row is there to be measured

  setNames() {
    const line = document.createElement("tr");
    line.append(element("th", "#"));
    rows.names.forEach((name, column) => {
      const head = element("th", "");
      const button = element("button", oneLine(name));
      button.type = "button";
      button.title = "Sort the loaded rows";
      button.addEventListener("click", () => view.sort(column));
      head.append(button);
      line.append(head);
    });
    for (const head of line.cells) head.scope = "col";
    byId("names").replaceChildren(line);
    this.drawn = "";
  },

  markNumbers() {
    const line = byId("names").rows[0];
    rows.numeric.forEach((is, column) =>
      line.cells[column + 1].classList.toggle("number", is));
  },

  // What is sorted is told to screen readers, too.
  markNames() {
    const line = byId("names").rows[0];
    if (!line) return;
    [...line.cells].forEach((head, i) => {
      if (i === 0 || i - 1 !== view.column) head.removeAttribute("aria-sort");
      else head.setAttribute("aria-sort", view.descending ? "descending"
                                                          : "ascending");
    });
  },

  line(at) {
    const row = view.row(at);
    const line = document.createElement("tr");
    line.setAttribute("aria-rowindex", String(at + 2));
    line.append(element("td", format(row + 1), "at"));
    rows.get(row).forEach((value, column) => line.append(
      value === null ? element("td", "null", "null")
        : element("td", oneLine(value),
                  rows.numeric[column] ? "number" : "")));
    return line;
  },

  // The height of a row depends on the zoom, the screen and the user's fonts.
  measure() {
    const body = byId("body");
    if (body.rows.length > 0)
      this.row = body.getBoundingClientRect().height / body.rows.length;
  },

  fill(first, last) {
    const drawn = first + " " + last;
    if (drawn === this.drawn) return;
    const isNew = this.drawn === "";
    const lines = [];
    this.drawn = drawn;
    for (let at = first; at < last; at++) lines.push(this.line(at));
    byId("body").replaceChildren(...lines);
    if (isNew) draw(); // with the height that its rows turn out to have
  },

  // The part that is scrolled by decides what is shown, to the pixel: the first
  // row may be covered by the names in part, the last one is whole at the end.
  draw() {
    const count = view.count();
    this.measure();
    const scroller = byId("scroller");
    const names = byId("names").getBoundingClientRect().height;
    const full = count * this.row;
    byId("table").setAttribute("aria-rowcount", String(count + 1));
    byId("height").style.height = Math.min(full, HIGHEST) + names + "px";
    const room = scroller.clientHeight - names;
    const way = scroller.scrollHeight - scroller.clientHeight;
    const isEnd = scroller.scrollTop > way - 1; // these are whole numbers
    const above = Math.max(0, full - room) *
      (isEnd ? 1 : scroller.scrollTop / way);
    const first = Math.floor(above / this.row);
    const last = Math.min(count, Math.ceil((above + room) / this.row));
    this.fill(first, last);
    byId("table").style.top =
      scroller.scrollTop - (above - first * this.row) + "px";
  },
};
