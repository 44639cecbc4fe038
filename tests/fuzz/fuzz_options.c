/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of any words. Accepted options keep the promises of options.h;
 * refused ones have a code and a text; and all memory comes back.
 *
 * Input: which options the sub-command has, then words. Most of them begin with
 * the name of an option. No word has a slash, so that only files of the current
 * folder are read. */
#include "options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz_input.h"

enum { WORDS = 140, MOST = 24 };

static const char *const starts[] = {"",
                                     "-",
                                     "--",
                                     "--",
                                     "-h",
                                     "--help",
                                     "-1",
                                     "a:b",
                                     "http://a",
                                     "SELECT",
                                     "K=V",
                                     "--driver",
                                     "--uri",
                                     "--file",
                                     "--from",
                                     "--merge",
                                     "--partitions",
                                     "--retry",
                                     "--explain",
                                     "--limit",
                                     "--compression",
                                     "--plain-types",
                                     "--cast",
                                     "--sync",
                                     "--async",
                                     "--token-file",
                                     "--quiet",
                                     "--verbose",
                                     "--tls-ca",
                                     "--null",
                                     "--format",
                                     "--output",
                                     "--trace",
                                     "--no-header",
                                     "--delimiter",
                                     "--param",
                                     "--option",
                                     "--connection-option",
                                     "--param",
                                     "--option",
                                     "--statement-option",
                                     "--entrypoint"};
static const char *const values[] = {"csv",
                                     "json",
                                     "table",
                                     "arrow",
                                     "arrow-file",
                                     "\\t",
                                     "null",
                                     "1e9",
                                     "true",
                                     "k=v",
                                     "int:7",
                                     "a=b=c",
                                     "99999999999999999999",
                                     "=",
                                     "nan",
                                     "date:1",
                                     "\"",
                                     "a:",
                                     ":"};

/* ---- words -------------------------------------------------------------- */

/* Adds bytes of the input, or a value of the table. */
static size_t value_read(struct fuzz_input *in, char *to)
{
    const int kind = fuzz_byte(in);
    size_t size = 0;

    if (kind % 2 == 0) {
        const char *value =
            values[kind / 2 % (int)(sizeof(values) / sizeof(*values))];

        memcpy(to, value, strlen(value));
        return strlen(value);
    }
    for (; size < (size_t)(kind / 2) % MOST; size++)
        to[size] = fuzz_letter(in);
    return size;
}

/* Gives a block of exactly its size. */
static char *word_read(struct fuzz_input *in)
{
    const int kind = fuzz_byte(in);
    const char *start = starts[kind % (int)(sizeof(starts) / sizeof(*starts))];
    char text[128];
    size_t size = strlen(start);

    memcpy(text, start, size);
    if (kind & 0x80) {
        if (start[0] == '-' && (kind & 0x40) != 0)
            text[size++] = '=';
        size += value_read(in, text + size);
    }
    return fuzz_word(text, size);
}

/* ---- checks ------------------------------------------------------------- */

static void check_settings(const struct uva__options *options)
{
    FUZZ_RULE(options->n_settings <= UVA__OPTIONS_SETTINGS);
    FUZZ_RULE(options->n_params <= UVA__OPTIONS_PARAMS);
    for (size_t i = 0; i < options->n_settings; i++) {
        const struct uva__setting *setting = &options->settings[i];

        FUZZ_RULE(setting->key[0] != '\0' && strchr(setting->key, '=') == NULL);
        FUZZ_RULE(setting->value != NULL && setting->value[-1] == '=');
    }
}

static void check_parts(const struct uva__options *options)
{
    FUZZ_RULE(options->partitions >= 0 &&
              options->partitions <= UVA__OPTIONS_PARTS);
    FUZZ_RULE(options->from == NULL || options->partitions == 0);
    FUZZ_RULE(options->retries == 0 || options->partitions > 0);
}

static void check_accepted(const struct uva__options *options)
{
    const bool from = options->from != NULL;
    const bool has_csv = options->encode.csv.null_text != NULL ||
                         options->encode.csv.delimiter != '\0' ||
                         options->encode.csv.rows_only;

    if (options->help)
        return;
    check_parts(options);
    FUZZ_RULE(!has_csv || options->encode.format == UVA_FORMAT_CSV);
    FUZZ_RULE(!from || options->set == UVA__OPTIONS_OUTPUT);
    FUZZ_RULE(!from || (options->driver == NULL && options->uri == NULL));
    FUZZ_RULE(from || options->sql != NULL);
    FUZZ_RULE(from || options->driver != NULL || options->uri != NULL);
    FUZZ_RULE(options->token_file == NULL || uva__options_from_server(options));
    FUZZ_RULE(options->set == UVA__OPTIONS_RUNS || options->runs == 0);
}

/* Standard input is empty for a query. */
static void input_close(void)
{
    static bool closed;

    if (closed)
        return;
    closed = true;
    FUZZ_RULE(freopen("/dev/null", "r", stdin) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct uva__options options;
    struct fuzz_input in = {data, size};
    const enum uva__options_set set =
        fuzz_below(&in, 2) == 0 ? UVA__OPTIONS_OUTPUT : UVA__OPTIONS_RUNS;
    struct uva_error error = {0};
    char *words[WORDS + 1];
    int count = 0, code;

    input_close();
    while (in.size > 0 && count < WORDS)
        words[count++] = word_read(&in);
    words[count] = NULL;
    code = uva__options_init(&options, words, set, &error);
    fuzz_trace("options", error.message, code);
    FUZZ_RULE(code == error.code);
    FUZZ_RULE((code == 0) == (error.message[0] == '\0'));
    check_settings(&options);
    if (code == 0)
        check_accepted(&options);
    uva__options_fini(&options);
    while (count > 0)
        free(words[--count]);
    return 0;
}
