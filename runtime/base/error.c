/* SPDX-License-Identifier: Apache-2.0 */
/* Names of codes, texts of errors, and the version. */
#include "base/error.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

unsigned uva_version(void)
{
    return UVA_VERSION_HEX;
}

/* ---- codes -------------------------------------------------------------- */

/* The codes of base.h first, then codes that peers and systems commonly return.
 */
#define ERROR_CODES(X)                                                         \
    X(EINVAL)                                                                  \
    X(ENOMEM)                                                                  \
    X(EPERM)                                                                   \
    X(EBUSY)                                                                   \
    X(EAGAIN)                                                                  \
    X(EDEADLK)                                                                 \
    X(ETIMEDOUT)                                                               \
    X(ECANCELED)                                                               \
    X(ESHUTDOWN)                                                               \
    X(EPIPE)                                                                   \
    X(EPROTO)                                                                  \
    X(ECONNABORTED)                                                            \
    X(ENOTSUP)                                                                 \
    X(EIO)                                                                     \
    X(EMSGSIZE)                                                                \
    X(EOVERFLOW)                                                               \
    X(ENOENT)                                                                  \
    X(ENODEV)                                                                  \
    X(E2BIG)                                                                   \
    X(EACCES)                                                                  \
    X(EADDRINUSE)                                                              \
    X(EADDRNOTAVAIL)                                                           \
    X(EALREADY)                                                                \
    X(EBADF)                                                                   \
    X(EBADMSG)                                                                 \
    X(ECHILD)                                                                  \
    X(ECONNREFUSED)                                                            \
    X(ECONNRESET)                                                              \
    X(EDOM)                                                                    \
    X(EEXIST)                                                                  \
    X(EFAULT)                                                                  \
    X(EFBIG)                                                                   \
    X(EHOSTUNREACH)                                                            \
    X(EILSEQ)                                                                  \
    X(EINPROGRESS)                                                             \
    X(EINTR)                                                                   \
    X(EISCONN)                                                                 \
    X(EISDIR)                                                                  \
    X(EMFILE)                                                                  \
    X(ENAMETOOLONG)                                                            \
    X(ENETDOWN)                                                                \
    X(ENETUNREACH)                                                             \
    X(ENFILE)                                                                  \
    X(ENOBUFS)                                                                 \
    X(ENOEXEC)                                                                 \
    X(ENOSPC)                                                                  \
    X(ENOSYS)                                                                  \
    X(ENOTCONN)                                                                \
    X(ENOTDIR)                                                                 \
    X(ENOTEMPTY)                                                               \
    X(ENXIO)                                                                   \
    X(ERANGE)                                                                  \
    X(EROFS)                                                                   \
    X(ESRCH)                                                                   \
    X(EXDEV)

struct error_code {
    int code;         /* the platform's number */
    const char *name; /* static */
};

#define ERROR_ROW(code) {code, #code},
static const struct error_code ERROR_TABLE[] = {ERROR_CODES(ERROR_ROW)};
#undef ERROR_ROW

const char *uva_error_name(int code)
{
    const size_t count = sizeof(ERROR_TABLE) / sizeof(ERROR_TABLE[0]);

    if (code == 0)
        return "OK";
    for (size_t i = 0; i < count; i++)
        if (ERROR_TABLE[i].code == code)
            return ERROR_TABLE[i].name;
    return "E?";
}

int uva__error_positive(int code)
{
    if (code == INT_MIN) /* has no positive counterpart */
        return INT_MAX;
    return code < 0 ? -code : code;
}

/* ---- texts -------------------------------------------------------------- */

/* The size of the character that begins with `lead`; 1 if it begins no
 * character. */
static size_t error_char_size(unsigned char lead)
{
    if (lead >= 0xF0)
        return lead <= 0xF4 ? 4 : 1;
    if (lead >= 0xE0)
        return 3;
    return lead >= 0xC2 ? 2 : 1;
}

static bool error_continues(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t uva__error_utf8_prefix(const char *text, size_t size, size_t room)
{
    size_t back = 0;

    if (size <= room)
        return size;
    while (back < 3 && back < room && error_continues(text[room - back]))
        back++;
    if (back == 0 || error_continues(text[room - back]))
        return room;
    return error_char_size((unsigned char)text[room - back]) > back
               ? room - back
               : room;
}

/* Writes `text` up to its NUL, at most `size` bytes. */
static void error_write(struct uva_error *error, const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);

    if (end != NULL)
        size = (size_t)(end - text);
    size = uva__error_utf8_prefix(text, size, sizeof(error->message) - 1);
    memmove(error->message, text, size);
    error->message[size] = '\0';
}

int uva_error_set(struct uva_error *error, int code, const char *format, ...)
{
    char text[sizeof(error->message) + 4]; /* apart: an argument may be
                                              error->message itself */
    va_list args;

    if (error == NULL)
        return code;
    text[0] = '\0';
    va_start(args, format);
    if (vsnprintf(text, sizeof(text), format, args) < 0)
        text[0] = '\0';
    va_end(args);
    error->code = code;
    error->vendor_code = 0;
    error->vendor = NULL;
    error_write(error, text, sizeof(text));
    return code;
}

void uva__error_prefix(struct uva_error *error, const char *name)
{
    char text[sizeof(error->message) + 4];

    (void)snprintf(text, sizeof(text), "%s: %s", name, error->message);
    error_write(error, text, sizeof(text));
}

int uva__error_set_foreign(struct uva_error *error, int code, const char *text)
{
    code = code == 0 ? EIO : uva__error_positive(code);
    if (text == NULL)
        return uva_error_set(error, code, "%s (%d), without a message",
                             uva_error_name(code), code);
    if (error == NULL)
        return code;
    error->code = code;
    error->vendor_code = 0;
    error->vendor = NULL;
    error_write(error, text, sizeof(error->message) + 3);
    return code;
}
