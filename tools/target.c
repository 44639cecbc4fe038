/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  check -> open: a new file without a name, where the system has
 *              such, or with one -> written by others -> keep: it is synced if
 *              it replaces an old one, gets a name beside the target, and is
 *              renamed to it.
 * Failures:    each step, and the old file is as it was. A file without a name
 *              is gone with the process, however that ends; one with a name
 *              stays only if the process is killed.
 * On a signal: the command drops it, or the guard removes it. */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "database_file.h"

#define LINKS_MOST 40  /* symbolic links in a row */
#define NAMES_MOST 100 /* names that are tried for a new file */

/* ---- input files -------------------------------------------------------- */

/* An output that must be no input. */
struct output {
    struct stat about; /* of an existing file */
    const char *name;  /* borrows: for the text */
};

/* Whether writing would destroy content: not with pipes and terminals. */
static bool output_is_kept(const struct output *output)
{
    return S_ISREG(output->about.st_mode) || S_ISBLK(output->about.st_mode);
}

static bool output_is(const struct output *output, const struct stat *about)
{
    return output->about.st_dev == about->st_dev &&
           output->about.st_ino == about->st_ino;
}

static int output_check(const struct output *output, const char *path,
                        const char *what, struct uva_error *error)
{
    struct stat about;

    if (path == NULL || (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &about)
                                                : stat(path, &about)) != 0)
        return 0;
    if (!output_is(output, &about))
        return 0;
    return uva_error_set(error, EINVAL,
                         "%s is also %s (%s), which it would destroy; write "
                         "to another file",
                         output->name, what,
                         strcmp(path, "-") == 0 ? "standard input" : path);
}

/* Returns the text after the scheme, or NULL. */
static const char *uri_rest(const char *uri)
{
    const size_t size = strspn(uri, "abcdefghijklmnopqrstuvwxyz"
                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

    return size > 0 && uri[size] == ':' ? uri + size + 1 : NULL;
}

/* A database is a path, or a URI with one: "sqlite:a.db", "file:a%20b.db?mode",
 * "sqlite:file:a.db". Only the driver knows which file it is: the output must
 * not be any of these. */
static int output_check_database(const struct output *output, const char *uri,
                                 struct uva_error *error)
{
    static const char WHAT[] = "the database";
    char *path;
    int code = 0;

    for (; uri != NULL && code == 0; uri = uri_rest(uri)) {
        if (uva__database_uri_path(uri, &path) != 0)
            return uva_error_set(error, ENOMEM, "out of memory");
        code = output_check(output, uri, WHAT, error);
        if (code == 0)
            code = output_check(output, path, WHAT, error);
        free(path);
    }
    return code;
}

static int output_check_settings(const struct output *output,
                                 const struct uva__options *options,
                                 struct uva_error *error)
{
    int code = 0;
    size_t i;

    for (i = 0; i < options->n_settings && code == 0; i++)
        code = output_check_database(output, options->settings[i].value, error);
    return code;
}

static int output_check_all(const struct output *output,
                            const struct uva__options *options,
                            struct uva_error *error)
{
    const struct {
        const char *path;
        const char *what;
    } inputs[] = {
        {options->file, "the file of the query"},
        {options->token_file, "the file of the token"},
        {options->tls_ca, "the file of certificates"},
        {options->driver, "the driver"},
    };
    const bool has_files = !uva__options_from_server(options);
    int code = 0;
    size_t i;

    for (i = 0; i < options->n_froms && has_files && code == 0; i++)
        code = output_check(output, options->froms[i], "the input", error);
    for (i = 0; i < sizeof(inputs) / sizeof(*inputs) && code == 0; i++)
        code = output_check(output, inputs[i].path, inputs[i].what, error);
    if (code == 0)
        code = output_check_database(output, options->uri, error);
    return code == 0 ? output_check_settings(output, options, error) : code;
}

int uva__target_check(const struct uva__options *options,
                      struct uva_error *error)
{
    struct output rows = {.name = "standard output"}, trace = {.name = "trace"};
    int code = 0;

    if (options->output != NULL)
        rows.name = options->output;
    if ((options->output != NULL ? stat(options->output, &rows.about)
                                 : fstat(STDOUT_FILENO, &rows.about)) == 0 &&
        output_is_kept(&rows)) {
        code = output_check_all(&rows, options, error);
        if (code == 0)
            code = output_check(&rows, options->trace, "the trace", error);
    }
    if (code != 0 || options->trace == NULL)
        return code;
    trace.name = options->trace;
    if (options->output != NULL && strcmp(trace.name, rows.name) == 0)
        return uva_error_set(error, EINVAL,
                             "%s cannot be both --output and --trace",
                             trace.name);
    if (stat(trace.name, &trace.about) != 0 || !output_is_kept(&trace))
        return 0;
    return output_check_all(&trace, options, error);
}

/* ---- open --------------------------------------------------------------- */

/* Gives the folder of `path` with its last slash, and `name` after it. NULL:
 * no memory. */
static char *path_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *text = malloc(folder + strlen(name) + 1);

    if (text == NULL)
        return NULL;
    memcpy(text, path, folder);
    memcpy(text + folder, name, strlen(name) + 1);
    return text;
}

