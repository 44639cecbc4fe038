/* SPDX-License-Identifier: Apache-2.0 */
/* The stream behind, the check in front of it, and its reader. */
#include "support/spoiled_stream.h"

#include <check.h>
#include <string.h>

#include "check/blocking_check.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const int64_t DATA[4] = {0};

static struct spoiled_stream *scene_of(struct ArrowDeviceArrayStream *self)
{
    struct spoiled_stream *scene = self->private_data;

    scene->calls++;
    return scene;
}

static int behind_get_schema(struct ArrowDeviceArrayStream *self,
                             struct ArrowSchema *out)
{
    struct spoiled_stream *scene = scene_of(self);

    if (scene->code == 0) {
        plain_schema(out, "+s", "", 1);
        plain_schema(out->children[0], "l", "n", 0);
    }
    if (scene->spoil_schema != NULL)
        scene->spoil_schema(out);
    return scene->code;
}

void spoiled_stream_chunk(struct ArrowDeviceArray *out)
{
    memset(out, 0, sizeof(*out));
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(&out->array, 4, 1, 1);
    plain_array(out->array.children[0], 4, 2, 0);
    out->array.children[0]->buffers[1] = DATA;
}

static int behind_get_next(struct ArrowDeviceArrayStream *self,
                           struct ArrowDeviceArray *out)
{
    struct spoiled_stream *scene = scene_of(self);
    void (*inside)(struct spoiled_stream * scene) = scene->inside;

    scene->inside = NULL;
    if (inside != NULL)
        inside(scene);
    if (scene->code == 0 && scene->chunks > 0)
        spoiled_stream_chunk(out);
    else if (scene->code == 0)
        out->array.release = NULL;
    scene->chunks--;
    if (scene->spoil_chunk != NULL)
        scene->spoil_chunk(out);
    if (scene->turns_to != 0)
        self->device_type = scene->turns_to;
    return scene->code;
}

static const char *behind_get_last_error(struct ArrowDeviceArrayStream *self)
{
    return scene_of(self)->text;
}

static void behind_release(struct ArrowDeviceArrayStream *self)
{
    struct spoiled_stream *scene = scene_of(self);

    scene->releases++;
    if (!scene->unmarked)
        self->release = NULL;
}

void spoiled_stream_init(struct spoiled_stream *scene, int chunks)
{
    memset(scene, 0, sizeof(*scene));
    breach_log_init(&scene->log);
    faulty_allocator_init(&scene->memory, 0);
    scene->chunks = chunks;
    scene->stream =
        (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CPU,
                                        .get_schema = behind_get_schema,
                                        .get_next = behind_get_next,
                                        .get_last_error = behind_get_last_error,
                                        .release = behind_release,
                                        .private_data = scene};
}

struct uva_check spoiled_stream_options(struct spoiled_stream *scene)
{
    struct uva_check options = breach_log_options(&scene->log);

    options.allocator = faulty_allocator_table(&scene->memory);
    return options;
}

/* Puts the check around the stream. */
void spoiled_stream_check(struct spoiled_stream *scene)
{
    struct uva_check options = spoiled_stream_options(scene);

    options.keep = true;
    ck_assert_int_eq(uva__reporter_new(&options, &scene->reporter, NULL), 0);
    ck_assert_int_eq(uva__blocking_check(scene->reporter, &scene->stream, NULL),
                     0);
}

void spoiled_stream_open(struct spoiled_stream *scene, int chunks)
{
    spoiled_stream_init(scene, chunks);
    spoiled_stream_check(scene);
}

/* Releases the stream, if it is live, and checks that nothing is left. */
void spoiled_stream_close(struct spoiled_stream *scene)
{
    if (scene->stream.release != NULL)
        scene->stream.release(&scene->stream);
    breach_log_expect(&scene->log, "");
    ck_assert_int_eq(scene->releases, 1);
    ck_assert_int_eq(scene->log.freed, 0);
    uva__reporter_release(scene->reporter);
    ck_assert_int_eq(scene->log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&scene->memory), 0);
    ck_assert_int_eq(plain_live(), 0);
}

int spoiled_stream_get_schema(struct spoiled_stream *scene)
{
    struct ArrowSchema schema = {0};
    const int code = scene->stream.get_schema(&scene->stream, &schema);

    if (code == 0)
        uva_schema_release(&schema);
    else
        ck_assert(schema.release == NULL);
    return code;
}

/* One chunk, released; ENODATA at the end. */
int spoiled_stream_get_next(struct spoiled_stream *scene)
{
    struct ArrowDeviceArray chunk = {0};
    const int code = scene->stream.get_next(&scene->stream, &chunk);

    if (code != 0) {
        ck_assert(chunk.array.release == NULL);
        return code;
    }
    if (chunk.array.release == NULL)
        return ENODATA;
    ck_assert_int_eq(chunk.device_type, ARROW_DEVICE_CPU);
    chunk.array.release(&chunk.array);
    return 0;
}

const char *spoiled_stream_get_last_error(struct spoiled_stream *scene)
{
    return scene->stream.get_last_error(&scene->stream);
}
