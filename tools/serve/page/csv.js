"use strict";
// CSV, as the server writes it.

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