/* Whether a path leads to a descriptor that is open already. */
static bool path_is_descriptor(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

/* Follows one symbolic link: `path`, on the heap, is replaced. Returns 0;
 * ENOENT: it is no file; an errno. */
static int path_follow(char **path)
{
    char name[PATH_MAX];
    const ssize_t size = readlink(*path, name, sizeof(name));
    char *next;

    if (size < 0)
        return ENOENT;
    if (size == sizeof(name))
        return ENAMETOOLONG;
    name[size] = '\0';
    next = name[0] == '/' ? strdup(name) : path_beside(*path, name);
    if (next == NULL)
        return ENOMEM;
    free(*path);
    *path = next;
    return 0;
}

/* Finds the file itself, so that a link to it stays one. Returns 0, with
 * `path` NULL if it is to be written to itself. */
static int target_resolve(struct uva__target *target,
                          const struct uva__options *options,
                          struct stat *about)
{
    int code = 0, links;

    if (options->output == NULL || options->in_place)
        return 0;
    target->replaces = stat(options->output, about) == 0;
    if (target->replaces && !S_ISREG(about->st_mode))
        return 0;
    target->path = strdup(options->output);
    if (target->path == NULL)
        return ENOMEM;
    for (links = 0; code == 0 && !path_is_descriptor(target->path); links++)
        code = links < LINKS_MOST ? path_follow(&target->path) : ELOOP;
    if (code == ENOENT)
        return 0;
    free(target->path);
    target->path = NULL;
    return code;
}

/* Gives the new file the mode and the owner of the old one. Bits such as
 * set-UID are for the owner that they were given for. */
static void target_keep_mode(const struct uva__target *target,
                             const struct stat *old)
{
    const mode_t plain = S_IRWXU | S_IRWXG | S_IRWXO;
    const bool is_owned = fchown(target->fd, old->st_uid, old->st_gid) == 0;

    if (!is_owned && fchown(target->fd, (uid_t)-1, old->st_gid) != 0)
        (void)fchmod(target->fd, old->st_mode & plain & ~(mode_t)S_IRWXG);
    else
        (void)fchmod(target->fd,
                     old->st_mode & (is_owned ? plain | 07000 : plain));
}

/* Opens a file that is in no folder, where that can be. Returns -1 otherwise.
 */
static int open_nameless(const char *path, mode_t mode)
{
#ifdef O_TMPFILE
    char *folder = path_beside(path, ".");
    const int fd = folder == NULL || access("/proc/self/fd", X_OK) != 0
                       ? -1
                       : open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);

    free(folder);
    return fd;
#else
    (void)path;
    (void)mode;
    return -1;
#endif
}

