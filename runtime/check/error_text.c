/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of error texts. A poisoned copy keeps its NUL, so that a late reader
 * still finds a string, with another text. */
#include "check/error_text.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { POISON = 0xDD };

static size_t error_text_size(const char *text)
{
    return sizeof(struct uva__error_text) + strlen(text) + 1;
}

void uva__error_texts_init(struct uva__error_texts *texts,
                           const struct uva_allocator *allocator)
{
    uva__quarantine_init(&texts->poisoned, allocator, UVA__ERROR_TEXTS);
}

const char *uva__error_texts_copy(struct uva__error_texts *texts,
                                  const char *text)
{
    struct uva__error_text *copy =
        uva__memory_new(&texts->poisoned.allocator, error_text_size(text));

    assert(texts->current == NULL);
    if (copy == NULL)
        return text;
    memcpy(copy->text, text, strlen(text) + 1);
    texts->current = copy;
    return copy->text;
}

void uva__error_texts_poison(struct uva__error_texts *texts)
{
    struct uva__error_text *poisoned = texts->current;

    if (poisoned == NULL)
        return;
    texts->current = NULL;
    memset(poisoned->text, POISON, strlen(poisoned->text));
    uva__quarantine_put(&texts->poisoned, &poisoned->block,
                        error_text_size(poisoned->text));
}

void uva__error_texts_fini(struct uva__error_texts *texts,
                           struct uva__quarantine *quarantine)
{
    uva__error_texts_poison(texts);
    uva__quarantine_move(&texts->poisoned, quarantine);
}
