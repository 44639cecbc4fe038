"use strict";
// What takes long for many rows: their order, and summaries of their columns.
// A worker of the browser does it, so the page stays awake. The worker is made
// of the texts of these functions, and gets the rows a block at a time; so they
// may use each other and parseRecord(), and nothing else of the page.

// The records of a block.
function* recordsOf(block) {
  for (let i = 0; i < block.starts.length; i++) {
    const end = i + 1 < block.starts.length ? block.starts[i + 1]
                                            : block.text.length;
    yield parseRecord(block.text.slice(block.starts[i], end - 1));
  }
}

function isNumber(text) {
  return text !== null && text !== "" && Number.isFinite(Number(text));
}

// Picks rows by a text that a value has, and sorts them by a column: nulls are
// last, numbers are in front of other texts.
class Order {
  constructor({ filter, within, column, descending }) {
    Object.assign(this, { within, column, sign: descending ? -1 : 1 });
    this.filter = filter.toLowerCase();
    this.rows = [];
    this.texts = [];
    this.numbers = [];
  }

  fits(record) {
    const has = (value) => value !== null &&
      value.toLowerCase().includes(this.filter);
    if (this.filter === "") return true;
    return this.within < 0 ? record.some(has) : has(record[this.within]);
  }

  take(block) {
    let row = block.first;
    for (const record of recordsOf(block)) {
      if (this.fits(record)) {
        this.rows.push(row);
        if (this.column >= 0) this.keep(record[this.column]);
      }
      row++;
    }
  }

  keep(text) {
    this.texts.push(text);
    this.numbers.push(isNumber(text) ? Number(text) : NaN);
  }

  // Whole numbers beyond 2^53 may be equal as numbers, and differ.
  compareNumbers(a, b) {
    const difference = this.numbers[a] - this.numbers[b];
    if (difference !== 0 || Number.isSafeInteger(this.numbers[a]))
      return difference;
    const whole = /^-?\d+$/;
    if (!whole.test(this.texts[a]) || !whole.test(this.texts[b])) return 0;
    const [x, y] = [BigInt(this.texts[a]), BigInt(this.texts[b])];
    return x < y ? -1 : Number(x > y);
  }

  compare(a, b) {
    const [x, y] = [this.texts[a], this.texts[b]];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    const [m, n] = [this.numbers[a], this.numbers[b]];
    if (m === m && n === n) return this.sign * this.compareNumbers(a, b);
    if (m === m || n === n) return this.sign * (m === m ? -1 : 1);
    return this.sign * (x < y ? -1 : Number(x > y));
  }

  end() {
    if (this.column < 0) return { order: Uint32Array.from(this.rows) };
    const places = Uint32Array.from(this.rows.keys());
    places.sort((a, b) => this.compare(a, b) || a - b);
    return { order: places.map((place) => this.rows[place]) };
  }
}

// One column: in a first pass its nulls, values and range, in a second one how
// often numbers are in each part of that range.
class Column {
  constructor() {
    Object.assign(this, { count: 0, nulls: 0, others: 0, low: Infinity,
                          high: -Infinity, sum: 0, values: new Map(),
                          least: null, most: null });
  }

  // Returns the characters that were kept. `room` is what may be kept.
  take(text, room) {
    this.count++;
    if (text === null) {
      this.nulls++;
      return 0;
    }
    this.range(text);
    if (this.values === null) return 0;
    const times = this.values.get(text);
    this.values.set(text, (times || 0) + 1);
    if (times) return 0;
    if (this.values.size > 100000 || text.length > room) {
      this.seen = this.values.size - 1;
      this.values = null; // there are more; how often each is there is open
    }
    return text.length;
  }

  range(text) {
    if (isNumber(text)) {
      const value = Number(text);
      this.low = Math.min(this.low, value);
      this.high = Math.max(this.high, value);
      this.sum += value;
    } else {
      this.others++;
    }
    if (this.least === null || text < this.least) this.least = text;
    if (this.most === null || text > this.most) this.most = text;
  }

  isNumeric() {
    return this.others === 0 && this.low <= this.high;
  }

  begin() {
    if (this.isNumeric()) this.bars = new Array(20).fill(0);
  }

  place(text) {
    if (!this.bars || text === null) return;
    const [low, high] = [this.low / 2, this.high / 2]; // their range is finite
    const part = high > low ? (Number(text) / 2 - low) / (high - low) : 0;
    this.bars[Math.min(19, Math.floor(part * 20))]++;
  }

  // The values that are there most often.
  top() {
    if (this.bars || this.values === null) return [];
    return [...this.values].sort((a, b) => b[1] - a[1]).slice(0, 5)
      .map(([text, count]) => [text.slice(0, 80), count]);
  }

  end() {
    const numeric = this.isNumeric();
    const short = (text) => text === null ? null : text.slice(0, 80);
    return { count: this.count, nulls: this.nulls, numeric,
             distinct: this.values === null ? this.seen : this.values.size,
             isMore: this.values === null, bars: this.bars || [],
             low: numeric ? this.low : short(this.least),
             high: numeric ? this.high : short(this.most),
             mean: numeric ? this.sum / (this.count - this.nulls) : null,
             top: this.top() };
  }
}

class Summary {
  constructor({ columns }) {
    this.columns = Array.from({ length: columns }, () => new Column());
    this.room = 64e6; // characters of values that may be kept
    this.isSecond = false;
  }

  take(block) {
    for (const record of recordsOf(block))
      this.columns.forEach((column, i) => {
        if (this.isSecond) column.place(record[i]);
        else this.room -= column.take(record[i], this.room);
      });
  }

  end() {
    if (this.isSecond)
      return { columns: this.columns.map((column) => column.end()) };
    this.isSecond = true;
    this.columns.forEach((column) => column.begin());
    return { again: true };
  }
}

// In the worker: each message has one answer.
function answerMessages() {
  let job;
  self.onmessage = ({ data }) => {
    if (data.begin)
      job = data.begin.kind === "order" ? new Order(data.begin)
                                        : new Summary(data.begin);
    if (data.block) job.take(data.block);
    self.postMessage(data.end ? job.end() : {});
  };
}

// ---- the page's side -------------------------------------------------------

function startWorker() {
  const parts = [parseRecord, recordsOf, isNumber, Order, Column, Summary,
                 answerMessages];
  const text = parts.map(String).join("\n") + "\nanswerMessages();";
  const url = URL.createObjectURL(new Blob([text],
                                           { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.url = url;
  return worker;
}

const current = { order: 0, summary: 0 }; // numbers of the newest jobs

// Does a job with the rows that are there now. Returns null if a newer one of
// the kind has begun.
async function work(begin) {
  const number = ++current[begin.kind];
  const blocks = rows.blocks.slice();
  const worker = startWorker();
  const call = (message) => new Promise((done, fail) => {
    worker.onmessage = ({ data }) => done(data);
    worker.onerror = () => fail(new Error("the worker has failed"));
    worker.postMessage(message);
  });
  try {
    await call({ begin });
    for (;;) {
      for (const { text, starts, first } of blocks) {
        if (number !== current[begin.kind]) return null;
        await call({ block: { text, starts, first } });
      }
      const result = await call({ end: true });
      if (number !== current[begin.kind]) return null;
      if (!result.again) return result;
    }
  } finally {
    worker.terminate();
    URL.revokeObjectURL(worker.url);
  }
}
