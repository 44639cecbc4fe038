/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of `uvarrow serve` of any words, and files of options of any
 * lines. Accepted options keep the promises of settings.h and access.h, and are
 * the same when they are read again; refused ones have a code and a text; and
 * all memory comes back.
 *
 * Input: words. Most of them begin with the name of an option. No word has a
 * slash, so that only files of the current folder are read. If the input ends
 * with an odd byte, the words are lines of a file, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz/fuzz_input.h"
#include "settings.h"

enum { WORDS = 60, MOST = 24 };

static const char *const starts[] = {
    "",          "-",           "--",           "-h",
    "--help",    "a.db",        "--driver",     "--entrypoint",
    "--option",  "--listen",    "--host",       "--allow-origin",
    "--quiet",   "--writable",  "--log",        "--connection-option",
    "--tls-key", "--tls-cert",  "--host",       "--token-file",
    "--listen",  "--max-head=", "--limit",      "--option",
    "--config",  "--database",  "--trust-user", "--trusted-proxy"};
static const char *const values[] = {"127.0.0.1:0",
                                     "[::1]:80",
                                     "0.0.0.0:65535",
                                     "0.0.0.0:65536",
                                     "[::1:80",
                                     "::1:1",
                                     "1.2.3:4",
                                     ":",
                                     "a",
                                     "a:1",
                                     "k=v",
                                     "=",
                                     "k=",
                                     "0",
                                     "1",
                                     "-1",
                                     "9223372036854775807",
                                     "99999999999999999999",
                                     "1e3",
                                     "http:a",
                                     "null",
                                     "*",
                                     "10.0.0.0|8",
                                     "fd00::|8",
                                     "true",
                                     "false"};

enum {
    STARTS = sizeof(starts) / sizeof(*starts),
    VALUES = sizeof(values) / sizeof(*values)
};

/* ---- words -------------------------------------------------------------- */

/* Adds bytes of the input, or a value of the table; "|" stands for the slashes
 * of an origin. */
static size_t value_read(struct fuzz_input *in, char *to)
{
    const int kind = fuzz_byte(in);
    size_t size = 0;

    if (kind % 2 == 0) {
        const char *value = values[kind / 2 % VALUES];

        memcpy(to, value, strlen(value));
        if (strchr(value, '|') != NULL)
            to[strcspn(value, "|")] = '/';
        return strlen(value);
    }
    if (kind % 4 == 1) {
        memcpy(to, "https://", 8);
        size = 8;
    }
    for (int n = kind / 4 % MOST; n > 0; n--)
        to[size++] = fuzz_letter(in);
    return size;
}

/* The name of an option, or of a limit. */
static const char *start_of(int kind)
{
    size_t limits = 0;

    while (uva__limits_at(limits) != NULL)
        limits++;
    kind %= STARTS + (int)limits;
    return kind < STARTS ? starts[kind]
                         : uva__limits_at((size_t)kind - STARTS)->option;
}

/* Gives a block of exactly its size. */
static char *word_read(struct fuzz_input *in)
{
    const char *start = start_of(fuzz_byte(in));
    const int kind = fuzz_byte(in);
    char text[128];
    size_t size = strlen(start);

    memcpy(text, start, size);
    if (kind & 1) {
        if (start[0] == '-' && (kind & 2) != 0)
            text[size++] = '=';
        size += value_read(in, text + size);
    }
    return fuzz_word(text, size);
}

/* ---- checks ------------------------------------------------------------- */

static void check_limits(const struct uva__limits *limits)
{
    const struct uva__limit *limit;
    int64_t value;

    for (size_t i = 0; (limit = uva__limits_at(i)) != NULL; i++) {
        memcpy(&value, (const char *)limits + limit->offset, sizeof(value));
        FUZZ_RULE(value >= limit->least && value <= limit->most);
    }
}

static void check_accepted(const struct uva__settings *settings)
{
    const struct uva__access *access = &settings->access;

    FUZZ_RULE(access->n_hosts <= UVA__ACCESS_MOST);
    FUZZ_RULE(access->n_origins <= UVA__ACCESS_MOST);
    FUZZ_RULE(settings->proxies.count <= UVA__PROXIES_MOST);
    for (size_t i = 0; i < settings->proxies.count; i++)
        FUZZ_RULE(settings->proxies.networks[i].bits >= 0 &&
                  settings->proxies.networks[i].bits <= 128);
    for (size_t i = 0; i < access->n_hosts; i++)
        FUZZ_RULE(access->hosts[i][0] != '\0');
    for (size_t i = 0; i < access->n_origins; i++)
        FUZZ_RULE(strstr(access->origins[i], "://") != NULL ||
                  strcmp(access->origins[i], "null") == 0);
    check_limits(&settings->limits);
    if (settings->help)
        return;
    FUZZ_RULE(settings->database.driver != NULL ||
              settings->database.name != NULL);
    FUZZ_RULE((settings->certificate == NULL) == (settings->key == NULL));
    FUZZ_RULE(settings->address.ss_family == AF_INET ||
              settings->address.ss_family == AF_INET6);
}

/* Reads the words, and again. */
static void words_read(char **words)
{
    static struct uva__settings settings;
    struct uva_error error = {0};
    char changed[1024];
    const int code = uva__settings_init(&settings, words, &error);

    fuzz_trace("settings", error.message, code);
    FUZZ_RULE(code == error.code);
    FUZZ_RULE((code == 0) == (error.message[0] == '\0'));
    if (code == 0)
        check_accepted(&settings);
    if (code == 0 && !settings.help) {
        FUZZ_RULE(uva__settings_compare(&settings, words, changed,
                                        sizeof(changed), &error) == 0);
        FUZZ_RULE(changed[0] == '\0');
    }
    uva__settings_fini(&settings);
}

/* Writes the words as lines of a file in memory, without their "--". */
static void lines_read(char **words)
{
    const int fd = memfd_create("options", 0);
    char path[64], *args[] = {"--config", path, NULL};
    FILE *file = fdopen(fd, "w");

    FUZZ_RULE(file != NULL);
    for (; *words != NULL; words++)
        (void)fprintf(file, "%s\n",
                      strncmp(*words, "--", 2) == 0 ? *words + 2 : *words);
    FUZZ_RULE(fflush(file) == 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    words_read(args);
    (void)fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    const bool has_file = size > 0 && data[size - 1] % 2 == 1;
    char *words[WORDS + 1];
    int count = 0;

    while (in.size > 0 && count < WORDS)
        words[count++] = word_read(&in);
    words[count] = NULL;
    words_read(words);
    if (has_file)
        lines_read(words);
    while (count > 0)
        free(words[--count]);
    return 0;
}
