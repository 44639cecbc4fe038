"use strict";
// The page of `uvarrow serve`. Rows come as CSV and are kept as text: a block
// for each part that arrived, with the places where its rows begin. Only rows
// that can be seen are parsed and become elements, so a million is no burden.
// What the server sends is written by textContent alone, never as HTML.

const MOST_CHARACTERS = 256e6; // rows beyond that are counted, and not kept
const HIGHEST = 8e6; // pixels that browsers place exactly at twice the size
const BUCKETS = 512; // of the plot

const byId = (id) => document.getElementById(id);
const format = (number) => Math.round(number).toLocaleString("en");

// ---- CSV -------------------------------------------------------------------

// The fields of one record. A field that is not quoted and empty is a null.
function parseRecord(text) {
  const fields = [];
  let at = 0;
  for (;;) {
    let end;
    if (text[at] === '"') {
      let value = "";
      for (at++; ; at = end + 2) {
        end = text.indexOf('"', at);
        if (end < 0) end = text.length;
        value += text.slice(at, end);
        if (text[end + 1] !== '"') break;
        value += '"';
      }
      fields.push(value);
      end++;
    } else {
      end = text.indexOf(",", at);
      if (end < 0) end = text.length;
      fields.push(end > at ? text.slice(at, end) : null);
    }
    if (end >= text.length) return fields;
    at = end + 1;
  }
}

// Splits text into records, which may have line breaks inside of quotes.
class Records {
  constructor() {
    this.rest = "";
    this.looked = 0; // characters of `rest` that were looked at
    this.quoted = false; // behind these
  }

  // Returns the text of whole records, and where each begins.
  add(text) {
    const all = this.rest + text;
    const starts = [0];
    let quote = all.indexOf('"', this.looked); // looked for once, not per line
    for (let at = this.looked; at < all.length; at++) {
      if (this.quoted) {
        at = all.indexOf('"', at);
        if (at < 0) break;
        this.quoted = false;
        quote = all.indexOf('"', at + 1);
        continue;
      }
      const line = all.indexOf("\n", at);
      if (quote >= 0 && (line < 0 || quote < line)) {
        this.quoted = true;
        at = quote;
      } else if (line >= 0) {
        starts.push(line + 1);
        at = line;
      } else {
        break;
      }
    }
    const end = starts.pop();
    this.rest = all.slice(end);
    this.looked = this.rest.length;
    return { text: all.slice(0, end), starts };
  }
}

// ---- rows ------------------------------------------------------------------

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

// ---- the table -------------------------------------------------------------

// A value as one line: each line break is shown as a mark, so all rows are of
// one height.
function oneLine(text) {
  const cut = text.length > 500 ? text.slice(0, 500) + "…" : text;
  return cut.replace(/\r\n|[\n\v\f\r\x85\u2028\u2029]/g, "↵");
}

