"use strict";
// The page of `uvarrow serve`. Rows come as CSV and are kept as text: a block
// for each part that arrived, with the places where its rows begin. Only rows
// that can be seen are parsed and become elements, so a million is no burden.
// What the server sends is written by textContent alone, never as HTML.

const byId = (id) => document.getElementById(id);
const format = (number) => Math.round(number).toLocaleString("en");
const amount = (count, what) =>
  `${format(count)} ${what}${count === 1 ? "" : "s"}`;

// `asked` is the query of the rows in sight; null: it has none.
const query = { controller: null, paused: false, go: null, bytes: 0, id: null,
                sent: 0, still: false, asked: null, over: null };

function report(text, bad) {
  byId("state").textContent = text;
  byId("state").className = bad ? "bad" : "";
}

// ---- what is drawn ---------------------------------------------------------

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
  byId("sent").textContent = amount(Math.max(query.sent, rows.count), "row");
  byId("progress").textContent = !timeline.begin ? ""
    : (timeline.end ? "" : amount(rows.count, "row") + ", ") +
      seconds.toFixed(1) + " s";
  byId("kept").textContent = rows.count > rows.kept
    ? `The first ${format(rows.kept)} rows are kept; later ones are counted.`
    : "";
  table.draw();
  timeline.draw();
  plot.draw();
}

function setButtons(running) {
  byId("run").disabled = running;
  byId("pause").disabled = !running;
  byId("stop").disabled = !running && !keep.controller;
  byId("pause").textContent = query.paused ? "Continue" : "Pause";
  byId("pause").setAttribute("aria-pressed", String(query.paused));
  for (const button of byId("downloads").children)
    button.disabled = Boolean(keep.controller) || !query.asked;
}

// The first rows decide which columns are numbers. The first of these that
// varies is drawn.
function setColumns() {
  const sample = [];
  for (let i = 0; i < Math.min(rows.kept, 100); i++) sample.push(rows.get(i));
  rows.numeric = rows.names.map((_, column) => {
    const values = sample.map((row) => row[column]).filter((v) => v != null);
    return values.length > 0 && values.every(isNumber);
  });
  const options = [];
  rows.names.forEach((name, column) => {
    if (!rows.numeric[column]) return;
    const option = element("option", name);
    option.value = String(column);
    options.push(option);
  });
  byId("column").replaceChildren(...options);
  byId("column").disabled = options.length === 0;
  table.drawn = "";
  table.markNumbers();
  if (options.length === 0) return;
  const varying = options.find(({ value }) =>
    sample.some((row) => row[value] !== sample[0][value])) || options[0];
  varying.selected = true;
  plot.choose(Number(varying.value));
}

function setFilters() {
  const any = element("option", "any column");
  any.value = "-1";
  byId("within").replaceChildren(any, ...rows.names.map((name, column) => {
    const option = element("option", oneLine(name));
    option.value = String(column);
    return option;
  }));
  byId("tools").hidden = false;
}

// ---- requests --------------------------------------------------------------

function headers() {
  const token = byId("token").value;
  return token ? { Authorization: "Bearer " + token } : {};
}

function post(body, signal) {
  return fetch("/query", {
    method: "POST", body, signal,
    headers: { "Content-Type": "application/json", ...headers() } });
}

// What the server says of a failure.
async function messageOf(response) {
  try {
    return (await response.json()).error.message;
  } catch (error) { // no JSON: the status is all there is
    return `The server answers ${response.status}.`;
  }
}

// The parameters go as they were written: numbers of JavaScript would round
// those beyond 2^53.
function question(sql, parameters, name) {
  const values = parameters || "[]";
  JSON.parse(values); // or throws
  return `{"sql":${JSON.stringify(sql)},"format":${JSON.stringify(name)},` +
    `"parameters":${values}}`;
}

async function stats() {
  return (await fetch("/stats", { headers: headers() })).json();
}

// Why the answer was cut, if the server has cut it.
async function reason(id) {
  try {
    const own = (await stats()).queries.cut.find((cut) => cut.id === id);
    return own ? `: ${own.error}` : "";
  } catch (error) {
    return "";
  }
}

