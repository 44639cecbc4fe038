import { stats } from "uvarrow";

export const dynamic = "force-dynamic";

export const GET = () => Response.json(stats().streamsOpen);