/* Gives `fresh`, the next name for a new file. */
static int fresh_name(struct uva__target *target, unsigned number)
{
    char name[64];

    (void)snprintf(name, sizeof(name), ".uvarrow-%ld-%u", (long)getpid(),
                   number);
    free(target->fresh);
    target->fresh = path_beside(target->path, name);
    return target->fresh != NULL ? 0 : ENOMEM;
}

static int open_named(struct uva__target *target, mode_t mode)
{
    unsigned i;
    int code = EEXIST;

    for (i = 0; i < NAMES_MOST && code == EEXIST; i++) {
        code = fresh_name(target, i);
        if (code != 0)
            return code;
        target->fd =
            open(target->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        code = target->fd < 0 ? errno : 0;
    }
    target->is_named = code == 0;
    return code;
}

static int target_make(struct uva__target *target, const struct stat *old)
{
    const mode_t mode = target->replaces ? 0600 : 0666;
    int code = 0;

    if (target->replaces && access(target->path, W_OK) != 0)
        return errno;
    target->fd = open_nameless(target->path, mode);
    if (target->fd < 0)
        code = open_named(target, mode);
    if (code == 0 && target->is_named)
        uva__guard_remove(target->guard, target->fresh);
    if (code == 0 && target->replaces)
        target_keep_mode(target, old);
    return code;
}

static void target_free(struct uva__target *target)
{
    uva__guard_remove(target->guard, NULL);
    free(target->fresh);
    free(target->path);
    target->fresh = target->path = NULL;
    target->is_named = false;
    target->fd = -1;
}

int uva__target_open(struct uva__target *target,
                     const struct uva__options *options,
                     struct uva__guard *guard, struct uva_error *error)
{
    struct stat old;
    int code;

    *target =
        (struct uva__target){.guard = guard, .name = options->output, .fd = -1};
    code = target_resolve(target, options, &old);
    if (code == 0 && target->path != NULL)
        code = target_make(target, &old);
    if (code == 0)
        return 0;
    target_free(target);
    return uva_error_set(error, code,
                         "cannot write to %s: %s; it would be replaced by a "
                         "new file beside it, unless --in-place is given",
                         target->name, strerror(code));
}

/* ---- close -------------------------------------------------------------- */

/* Gives the file a name, to be renamed: a link does not replace a file. */
static int target_link(struct uva__target *target)
{
    char path[64];
    unsigned i;
    int code = EEXIST;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", target->fd);
    for (i = 0; i < NAMES_MOST && code == EEXIST; i++) {
        code = fresh_name(target, i);
        if (code != 0)
            return code;
        code = linkat(AT_FDCWD, path, AT_FDCWD, target->fresh,
                      AT_SYMLINK_FOLLOW) == 0
                   ? 0
                   : errno;
    }
    target->is_named = code == 0;
    return code;
}

/* An old file is lost by a crash of the system if the new one is not on the
 * disk. Without an old file, no data can be lost. */
static int target_replace(struct uva__target *target)
{
    int code = 0;

    if (target->replaces && fsync(target->fd) != 0)
        return errno;
    if (!target->is_named)
        code = target_link(target);
    if (code == 0 && rename(target->fresh, target->path) != 0)
        code = errno;
    target->is_named = target->is_named && code != 0;
    return code;
}

void uva__target_drop(struct uva__target *target)
{
    if (target->path == NULL)
        return;
    if (target->is_named)
        (void)unlink(target->fresh);
    (void)close(target->fd);
    target_free(target);
}

int uva__target_keep(struct uva__target *target, struct uva_error *error)
{
    const int code = target->path != NULL ? target_replace(target) : 0;

    uva__target_drop(target);
    if (code == 0)
        return 0;
    return uva_error_set(error, code,
                         "cannot replace %s: %s; --in-place writes to the "
                         "file itself",
                         target->name, strerror(code));
}
