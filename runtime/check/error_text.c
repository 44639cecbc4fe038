/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of texts. A spoiled one keeps its NUL, so that whoever reads it still
 * reads a string, of another text. */
#include "check/error_text.h"

#include <assert.h>
#include <string.h>

#include "core/memory.h"

static struct uva__error_text *error_text_new(struct uva__witness *witness,
                                              const char *text)
{
    const size_t bytes = strlen(text) + 1;
    const size_t size = sizeof(struct uva__error_text) + bytes;
    struct uva__error_text *copy =
        uva__memory_new(&uva__witness_how(witness)->allocator, size);

    if (copy == NULL)
        return NULL;
    copy->size = size;
    memcpy(copy->text, text, bytes);
    return copy;
}

const char *uva__error_texts_copy(struct uva__error_texts *texts,
                                  struct uva__witness *witness,
                                  const char *text)
{
    assert(texts->current == NULL);
    texts->current = error_text_new(witness, text);
    return texts->current == NULL ? text : texts->current->text;
}

void uva__error_texts_spoil(struct uva__error_texts *texts,
                            struct uva__witness *witness)
{
    struct uva__error_text **slot =
        &texts->spoiled[texts->next % UVA__ERROR_TEXTS];

    if (texts->current == NULL)
        return;
    if (*slot != NULL)
        uva__memory_free(&uva__witness_how(witness)->allocator, *slot,
                         (*slot)->size);
    *slot = texts->current;
    memset((*slot)->text, 0xDD, strlen((*slot)->text));
    texts->current = NULL;
    texts->next++;
}

void uva__error_texts_fini(struct uva__error_texts *texts,
                           struct uva__witness *witness)
{
    uva__error_texts_spoil(texts, witness);
    for (int i = 0; i < UVA__ERROR_TEXTS; i++)
        if (texts->spoiled[i] != NULL)
            uva__witness_bury(witness, &texts->spoiled[i]->grave,
                              texts->spoiled[i]->size);
}
