/* SPDX-License-Identifier: Apache-2.0 */
/* The table of clauses: one row for each rule of the protocol, with the party
 * that it binds, how bad a breach is, and the texts that report one.
 * docs/clauses.md has the full text of each rule.
 *
 * A "must" that is broken is an error. It is fatal where the act itself frees,
 * uses or overwrites memory that it may not, so that memory is not safe any
 * more; a bad value that the other side can still refuse is not fatal. A
 * "should" is a warning, and a permission is a note. Four rules have a milder
 * severity than they deserve, as existing peers break them.
 *
 * Clauses: AB-19, AH-09, DS-07, MD-02. */
#ifndef UVA_PROTOCOL_CLAUSES_H
#define UVA_PROTOCOL_CLAUSES_H

#include "uvarrow/check.h"

struct uva__clause {
    const char *id;             /* letters, a dash and a number */
    enum uva_party party;       /* that it binds */
    enum uva_severity severity; /* of a breach */
    const char *rule;           /* in one line */
    const char *breach;     /* NULL: its text is made where it is found; "#" is
                               the place of a number */
    const char *unnumbered; /* of a breach without its number; NULL: `breach`
                               has no number, and is used */
};

/* X(name, id, party, severity, rule, breach and unnumbered if there are any).
 * In the catalogue's order. Columns: Producer, Consumer, Both; Note, Warning,
 * Error, Fatal. */
