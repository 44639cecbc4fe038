// SPDX-License-Identifier: Apache-2.0
// A route of Next.js, app/flights/route.js, and with the same functions one of any
// server that has Request and Response, such as Hono, Bun and Deno: the rows of a
// query as the answer. The database is FLIGHTS, such as sqlite:flights.db.
import { Pool } from "uvarrow";

export const runtime = "nodejs"; // for Next.js: not at its edge

// Not before a request: `next build` loads this file, too, without a database.
let pool;
const flights = () => (pool ??= new Pool(process.env.FLIGHTS));

export async function GET(request) {
  const dest = new URL(request.url).searchParams.get("dest");
  const rows = flights().query("SELECT * FROM flights WHERE dest = ?1 OR ?1 IS NULL",
    [dest], { signal: request.signal });
  const body = rows.toWeb();
  try {
    await rows.schema(); // until the query has begun, or has failed
  } catch (error) {
    return Response.json({ error: error.message }, { status: 400 });
  }
  return new Response(body, {
    headers: { "content-type": "application/vnd.apache.arrow.stream" },
  });
}

export async function POST(request) {
  try {
    const rows = await flights().ingest("flights", request.body, { mode: "append" });
    return Response.json({ rows });
  } catch (error) {
    return Response.json({ error: error.message }, { status: 400 });
  }
}
