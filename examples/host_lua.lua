-- SPDX-License-Identifier: Apache-2.0
-- LuaJIT hosts the runtime without a module in C, on the loop of luv or of Neovim. The
-- loop watches one descriptor; after each turn a coroutine takes the batches that are
-- there. Structs are declared as in the headers.
--
--     luajit host_lua.lua DRIVER URI SQL
--     nvim --headless -u NONE -c "lua loadfile('host_lua.lua')('DRIVER', 'URI', 'SQL')" -c q
local ffi = require("ffi")
local uv = vim and vim.loop or require("luv")
local driver, uri, sql = ...

ffi.cdef [[
struct uva_error { int code, vendor_code; const char *vendor; char message[1008]; };
struct uva_pair { const char *key, *value; size_t key_size, value_size; };
struct uva_window { int32_t batches, refill; int64_t bytes; void *reserved[2]; };

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
struct ArrowDeviceArray {
    struct ArrowArray array;
    int64_t device_id;
    int32_t device_type;
    void *sync_event;
    int64_t reserved[3];
};
struct uva_batch {
    struct ArrowDeviceArray data;
    const void *schema;
    const char *metadata;
    int64_t ordinal;
    void *stream;
    int64_t reserved[4];
};
struct uva_outcome {
    void *stream;
    int end;
    struct uva_error error;
    const char *metadata;
    int64_t batches, rows, reserved[4];
};
int uva_runtime_open_turned(void *, void *, const void *, void **, struct uva_error *);
int uva_runtime_fd(void *);
int uva_runtime_turn(void *);
int uva_runtime_join(void *, int64_t);
int uva_stream_start_take(void *, const void *, void *, void *, struct uva_error *);
int uva_stream_take(void *, struct uva_batch *, struct uva_outcome *);
void uva_stream_release(void *);
void uva_array_release(struct ArrowDeviceArray *);

struct uva_adbc_pool_options {
    const char *driver, *entrypoint;
    const struct uva_pair *options, *connection_options;
    int32_t connections, stuck_connections, idle_ms, max_age_ms, connect_ms, lock_ms;
    int64_t wait_ms, batch_bytes;
    bool keeps_session;
    void *reserved[5];
};
struct uva_adbc_query {
    const char *sql;
    int result;
    const void *values, *parameters;
    const struct uva_pair *options;
    const char *ingest_table;
    int64_t busy_ms, batch_bytes;
    struct uva_window window;
    bool by_name;
    void *reserved[4];
};
int uva_adbc_pool_new(void *, const struct uva_adbc_pool_options *, void **,
                      struct uva_error *);
void *uva_stream_from_query(void *, const struct uva_adbc_query *);
void uva_adbc_pool_release(void *);
]]
local uva = ffi.load("uvarrow", true)
local uva_adbc = ffi.load("uvarrow-adbc")

local failure = ffi.new("struct uva_error")
local function check(code)
  if code ~= 0 then
    error(ffi.string(failure.message), 0)
  end
end

local function query(rt)
  local options = ffi.new("struct uva_pair[2]", { { key = "uri", value = uri }, {} })
  local pool = ffi.new("void *[1]")
  check(uva_adbc.uva_adbc_pool_new(rt, ffi.new("struct uva_adbc_pool_options",
    { driver = driver, options = options }), pool, failure))
  local s = uva_adbc.uva_stream_from_query(pool[0],
    ffi.new("struct uva_adbc_query", { sql = sql }))
  uva_adbc.uva_adbc_pool_release(pool[0]) -- the stream keeps it
  return ffi.gc(s, uva.uva_stream_release)
end

-- The batches of a stream, for a coroutine that is resumed after each turn. A batch is
-- valid until the next one.
local EAGAIN, ENOENT = 11, 2

local function batches(s)
  local batch, outcome = ffi.new("struct uva_batch"), ffi.new("struct uva_outcome")
  check(uva.uva_stream_start_take(s, nil, nil, nil, failure))
  return function()
    uva.uva_array_release(batch.data)
    local code = uva.uva_stream_take(s, batch, outcome)
    while code == EAGAIN do
      coroutine.yield()
      code = uva.uva_stream_take(s, batch, outcome)
    end
    if code == ENOENT and outcome.error.code ~= 0 then
      error(ffi.string(outcome.error.message), 0)
    end
    return code == 0 and batch or nil
  end
end

local function count(rt)
  local rows = 0
  for batch in batches(query(rt)) do
    rows = rows + tonumber(batch.data.array.length)
  end
  io.stdout:write(rows, " rows\n")
end

-- Calls the function as a coroutine, which gets a runtime. `done` is called with its
-- end: whether it has returned, and otherwise its error.
local function host(fn, done)
  local out = ffi.new("void *[1]")
  check(uva.uva_runtime_open_turned(nil, nil, nil, out, failure))
  local rt = out[0]
  local poll = uv.new_poll(uva.uva_runtime_fd(rt))
  local task = coroutine.create(fn)

  local function step()
    local good, text = coroutine.resume(task, rt)
    if coroutine.status(task) == "dead" then
      poll:stop() -- before the descriptor is closed
      poll:close()
      uva.uva_runtime_join(rt, 0)
      done(good, text)
    end
  end

  poll:start("r", function()
    uva.uva_runtime_turn(rt)
    step()
  end)
  step()
end

local code
host(count, function(good, text)
  code = good and 0 or 1
  if not good then
    io.stderr:write(text, "\n")
  end
end)
if vim then -- an editor would not wait
  vim.wait(2 ^ 31 - 1, function() return code end, 10)
else
  uv.run()
end
io.stdout:flush()
if code ~= 0 then
  os.exit(code)
end