const table = {
  drawn: "",
  row: 22, // pixels, until a row is there to be measured

  element(name, text, kind) {
    const element = document.createElement(name);
    element.textContent = text;
    if (kind) element.className = kind;
    return element;
  },

  setNames() {
    const line = document.createElement("tr");
    line.append(this.element("th", "#"));
    for (const name of rows.names)
      line.append(this.element("th", oneLine(name)));
    byId("names").replaceChildren(line);
    this.drawn = "";
  },

  line(at) {
    const line = document.createElement("tr");
    line.append(this.element("td", format(at + 1), "at"));
    rows.get(at).forEach((value, column) => line.append(
      value === null ? this.element("td", "null", "null")
        : this.element("td", oneLine(value),
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
    this.measure();
    const scroller = byId("scroller");
    const names = byId("names").getBoundingClientRect().height;
    const full = rows.kept * this.row;
    byId("height").style.height = Math.min(full, HIGHEST) + names + "px";
    const room = scroller.clientHeight - names;
    const way = scroller.scrollHeight - scroller.clientHeight;
    const isEnd = scroller.scrollTop > way - 1; // these are whole numbers
    const above = Math.max(0, full - room) *
      (isEnd ? 1 : scroller.scrollTop / way);
    const first = Math.floor(above / this.row);
    const last = Math.min(rows.kept, Math.ceil((above + room) / this.row));
    this.fill(first, last);
    byId("table").style.top =
      scroller.scrollTop - (above - first * this.row) + "px";
  },
};

// ---- the plot --------------------------------------------------------------

// Each bucket has as many rows as any other: 1 at first, twice as many whenever
// all buckets are full.
const plot = {
  column: -1,
  work: 0,

  clear(column) {
    this.column = column;
    this.width = 1;
    this.rows = 0;
    this.low = new Float64Array(BUCKETS).fill(Infinity);
    this.high = new Float64Array(BUCKETS).fill(-Infinity);
    this.sum = new Float64Array(BUCKETS);
    this.counts = new Float64Array(BUCKETS);
    this.work++;
  },

  halve() {
    for (let i = 0; i < BUCKETS; i++) {
      const two = i < BUCKETS / 2;
      const a = 2 * i;
      const b = a + 1;
      this.low[i] = two ? Math.min(this.low[a], this.low[b]) : Infinity;
      this.high[i] = two ? Math.max(this.high[a], this.high[b]) : -Infinity;
      this.sum[i] = two ? this.sum[a] + this.sum[b] : 0;
      this.counts[i] = two ? this.counts[a] + this.counts[b] : 0;
    }
    this.width *= 2;
  },

  add(text) {
    if (this.rows === BUCKETS * this.width) this.halve();
    const bucket = Math.floor(this.rows++ / this.width);
    const value = text === null || text === "" ? NaN : Number(text);
    if (!Number.isFinite(value)) return;
    this.low[bucket] = Math.min(this.low[bucket], value);
    this.high[bucket] = Math.max(this.high[bucket], value);
    this.sum[bucket] += value;
    this.counts[bucket]++;
  },

  // A block that comes while older ones are still looked at is among these.
  take(block) {
    if (this.column < 0 || this.busy) return;
    for (let i = 0; i < block.starts.length; i++)
      this.add(rows.record(block, i)[this.column]);
  },

  async choose(column) {
    this.clear(column);
    const work = this.work;
    this.busy = true;
    for (let at = 0; at < rows.blocks.length; at++) {
      this.busy = false;
      this.take(rows.blocks[at]);
      this.busy = true;
      if (at % 8 === 7) {
        await new Promise((done) => setTimeout(done));
        if (work !== this.work) return;
      }
    }
    this.busy = false;
    draw();
  },

  // Beyond 2^53 a value was rounded.
  label(value) {
    return (Math.abs(value) > Number.MAX_SAFE_INTEGER ? "≈ " : "") + value;
  },

  draw() {
    const { context, width, height, style } = canvas("plot");
    const used = Math.ceil(this.rows / this.width) || 1;
    let low = Infinity;
    let high = -Infinity;
    for (let i = 0; i < used; i++) {
      low = Math.min(low, this.low[i]);
      high = Math.max(high, this.high[i]);
    }
    if (this.column < 0 || low > high) return;
    const y = (value) => height - 14 -
      (high > low ? (value - low) / (high - low) : 0.5) * (height - 28);
    for (let i = 0; i < used; i++) {
      if (this.counts[i] === 0) continue;
      const x = i / used * width;
      context.fillStyle = style("--bar");
      context.globalAlpha = 0.35;
      context.fillRect(x, y(this.high[i]), Math.max(1, width / used),
                       Math.max(1, y(this.low[i]) - y(this.high[i])));
      context.globalAlpha = 1;
      context.fillRect(x, y(this.sum[i] / this.counts[i]) - 1,
                       Math.max(1, width / used), 2);
    }
    context.fillStyle = style("--faint");
    context.fillText(this.label(high), 3, 10);
    context.fillText(this.label(low), 3, height - 3);
  },
};

function canvas(id) {
  const element = byId(id);
  const scale = window.devicePixelRatio || 1;
  const width = element.clientWidth;
  const height = element.clientHeight;
  element.width = width * scale;
  element.height = height * scale;
  const context = element.getContext("2d");
  context.scale(scale, scale);
  context.font = "10px system-ui, sans-serif";
  const colors = getComputedStyle(document.documentElement);
  return { context, width, height,
           style: (name) => colors.getPropertyValue(name) };
}

// ---- the timeline ----------------------------------------------------------

// Rows in each slice of time; slices become twice as long when there are many.
// Above them what the query does on the server, which states it when it is
// asked: a state lasts until the answer that has another one.
const timeline = {
  clear(now) {
    Object.assign(this, { begin: now, end: 0, slice: 50, counts: [], pauses: [],
                          first: 0, states: [[now, "waits"]] });
  },

  state(now, name) {
    if (this.states[this.states.length - 1][1] !== name)
      this.states.push([now, name]);
  },

  add(now, count) {
    if (!this.first && count > 0) this.first = now;
    let at = Math.floor((now - this.begin) / this.slice);
    while (at >= BUCKETS) {
      const half = [];
      for (let i = 0; i < this.counts.length; i += 2)
        half.push((this.counts[i] || 0) + (this.counts[i + 1] || 0));
      this.counts = half;
      this.slice *= 2;
      at >>= 1;
    }
    while (this.counts.length <= at) this.counts.push(0);
    this.counts[at] += count;
  },

  draw() {
    const { context, width, height, style } = canvas("timeline");
    if (!this.begin) return;
    const now = this.end || performance.now();
    const span = Math.max(now - this.begin, this.slice);
    const x = (time) => (time - this.begin) / span * width;
    const most = Math.max(1, ...this.counts);
    const top = 6;
    context.fillStyle = style("--pause");
    for (const [from, to] of this.pauses)
      context.fillRect(x(from), 0, Math.max(1, x(to || now) - x(from)), height);
    this.states.forEach(([from, name], i) => {
      const to = i + 1 < this.states.length ? this.states[i + 1][0] : now;
      context.fillStyle = style(name === "over" ? "--line" : "--" + name);
      context.fillRect(x(from), 0, Math.max(1, x(to) - x(from)), top);
    });
    context.fillStyle = style("--bar");
    this.counts.forEach((count, i) => {
      const tall = count / most * (height - 16 - top);
      context.fillRect(i * this.slice / span * width, height - tall,
                       Math.max(1, this.slice / span * width - 0.5), tall);
    });
    context.fillStyle = style("--faint");
    if (this.first) {
      context.fillText(format(most * 1000 / this.slice) + " a second", 3,
                       top + 10);
      context.fillText("first row " +
        ((this.first - this.begin) / 1000).toFixed(2) + " s",
        Math.min(x(this.first) + 3, width - 90), top + 21);
    }
    const length = (span / 1000).toFixed(1) + " s";
    context.fillText(length, width - context.measureText(length).width - 3,
                     top + 10);
  },
};

// ---- the query -------------------------------------------------------------

const query = { controller: null, paused: false, go: null, bytes: 0, id: null,
                sent: 0, still: false };

function report(text, bad) {
  byId("state").textContent = text;
  byId("state").className = bad ? "bad" : "";
}

let drawing = false;

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    drawNow();
  });
}