// ---- the query -------------------------------------------------------------

function take(block) {
  let text = block.text;
  let starts = block.starts;
  if (rows.names.length === 0 && starts.length > 0) {
    const end = starts.length > 1 ? starts[1] : text.length;
    rows.names = parseRecord(text.slice(0, end - 1)).map((name) => name || "");
    table.setNames();
    setFilters();
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

// What the server states of this query, until it is over.
async function watch(controller) {
  while (query.controller === controller) {
    try {
      const { queries } = await stats();
      if (query.controller !== controller) return;
      const own = queries.running.find((q) => q.id === query.id);
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

async function ask(sql, parameters) {
  const controller = new AbortController();
  query.controller = controller;
  try {
    const body = question(sql, parameters, "csv");
    const response = await post(body, controller.signal);
    if (!response.ok) return report(await messageOf(response), true);
    query.id = Number(response.headers.get("X-Query-Id"));
    query.asked = { sql, parameters };
    timeline.state(performance.now(), "runs");
    watch(controller);
    await read(response);
    return report(`Complete: ${amount(rows.count, "row")}.`);
  } catch (error) {
    if (controller.signal.aborted)
      return report(`Stopped after ${amount(rows.count, "row")}.`);
    return report(query.id === null ? "The server cannot be reached."
      : `The answer was cut after ${amount(rows.count, "row")}: it is ` +
        `incomplete${await reason(query.id)}.`, true);
  } finally {
    query.controller = null;
  }
}

function begin() {
  rows.clear();
  view.clear();
  plot.clear(-1);
  timeline.clear(performance.now());
  Object.assign(query, { paused: false, bytes: 0, id: null, sent: 0,
                         still: false, asked: null });
  byId("scroller").scrollTop = 0;
  byId("names").replaceChildren();
  byId("column").replaceChildren();
  byId("column").disabled = true;
  byId("tools").hidden = true;
  table.drawn = "";
  keep.summarize();
  setButtons(true);
  report("Running.");
  draw();
}

async function finish() {
  timeline.end = performance.now();
  pause(false);
  setButtons(false);
  draw();
  if (!catalog.about) catalog.load(); // the token was missing before
  keep.summarize();
  if (!view.isPlain()) view.apply();
}

async function run() {
  const sql = byId("sql").value;
  const parameters = byId("parameters").value.trim();
  if (query.controller) return;
  try {
    JSON.parse(parameters || "[]");
  } catch (error) {
    report("The parameters are no array of JSON.", true);
    return;
  }
  keep.link(sql, parameters);
  keep.remember(sql, parameters);
  begin();
  query.over = ask(sql, parameters);
  await query.over;
  finish();
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

// Ends the query, and a file that is on its way.
async function stop() {
  if (keep.controller) keep.controller.abort();
  if (!query.controller) return;
  query.controller.abort();
  pause(false);
  await query.over;
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
byId("stop").addEventListener("click", stop);
byId("column").addEventListener("change",
  (event) => plot.choose(Number(event.target.value)));
byId("scroller").addEventListener("scroll", draw);
byId("filter").addEventListener("input", () => view.apply());
byId("within").addEventListener("change", () => view.apply());
byId("summary-box").addEventListener("toggle", () => keep.summarize());
byId("link").addEventListener("click", (event) => {
  event.preventDefault();
  keep.copyLink();
});
byId("forget").addEventListener("click", () => keep.writeHistory([]));
byId("find").addEventListener("input", () => catalog.draw());
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  catalog.load();
});
byId("token").addEventListener("change", () => catalog.load());
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("sql").focus();
});
window.addEventListener("hashchange", () => keep.followLink());
window.addEventListener("resize", () => { table.drawn = ""; draw(); });

report("Nothing has run so far.");
timeline.clear(0);
plot.clear(-1);
view.clear();
if (matchMedia("(max-width: 640px)").matches) byId("catalog").open = false;
keep.drawHistory();
catalog.load().then(() => keep.followLink());
