"use strict";
/* The script of `uvarrow timeline`. It reads the events that the page holds,
 * works out where the time of each stream went, and draws lanes and queues.
 * Everything of the trace reaches the page as text or as pixels, never as HTML.
 *
 * Times are microseconds since the first event. A list of times when something
 * was so is a flat array [begin, end, begin, end...], in order, without overlap.
 */

const NEAR = 0.0015; // times are rounded to 0.001: so close, they are one

// ---- reading the events -----------------------------------------------------

/* A number that is one, or 0: the trace may be of any program. */
function number(value) {
  return Number.isFinite(value) ? value : 0;
}

function grouped(map, key, make) {
  let value = map.get(key);
  if (value === undefined) {
    value = make(key);
    map.set(key, value);
  }
  return value;
}

function newLane(event) {
  return {
    pid: event.pid, tid: event.tid, name: `thread ${event.tid}`,
    spans: [],    // by their begins, outer ones first
    rows: [],     // the same by depth; those of a row do not overlap
    instants: [], open: [],
  };
}

function newSpan(event, lane, at, end) {
  const args = event.args || {};
  return {
    name: String(event.name), at, end, lane, depth: 0, flows: [],
    stream: args.stream === undefined ? "" : String(args.stream),
    stage: number(args.stage),
    part: args.in === undefined ? "" : String(args.in),
    batch: args.batch === undefined ? "" : String(args.batch),
  };
}

/* Reads what one event adds to the trace. */
const readers = {
  M(trace, event, lane) {
    if (event.name === "thread_name" && event.args)
      lane.name = `${event.args.name} (${event.tid})`;
  },
  X(trace, event, lane) {
    const at = number(event.ts);
    lane.spans.push(newSpan(event, lane, at, at + number(event.dur)));
  },
  B(trace, event, lane) {
    lane.open.push(newSpan(event, lane, number(event.ts), 0));
  },
  E(trace, event, lane) {
    const span = lane.open.pop();
    if (span !== undefined) {
      span.end = number(event.ts);
      lane.spans.push(span);
    }
  },
  i(trace, event, lane) {
    const mark = newSpan(event, lane, number(event.ts), number(event.ts));
    mark.value = number(event.args && event.args.value);
    if (event.name === "events lost")
      trace.lost += mark.value;
    lane.instants.push(mark);
  },
  C(trace, event) {
    for (const [key, value] of Object.entries(event.args || {})) {
      const name = String(event.name);
      const counter = grouped(trace.counters, `${name}\n${key}`,
        () => ({ name, at: [], value: [], max: 0 }));
      counter.at.push(number(event.ts));
      counter.value.push(number(value));
    }
  },
  b(trace, event, lane) {
    const wait = newSpan(event, lane, number(event.ts), 0);
    trace.open.set(`${event.cat}\n${event.id}`, wait);
  },
  e(trace, event) {
    const key = `${event.cat}\n${event.id}`, wait = trace.open.get(key);
    if (wait !== undefined) {
      trace.open.delete(key);
      wait.end = number(event.ts);
      trace.waits.push(wait);
    }
  },
  s(trace, event, lane) {
    grouped(trace.flows, `${event.cat}\n${event.id}`, () => [])
      .push({ lane, at: number(event.ts) });
  },
};
readers.I = readers.i;
readers.t = readers.s;
readers.f = readers.s;

function readTrace(events) {
  const trace = {
    lanes: new Map(), counters: new Map(), flows: new Map(), waits: [],
    open: new Map(), lost: 0, events: events.length, end: 0,
  };
  for (const event of events) {
    const reader = readers[event.ph];
    if (reader !== undefined)
      reader(trace, event, grouped(trace.lanes, `${event.pid}\n${event.tid}`,
        () => newLane(event)));
  }
  trace.lanes = [...trace.lanes.values()]
    .filter((lane) => lane.spans.length + lane.instants.length > 0);
  trace.counters = [...trace.counters.values(), ...waitCounters(trace)];
  shiftTimes(trace);
  trace.lanes.forEach(nest);
  trace.lanes.sort((a, b) => a.spans.length && b.spans.length
    ? a.spans[0].at - b.spans[0].at : b.spans.length - a.spans.length);
  for (const points of trace.flows.values())
    bindFlow(points);
  for (const counter of trace.counters) {
    sortCounter(counter);
    counter.max = counter.value.reduce((a, b) => Math.max(a, b), 0);
  }
  trace.counters.sort((a, b) => a.name < b.name ? -1 : 1);
  return trace;
}

