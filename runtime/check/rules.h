/* SPDX-License-Identifier: Apache-2.0 */
/* The clauses that a check between producer and handler decides, with the one
 * line that tells of a breach. */
#ifndef UVA_CHECK_RULES_H
#define UVA_CHECK_RULES_H

/* X(name, clause, text): a number is put in the place of "#". */
#define UVA__RULES(X)                                                          \
    X(AB_17, "AB-17", "the producer has a function slot that is NULL")         \
    X(AB_19, "AB-19", "a producer object of an old layout, without a type")    \
    X(AT_01, "AT-01", "task # has no extract_data")                            \
    X(AT_02, "AT-02", "task # was never extracted")                            \
    X(AT_03, "AT-03", "task # was extracted a second time")                    \
    X(AT_04, "AT-04", "extract_data without out returned #")                   \
    X(AT_05, "AT-05", "extraction of task # gave no live array")               \
    X(AT_07, "AT-07", "extraction of task # failed and gave data")             \
    X(AT_08, "AT-08", "task # came after a failed extraction")                 \
    X(AT_09, "AT-09", "extraction took # ms")                                  \
    X(AT_13, "AT-13", "task #: its struct was used after the call")            \
    X(AT_14, "AT-14", "the private_data of task # was altered")                \
    X(AT_16, "AT-16", "an array of device type #")                             \
    X(AT_17, "AT-17", "the array of task # does not fit the schema")           \
    X(AT_20, "AT-20", "task #: the producer used its struct again")            \
    X(AT_21, "AT-21", "task # was left by a stream cut short")                 \
    X(AT_22, "AT-22", "out was used though the extraction had failed")         \
    X(AT_23, "AT-23", "a callback inside extract_data")                        \
    X(AP_01, "AP-01", "the producer's device_type is #")                       \
    X(AP_02, "AP-02", "only # tasks came: requests do not add up")             \
    X(AP_03, "AP-03", "requests made inside callbacks brought nothing")        \
    X(AP_04, "AP-04", "a callback inside request")                             \
    X(AP_05, "AP-05", "release inside request")                                \
    X(AP_06, "AP-06", "task # came without a request for it")                  \
    X(AP_07, "AP-07", "task # rests on a request after cancel")                \
    X(AP_08, "AP-08", "request(#)")                                            \
    X(AP_09, "AP-09", "a request of less than 1 brought no on_error")          \
    X(AP_13, "AP-13", "a callback other than on_error inside cancel")          \
    X(AP_14, "AP-14", "cancelled, and no release came")                        \
    X(AP_16, "AP-16", "on_error(#) reports a cancel that worked")              \
    X(AP_19, "AP-19", "the bytes of additional_metadata have changed")         \
    X(AP_20, "AP-20", "additional_metadata points elsewhere")                  \
    X(AP_21, "AP-21", "the producer's private_data was altered")               \
    X(AP_23, "AP-23", "the producer's method was called on a copy of it")      \
    X(AP_24, "AP-24", "the producer was called after release")                 \
    X(AP_26, "AP-26", "# tasks came, and more were asked for")                 \
    X(AP_28, "AP-28", "a call of the producer took # ms")                      \
    X(AH_02, "AH-02", "the handler has a function slot that is NULL")          \
    X(AH_03, "AH-03", "handler->producer is not set")                          \
    X(AH_03_EARLY, "AH-03", "on_error, and handler->producer is not set")      \
    X(AH_04, "AH-04", "the producer was called before on_schema")              \
    X(AH_05, "AH-05", "not the time for on_schema, or for anything else")      \
    X(AH_05_ALONE, "AH-05", "release, and nothing before it")                  \
    X(AH_06, "AH-06", "the schema was neither moved nor released in time")     \
    X(AH_07, "AH-07", "the schema is NULL or released")                        \
    X(AH_08, "AH-08", "a callback though on_schema had returned an error")     \
    X(AH_09, "AH-09", "a callback returned #")                                 \
    X(AH_10, "AH-10", "task # came before any request")                        \
    X(AH_11, "AH-11", "a call after the end")                                  \
    X(AH_12, "AH-12", "release without end, error or cancel")                  \
    X(AH_15, "AH-15", "on_next_task while on_next_task runs")                  \
    X(AH_16, "AH-16", "a callback though on_next_task had returned an error")  \
    X(AH_17, "AH-17", "something other than release after on_error")           \
    X(AH_19, "AH-19", "the producer was called in on_error or release")        \
    X(AH_21, "AH-21", "release came not once")                                 \
    X(AH_22, "AH-22", "a callback after release")                              \
    X(AH_24, "AH-24", "self is not the handler that was handed over")          \
    X(AH_25, "AH-25", "the handler's private_data was altered")                \
    X(AH_26, "AH-26", "a function slot of the handler was altered")            \
    X(AH_29, "AH-29", "the handler was given to another producer")             \
    X(AH_32, "AH-32", "on_error came twice")                                   \
    X(AH_33, "AH-33", "on_error after the end, and no extraction failed")      \
    X(TH_01, "TH-01", "two callbacks at once")                                 \
    X(TH_08, "TH-08", "a callback inside a callback, on one thread")           \
    X(TH_09, "TH-09", "release while another callback runs")                   \
    X(TH_10, "TH-10", "the producer is being called as the stream ends")       \
    X(TH_12, "TH-12", "a callback took # ms")                                  \
    X(MD_02, "MD-02", "metadata that says nothing instead of NULL")            \
    X(MD_05, "MD-05", "metadata with a negative count or length")              \
    X(MD_09, "MD-09", "metadata beyond all bounds")                            \
    X(ER_05, "ER-05", "an extraction failed, and no on_error came")            \
    X(ER_06, "ER-06", "on_error with the code 0")                              \
    X(ER_07, "ER-07", "the message is not UTF-8")

#define UVA__RULE_NAME(name, clause, text) UVA__RULE_##name,
enum uva__rule { UVA__RULES(UVA__RULE_NAME) UVA__RULE_COUNT };
#undef UVA__RULE_NAME

#endif
