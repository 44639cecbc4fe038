/* SPDX-License-Identifier: Apache-2.0 */
/* A forked process in a process group of its own. Only the child
 * holds the write end of a pipe, so end of file there signals that it ended. */
#define _GNU_SOURCE
#include "tck/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tck/case_run.h"

enum { JAIL_MAX = 64 };

/* Runs in the child: its output goes to the file instead of the terminal, and
 * it leaves no core file. */
static void jail_settle(const struct uva__jail *jail)
{
    const struct rlimit none = {0, 0};

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)dup2(fileno(jail->output), STDOUT_FILENO);
    (void)dup2(fileno(jail->output), STDERR_FILENO);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN);
}

int uva__jail_open(struct uva__jail *jail, void (*fn)(void *ctx), void *ctx,
                   int64_t limit_ms)
{
    int ends[2];
    int code;

    *jail = (struct uva__jail){.output = tmpfile()};
    if (jail->output == NULL)
        return errno;
    if (pipe2(ends, O_CLOEXEC) != 0)
        goto fail_output;
    (void)fflush(NULL);
    jail->began_ms = uva__trial_now_ms();
    jail->limit_ms = jail->began_ms + limit_ms;
    jail->pid = fork();
    if (jail->pid < 0)
        goto fail_pipe;
    if (jail->pid == 0) {
        (void)close(ends[0]);
        jail_settle(jail);
        fn(ctx);
        _exit(0);
    }
    (void)setpgid(jail->pid, jail->pid);
    (void)close(ends[1]);
    jail->alive = ends[0];
    return 0;
fail_pipe:
    code = errno;
    (void)close(ends[0]);
    (void)close(ends[1]);
    errno = code;
fail_output:
    code = errno;
    (void)fclose(jail->output);
    *jail = (struct uva__jail){0};
    return code;
}

/* Reaps a process that has ended, or kills it first. Its children are killed
 * with it. */
static void jail_reap(struct uva__jail *jail, bool hung)
{
    int status = 0;

    while (waitpid(jail->pid, &status, WNOHANG) <= 0) {
        if (hung || jail->limit_ms < uva__trial_now_ms())
            (void)kill(jail->pid, SIGKILL);
        (void)poll(NULL, 0, 1);
    }
    (void)kill(-jail->pid, SIGKILL);
    jail->took_ms = uva__trial_now_ms() - jail->began_ms;
    jail->pid = 0;
    (void)close(jail->alive);
    jail->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        jail->end = hung ? UVA__JAIL_HUNG : UVA__JAIL_CRASHED;
}

/* Returns how long the next process to run out of time still has. */
static int64_t jail_patience(const struct uva__jail *jails, int count)
{
    const int64_t now_ms = uva__trial_now_ms();
    int64_t least_ms = INT32_MAX;

    for (int i = 0; i < count; i++)
        if (jails[i].pid != 0 && jails[i].limit_ms - now_ms < least_ms)
            least_ms = jails[i].limit_ms - now_ms;
    return least_ms > 0 ? least_ms : 0;
}

int uva__jail_wait(struct uva__jail *jails, int count)
{
    struct pollfd fds[JAIL_MAX];
    int running = 0;

    assert(count <= JAIL_MAX);
    for (int i = 0; i < count; i++) {
        fds[i] = (struct pollfd){.fd = jails[i].pid != 0 ? jails[i].alive : -1,
                                 .events = POLLIN};
        running += jails[i].pid != 0;
    }
    if (running == 0)
        return -1;
    for (;;) {
        (void)poll(fds, (nfds_t)count, (int)jail_patience(jails, count));
        for (int i = 0; i < count; i++) {
            const bool over = (fds[i].revents & (POLLHUP | POLLIN)) != 0;

            if (jails[i].pid == 0 ||
                (!over && jails[i].limit_ms > uva__trial_now_ms()))
                continue;
            jail_reap(&jails[i], !over);
            return i;
        }
    }
}

void uva__jail_fini(struct uva__jail *jail, char *text, size_t size)
{
    long end;
    size_t got = 0;

    if (jail->pid != 0)
        jail_reap(jail, true);
    if (jail->output == NULL)
        return;
    (void)fseek(jail->output, 0, SEEK_END);
    end = ftell(jail->output);
    if (end > 0) {
        (void)fseek(jail->output, end >= (long)size ? end - (long)size + 1 : 0,
                    SEEK_SET);
        got = fread(text, 1, size - 1, jail->output);
    }
    text[got] = '\0';
    for (size_t i = 0; i < got; i++)
        if (text[i] == '\0')
            text[i] = '?';
    uva__trial_clean(text);
    (void)fclose(jail->output);
    jail->output = NULL;
}