/* How many jobs or batches wait at one time: a queue that the trace does not
 * count itself. */
function waitCounters(trace) {
  const counters = new Map();
  for (const wait of trace.waits) {
    const counter = grouped(counters, wait.name, (name) =>
      ({ name: `${name}, in all`, at: [], value: [], max: 0 }));
    counter.at.push(wait.at, wait.end);
    counter.value.push(1, -1);
  }
  for (const counter of counters.values()) {
    let waiting = 0;
    sortCounter(counter);
    counter.value = counter.value.map((by) => waiting += by);
  }
  return [...counters.values()];
}

function sortCounter(counter) {
  const order = counter.at.map((_, i) => i)
    .sort((a, b) => counter.at[a] - counter.at[b]);
  counter.at = order.map((i) => counter.at[i]);
  counter.value = order.map((i) => counter.value[i]);
}

/* Makes 0 the time of the first event. */
function shiftTimes(trace) {
  let from = Infinity, to = -Infinity;
  const look = (at, end) => {
    from = Math.min(from, at);
    to = Math.max(to, end);
  };
  const marks = trace.lanes.flatMap((lane) => [lane.spans, lane.instants]);
  marks.push(trace.waits);
  for (const list of marks)
    for (const mark of list)
      look(mark.at, mark.end);
  for (const counter of trace.counters)
    for (const at of counter.at)
      look(at, at);
  if (from > to)
    from = to = 0;
  for (const list of marks)
    for (const mark of list) {
      mark.at -= from;
      mark.end -= from;
    }
  for (const counter of trace.counters)
    counter.at = counter.at.map((at) => at - from);
  for (const points of trace.flows.values())
    for (const point of points)
      point.at -= from;
  trace.end = Math.max(to - from, 0.001);
}

/* Gives each span its depth and its row. A span that ends after the one that it
 * began in is cut, as the thread cannot have been in both. */
function nest(lane) {
  const stack = [];
  lane.spans.sort((a, b) => a.at - b.at || b.end - a.end);
  for (const span of lane.spans) {
    while (stack.length > 0 && stack[stack.length - 1].end <= span.at + NEAR)
      stack.pop();
    if (stack.length > 0)
      span.end = Math.min(span.end, stack[stack.length - 1].end);
    span.depth = stack.length;
    stack.push(span);
    if (lane.rows.length === span.depth)
      lane.rows.push([]);
    lane.rows[span.depth].push(span);
  }
  for (const row of lane.rows) {
    let sum = 0;
    row.before = row.map((span) => (sum += span.end - span.at) -
      (span.end - span.at)); // what all spans before this one take together
    row.before.push(sum);
  }
}

/* The first index at which `test` holds; it holds from there on. */
function lowerBound(length, test) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Finds the spans in which a flow's points lie: each is at the begin of one. */
function bindFlow(points) {
  points.sort((a, b) => a.at - b.at);
  points.spans = [];
  for (const { lane, at } of points) {
    const after = lowerBound(lane.spans.length,
      (i) => lane.spans[i].at > at + NEAR);
    const span = lane.spans[after - 1];
    if (span === undefined || Math.abs(span.at - at) > NEAR)
      continue;
    span.flows.push(points);
    points.spans.push(span);
  }
}

// ---- lists of times ---------------------------------------------------------

function union(pairs) {
  const out = [];
  pairs.sort((a, b) => a[0] - b[0]);
  for (const [at, end] of pairs) {
    if (out.length > 0 && at <= out[out.length - 1])
      out[out.length - 1] = Math.max(out[out.length - 1], end);
    else if (end > at)
      out.push(at, end);
  }
  return out;
}

function intersection(a, b) {
  const out = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const at = Math.max(a[i], b[j]), end = Math.min(a[i + 1], b[j + 1]);
    if (at < end)
      out.push(at, end);
    if (a[i + 1] < b[j + 1])
      i += 2;
    else
      j += 2;
  }
  return out;
}

/* What of `a` is not in `b`. */
function difference(a, b) {
  const holes = [-Infinity];
  for (const time of b)
    holes.push(time);
  holes.push(Infinity);
  return intersection(a, holes);
}

