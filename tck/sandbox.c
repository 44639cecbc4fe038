/* SPDX-License-Identifier: Apache-2.0 */
/* A forked process in its own process group. Only the child holds the write end
 * of a pipe, so end of file there signals that it ended. */
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

enum { SANDBOX_MAX = 64 };

/* Runs in the child: its output goes to the file instead of the terminal, and
 * it leaves no core file. */
static void sandbox_settle(const struct uva__sandbox *sandbox)
{
    const struct rlimit none = {0, 0};

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)dup2(fileno(sandbox->output), STDOUT_FILENO);
    (void)dup2(fileno(sandbox->output), STDERR_FILENO);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN);
}

int uva__sandbox_open(struct uva__sandbox *sandbox, void (*fn)(void *ctx),
                      void *ctx, int64_t limit_ms)
{
    int ends[2];
    int code;

    *sandbox = (struct uva__sandbox){.output = tmpfile()};
    if (sandbox->output == NULL)
        return errno;
    if (pipe2(ends, O_CLOEXEC) != 0)
        goto fail_output;
    (void)fflush(NULL);
    sandbox->began_ms = uva__case_run_now_ms();
    sandbox->limit_ms = sandbox->began_ms + limit_ms;
    sandbox->pid = fork();
    if (sandbox->pid < 0)
        goto fail_pipe;
    if (sandbox->pid == 0) {
        (void)close(ends[0]);
        sandbox_settle(sandbox);
        fn(ctx);
        _exit(0);
    }
    (void)setpgid(sandbox->pid, sandbox->pid);
    (void)close(ends[1]);
    sandbox->alive = ends[0];
    return 0;
fail_pipe:
    code = errno;
    (void)close(ends[0]);
    (void)close(ends[1]);
    errno = code;
fail_output:
    code = errno;
    (void)fclose(sandbox->output);
    *sandbox = (struct uva__sandbox){0};
    return code;
}

/* Reaps a process that has ended, or kills it first. Its children are killed
 * with it. */
static void sandbox_reap(struct uva__sandbox *sandbox, bool hung)
{
    int status = 0;

    while (waitpid(sandbox->pid, &status, WNOHANG) <= 0) {
        if (hung || sandbox->limit_ms < uva__case_run_now_ms())
            (void)kill(sandbox->pid, SIGKILL);
        (void)poll(NULL, 0, 1);
    }
    (void)kill(-sandbox->pid, SIGKILL);
    sandbox->took_ms = uva__case_run_now_ms() - sandbox->began_ms;
    sandbox->pid = 0;
    (void)close(sandbox->alive);
    sandbox->code =
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        sandbox->end = hung ? UVA__SANDBOX_HUNG : UVA__SANDBOX_CRASHED;
}

/* Returns how long the next process to run out of time still has. */
static int64_t sandbox_limit(const struct uva__sandbox *sandboxes, int count)
{
    const int64_t now_ms = uva__case_run_now_ms();
    int64_t least_ms = INT32_MAX;

    for (int i = 0; i < count; i++)
        if (sandboxes[i].pid != 0 && sandboxes[i].limit_ms - now_ms < least_ms)
            least_ms = sandboxes[i].limit_ms - now_ms;
    return least_ms > 0 ? least_ms : 0;
}

int uva__sandbox_wait(struct uva__sandbox *sandboxes, int count)
{
    struct pollfd fds[SANDBOX_MAX];
    int running = 0;

    assert(count <= SANDBOX_MAX);
    for (int i = 0; i < count; i++) {
        fds[i] = (struct pollfd){
            .fd = sandboxes[i].pid != 0 ? sandboxes[i].alive : -1,
            .events = POLLIN};
        running += sandboxes[i].pid != 0;
    }
    if (running == 0)
        return -1;
    for (;;) {
        (void)poll(fds, (nfds_t)count, (int)sandbox_limit(sandboxes, count));
        for (int i = 0; i < count; i++) {
            const bool over = (fds[i].revents & (POLLHUP | POLLIN)) != 0;

            if (sandboxes[i].pid == 0 ||
                (!over && sandboxes[i].limit_ms > uva__case_run_now_ms()))
                continue;
            sandbox_reap(&sandboxes[i], !over);
            return i;
        }
    }
}

void uva__sandbox_fini(struct uva__sandbox *sandbox, char *text, size_t size)
{
    long end;
    size_t got = 0;

    if (sandbox->pid != 0)
        sandbox_reap(sandbox, true);
    if (sandbox->output == NULL)
        return;
    (void)fseek(sandbox->output, 0, SEEK_END);
    end = ftell(sandbox->output);
    if (end > 0) {
        (void)fseek(sandbox->output,
                    end >= (long)size ? end - (long)size + 1 : 0, SEEK_SET);
        got = fread(text, 1, size - 1, sandbox->output);
    }
    text[got] = '\0';
    for (size_t i = 0; i < got; i++)
        if (text[i] == '\0')
            text[i] = '?';
    uva__case_run_clean(text);
    (void)fclose(sandbox->output);
    sandbox->output = NULL;
}
