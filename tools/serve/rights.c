/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of a connection states its driver. The rights are one query, of
 * one row: a text that states which are too many, or NULL. Rights count that
 * the user has by any role that it may become. */
#include "rights.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* Functions count wherever their extension has put them. Names are whole, as
 * the URI may set a search path. */
static const char QUESTION[] =
    "WITH roles AS (SELECT oid, rolname, rolsuper, rolreplication"
    " FROM pg_catalog.pg_roles"
    " WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')),"
    " functions AS (SELECT DISTINCT p.proname"
    " FROM pg_catalog.pg_proc p, roles r"
    " WHERE (p.proname IN ('lo_import', 'lo_export', 'pg_read_file',"
    " 'pg_read_binary_file', 'pg_ls_dir', 'pg_stat_file', 'pg_file_write',"
    " 'pg_file_rename', 'pg_file_unlink', 'pg_reload_conf',"
    " 'pg_rotate_logfile', 'pg_switch_wal', 'pg_create_restore_point',"
    " 'pg_promote')"
    " OR (p.proname = 'pg_logical_emit_message'"
    " AND pg_catalog.current_setting('wal_level') = 'logical')"
    " OR EXISTS (SELECT FROM pg_catalog.pg_depend d"
    " JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid"
    " WHERE d.objid = p.oid"
    " AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass"
    " AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass"
    " AND e.extname IN ('dblink', 'plproxy', 'http', 'pg_background')))"
    " AND pg_catalog.has_schema_privilege(r.oid, p.pronamespace, 'USAGE')"
    " AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')),"
    " rights AS ("
    " SELECT 1 AS place, 'it is a superuser, or may become one' AS text"
    " FROM roles WHERE rolsuper"
    " UNION SELECT 2, 'it may replicate' FROM roles"
    " WHERE rolreplication AND NOT EXISTS (SELECT FROM roles WHERE rolsuper)"
    " UNION SELECT 3, 'it has the role ' || rolname FROM roles"
    " WHERE rolname IN ('pg_read_server_files', 'pg_write_server_files',"
    " 'pg_execute_server_program', 'pg_signal_backend')"
    " AND NOT EXISTS (SELECT FROM roles WHERE rolsuper)"
    " UNION SELECT 4, 'it may call ' || proname FROM functions"
    " WHERE NOT EXISTS (SELECT FROM roles WHERE rolsuper))"
    " SELECT pg_catalog.string_agg(text, ', ' ORDER BY place, text) FROM "
    "rights";

enum { ANSWER_BYTES = 1 << 20 }; /* more is no answer */

/* A part of a larger text. */
struct part {
    const char *at; /* borrows */
    size_t size;
};

/* The only text, which ends where its bytes do. */
static struct part answer_text(const struct ArrowDeviceArray *batches,
                               size_t count)
{
    static const char unstated[] = "the database does not state its rights";
    const struct ArrowArray *text;
    const uint8_t *valid;
    const int32_t *ends;

    if (count != 1 || batches->array.length != 1 ||
        batches->array.n_children != 1)
        return (struct part){unstated, strlen(unstated)};
    text = batches->array.children[0];
    valid = text->buffers[0];
    ends = text->buffers[1];
    if (valid != NULL && (valid[0] & 1) == 0)
        return (struct part){NULL, 0};
    return (struct part){.at = (const char *)text->buffers[2] + ends[0],
                         .size = (size_t)(ends[1] - ends[0])};
}

static void question_end(struct uva__rights_question *question,
                         const struct uva_outcome *outcome)
{
    uva_stream_release(question->stream);
    question->stream = NULL;
    question->on_answer(question->ctx, outcome);
}

/* ---- the rights ---------------------------------------------------------- */

static void question_on_rights(void *ctx, const struct uva_stream_info *info,
                               struct ArrowDeviceArray *batches, size_t count,
                               const struct uva_outcome *outcome)
{
    struct uva__rights_question *question = ctx;
    struct uva_outcome refusal = {.end = UVA_END_FAILED};
    struct part text = {"", 0};

    (void)info;
    if (outcome->end == UVA_END_COMPLETE) {
        text = answer_text(batches, count);
        question->rights->are_few = text.size == 0;
        question->rights->are_many = text.size > 0;
    }
    if (text.size > 0) {
        (void)uva_error_set(&refusal.error, EACCES,
                            "the database's user can do more than read: %.*s; "
                            "use one with few rights, or --trust-user",
                            (int)text.size, text.at);
        outcome = &refusal;
    }
    question_end(question, outcome);
}

static int question_ask_rights(struct uva__rights_question *question,
                               struct uva_error *error)
{
    uva_stream_release(question->stream);
    question->stream = uva_stream_from_query(
        question->rights->pool, &(struct uva_adbc_query){.sql = QUESTION});
    return uva_stream_collect(question->stream, ANSWER_BYTES,
                              question_on_rights, question, error);
}

/* ---- the driver ---------------------------------------------------------- */

/* A driver that lists no name has been connected, and is not a known one. */
static bool is_answered(const struct uva_outcome *outcome)
{
    struct uva_pair step;

    return outcome->end == UVA_END_COMPLETE ||
           (outcome->error.code == ENOTSUP &&
            uva_metadata_get(outcome->metadata, "adbc.step", &step) != 0);
}

static enum uva__kind driver_find(const struct uva_stream_info *info)
{
    struct uva_pair name;
    char text[64];

    if (info == NULL ||
        uva_metadata_get(info->metadata, "adbc.driver", &name) != 0)
        return UVA__KIND_OTHER;
    (void)snprintf(text, sizeof(text), "%.*s", (int)name.value_size,
                   name.value);
    return uva__database_of_driver(text);
}

static const char OTHER_DRIVER[] =
    "the driver is not that of the database that its name states, so nothing "
    "keeps queries from changing it; see --writable";

static void question_on_driver(void *ctx, const struct uva_stream_info *info,
                               struct ArrowDeviceArray *batches, size_t count,
                               const struct uva_outcome *outcome)
{
    struct uva__rights_question *question = ctx;
    struct uva__rights *rights = question->rights;
    struct uva_outcome other = {0};

    (void)batches;
    (void)count;
    if (!is_answered(outcome)) {
        question_end(question, outcome);
        return;
    }
    rights->found = driver_find(info);
    rights->are_many = rights->must_match && rights->found != rights->kind;
    if (!rights->are_many && rights->must_be_few &&
        question_ask_rights(question, &other.error) == 0)
        return;
    if (rights->are_many)
        (void)uva_error_set(&other.error, EACCES, OTHER_DRIVER);
    other.end = other.error.code != 0 ? UVA_END_FAILED : UVA_END_COMPLETE;
    rights->are_few = other.end == UVA_END_COMPLETE;
    question_end(question, &other);
}

int uva__rights_ask(struct uva__rights *rights,
                    struct uva__rights_question *question,
                    struct uva_error *error)
{
    int code;

    question->rights = rights;
    question->stream = uva_stream_from_objects(
        rights->pool, &(struct uva_adbc_objects){
                          .depth = ADBC_OBJECT_DEPTH_TABLES,
                          .table = "uvarrow"}); /* no table, or a few */
    code = uva_stream_collect(question->stream, ANSWER_BYTES,
                              question_on_driver, question, error);
    if (code == 0)
        return 0;
    uva_stream_release(question->stream);
    question->stream = NULL;
    return code;
}

void uva__rights_drop(struct uva__rights_question *question)
{
    if (question->stream != NULL)
        uva_stream_drop(question->stream);
    question->stream = NULL;
}