function lengthOf(list) {
  let sum = 0;
  for (let i = 0; i < list.length; i += 2)
    sum += list[i + 1] - list[i];
  return sum;
}

// ---- where the time went ----------------------------------------------------

function newStream(label) {
  return {
    label, at: Infinity, end: -Infinity, parts: new Map(), changes: [],
    lastRequest: -1,
  };
}

function partOf(streams, mark) {
  const stream = grouped(streams, mark.stream, newStream);
  stream.at = Math.min(stream.at, mark.at);
  stream.end = Math.max(stream.end, mark.end);
  return grouped(stream.parts, mark.stage, () => ({
    stage: mark.stage, name: mark.part, busy: [], worker: [], device: [],
    consumes: false, calls: 0, longest: 0,
  }));
}

/* Adds the times at which each span was the innermost one of its thread. */
function addBusy(streams, lane) {
  const stack = [];
  let cursor = 0;
  const note = (until) => {
    const span = stack[stack.length - 1];
    if (span.stream !== "" && until > cursor)
      partOf(streams, span).busy.push([cursor, until]);
    cursor = until;
  };
  const popUntil = (at) => {
    while (stack.length > 0 && stack[stack.length - 1].end <= at) {
      note(stack[stack.length - 1].end);
      stack.pop();
    }
  };
  for (const span of lane.spans) {
    popUntil(span.at);
    if (stack.length > 0)
      note(span.at);
    cursor = span.at;
    stack.push(span);
  }
  popUntil(Infinity);
}

/* When the consumer had requested a batch and not got it. A trace without
 * requests does not show it, so then it is always. */
function wantedTimes(stream) {
  const pairs = [];
  let wanted = 0;
  const changes = stream.changes
    .filter((change) => change.by < 0 || change.stage === stream.lastRequest)
    .sort((a, b) => a.at - b.at || b.by - a.by);
  if (stream.lastRequest < 0)
    return [stream.at, stream.end];
  changes.forEach((change, i) => {
    wanted = Math.max(0, wanted + change.by);
    const end = i + 1 < changes.length ? changes[i + 1].at : stream.end;
    if (wanted > 0)
      pairs.push([change.at, end]);
  });
  return union(pairs);
}

/* Splits the life of a part into its states, each moment into one of them. */
function statesOf(part, stream, wanted, isSource) {
  const busy = union(part.busy);
  const worker = difference(union(part.worker), busy);
  const device = difference(difference(union(part.device), busy), worker);
  const rest = [busy, worker, device].reduce(difference,
    [stream.at, stream.end]);
  const works = part.calls > 0 && !isSource; // not only a queue
  const starved = works ? lengthOf(intersection(rest, wanted)) : 0;
  return {
    busy: lengthOf(busy), worker: lengthOf(worker), device: lengthOf(device),
    starved, idle: lengthOf(rest) - starved,
  };
}

function summarize(trace) {
  const streams = new Map();
  for (const lane of trace.lanes) {
    addBusy(streams, lane);
    for (const span of lane.spans) {
      if (span.stream === "")
        continue;
      const part = partOf(streams, span);
      part.calls++;
      part.longest = Math.max(part.longest, span.end - span.at);
      part.consumes = part.consumes || span.name.startsWith("on_");
      if (span.name === "on_batch")
        streams.get(span.stream).changes.push({ at: span.at, by: -1 });
    }
    for (const mark of lane.instants) {
      if (mark.name !== "request" || mark.stream === "")
        continue;
      const stream = grouped(streams, mark.stream, newStream);
      stream.at = Math.min(stream.at, mark.at);
      stream.end = Math.max(stream.end, mark.end);
      stream.lastRequest = Math.max(stream.lastRequest, mark.stage);
      stream.changes.push({ at: mark.at, by: mark.value || 1,
        stage: mark.stage });
    }
  }
  for (const wait of trace.waits)
    if (wait.stream !== "")
      partOf(streams, wait)[wait.name.endsWith("device") ? "device" : "worker"]
        .push([wait.at, wait.end]);
  return [...streams.values()].filter((stream) => stream.parts.size > 0)
    .map(summarizeStream)
    .sort((a, b) => b.span - a.span);
}

