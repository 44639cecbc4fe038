/* SPDX-License-Identifier: Apache-2.0 */
/* nanoarrow as a subject of the test suite: its device stream plays the
 * blocking stream. This is only an adapter: it writes batches as bytes of Arrow
 * IPC, and all else is nanoarrow's, from its wheel.
 *
 * Built twice. In one build the device stream reads from nanoarrow's reader of
 * Arrow IPC; with NANOARROW_SUBJECT_ARRAYS it reads from nanoarrow's stream
 * over arrays, which has them all from the start and cannot fail. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uvarrow/tck.h"

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* ---- nanoarrow ---------------------------------------------------------- */

/* The declarations of nanoarrow's headers; its wheel has no headers. */
struct ArrowDevice;
struct ArrowError {
    char message[1024];
};
struct ArrowIpcInputStream {
    int (*read)(struct ArrowIpcInputStream *self, uint8_t *buf, int64_t room,
                int64_t *size, struct ArrowError *error);
    void (*release)(struct ArrowIpcInputStream *self);
    void *private_data;
};

static int (*open_reader)(struct ArrowArrayStream *out,
                          struct ArrowIpcInputStream *input, void *options);
static int (*open_arrays)(struct ArrowArrayStream *out,
                          struct ArrowSchema *schema, int64_t arrays);
static void (*set_array)(struct ArrowArrayStream *stream, int64_t at,
                         struct ArrowArray *array);
static int (*open_device)(struct ArrowDeviceArrayStream *out,
                          struct ArrowArrayStream *rows,
                          struct ArrowDevice *device);
static struct ArrowDevice *(*cpu_device)(void);

/* Finds a function in an extension module of the wheel, a file that is named
 * like _device's; NULL without it. */
static void *find(const char *module, const char *name)
{
    const char *suffix = strstr(UVA_TEST_DRIVER, "/_device.");
    char path[1024];
    void *library;

    if (suffix == NULL)
        return NULL;
    (void)snprintf(path, sizeof(path), "%s/%s%s", UVA_TEST_PACKAGES, module,
                   suffix + strlen("/_device"));
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    return library != NULL ? dlsym(library, name) : NULL;
}

/* The modules need Python's library, but no Python code runs. */
static bool load(void)
{
    if (dlopen(UVA_TEST_LIBPYTHON, RTLD_LAZY | RTLD_GLOBAL) == NULL)
        return false;
    *(void **)&open_reader =
        find("_ipc_lib", "PythonPkgArrowIpcArrayStreamReaderInit");
    *(void **)&open_arrays =
        find("_array_stream", "PythonPkgArrowBasicArrayStreamInit");
    *(void **)&set_array =
        find("_array_stream", "PythonPkgArrowBasicArrayStreamSetArray");
    *(void **)&open_device =
        find("_device", "PythonPkgArrowDeviceBasicArrayStreamInit");
    *(void **)&cpu_device = find("_device", "PythonPkgArrowDeviceCpu");
    return open_reader != NULL && open_arrays != NULL && set_array != NULL &&
           open_device != NULL && cpu_device != NULL;
}

/* ---- the data ----------------------------------------------------------- */

/* The message of the schema {n: int64}, and the head of the message of a batch
 * of three rows without nulls. The format is of machines with little endian, as
 * this one is. */
static const uint32_t SCHEMA[] = {
    0xffffffff, 0x00000078, 0x00000010, 0x000a0000, 0x0006000c, 0x00080005,
    0x0000000a, 0x00040100, 0x0000000c, 0x00080008, 0x00040000, 0x00000008,
    0x00000004, 0x00000001, 0x00000014, 0x00140010, 0x00060008, 0x000c0007,
    0x00100000, 0x00000010, 0x02010000, 0x00000010, 0x0000001c, 0x00000004,
    0x00000000, 0x00000001, 0x0000006e, 0x000c0008, 0x00070008, 0x00000008,
    0x01000000, 0x00000040};
static const uint32_t BATCH[] = {
    0xffffffff, 0x00000088, 0x00000014, 0x00000000, 0x0016000c, 0x00050006,
    0x000c0008, 0x0000000c, 0x00040300, 0x00000018, 0x00000018, 0x00000000,
    0x000a0000, 0x000c0018, 0x00080004, 0x0000000a, 0x0000003c, 0x00000010,
    0x00000003, 0x00000000, 0x00000000, 0x00000002, 0x00000000, 0x00000000,
    0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000018, 0x00000000,
    0x00000000, 0x00000001, 0x00000003, 0x00000000, 0x00000000, 0x00000000};
static const uint32_t END[] = {0xffffffff, 0};

