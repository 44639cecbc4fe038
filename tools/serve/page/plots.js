"use strict";
// What is drawn: a column along the rows, and the query over its time.

const BUCKETS = 512; // of both

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
      const tall = count / most * (height - 26 - top); // below the texts
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