function summarizeStream(stream) {
  const wanted = wantedTimes(stream);
  const parts = [...stream.parts.values()].sort((a, b) => a.stage - b.stage);
  for (const part of parts)
    part.states = statesOf(part, stream, wanted,
      part.stage === 0 && !part.consumes);
  return { label: stream.label, span: stream.end - stream.at, parts };
}

/* One sentence for a reader who does not know the library. */
function verdictOf(stream) {
  const span = stream.span || 1;
  const by = (state) => stream.parts.reduce((a, b) =>
    b.states[state] > a.states[state] ? b : a);
  const busiest = by("busy"), waiting = by("worker");
  const share = (part, state) => percent(part.states[state] / span);
  if (busiest.states.busy >= span / 2) {
    const why = busiest.consumes
      ? "Batches wait for the consumer: it should do less in its callback, or hand work to other threads."
      : busiest.stage === 0
        ? "All other parts wait for it: a faster source is what would help."
        : "More workers for this stage may help, unless its function is serial.";
    return `The time went into ${busiest.name}, which was busy ${share(busiest, "busy")} of it. ${why}`;
  }
  if (waiting.states.worker >= span / 4)
    return `${waiting.name} waited for a worker ${share(waiting, "worker")} of the time. More worker threads, or fewer streams at once, may help.`;
  return `No part was busy for half of the time: the most was ${busiest.name}, ${share(busiest, "busy")}. What is left went into handing batches over, into waiting for other streams, or was idle.`;
}

// ---- text -------------------------------------------------------------------

