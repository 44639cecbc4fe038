/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of notes without a lock. A writer clears the stamp, writes, and
 * stamps; a reader that finds one stamp before and after has read one note. Two
 * writers that are a whole round apart may mix theirs: then the line is wrong,
 * but it can be formatted, as every format takes the same types. */
#include "check/transcript.h"

#include <stdio.h>
#include <string.h>

#include "base/thread.h"

void uva__transcript_note(struct uva__transcript *transcript,
                          const char *format, int64_t a, int64_t b)
{
    const uint64_t number = uva__atomic64_add(&transcript->next, 1);
    struct uva__note *note = &transcript->notes[number % UVA__TRANSCRIPT_NOTES];

    uva__atomic64_store(&note->stamp, 0);
    uva__atomic_ptr_store(&note->format, (void *)(uintptr_t)format);
    uva__atomic64_store(&note->a, (uint64_t)a);
    uva__atomic64_store(&note->b, (uint64_t)b);
    uva__atomic64_store(&note->thread, uva__thread_self());
    uva__atomic64_store(&note->stamp, number + 1);
}

/* Returns the small number of a thread, from 1; threads that do not fit share
 * the last number. */
static int transcript_thread(struct uva__transcript *transcript,
                             uint64_t thread)
{
    int i = 0;

    uva__lock_take(&transcript->threads.lock);
    while (i < transcript->threads.count &&
           transcript->threads.known[i] != thread)
        i++;
    if (i == transcript->threads.count && i < UVA__TRANSCRIPT_THREADS) {
        transcript->threads.known[i] = thread;
        transcript->threads.count++;
    }
    uva__lock_drop(&transcript->threads.lock);
    return i + 1;
}

/* Writes the call of that number, as a line. Writes no line if it was
 * overwritten or is not complete. */
static size_t transcript_write_line(struct uva__transcript *transcript,
                                    uint64_t number, char *line)
{
    struct uva__note *note = &transcript->notes[number % UVA__TRANSCRIPT_NOTES];
    const uint64_t before = uva__atomic64_load(&note->stamp);
    const char *format = uva__atomic_ptr_load(&note->format);
    const int64_t a = (int64_t)uva__atomic64_load(&note->a);
    const int64_t b = (int64_t)uva__atomic64_load(&note->b);
    const uint64_t thread = uva__atomic64_load(&note->thread);
    int head, size;

    if (before != number + 1 || uva__atomic64_load(&note->stamp) != before)
        return 0;
    head = snprintf(line, UVA__TRANSCRIPT_LINE,
                    "thread %d: ", transcript_thread(transcript, thread));
    size = snprintf(line + head, (size_t)(UVA__TRANSCRIPT_LINE - head), format,
                    a, b);
    size += head;
    return (size_t)(size < UVA__TRANSCRIPT_LINE ? size
                                                : UVA__TRANSCRIPT_LINE - 1);
}

void uva__transcript_write(struct uva__transcript *transcript,
                           char text[UVA__TRANSCRIPT_SIZE])
{
    const uint64_t end = uva__atomic64_load(&transcript->next);
    uint64_t number =
        end > UVA__TRANSCRIPT_NOTES ? end - UVA__TRANSCRIPT_NOTES : 0;
    char *at = text;

    text[0] = '\0';
    for (; number < end; number++) {
        const size_t size = transcript_write_line(transcript, number, at);
        if (size == 0)
            continue;
        at += size;
        *at++ = '\n';
    }
    if (at > text)
        at[-1] = '\0';
}
