"use strict";
// What is left of a query: a link, a place in the history, a file, and a summary
// of its columns.

const MOST_HISTORY = 50; // queries
const MOST_SUMMARIES = 200; // columns
const PLACE = "uvarrow-history"; // in the storage of the browser

const keep = {
  // ---- the link ------------------------------------------------------------

  // It is behind the "#", which no browser sends to a server.
  link(sql, parameters) {
    const values = new URLSearchParams({ sql });
    if (parameters !== "") values.set("parameters", parameters);
    history.replaceState(null, "", "#" + values);
    byId("link").href = location.href;
    byId("link").hidden = false;
  },

  async copyLink() {
    try {
      await navigator.clipboard.writeText(byId("link").href);
      byId("shown").textContent = "The link was copied.";
    } catch (error) {
      byId("shown").textContent = "The link is in the address bar.";
    }
  },

  // Whoever opens a link has not asked for a change of the database.
  followLink() {
    const values = new URLSearchParams(location.hash.slice(1));
    if (!values.has("sql")) return;
    byId("sql").value = values.get("sql");
    byId("parameters").value = values.get("parameters") || "";
    if (catalog.about && !catalog.about.writable) run();
  },

  // ---- the history ---------------------------------------------------------

  past: null,

  readHistory() {
    if (this.past) return this.past;
    try {
      this.past = JSON.parse(localStorage.getItem(PLACE));
    } catch (error) { /* no storage is allowed, or it is not ours */ }
    if (!Array.isArray(this.past)) this.past = [];
    this.past = this.past.filter((entry) => entry !== null &&
      ["sql", "parameters", "database"].every(
        (name) => typeof entry[name] === "string"));
    return this.past;
  },

  writeHistory(past) {
    this.past = past;
    try {
      localStorage.setItem(PLACE, JSON.stringify(past));
    } catch (error) { /* it lasts as long as the page */ }
    this.drawHistory();
  },

  database() {
    return catalog.about ? catalog.about.name : "";
  },

  remember(sql, parameters) {
    const database = this.database();
    const others = this.readHistory().filter((other) => other.sql !== sql ||
      other.parameters !== parameters || other.database !== database);
    this.writeHistory([{ sql, parameters, database }, ...others]
      .slice(0, MOST_HISTORY));
  },

  drawHistory() {
    const own = this.readHistory().filter(
      (entry) => entry.database === this.database());
    byId("history").replaceChildren(...own.map((entry) => {
      const line = element("li", "");
      const button = element("button", oneLine(entry.sql));
      button.type = "button";
      button.title = entry.sql;
      button.addEventListener("click", () => {
        byId("sql").value = entry.sql;
        byId("parameters").value = entry.parameters;
        byId("sql").focus();
      });
      line.append(button);
      return line;
    }));
    byId("history-state").textContent = own.length === 0
      ? "Queries that have run are here, in this browser alone." : "";
    byId("forget").hidden = own.length === 0;
  },

  // ---- files ---------------------------------------------------------------

  NAMES: { arrow: ["Arrow", "arrows"], csv: ["CSV", "csv"],
           json: ["JSON lines", "ndjson"], "json-array": ["JSON", "json"] },

  formats(list) {
    byId("downloads").replaceChildren(...list.map(({ name }) => {
      const [text, ending] = this.NAMES[name] || [name, name];
      const button = element("button", text);
      button.type = "button";
      button.title = "Run the query again, and keep its rows as a file";
      button.addEventListener("click",
                              () => this.download(name, "result." + ending));
      return button;
    }));
  },

  file: "", // the URL of the last one

  // The query of the rows in sight runs again. Where a query can change the
  // database it is a GET, which cannot.
  async download(name, file) {
    const controller = new AbortController();
    const state = byId("shown");
    if (this.controller || !query.asked) return;
    this.controller = controller;
    setButtons(query.controller !== null);
    state.textContent = `${file} is on its way.`;
    try {
      await this.fetchFile(name, file, controller.signal);
      state.textContent = `${file} is complete.`;
    } catch (error) {
      state.textContent = controller.signal.aborted
        ? `${file} was stopped.` : `There is no ${file}: ${error.message}`;
    }
    this.controller = null;
    setButtons(query.controller !== null);
  },

  async fetchFile(name, file, signal) {
    const { sql, parameters } = query.asked;
    const response = catalog.about.writable
      ? await fetch("/query?" + new URLSearchParams(
          { sql, format: name, parameters: parameters || "[]" }),
                    { headers: headers(), signal })
      : await post(question(sql, parameters, name), signal);
    if (!response.ok) throw new Error(await messageOf(response));
    let content;
    try {
      content = await response.blob();
    } catch (error) {
      throw new Error("the answer was cut" +
        await reason(Number(response.headers.get("X-Query-Id"))));
    }
    URL.revokeObjectURL(this.file);
    this.file = URL.createObjectURL(content);
    const link = document.createElement("a");
    link.href = this.file;
    link.download = file;
    link.click();
  },

  // ---- columns -------------------------------------------------------------

  async summarize() {
    current.summary++;
    byId("summaries").replaceChildren();
    byId("summary-state").textContent = "";
    if (!byId("summary-box").open || rows.names.length === 0) return;
    const columns = Math.min(rows.names.length, MOST_SUMMARIES);
    const kept = rows.kept;
    byId("summary-state").textContent = "Working.";
    const result = await work({ kind: "summary", columns });
    if (result === null) return;
    byId("summary-state").textContent = `Of ${amount(kept, "row")}` +
      (columns < rows.names.length ? `, the first ${columns} columns.` : ".");
    byId("summaries").replaceChildren(...result.columns.map(
      (column, i) => this.card(rows.names[i], column)));
  },

  card(name, column) {
    const card = element("li", "");
    const share = column.count > 0 ? 100 * column.nulls / column.count : 0;
    card.append(element("h2", oneLine(name)));
    card.append(element("p", `nulls ${format(column.nulls)}` +
      (column.nulls > 0 ? ` (${share.toFixed(1)} %)` : "") + ", distinct " +
      (column.isMore ? "more than " : "") + format(column.distinct)));
    if (column.low !== null && column.count > column.nulls)
      card.append(element("p", `${oneLine(String(column.low))} to ` +
        oneLine(String(column.high)) +
        (column.numeric ? `, mean ${Number(column.mean.toPrecision(6))}` : ""),
                          "hint"));
    if (column.bars.length > 0) card.append(this.bars(column));
    if (column.top.length > 0) card.append(this.top(column));
    return card;
  },

  bars(column) {
    const bars = element("div", "", "bars");
    const most = Math.max(...column.bars);
    const width = (column.high - column.low) / column.bars.length;
    const start = (i) => Number((column.low + i * width).toPrecision(4));
    bars.setAttribute("role", "img");
    bars.setAttribute("aria-label", "Histogram: most values, " +
      `${format(most)}, are from ${start(column.bars.indexOf(most))} on`);
    column.bars.forEach((count, i) => {
      const bar = element("span", "");
      bar.style.height = 100 * count / most + "%";
      bar.title = `${format(count)} from ${start(i)} on`;
      bars.append(bar);
    });
    return bars;
  },

  top(column) {
    const list = element("ul", "", "top");
    for (const [text, count] of column.top) {
      const line = element("li", "");
      line.append(element("span", oneLine(text)),
                  element("span", format(count)));
      list.append(line);
    }
    return list;
  },
};
