// SPDX-License-Identifier: Apache-2.0
// Arrow IPC, written by PyArrow 26, deflated, in base64.
"use strict";
const { inflateSync } = require("node:zlib");

// d: dictionary of int8 [1, 0, null, 1] on ["no", "yes"]; v: utf8_view ["short",
// null, "longer than twelve bytes", "and another long one"]; du, su: unions, dense
// and sparse, of int64 "i" and utf8 "s" [5, "a", 6, "b"]
const unusual = [
  "eNqVVK1OA0EQnr3ulQuU5kIacgKSE0gMHlGBQCAQiNpreqEkzV3SOwpNeAgEAoFEVCCQfQQkAo",
  "FA8gBIFMvs7my7XXppmGZvdm7mm5/vJhVCiC8GEIKUdWhAHXwI8IbCOHBUnR8hpJbnGmPbeO7I",
  "/kAfBjYjvO/QOw/PMZ6Y7sUlwAPl8EALpoBIKKwva7cIa3wFnifEHOoYb1nMBZ5PVR9YGx99Me",
  "9lz+rlDM8+3XvYS6CmDPCnM7l9Pa/o6wj9byv6uhHzvkKMCLDiGtaVluaaRcuwIzyPiA0hmmEk",
  "njC+jG9bXBtcD4Am4urZAD1ngBkCCtNe/U2xhJhQfVDxLfryDYUFjytfRH69ETq32ZUIIzl5Tu",
  "i94VFKDaqlQTok7Vs+5uQx4llxWT5OC5oj9Ow5thfnqHHFVcRMliba4YylJj5Pmd6X0OLU9MEs",
  "e8vxaV60cGce4zf8tUl3SB+QvnXw906eicPBxPFPHf/U4ffF4k7Kq1Pv3cEbOyb97fiNbfgO2W",
  "J+wwl3eKiyAf7il9n8n/bGvJ4quWntWdHPh2XFXsrvNcizcxMr50yynqJj12BlQDqMy36SxeVV",
  "OhilcXdcpoUMTLK87KNTxsR5ls4Xxl6l2W6Zfa5X7H/SXcT7Tr/1ijlYRR6h/5fgF7+4dMM=",
].join("");

// n: int32 [1, null, 3, 4]; t: utf8 ["a", null, "", "long text with ä"];
// d: dictionary ["yes", "no", null, "yes"]; l: list of int16 [[1, 2], [], null, [3]]
const usual = [
  "eNqdU71OwzAQPidOGrVGilCEMjDkARgZeAQGhg4MGUEiopVKikQkYGPkEXgABh6BnZUHYOAx2M",
  "2dfQ7OCRauut6v7/vObq21dqkASiCZg4EcMijQQ1EaNJoWe8iSfqG+ol5zfIA1bDQV+jXncJyb",
  "R3bD5099X1JGfcB2PXRX5B+7HlClO18jixxmyKiEivmpjHAOUfejGYRzgVrgh7IF1554HsWf6H",
  "94DpnkQOcHF/t9CS9gU8TYjrvE7R2uQZ05XEo3+IVQ9gVtxb0GPX+zxk2FREO4M3Az5iP38BY1",
  "dmqunHA+gR9J4W8xbEu2WVRTYk6QJOrrt/fdDe/RqniPvekeqXY7PI5TprzfmYOOcBaCi99/yr",
  "cW9YZt4HHEdpftUvS30e+L5EzUV2Leg7iLEOdRLhNvD/+I5Zvt/FLXUT7UgoZ9zzfb/rIZuruh",
  "uV0Pq+bteXq3ikcuxPsGTce+xPnW/1fgGz9CRpc=",
].join("");

const bytesOf = (text) => new Uint8Array(inflateSync(Buffer.from(text, "base64")));

module.exports = { unusual: bytesOf(unusual), usual: bytesOf(usual) };