/* clang-format off */
#define UVA__CLAUSES(X)                                                        \
    X(AB_01, "AB-01", B, E, "the guard macros keep their exact names")         \
    X(AB_02, "AB-02", B, E, "ArrowDeviceType is an int32_t")                   \
    X(AB_03, "AB-03", B, E, "the device macros keep their numbers")            \
    X(AB_04, "AB-04", B, E,                                                    \
      "ArrowSchema has the layout of the C data interface")                    \
    X(AB_05, "AB-05", B, E,                                                    \
      "ArrowArray has the layout of the C data interface")                     \
    X(AB_06, "AB-06", B, E,                                                    \
      "ArrowDeviceArray has 128 bytes, laid out as defined")                   \
    X(AB_07, "AB-07", B, E,                                                    \
      "ArrowDeviceArrayStream has 48 bytes, laid out so")                      \
    X(AB_08, "AB-08", B, E,                                                    \
      "ArrowAsyncTask has 16 bytes, laid out as defined")                      \
    X(AB_09, "AB-09", B, E, "ArrowAsyncProducer has 40 bytes and no release")  \
    X(AB_10, "AB-10", B, E,                                                    \
      "the handler has 48 bytes, with a producer pointer")                     \
    X(AB_11, "AB-11", B, E,                                                    \
      "the structs have the known sizes with 32 bits too")                     \
    X(AB_13, "AB-13", B, E, "request takes an int64_t, on_error a pointer")    \
    X(AB_15, "AB-15", C, E, "an unknown device type is taken as opaque")       \
    X(AB_16, "AB-16", B, E, "no exception or longjmp crosses a callback")      \
    X(AB_17, "AB-17", B, E, "no mandatory function is NULL at hand-over",      \
      .breach = "the producer has a function that is NULL")                    \
    X(AB_18, "AB-18", B, N, "no Arrow library is needed to take part")         \
    X(AB_19, "AB-19", B, N, "the layouts agree with today's definitions",      \
      .breach = "a producer object of an old layout, without a type")          \
    X(AB_20, "AB-20", B, E,                                                    \
      "a header that defines a guard defines its whole block")                 \
    X(DA_03, "DA-03", P, E, "device_type is set")                              \
    X(DA_04, "DA-04", P, E, "device_id is set")                                \
    X(DA_05, "DA-05", P, N, "a CPU array has the device id -1")                \
    X(DA_07, "DA-07", B, E, "a CPU array is a plain array with a few fields")  \
    X(DA_08, "DA-08", P, E, "the reserved bytes are zero at hand-over")        \
    X(DA_09, "DA-09", C, E, "the reserved bytes are not read or changed")      \
    X(DA_11, "DA-11", P, F, "all memory goes with array.release")              \
    X(DA_12, "DA-12", B, E, "only release == NULL marks a released one")       \
    X(DA_13, "DA-13", C, F, "release is called with the live struct it is in") \
    X(DA_14, "DA-14", B, N, "the struct's storage belongs to its receiver")    \
    X(DA_16, "DA-16", C, F, "a move copies the bytes and marks the source")    \
    X(DA_17, "DA-17", P, F, "the struct may be moved to any address")          \
    X(DA_19, "DA-19", P, N,                                                    \
      "a batch is a struct array, its metadata the schema's")                  \
    X(DA_20, "DA-20", P, E, "the number of buffers fits the format")           \
    X(DA_21, "DA-21", P, E, "length, offset and null_count are possible")      \
    X(DA_22, "DA-22", P, E, "no buffer is NULL that has to hold something")    \
    X(DA_23, "DA-23", P, E, "offsets rise, and sizes are possible")            \
    X(DA_24, "DA-24", P, W, "buffers are aligned for their items")             \
    X(DA_25, "DA-25", P, E, "there are n_children live children")              \
    X(DA_26, "DA-26", P, E, "there is a dictionary where the schema has one")  \
    X(DA_27, "DA-27", P, E, "views have a last buffer with the lengths")       \
    X(DA_28, "DA-28", C, N, "refused data is released nevertheless")           \
    X(DA_29, "DA-29", C, W, "release is read before any other field")          \
    X(EV_01, "EV-01", P, F, "without an event the data is ready")              \
    X(EV_03, "EV-03", P, F, "all writes come before the event")                \
    X(EV_04, "EV-04", P, W, "a CPU array has no event")                        \
    X(EV_09, "EV-09", P, W, "VPI, WEBGPU and HEXAGON arrays have no event")    \
    X(EV_17, "EV-17", C, F, "the consumer's reads are over when it releases")  \
    X(EV_18, "EV-18", P, N, "an event may be NULL if not needed")              \
    X(EV_20, "EV-20", B, F, "one event stands for the whole tree")             \
    X(DS_01, "DS-01", P, E, "all chunks fit the schema that get_schema gave")  \
    X(DS_02, "DS-02", P, E, "get_next gives a chunk, the end or an error")     \
    X(DS_03, "DS-03", P, W, "chunks are of the stream's device type")          \
    X(DS_04, "DS-04", C, E, "device_id is read from each chunk")               \
    X(DS_05, "DS-05", P, E, "the stream's device_type is set and stays")       \
    X(DS_06, "DS-06", C, F, "no function of a released stream is called")      \
    X(DS_07, "DS-07", P, W, "the result is 0 or a positive errno")             \
    X(DS_09, "DS-09", C, E, "after get_next, release == NULL means the end")   \
    X(DS_10, "DS-10", C, E, "get_last_error follows a failed call only")       \
    X(DS_11, "DS-11", P, E, "the error text is NULL or UTF-8")                 \
    X(DS_12, "DS-12", C, F, "the error text is copied before the next call")   \
    X(DS_14, "DS-14", C, F, "the stream is released once")                     \
    X(DS_15, "DS-15", P, E, "release marks the stream as released")            \
    X(DS_16, "DS-16", C, F, "one call at a time")                              \
    X(DS_17, "DS-17", C, F, "private_data is left alone")                      \
    X(DS_18, "DS-18", P, F, "the stream may be moved between calls")           \
    X(DS_19, "DS-19", B, F, "a failed call gives no object")                   \
    X(DS_20, "DS-20", P, E,                                                    \
      "the schema is host memory, apart from the stream")                      \
    X(DS_21, "DS-21", P, E, "get_schema gives equal schemas, at any time")     \
    X(AT_01, "AT-01", P, F, "extract_data is not NULL",                        \
      .breach = "task # has no extract_data",                                  \
      .unnumbered = "a task cannot be extracted")                              \
    X(AT_02, "AT-02", C, E, "every task is extracted",                         \
      .breach = "task # was never extracted")                                  \
    X(AT_03, "AT-03", C, F, "and once only, over all its copies",              \
      .breach = "task # was extracted a second time")                          \
    X(AT_04, "AT-04", P, E, "extract_data takes NULL, to clean up",            \
      .breach = "extract_data without out returned #")                         \
    X(AT_05, "AT-05", P, E, "success gives a whole, live array",               \
      .breach = "extraction of task # gave no live array",                     \
      .unnumbered = "an extraction succeeded and gave no array")               \
    X(AT_07, "AT-07", P, E, "a failed extraction returns non-zero",            \
      .breach = "extraction of task # failed and gave data")                   \
    X(AT_08, "AT-08", P, W, "after it, only on_error and release",             \
      .breach = "task # came after a failed extraction")                       \
    X(AT_09, "AT-09", P, W, "extraction is quick",                             \
      .breach = "extraction took # ms")                                        \
    X(AT_10, "AT-10", P, E, "extraction works at any time, on any thread")     \
    X(AT_12, "AT-12", P, F, "a task may be copied anywhere")                   \
    X(AT_13, "AT-13", C, F, "the task's struct is not used after the call",    \
      .breach = "task #: its struct was used after the call")                  \
    X(AT_14, "AT-14", C, F, "the task's private_data is left alone",           \
      .breach = "the private_data of task # was altered")                      \
    X(AT_15, "AT-15", P, E, "tasks come in the order of the data")             \
    X(AT_16, "AT-16", P, W, "arrays are of the producer's device type",        \
      .breach = "an array of device type #",                                   \
      .unnumbered = "a batch is of another device type than its stream")       \
    X(AT_17, "AT-17", P, W, "arrays fit the schema of on_schema",              \
      .breach = "the array of task # does not fit the schema",                 \
      .unnumbered = "a batch does not fit the schema")                         \
    X(AT_20, "AT-20", P, E, "the task's struct is not read after the call",    \
      .breach = "task #: the producer used its struct again")                  \
    X(AT_21, "AT-21", C, E, "tasks left over at the end are extracted too",    \
      .breach = "task # was left by a stream cut short")                       \
    X(AT_22, "AT-22", C, F, "after a failed extraction there is no array",     \
      .breach = "out was used though the extraction had failed")               \
    X(AT_23, "AT-23", P, E, "extract_data calls no callback on its stack",     \
      .breach = "a callback inside extract_data")                              \
    X(AT_24, "AT-24", P, E, "extraction needs no lock that a callback holds")  \
    X(AP_01, "AP-01", P, E, "the producer's device_type is set and stays",     \
      .breach = "the producer's device_type is #",                             \
      .unnumbered = "the producer has no device type")                         \
    X(AP_02, "AP-02", P, E, "requests add up",                                 \
      .breach = "only # tasks came: requests do not add up")                   \
    X(AP_03, "AP-03", P, E, "request works inside callbacks",                  \
      .breach = "requests made inside callbacks brought no batch")             \
    X(AP_04, "AP-04", P, E, "request calls no on_next_task and no on_error",   \
      .breach = "a callback inside request")                                   \
    X(AP_05, "AP-05", P, W,                                                    \
      "request calls no release", .breach = "release inside request")          \
    X(AP_06, "AP-06", P, E, "no more tasks than were requested",               \
      .breach = "task # came without a request for it",                        \
      .unnumbered = "a task came that was not requested")                      \
    X(AP_07, "AP-07", P, E, "request after cancel has no effect",              \
      .breach = "task # rests on a request after cancel")                      \
    X(AP_08, "AP-08", C, E, "a request is for more than 0",                    \
      .breach = "request(#)")                                                  \
    X(AP_09, "AP-09", P, W, "0 or less is answered by on_error",               \
      .breach = "a request of less than 1 brought no on_error")                \
    X(AP_10, "AP-10", P, E, "a failed request is reported by on_error, later") \
    X(AP_11, "AP-11", P, E, "a second cancel has no effect")                   \
    X(AP_13, "AP-13", P, E, "cancel calls only on_error",                      \
      .breach = "a callback other than on_error inside cancel")                \
    X(AP_14, "AP-14", P, E, "after cancel, tasks end and release comes",       \
      .breach = "cancelled, and no release came")                              \
    X(AP_15, "AP-15", C, E, "after cancel, tasks and errors are still taken")  \
    X(AP_16, "AP-16", P, E, "a cancel that worked is no error",                \
      .breach = "on_error(#) reports a cancel that worked")                    \
    X(AP_17, "AP-17", P, E, "a cancel that failed is one")                     \
    X(AP_18, "AP-18", P, W, "after cancel only ready batches come")            \
    X(AP_19, "AP-19", P, E, "additional_metadata is NULL or well-formed",      \
      .breach = "the bytes of additional_metadata have changed")               \
    X(AP_20, "AP-20", P, E, "and stays as it is",                              \
      .breach = "additional_metadata points elsewhere")                        \
    X(AP_21, "AP-21", C, F, "the producer's private_data is left alone",       \
      .breach = "the producer's private_data was altered")                     \
    X(AP_23, "AP-23", C, E, "the producer is called where it lies",            \
      .breach = "the producer's method was called on a copy of it")            \
    X(AP_24, "AP-24", C, E, "the producer is not called from the end on",      \
      .breach = "the producer was called after release")                       \
    X(AP_25, "AP-25", C, E, "without a request, no batch comes")               \
    X(AP_26, "AP-26", P, E, "with a request and a batch ready, a task comes",  \
      .breach = "# tasks came, and more were asked for")                       \
    X(AP_28, "AP-28", P, E, "request and cancel wait for no callback",         \
      .breach = "a call of the producer took # ms",                            \
      .unnumbered = "request or cancel does not return: it is left")           \
    X(AP_29, "AP-29", P, E, "without a request, little is read ahead")         \
    X(AH_01, "AH-01", C, E, "a handler is ready before it is given away")      \
    X(AH_02, "AH-02", C, E, "the handler's functions are not NULL",            \
      .breach = "the handler has a function that is NULL")                     \
    X(AH_03, "AH-03", P, E, "producer is set before the first callback",       \
      .breach = "a callback came before handler->producer was set")            \
    X(AH_04, "AH-04", C, E, "producer is not used before on_schema",           \
      .breach = "the producer was called before on_schema")                    \
    X(AH_05, "AH-05", P, E, "on_schema comes first, and once",                 \
      .breach = "on_schema must come first, and once")                         \
    X(AH_06, "AH-06", C, E, "on_schema moves or releases the schema",          \
      .breach = "the schema was not moved or released in time")                \
    X(AH_07, "AH-07", P, E, "the schema is not NULL, and live",                \
      .breach = "the schema is NULL or released")                              \
    X(AH_08, "AH-08", P, E, "after a refused schema only release comes",       \
      .breach = "only release may follow a refused schema")                    \
    X(AH_09, "AH-09", C, W, "callbacks return 0 or an errno",                  \
      .breach = "a callback returned #")                                       \
    X(AH_10, "AH-10", P, E, "no task comes before the first request",          \
      .breach = "task # came before any request")                              \
    X(AH_11, "AH-11", P, E, "the end comes once, and only release after it",   \
      .breach = "only release may follow the end")                             \
    X(AH_12, "AH-12", P, E, "a stream ends by the end, an error or a cancel",  \
      .breach = "release without end, error or cancel")                        \
    X(AH_13, "AH-13", P, E, "a task's metadata is NULL or well-formed")        \
    X(AH_14, "AH-14", C, F, "and is copied if it is needed for longer")        \
    X(AH_15, "AH-15", P, F, "on_next_task runs once at a time",                \
      .breach = "on_next_task while on_next_task runs")                        \
    X(AH_16, "AH-16", P, E, "after a refused task only release comes",         \
      .breach = "only release may follow a refused task")                      \
    X(AH_17, "AH-17", P, E, "after on_error only release comes, and does",     \
      .breach = "only release may follow on_error")                            \
    X(AH_18, "AH-18", P, N, "on_error may come at any time")                   \
    X(AH_19, "AH-19", C, E, "on_error and release call no producer",           \
      .breach = "the producer was called in on_error or release")              \
    X(AH_20, "AH-20", C, F, "an error's text is copied if it is kept")         \
    X(AH_21, "AH-21", P, F, "release is called once",                          \
      .breach = "release must come exactly once")                              \
    X(AH_22, "AH-22", P, F, "no callback comes after release",                 \
      .breach = "a callback after release")                                    \
    X(AH_23, "AH-23", P, N, "release may come without any request")            \
    X(AH_24, "AH-24", P, E, "self is the pointer that was handed over",        \
      .breach = "self is not the handler that was handed over")                \
    X(AH_25, "AH-25", P, F, "the handler's private_data is left alone",        \
      .breach = "the handler's private_data was altered")                      \
    X(AH_26, "AH-26", P, E, "of the handler, only producer is written",        \
      .breach = "a function of the handler was altered")                       \
    X(AH_29, "AH-29", B, E, "a handler has one producer",                      \
      .breach = "the handler was given to another producer")                   \
    X(AH_30, "AH-30", P, W, "every batch fits the schema")                     \
    X(AH_32, "AH-32", P, E, "there is one error at most",                      \
      .breach = "on_error came twice")                                         \
    X(AH_33, "AH-33", P, E, "after the end only an extraction can fail",       \
      .breach = "on_error after the end, and no extraction failed")            \
    X(AH_34, "AH-34", P, E, "a task taken stays good after the end")           \
    X(TH_01, "TH-01", P, F, "callbacks run one at a time",                     \
      .breach = "two callbacks at once")                                       \
    X(TH_02, "TH-02", C, E, "callbacks may come on any thread")                \
    X(TH_04, "TH-04", C, N, "cancel may come from any thread")                 \
    X(TH_06, "TH-06", P, E, "no lock is held over a callback")                 \
    X(TH_08, "TH-08", P, E, "no callback begins inside another",               \
      .breach = "a callback inside a callback, on one thread")                 \
    X(TH_09, "TH-09", P, F, "release comes when all others have returned",     \
      .breach = "release while another callback runs")                         \
    X(TH_10, "TH-10", C, F, "the producer is not in use when the stream ends", \
      .breach = "the producer is being called as the stream ends")             \
    X(TH_11, "TH-11", C, E,                                                    \
      "a task may come before request returns, or after")                      \
    X(TH_12, "TH-12", C, W, "callbacks return soon",                           \
      .breach = "a callback took # ms")                                        \
    X(TH_13, "TH-13", C, F, "a blocking stream is called one call at a time")  \
    X(TH_14, "TH-14", P, E, "the first callback may come inside the start")    \
    X(MD_01, "MD-01", P, E, "metadata is encoded as defined")                  \
    X(MD_02, "MD-02", P, N, "no metadata is NULL, not a block without pairs",  \
      .breach = "metadata without pairs instead of NULL")                      \
    X(MD_03, "MD-03", P, E, "metadata is encoded alike in all four places")    \
    X(MD_05, "MD-05", P, E, "its numbers are not negative",                    \
      .breach = "metadata with a negative count or length",                    \
      .unnumbered = "metadata is malformed: left out")                         \
    X(MD_06, "MD-06", C, E, "keys and values are bytes, not strings")          \
    X(MD_07, "MD-07", C, N, "metadata may be ignored")                         \
    X(MD_08, "MD-08", B, E, "the order of pairs is kept, and doubles are")     \
    X(MD_09, "MD-09", P, E, "metadata is of a sane size",                      \
      .breach = "metadata beyond all bounds")                                  \
    X(MD_10, "MD-10", P, E, "extension types are named in the metadata")       \
    X(MD_11, "MD-11", B, E, "metadata lasts as long as its owner")             \
    X(MD_12, "MD-12", P, E, "blocks beyond int32 are not encoded")             \
    X(LC_01, "LC-01", B, E,                                                    \
      "live structs, and only they, have a release")                           \
    X(LC_02, "LC-02", C, F, "received objects are released, and once")         \
    X(LC_03, "LC-03", C, E, "children are released by their parent")           \
    X(LC_04, "LC-04", C, F, "no struct is read after its release")             \
    X(LC_05, "LC-05", P, E, "release releases the children that are live")     \
    X(LC_07, "LC-07", P, E, "release marks the struct as released")            \
    X(LC_08, "LC-08", P, F, "release does not care where the struct lies")     \
    X(LC_10, "LC-10", C, E, "with a child moved out, the parent is released")  \
    X(LC_11, "LC-11", C, E, "the producer's memory is not altered")            \
    X(LC_14, "LC-14", P, E, "producer is set before the callbacks")            \
    X(LC_15, "LC-15", P, F, "strings last for the call")                       \
    X(LC_17, "LC-17", P, E, "a schema that is left is released")               \
    X(LC_22, "LC-22", B, E, "at the end all is accounted for")                 \
    X(LC_24, "LC-24", P, E, "releasing an array waits for no callback")        \
    X(ER_01, "ER-01", B, E, "0 is success, all else an errno")                 \
    X(ER_02, "ER-02", B, W, "EINVAL, ENOMEM and EIO are known")                \
    X(ER_03, "ER-03", P, W, "an error is followed by release")                 \
    X(ER_04, "ER-04", P, W, "a refusal is not answered by on_error")           \
    X(ER_05, "ER-05", B, W, "a failed extraction is reported twice",           \
      .breach = "an extraction failed, and no on_error came")                  \
    X(ER_06, "ER-06", P, W, "the code of an error is not 0",                   \
      .breach = "on_error with the code 0")                                    \
    X(ER_07, "ER-07", P, E, "the text of an error is NULL or UTF-8",           \
      .breach = "the message is not UTF-8")                                    \
    X(ER_08, "ER-08", P, E, "an error's metadata is NULL or well-formed")      \
    X(ER_09, "ER-09", P, E, "an error is not passed off as the end")           \
    X(ER_10, "ER-10", B, E, "a stream has one outcome")                        \
    X(ER_11, "ER-11", P, E, "no error comes after release")                    \
    X(ER_12, "ER-12", C, E, "a failed extraction is an error by itself")       \
    X(ER_13, "ER-13", C, E, "release alone is not an end")                     \
    X(ER_14, "ER-14", C, E, "after cancel, any end means cancelled")           \
    X(ER_15, "ER-15", B, E, "a stream's errors have a code and a text")