function percent(share) {
  return `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;
}

function duration(us) {
  const size = Math.abs(us);
  if (size >= 1e6)
    return `${(us / 1e6).toPrecision(4)} s`;
  if (size >= 1e3)
    return `${(us / 1e3).toPrecision(4)} ms`;
  if (size >= 1)
    return `${us.toPrecision(4)} µs`;
  return `${Math.round(us * 1000)} ns`;
}

function count(n, what) {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined)
    made.textContent = text;
  if (className !== undefined)
    made.className = className;
  return made;
}

function tableOf(caption, head, rows) {
  const box = element("div", undefined, "scroll"), table = element("table");
  const header = table.createTHead().insertRow();
  for (const text of head) {
    const cell = element("th", text);
    cell.scope = "col";
    header.append(cell);
  }
  const body = table.createTBody();
  for (const [first, ...others] of rows) {
    const row = body.insertRow(), cell = element("th", first);
    cell.scope = "row";
    row.append(cell);
    for (const value of others)
      row.insertCell().append(value);
  }
  header.firstChild.style.textAlign = "left";
  table.setAttribute("aria-label", caption);
  box.append(table);
  return box;
}

const states = [["busy", "Busy"], ["worker", "Waiting for a worker"],
  ["device", "Waiting for a device"], ["starved", "Starved"],
  ["idle", "Idle"]];

function barOf(part, span) {
  const bar = element("div", undefined, "bar");
  bar.setAttribute("aria-hidden", "true"); // the numbers stand beside it
  for (const [state] of states) {
    const piece = element("span", undefined, state);
    piece.style.width = `${100 * part.states[state] / span}%`;
    bar.append(piece);
  }
  return bar;
}

function showStream(stream) {
  const section = element("section");
  section.append(element("h3", `${stream.label}, ${duration(stream.span)}`),
    element("p", verdictOf(stream), "verdict"));
  const span = stream.span || 1;
  const shown = states.filter(([state]) => state !== "device" ||
    stream.parts.some((part) => part.states.device > 0));
  section.append(tableOf(stream.label,
    ["Part", "", ...shown.map(([, title]) => title), "Calls", "Longest"],
    stream.parts.map((part) => [part.name, barOf(part, span),
      ...shown.map(([state]) => percent(part.states[state] / span)),
      part.calls.toLocaleString("en"), duration(part.longest)])));
  return section;
}

const STREAMS_SHOWN = 12, FUNCTIONS_SHOWN = 40;

function showSummary(trace, streams) {
  const box = document.getElementById("summary");
  box.append(...streams.slice(0, STREAMS_SHOWN).map(showStream));
  if (streams.length > STREAMS_SHOWN)
    box.append(element("p", `These are the longest of ${count(streams.length, "stream")}.`, "more"));
  if (streams.length === 0)
    box.append(element("p", "The trace has no event of a stream of uvarrow.", "more"));
  let facts = `${count(trace.events, "event")} on ${count(trace.lanes.length, "thread")} in ${duration(trace.end)}, ${count(streams.length, "stream")}.`;
  if (trace.lost > 0)
    facts += ` ${count(trace.lost, "event")} came too fast to be written and ${trace.lost === 1 ? "is" : "are"} missing.`;
  document.getElementById("facts").textContent = facts;
}

function showFunctions(trace) {
  const functions = new Map();
  for (const lane of trace.lanes)
    for (const span of lane.spans) {
      const entry = grouped(functions, `${span.name}\n${span.part}`, () => ({
        name: span.name, part: span.part, calls: 0, total: 0, longest: 0,
        lanes: new Set(),
      }));
      entry.calls++;
      entry.total += span.end - span.at;
      entry.longest = Math.max(entry.longest, span.end - span.at);
      entry.lanes.add(lane);
    }
  const sorted = [...functions.values()].sort((a, b) => b.total - a.total);
  document.getElementById("functions").append(tableOf("Calls",
    ["Function", "Part", "Calls", "Total", "Mean", "Longest", "Threads"],
    sorted.slice(0, FUNCTIONS_SHOWN).map((f) => [f.name, f.part,
      f.calls.toLocaleString("en"), duration(f.total),
      duration(f.total / f.calls), duration(f.longest),
      String(f.lanes.size)])));
}

// ---- the picture ------------------------------------------------------------

const LABELS = 190, AXIS = 24, ROW = 18, HEAD = 16, GAP = 6, COUNTER = 44;
const COLORS = ["paper", "ink", "faint", "line", "band", "focus", "source",
  "stage", "consumer", "other", "arrow", "queue"];

const page = {
  trace: null, tracks: [], height: 0, // of all tracks
  from: 0, to: 1,                     // the times that are shown
  selected: null, chain: null, lane: null,
  colors: {}, width: 0, frame: 0, drag: null,
};

function kindOf(span) {
  if (span.name.startsWith("on_"))
    return "consumer";
  if (span.stream === "")
    return "other";
  return span.stage === 0 && span.name !== "extract" ? "source" : "stage";
}

/* Places lanes and queues below each other. */
function layOut(trace) {
  let y = AXIS;
  for (const lane of trace.lanes) {
    const height = HEAD + Math.max(1, lane.rows.length) * ROW;
    page.tracks.push({ lane, y, height });
    lane.y = y + HEAD;
    y += height + GAP;
  }
  for (const counter of trace.counters) {
    page.tracks.push({ counter, y, height: COUNTER });
    y += COUNTER + GAP;
  }
  page.height = y;
}

function xOf(time) {
  return LABELS + (time - page.from) / (page.to - page.from) *
    (page.width - LABELS);
}

function timeOf(x) {
  return page.from + (x - LABELS) / (page.width - LABELS) *
    (page.to - page.from);
}

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLORS)
    page.colors[name] = style.getPropertyValue(`--${name}`).trim();
}

/* Draws the spans of a row. Where many lie in one pixel it draws them as one, as
 * faint as they are few, so the cost is that of pixels and not of spans. */
function drawRow(paint, row, y) {
  const pixel = timeOf(1) - timeOf(0);
  let i = lowerBound(row.length, (k) => row[k].end > page.from);
  while (i < row.length && row[i].at < page.to) {
    const span = row[i];
    const x = Math.max(xOf(span.at), LABELS);
    const right = Math.min(xOf(span.end), page.width);
    paint.fillStyle = page.colors[kindOf(span)];
    if (right - x >= 2) {
      paint.fillRect(x, y + 1, right - x - 0.5, ROW - 2);
      drawName(paint, span, x, right, y);
      i++;
    } else {
      const next = timeOf(Math.floor(x) + 1), first = i;
      i = Math.max(i + 1, lowerBound(row.length, (k) => row[k].end > next));
      paint.globalAlpha = Math.min(1, Math.max(0.25,
        (row.before[i] - row.before[first]) / pixel));
      paint.fillRect(Math.floor(x), y + 1, 1, ROW - 2);
      paint.globalAlpha = 1;
    }
  }
}

/* Names a span as far as there is room for whole words. */
function drawName(paint, span, x, right, y) {
  const room = right - x - 8;
  const full = span.batch === "" ? span.name : `${span.name} ${span.batch}`;
  if (room < 12)
    return;
  const text = [full, span.name, span.batch]
    .find((t) => paint.measureText(t).width <= room);
  paint.fillStyle = page.colors.paper;
  if (text !== undefined)
    paint.fillText(text, x + 4, y + ROW / 2);
}

function drawInstants(paint, lane, y) {
  let last = -1;
  paint.fillStyle = page.colors.faint;
  for (let i = lowerBound(lane.instants.length,
    (k) => lane.instants[k].at >= page.from);
    i < lane.instants.length && lane.instants[i].at <= page.to; i++) {
    const x = Math.round(xOf(lane.instants[i].at));
    if (x > last)
      paint.fillRect(x, y - 4, 1, 4);
    last = x;
  }
}

/* Of several values in one pixel it draws the largest, and behind the pixel the
 * last. */
function drawCounter(paint, counter, y) {
  const { at, value } = counter;
  const height = (COUNTER - HEAD - 2) / (counter.max || 1);
  const column = (x, right, n) =>
    paint.fillRect(x, y + COUNTER - n * height, right - x, n * height);
  let i = Math.max(0, lowerBound(at.length, (k) => at[k] > page.from) - 1);
  paint.fillStyle = page.colors.queue;
  while (i < at.length && at[i] < page.to) {
    const x = Math.floor(Math.max(xOf(at[i]), LABELS)), time = timeOf(x + 1);
    let most = value[i], next = i + 1;
    while (next < at.length && at[next] < time)
      most = Math.max(most, value[next++]);
    const right = next < at.length
      ? Math.min(Math.floor(xOf(at[next])), page.width) : page.width;
    column(x, x + 1, most);
    if (right > x + 1)
      column(x + 1, right, value[next - 1]);
    i = next;
  }
}

function drawTrack(paint, track, top) {
  const y = track.y - top;
  const { lane, counter } = track;
  paint.fillStyle = page.colors.band;
  paint.fillRect(LABELS, y + HEAD, page.width - LABELS, track.height - HEAD);
  if (lane !== undefined) {
    lane.rows.forEach((row, depth) =>
      drawRow(paint, row, y + HEAD + depth * ROW));
    drawInstants(paint, lane, y + HEAD);
  } else {
    drawCounter(paint, counter, y);
  }
  paint.fillStyle = page.colors.paper; // over what begins left of the view
  paint.fillRect(0, y, LABELS, track.height + GAP);
  paint.fillStyle = lane !== undefined && lane === page.lane
    ? page.colors.focus : page.colors.ink;
  if (lane !== undefined) {
    paint.fillText(lane.name.slice(0, 28), 6, y + HEAD + ROW / 2);
  } else {
    paint.fillStyle = page.colors.faint;
    paint.fillText(`${counter.name}, at most ${counter.max.toLocaleString("en")}`,
      6, y + HEAD / 2);
  }
}

/* The smallest of 1, 2 and 5 times a power of ten that is not below `least`. */
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((f) => f * power).find((s) => s >= least);
}

function drawAxis(paint) {
  const step = roundStep((page.to - page.from) * 110 /
    Math.max(page.width - LABELS, 110));
  paint.fillStyle = page.colors.paper;
  paint.fillRect(0, 0, page.width, AXIS);
  for (let time = Math.ceil(page.from / step) * step; time <= page.to;
    time += step) {
    const x = xOf(time);
    paint.fillStyle = page.colors.line;
    paint.fillRect(x, AXIS - 6, 1, 6);
    paint.fillStyle = page.colors.faint;
    paint.fillText(duration(time), x + 3, AXIS / 2);
  }
}

/* The middle of a span on the screen, for arrows and the frame around it. */
function placeOf(span, top) {
  return {
    x: xOf(span.at), right: xOf(span.end),
    y: span.lane.y + span.depth * ROW - top,
  };
}

function drawChain(paint, top) {
  if (page.selected === null)
    return;
  paint.strokeStyle = page.colors.arrow;
  paint.lineWidth = 1.5;
  for (const [a, b] of page.chain.arrows) {
    const from = placeOf(a, top), to = placeOf(b, top);
    const x = Math.min(from.right, to.x), bend = Math.max(20, (to.x - x) / 2);
    paint.beginPath();
    paint.moveTo(x, from.y + ROW / 2);
    paint.bezierCurveTo(x + bend, from.y + ROW / 2, to.x - bend,
      to.y + ROW / 2, to.x, to.y + ROW / 2);
    paint.lineTo(to.x - 5, to.y + ROW / 2 - 4);
    paint.moveTo(to.x, to.y + ROW / 2);
    paint.lineTo(to.x - 5, to.y + ROW / 2 + 4);
    paint.stroke();
  }
  const { x, right, y } = placeOf(page.selected, top);
  paint.strokeStyle = page.colors.ink;
  paint.lineWidth = 2;
  paint.strokeRect(x, y, Math.max(right - x, 2), ROW);
}

function draw() {
  const canvas = document.getElementById("lanes");
  const paint = canvas.getContext("2d"), scale = window.devicePixelRatio || 1;
  const scroller = document.getElementById("scroller");
  const height = scroller.clientHeight, top = scroller.scrollTop;
  page.frame = 0;
  page.width = scroller.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(page.width * scale);
  canvas.height = Math.round(height * scale);
  paint.scale(scale, scale);
  paint.font = "12px system-ui, sans-serif";
  paint.textBaseline = "middle";
  paint.fillStyle = page.colors.paper;
  paint.fillRect(0, 0, page.width, height);
  for (const track of page.tracks)
    if (track.y + track.height > top && track.y < top + height)
      drawTrack(paint, track, top);
  paint.save();
  paint.beginPath();
  paint.rect(LABELS, AXIS, page.width - LABELS, height);
  paint.clip();
  drawChain(paint, top);
  paint.restore();
  drawAxis(paint);
}

function redraw() {
  if (page.frame === 0)
    page.frame = requestAnimationFrame(draw);
}

// ---- moving and selecting ---------------------------------------------------

const SHORTEST = 0.05; // microseconds on the whole width

function show(from, to) {
  const end = page.trace.end;
  const width = Math.min(Math.max(to - from, SHORTEST), end);
  page.from = Math.min(Math.max(from, 0), end - width);
  page.to = page.from + width;
  redraw();
}

/* Zooms so that the time `at` stays where it is. */
function zoom(factor, at) {
  show(at - (at - page.from) * factor, at + (page.to - at) * factor);
}

function middle() {
  const { selected, from, to } = page;
  return selected !== null && selected.at >= from && selected.at <= to
    ? selected.at : (from + to) / 2;
}

function move(share) {
  const by = (page.to - page.from) * share;
  show(page.from + by, page.to + by);
}

/* All spans that arrows join with this one, from the source on. */
function chainOf(span) {
  const spans = new Set([span]), seen = new Set(), arrows = [];
  for (const one of spans) { // grows meanwhile
    if (spans.size > 500)
      break;
    for (const flow of one.flows) {
      if (seen.has(flow))
        continue;
      seen.add(flow);
      for (let i = 0; i < flow.spans.length; i++) {
        spans.add(flow.spans[i]);
        if (i > 0)
          arrows.push([flow.spans[i - 1], flow.spans[i]]);
      }
    }
  }
  return { spans: [...spans].sort((a, b) => a.at - b.at), arrows };
}

function describe(span) {
  const of = span.part !== "" && span.part !== span.name ? ` of ${span.part}` : "";
  const stream = span.stream !== "" ? `, ${span.stream}` : "";
  const batch = span.batch !== "" ? `, batch ${span.batch}` : "";
  return `${span.name}${of}${stream}${batch}: ${duration(span.end - span.at)}, ` +
    `from ${duration(span.at)} on, on ${span.lane.name}`;
}

function select(span) {
  page.selected = span;
  page.chain = span === null ? null : chainOf(span);
  document.getElementById("detail").textContent =
    span === null ? "Select a span to see what it is, and the arrows of its batch." : describe(span);
  if (span !== null) {
    page.lane = span.lane;
    if (span.end < page.from || span.at > page.to)
      show(span.at - (page.to - page.from) / 2,
        span.at + (page.to - page.from) / 2);
    const scroller = document.getElementById("scroller");
    const y = span.lane.y + span.depth * ROW;
    if (y - AXIS < scroller.scrollTop ||
      y + ROW > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = y - scroller.clientHeight / 2;
  }
  redraw();
}

/* Selects the span beside the selected one on its lane, or the first one that is
 * shown. */
function selectBeside(step) {
  const lane = page.lane || page.trace.lanes[0];
  if (lane === undefined || lane.spans.length === 0)
    return;
  let i = page.selected !== null && page.selected.lane === lane
    ? lane.spans.indexOf(page.selected) + step
    : lowerBound(lane.spans.length, (k) => lane.spans[k].at >= page.from);
  i = Math.min(Math.max(i, 0), lane.spans.length - 1);
  select(lane.spans[i]);
}

function selectLane(step) {
  const lanes = page.trace.lanes.filter((lane) => lane.spans.length > 0);
  const now = lanes.indexOf(page.lane);
  const lane = lanes[Math.min(Math.max(now + step, 0), lanes.length - 1)];
  const at = page.selected !== null ? page.selected.at : page.from;
  if (lane === undefined)
    return;
  const i = lowerBound(lane.spans.length, (k) => lane.spans[k].at >= at);
  page.lane = lane;
  select(lane.spans[Math.min(i, lane.spans.length - 1)]);
}

function followBatch() {
  if (page.selected === null)
    return;
  const { spans } = page.chain;
  select(spans[(spans.indexOf(page.selected) + 1) % spans.length]);
}

function zoomToSelected() {
  const { selected } = page;
  if (selected !== null) {
    const room = Math.max(selected.end - selected.at, SHORTEST);
    show(selected.at - room, selected.end + room);
  }
}

function spanAt(x, y) {
  const track = page.tracks.find((t) => t.lane !== undefined &&
    y >= t.lane.y && y < t.y + t.height);
  if (track === undefined || x < LABELS)
    return null;
  const row = track.lane.rows[Math.floor((y - track.lane.y) / ROW)] || [];
  const near = timeOf(x - 2), far = timeOf(x + 2);
  const span = row[lowerBound(row.length, (k) => row[k].end > near)];
  return span !== undefined && span.at <= far ? span : null;
}

const keys = {
  ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
  "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()),
  "-": () => zoom(2, middle()), 0: () => show(0, page.trace.end),
  Home: () => show(0, page.trace.end),
  ArrowUp: () => selectLane(-1), ArrowDown: () => selectLane(1),
  n: () => selectBeside(1), p: () => selectBeside(-1), f: followBatch,
  Enter: zoomToSelected, Escape: () => select(null),
};

function listen() {
  const canvas = document.getElementById("lanes");
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top +
      document.getElementById("scroller").scrollTop };
  };
  const click = (id, run) =>
    document.getElementById(id).addEventListener("click", run);
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey ||
      !Object.hasOwn(keys, event.key))
      return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey)
      return; // the page scrolls
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeOf(place(event).x));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    page.drag = { x: event.clientX, from: page.from, to: page.to, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    const { drag } = page;
    if (drag === null)
      return;
    drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 3;
    const by = (drag.x - event.clientX) * (drag.to - drag.from) /
      (page.width - LABELS);
    if (drag.moved)
      show(drag.from + by, drag.to + by);
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = place(event);
    if (page.drag !== null && !page.drag.moved)
      select(spanAt(at.x, at.y));
    page.drag = null;
  });
  canvas.addEventListener("pointercancel", () => { page.drag = null; });
  canvas.addEventListener("dblclick", zoomToSelected);
  click("zoom-in", () => zoom(0.5, middle()));
  click("zoom-out", () => zoom(2, middle()));
  click("zoom-all", () => show(0, page.trace.end));
  click("before", () => selectBeside(-1));
  click("after", () => selectBeside(1));
  click("along", followBatch);
  document.getElementById("scroller").addEventListener("scroll", redraw);
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change",
    () => { readColors(); redraw(); });
}

/* What a reader may want to look at first. */
function longestSpan(trace) {
  let longest = null;
  for (const lane of trace.lanes)
    for (const span of lane.spans)
      if (longest === null || span.end - span.at > longest.end - longest.at)
        longest = span;
  return longest;
}

// ---- the start --------------------------------------------------------------

function start() {
  const text = document.getElementById("events").textContent;
  page.trace = readTrace(JSON.parse(text));
  showSummary(page.trace, summarize(page.trace));
  showFunctions(page.trace);
  layOut(page.trace);
  document.getElementById("space").style.height = `${page.height}px`;
  document.getElementById("scroller").style.height = `${page.height + 2}px`;
  readColors();
  listen();
  page.to = page.trace.end;
  draw();
  select(longestSpan(page.trace));
}

start();