enum { MESSAGE = sizeof(BATCH) + UVA_SUBJECT_ROWS * sizeof(int64_t) };

/* The bytes of a stream, one message at a time. Lives as long as its process.
 */
struct source {
    int32_t plan;
    int64_t batches;
    int64_t next; /* the message that follows; 0 is the schema */
    uint8_t message[MESSAGE];
    size_t size; /* bytes of the message */
    size_t at;   /* how many of them were read */
};

static void source_put(struct source *source, const uint32_t *words,
                       size_t size)
{
    memcpy(source->message, words, size);
    source->size = size;
    source->at = 0;
}

static void source_put_batch(struct source *source, int64_t k)
{
    source_put(source, BATCH, sizeof(BATCH));
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++) {
        const int64_t n = k * UVA_SUBJECT_ROWS + row;

        memcpy(&source->message[source->size], &n, sizeof(n));
        source->size += sizeof(n);
    }
}

/* Writes the next message. Returns 0, or EIO where the plan fails. */
static int source_advance(struct source *source)
{
    const int64_t k = source->next - 1;

    if (source->next == 0 && source->plan == UVA_SUBJECT_FAILS_FIRST)
        return EIO;
    if (source->next > 0 && source->plan == UVA_SUBJECT_SLOW)
        (void)usleep(5000); /* the plan asks for it */
    if (source->next == 0)
        source_put(source, SCHEMA, sizeof(SCHEMA));
    else if (k < source->batches || source->plan == UVA_SUBJECT_ENDLESS)
        source_put_batch(source, k);
    else if (source->plan == UVA_SUBJECT_FAILS)
        return EIO;
    else
        source_put(source, END, sizeof(END));
    source->next++;
    return 0;
}

static int source_read(struct ArrowIpcInputStream *self, uint8_t *buf,
                       int64_t room, int64_t *size, struct ArrowError *error)
{
    struct source *source = self->private_data;
    int code = 0;

    if (source->at == source->size)
        code = source_advance(source);
    if (code != 0) {
        (void)snprintf(error->message, sizeof(error->message),
                       "the source has failed");
        return code;
    }
    *size = (int64_t)(source->size - source->at);
    if (*size > room)
        *size = room;
    memcpy(buf, &source->message[source->at], (size_t)*size);
    source->at += (size_t)*size;
    return 0;
}

static void source_release(struct ArrowIpcInputStream *self)
{
    free(self->private_data);
    self->release = NULL;
}

/* ---- a stream ----------------------------------------------------------- */

static int read_ipc(int32_t plan, int64_t batches, struct ArrowArrayStream *out)
{
    struct source *source = calloc(1, sizeof(*source));
    struct ArrowIpcInputStream input = {source_read, source_release, source};

    if (source == NULL)
        return ENOMEM;
    source->plan = plan;
    source->batches = batches;
    return open_reader(out, &input, NULL);
}

#ifdef NANOARROW_SUBJECT_ARRAYS

/* A stream over arrays always has a schema, and is never slow. */
static bool can(int32_t plan)
{
    return plan == UVA_SUBJECT_WHOLE;
}

/* Replaces `rows` by a stream over its arrays. */
static int keep_arrays(struct ArrowArrayStream *rows, int64_t batches)
{
    struct ArrowArrayStream arrays;
    struct ArrowSchema schema;
    struct ArrowArray array;
    int code = rows->get_schema(rows, &schema);

    if (code == 0)
        code = open_arrays(&arrays, &schema, batches);
    for (int64_t k = 0; code == 0 && k < batches; k++) {
        code = rows->get_next(rows, &array);
        if (code == 0)
            set_array(&arrays, k, &array);
    }
    rows->release(rows);
    *rows = arrays;
    return code;
}

#else

static bool can(int32_t plan)
{
    return plan == UVA_SUBJECT_WHOLE || plan == UVA_SUBJECT_ENDLESS ||
           plan == UVA_SUBJECT_SLOW || plan == UVA_SUBJECT_FAILS ||
           plan == UVA_SUBJECT_FAILS_FIRST;
}

static int keep_arrays(struct ArrowArrayStream *rows, int64_t batches)
{
    (void)rows;
    (void)batches;
    return 0;
}

#endif

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct ArrowArrayStream rows;
    int code;

    (void)at;
    if (!can(plan))
        return UVA_SUBJECT_CANNOT;
    if (!load())
        return ENOENT;
    code = read_ipc(plan, batches, &rows);
    if (code == 0)
        code = keep_arrays(&rows, batches);
    return code != 0 ? code : open_device(out, &rows, cpu_device());
}
