/* SPDX-License-Identifier: Apache-2.0 */
/* Linux clears the memory itself, however the child was made. Not every system
 * can do that, and qemu reports that it did but does not, so a fork() also runs
 * a hook that clears each word that there is. */
#include "base/fork_page.h"

#include <errno.h>
#include <string.h>

#include "base/platform.h"

static struct {
    struct uva__lock lock; /* held while the process forks, too */
    bool has_hooks;
    struct uva__list pages; /* each struct uva__fork_page */
} process;

static struct uva__fork_page *page_of(struct uva__link *link)
{
    return uva__container_of(link, struct uva__fork_page, link);
}

/* ---- a fork ------------------------------------------------------------- */

static void fork_begins(void)
{
    uva__lock_take(&process.lock);
}

static void fork_ends_in_parent(void)
{
    uva__lock_drop(&process.lock);
}

/* This is the only thread, so no other thread waits for the lock: dropping it
 * might wake one, by a mutex that a thread of the parent held. */
static void fork_ends_in_child(void)
{
    struct uva__link *link = process.pages.head;

    for (; link != NULL; link = link->next)
        uva__atomic64_store(page_of(link)->word, 0);
    memset(&process.lock, 0, sizeof(process.lock));
}

/* ---- init and fini ------------------------------------------------------ */

int uva__fork_page_init(struct uva__fork_page *page)
{
    bool is_first;

    page->word = uva__platform_map_wiped(sizeof(*page->word));
    if (page->word == NULL)
        return ENOMEM;
    uva__atomic64_store(page->word, 1);
    uva__lock_take(&process.lock);
    is_first = !process.has_hooks;
    process.has_hooks = true;
    uva__list_push(&process.pages, &page->link);
    uva__lock_drop(&process.lock);
    if (is_first) /* without memory for the hooks the system alone clears it */
        uva__platform_on_fork(fork_begins, fork_ends_in_parent,
                              fork_ends_in_child);
    return 0;
}

void uva__fork_page_fini(struct uva__fork_page *page)
{
    uva__lock_take(&process.lock);
    uva__list_remove(&process.pages, &page->link);
    uva__lock_drop(&process.lock);
    uva__platform_unmap(page->word, sizeof(*page->word));
}