/* Milder forms of some: of the same clause, with a severity and a text of their
 * own. */
#define UVA__CLAUSE_VARIANTS(X)                                                \
    X(AH_03_EARLY, "AH-03", P, W, "producer is set before the first callback", \
      .breach = "on_error came before handler->producer was set")              \
    X(AH_05_ALONE, "AH-05", P, W, "on_schema comes first, and once",           \
      .breach = "release, and no call before it")

#define UVA__CLAUSE_NAME(name, ...) UVA__RULE_##name,
enum uva__rule {
    UVA__CLAUSES(UVA__CLAUSE_NAME)
    UVA__CLAUSE_VARIANTS(UVA__CLAUSE_NAME)
    UVA__RULE_COUNT
};
/* clang-format on */
#undef UVA__CLAUSE_NAME

/* Returns the row of a clause, or of a variant. Thread: any. */
const struct uva__clause *uva__clause_of(enum uva__rule rule);

/* Returns the clause with this id, or NULL. Thread: any. */
const struct uva__clause *uva__clause_find(const char *id);

/* Returns the text of a breach of the clause with this id, which has one, for a
 * report without a number. Static, never NULL. Thread: any. */
const char *uva__clause_breach(const char *id);

/* Returns all clauses, without the variants; `count` gets their number.
 * Thread: any. */
const struct uva__clause *uva__clauses(int *count);

#endif