function drawNow() {
  const now = timeline.end || performance.now();
  const seconds = timeline.begin ? (now - timeline.begin) / 1000 : 0;
  byId("rows").textContent = format(rows.count);
  byId("bytes").textContent = format(query.bytes);
  byId("seconds").textContent = seconds.toFixed(1);
  byId("row-rate").textContent = format(seconds ? rows.count / seconds : 0);
  byId("byte-rate").textContent = format(seconds ? query.bytes / seconds : 0);
  byId("sent").textContent = format(Math.max(query.sent, rows.count)) + " rows";
  byId("kept").textContent = rows.count > rows.kept
    ? `The first ${format(rows.kept)} rows are kept; later ones are counted.`
    : "";
  table.draw();
  timeline.draw();
  plot.draw();
}

function setButtons(running) {
  byId("run").disabled = running;
  byId("stop").disabled = byId("pause").disabled = !running;
  byId("pause").textContent = query.paused ? "Continue" : "Pause";
  byId("pause").setAttribute("aria-pressed", String(query.paused));
}

function headers() {
  const token = byId("token").value;
  return token ? { Authorization: "Bearer " + token } : {};
}

// The first rows decide which columns are numbers.
function setColumns() {
  const sample = [];
  for (let i = 0; i < Math.min(rows.kept, 100); i++) sample.push(rows.get(i));
  rows.numeric = rows.names.map((_, column) => {
    const values = sample.map((row) => row[column]).filter((v) => v != null);
    return values.length > 0 &&
      values.every((v) => v !== "" && Number.isFinite(Number(v)));
  });
  const options = [];
  rows.names.forEach((name, column) => {
    if (!rows.numeric[column]) return;
    const option = table.element("option", name);
    option.value = String(column);
    options.push(option);
  });
  byId("column").replaceChildren(...options);
  byId("column").disabled = options.length === 0;
  table.drawn = "";
  if (options.length > 0) plot.choose(Number(options[0].value));
}

function take(block) {
  let text = block.text;
  let starts = block.starts;
  if (rows.names.length === 0 && starts.length > 0) {
    const end = starts.length > 1 ? starts[1] : text.length;
    rows.names = parseRecord(text.slice(0, end - 1)).map((name) => name || "");
    table.setNames();
    text = text.slice(end);
    starts = starts.slice(1).map((start) => start - end);
  }
  if (starts.length === 0) return;
  const isFirst = rows.count === 0;
  rows.add({ text, starts });
  timeline.add(performance.now(), starts.length);
  if (isFirst) setColumns();
}

