"use strict";
// The database: its name, and its tables with their columns. A table is pressed
// for its first rows. Only some tables of a long list become elements; the rest
// is found by its name.

const MOST_TABLES = 200; // of those that are shown
const MOST_COLUMNS = 500; // of one table
const SYSTEM = /^(information_schema|pg_catalog|pg_toast.*)$/;
const ROWS = "application/x-ndjson";

// Returns the whole answer as text; throws an error with the server's words.
async function get(path, type) {
  const response = await fetch(path, { headers: { Accept: type, ...headers() } });
  if (response.ok) return response.text();
  const error = new Error(await messageOf(response));
  error.status = response.status;
  throw error;
}

// Each line is a catalog, with schemas, with tables, as ADBC nests them.
function tablesOf(lines) {
  const tables = [];
  for (const line of lines.split("\n")) {
    if (line === "") continue;
    const { catalog_name: catalog, catalog_db_schemas: schemas } =
      JSON.parse(line);
    for (const schema of schemas || [])
      for (const table of schema.db_schema_tables || [])
        tables.push({ catalog: catalog || "",
                      schema: schema.db_schema_name || "",
                      name: table.table_name, type: table.table_type || "",
                      columns: table.table_columns });
  }
  return tables.filter(({ type }) => !/index|sequence|toast/i.test(type));
}

const catalog = {
  about: null,
  tables: [],
  columns: new Map(), // by key, of those that are open

  isSystem(table) {
    return SYSTEM.test(table.schema) || table.name.startsWith("sqlite_");
  },

  key(table) {
    return JSON.stringify([table.catalog, table.schema, table.name]);
  },

  // The table as SQL names it: with what its database would not guess.
  reference(table) {
    const catalogs = new Set(this.tables.map((other) => other.catalog));
    const parts = [table.name];
    const isUsual = ["", "main", "public"].includes(table.schema);
    if (!isUsual || (catalogs.size > 1 && table.schema !== ""))
      parts.unshift(table.schema);
    if (catalogs.size > 1 && table.catalog !== "") parts.unshift(table.catalog);
    return parts.map((part) => `"${part.replaceAll('"', '""')}"`).join(".");
  },

  rowsOf(table) {
    return `SELECT * FROM ${this.reference(table)} LIMIT 100`;
  },

  // Whatever fails here, queries can be written.
  async load() {
    const state = byId("catalog-state");
    try {
      state.textContent = "Loading.";
      this.show(JSON.parse(await get("/database", "application/json")));
      this.tables = tablesOf(await get("/tables", ROWS));
    } catch (error) {
      this.tables = [];
      state.textContent = error.status === 401
        ? "The server wants a token." : `There is no list: ${error.message}`;
      if (error.status === 401) byId("token-form").hidden = false;
      return;
    }
    this.tables.sort((a, b) => this.isSystem(a) - this.isSystem(b));
    this.columns.clear();
    state.textContent = "";
    byId("find").hidden = this.tables.length < 10;
    this.example();
    this.draw();
  },

  show(about) {
    const name = about.name || about.system || "uvarrow";
    this.about = about;
    byId("name").textContent = name;
    document.title = name;
    byId("about").textContent = [
      about.system !== name ? about.system : null,
      about.writable ? "may be changed" : "only read",
      `uvarrow ${about.version}`].filter(Boolean).join(", ");
    keep.formats(about.formats);
    keep.drawHistory();
  },

  // A first query, unless there is one.
  example() {
    const [first] = this.tables;
    if (byId("sql").value === "")
      byId("sql").value = first ? this.rowsOf(first) : "SELECT 1 AS one";
    if (first && !this.isSystem(first)) this.open(first);
  },

  found() {
    const text = byId("find").value.toLowerCase();
    return this.tables.filter((table) => table.name.toLowerCase()
      .includes(text) || table.schema.toLowerCase().includes(text));
  },

  draw() {
    const found = this.found();
    const lines = [];
    const groups = new Set(this.tables.map((table) =>
      table.catalog + "\0" + table.schema));
    let group = "";
    for (const table of found.slice(0, MOST_TABLES)) {
      const name = [table.catalog, table.schema].filter(Boolean).join(".");
      if (groups.size > 1 && name !== group)
        lines.push(element("li", oneLine(name), "group"));
      group = name;
      lines.push(this.line(table));
    }
    byId("tables").replaceChildren(...lines);
    if (found.length > MOST_TABLES)
      byId("catalog-state").textContent = `${format(MOST_TABLES)} of ` +
        `${amount(found.length, "table")}: write a part of the name.`;
    else
      byId("catalog-state").textContent = this.tables.length === 0
        ? "There are no tables."
        : found.length === 0 ? "No table has such a name." : "";
  },

  line(table) {
    const line = element("li", "");
    const entry = element("div", "", "entry");
    const opener = element("button", "", "open");
    const name = element("button", oneLine(table.name), "table");
    const columns = this.columns.get(this.key(table));
    opener.type = name.type = "button";
    opener.setAttribute("aria-expanded", String(columns !== undefined));
    opener.setAttribute("aria-label", `Columns of ${oneLine(table.name)}`);
    opener.addEventListener("click", () => this.toggle(table));
    name.title = "The first 100 rows";
    name.addEventListener("click", () => this.ask(table));
    entry.append(opener, name);
    if (!/^(base )?table$/i.test(table.type))
      entry.append(element("span", table.type.toLowerCase(), "type"));
    line.append(entry);
    if (columns) line.append(this.list(columns));
    return line;
  },

  list(columns) {
    const list = element("ul", "", "columns");
    if (typeof columns === "string") {
      list.append(element("li", columns));
      return list;
    }
    for (const column of columns.slice(0, MOST_COLUMNS)) {
      const line = element("li", "");
      line.append(element("span", oneLine(column.column_name || "")),
                  element("span", column.xdbc_type_name || "", "type"));
      list.append(line);
    }
    if (columns.length > MOST_COLUMNS)
      list.append(element("li", `and ${format(columns.length - MOST_COLUMNS)} ` +
                                "more"));
    return list;
  },

  async ask(table) {
    byId("sql").value = this.rowsOf(table);
    byId("parameters").value = "";
    this.open(table);
    await stop();
    run();
  },

  // Draws the list anew, without taking the focus away.
  redraw() {
    const all = () => [...byId("tables").querySelectorAll("button")];
    const at = all().indexOf(document.activeElement);
    this.draw();
    if (at >= 0) all()[at].focus();
  },

  toggle(table) {
    if (!this.columns.delete(this.key(table))) return this.open(table);
    return this.redraw();
  },

  // The pattern has any character where the name has one with a meaning.
  async open(table) {
    const key = this.key(table);
    if (this.columns.has(key)) return;
    this.columns.set(key, "Loading.");
    this.redraw();
    const pattern = encodeURIComponent(table.name.replace(/[%\\]/g, "_"));
    let columns;
    try {
      const found = tablesOf(await get("/tables?table=" + pattern, ROWS))
        .find((other) => this.key(other) === key);
      columns = found && found.columns || "They are not known.";
    } catch (error) {
      columns = `They are not known: ${error.message}`;
    }
    if (!this.columns.has(key)) return;
    this.columns.set(key, columns);
    this.redraw();
  },
};