// Not reading is what holds the query: buffers fill, up to the database.
function whilePaused() {
  return query.paused ? new Promise((go) => { query.go = go; }) : null;
}

async function read(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const records = new Records();
  for (;;) {
    await whilePaused();
    const { done, value } = await reader.read();
    if (done) return;
    query.bytes += value.length;
    take(records.add(decoder.decode(value, { stream: true })));
    draw();
  }
}

async function fail(response) {
  let text = `The server answers ${response.status}.`;
  try {
    text = (await response.json()).error.message;
  } catch (error) { /* no JSON: the status is all there is */ }
  report(text, true);
}

// The parameters go as they were written: numbers of JavaScript would round
// those beyond 2^53.
function question() {
  const sql = JSON.stringify(byId("sql").value);
  const parameters = byId("parameters").value.trim() || "[]";
  JSON.parse(parameters); // or throws
  return `{"sql":${sql},"format":"csv","parameters":${parameters}}`;
}

// What the server states of this query, until it is over.
async function watch(controller) {
  while (query.controller === controller) {
    try {
      const stats = await (await fetch("/stats", { headers: headers() })).json();
      if (query.controller !== controller) return;
      const own = stats.queries.running.find((q) => q.id === query.id);
      query.still = Boolean(own && own.paused);
      if (own) query.sent = own.rows;
      timeline.state(performance.now(),
                     !own ? "over" : own.paused ? "still" : "runs");
      if (query.paused)
        report(query.still ? "Paused: the query stands still on the server."
                        : "Paused: buffers are filling.");
      draw();
    } catch (error) { /* the next time, or never */ }
    await new Promise((done) => setTimeout(done, 250));
  }
}

// Why the answer was cut, if the server has cut it.
async function reason() {
  try {
    const stats = await (await fetch("/stats", { headers: headers() })).json();
    const own = stats.queries.cut.find((cut) => cut.id === query.id);
    return own ? `: ${own.error}` : "";
  } catch (error) {
    return "";
  }
}

async function ask(body) {
  const controller = new AbortController();
  query.controller = controller;
  try {
    const response = await fetch("/query", {
      method: "POST", body, signal: controller.signal,
      headers: { "Content-Type": "application/json", ...headers() } });
    if (!response.ok) return await fail(response);
    query.id = Number(response.headers.get("X-Query-Id"));
    timeline.state(performance.now(), "runs");
    watch(controller);
    await read(response);
    return report(`Complete: ${format(rows.count)} rows.`);
  } catch (error) {
    if (controller.signal.aborted)
      return report(`Stopped after ${format(rows.count)} rows.`);
    return report(query.id === null ? "The server cannot be reached."
      : `The answer was cut after ${format(rows.count)} rows: it is ` +
        `incomplete${await reason()}.`, true);
  } finally {
    query.controller = null;
  }
}

async function run() {
  let body;
  if (query.controller) return;
  try {
    body = question();
  } catch (error) {
    report("The parameters are no array of JSON.", true);
    return;
  }
  rows.clear();
  plot.clear(-1);
  timeline.clear(performance.now());
  Object.assign(query, { paused: false, bytes: 0, id: null, sent: 0,
                         still: false });
  byId("scroller").scrollTop = 0;
  byId("names").replaceChildren();
  byId("column").replaceChildren();
  byId("column").disabled = true;
  table.drawn = "";
  setButtons(true);
  report("Running.");
  draw();
  await ask(body);
  timeline.end = performance.now();
  pause(false);
  setButtons(false);
  draw();
}

function pause(wanted) {
  if (wanted === query.paused) return;
  query.paused = wanted;
  if (wanted) {
    timeline.pauses.push([performance.now(), 0]);
    report("Paused: buffers are filling.");
  } else {
    timeline.pauses[timeline.pauses.length - 1][1] = performance.now();
    if (query.controller) report("Running.");
    if (query.go) query.go();
    query.go = null;
  }
  setButtons(query.controller !== null);
  draw();
}

// ---- the user --------------------------------------------------------------

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
byId("sql").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
    byId("form").requestSubmit();
});
byId("pause").addEventListener("click", () => pause(!query.paused));
byId("stop").addEventListener("click", () => {
  if (query.controller) query.controller.abort();
  pause(false);
});
byId("column").addEventListener("change",
  (event) => plot.choose(Number(event.target.value)));
byId("scroller").addEventListener("scroll", draw);
window.addEventListener("resize", () => { table.drawn = ""; draw(); });
report("Nothing has run so far.");
timeline.clear(0);
plot.clear(-1);
