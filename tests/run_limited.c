/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one test with a limit and leaves none of its processes:
 *
 *     uva_run_limited [--clock] SECONDS COMMAND [ARGUMENT...]
 *
 * The limit is CPU time, of the command and of its descendants, so that a test
 * which passes on an idle machine passes on a slow or busy one. A command that
 * hangs uses no time: it is ended once it has used less than one part in IDLE
 * of the last STUCK_S seconds (or SECONDS, if these are fewer), and after CLOCK
 * times SECONDS at the latest. While this process does not run, as when the
 * machine sleeps, no time passes.
 *
 * Then SIGABRT goes to the processes that wait for no other one, so that Check
 * names the case, Python's faulthandler the line and a script the step that
 * hangs. As many seconds as above are left for that.
 *
 * With --clock, SECONDS is a time on the clock and the only limit.
 *
 * It exits as the command does, and with 124 if it has ended the command. In
 * either case it kills whatever the command has started and not waited for,
 * also in sessions of their own: orphans become children of this process,
 * because it is their subreaper (prctl(2)). uva_add_test() puts it in front of
 * every test.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_OUT = 124, CANNOT_RUN = 125 };
enum { STUCK_S = 60, IDLE = 200, CLOCK = 10 };

#define SAMPLE_S 0.25 /* from one look to the next */

/* A process, as in proc(5). */
struct process {
    pid_t pid, parent;
    bool has_ended; /* its parent has not waited for it */
    bool waits;     /* for its own children, maybe */
    double cpu_s;   /* of itself, and of children that it has waited for */
};

/* All processes of the machine; the descendants of this one are in front. */
struct processes {
    struct process *all;
    size_t count, ours;
};

/* The limit of the command; 0: no such limit. */
struct limit {
    double cpu_s, clock_s, stuck_s;
};

/* The time it has used. */
struct used {
    double cpu_s, clock_s;
    double cpu_read_s;              /* as it was read last */
    double moved_cpu_s, moved_at_s; /* when it was last seen to work */
};

/* ---- the processes of the command ---------------------------------------- */

/* Returns false if it is no process, or has gone. */
static bool process_read(const char *pid, struct process *process)
{
    char path[300], text[1024] = "", state, *end;
    unsigned long ticks[4]; /* its own in both modes, and its children's */
    FILE *file;
    int parent;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    file = pid[0] < '0' || pid[0] > '9' ? NULL : fopen(path, "r");
    if (file == NULL)
        return false;
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    end = strrchr(text, ')'); /* the name before it may contain anything */
    if (end == NULL ||
        sscanf(
            end, ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %lu %lu",
            &state, &parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 6)
        return false;
    *process = (struct process){
        .pid = (pid_t)atoi(pid), .parent = parent, .has_ended = state == 'Z'};
    process->cpu_s = (double)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) /
                     (double)sysconf(_SC_CLK_TCK);
    return true;
}

/* Moves the children of one process to the front. Returns whether one lives. */
static bool processes_adopt(struct processes *processes, pid_t parent)
{
    bool lives = false;

    for (size_t i = processes->ours; i < processes->count; i++) {
        const struct process child = processes->all[i];

        if (child.parent != parent)
            continue;
        processes->all[i] = processes->all[processes->ours];
        processes->all[processes->ours++] = child;
        lives = lives || !child.has_ended;
    }
    return lives;
}

/* The caller frees `all`. Without memory, some are missing. */
static struct processes processes_read(void)
{
    struct processes processes = {0};
    DIR *folder = opendir("/proc");
    struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct process *more =
            realloc(processes.all, (processes.count + 1) * sizeof(*more));

        if (more == NULL)
            break;
        processes.all = more;
        processes.count += process_read(entry->d_name, &more[processes.count]);
    }
    if (folder != NULL)
        (void)closedir(folder);
    (void)processes_adopt(&processes, getpid());
    for (size_t i = 0; i < processes.ours; i++)
        processes.all[i].waits =
            processes_adopt(&processes, processes.all[i].pid);
    return processes;
}

/* Sends a signal to the children of this process, or to those descendants that
 * wait for no other one. Returns to how many. */
static int signal_processes(int signal, bool children)
{
    struct processes processes = processes_read();
    int count = 0;

    for (size_t i = 0; i < processes.ours; i++) {
        const struct process *one = &processes.all[i];

        if (one->has_ended || (children ? one->parent != getpid() : one->waits))
            continue;
        (void)kill(one->pid, signal);
        count++;
    }
    free(processes.all);
    return count;
}

/* The CPU time of all descendants, those included that have ended. */
static double cpu_read_s(void)
{
    struct processes processes = processes_read();
    struct rusage ended;
    double sum;

    (void)getrusage(RUSAGE_CHILDREN, &ended);
    sum = (double)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) +
          1e-6 * (double)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec);
    for (size_t i = 0; i < processes.ours; i++)
        sum += processes.all[i].cpu_s;
    free(processes.all);
    return sum;
}

/* ---- the limit ------------------------------------------------------------
 */

/* Of two readings the lesser counts, because a process that ends between the
 * lines of a reading may stand in two of them. */
static void used_add(struct used *used, const struct limit *limit,
                     double clock_s)
{
    const double read_s = cpu_read_s();
    double moved_s;

    used->cpu_s = read_s < used->cpu_read_s ? read_s : used->cpu_read_s;
    used->cpu_read_s = read_s;
    used->clock_s += clock_s;
    moved_s = used->cpu_s - used->moved_cpu_s;
    if (moved_s < 0 || moved_s * IDLE >= limit->stuck_s) {
        used->moved_cpu_s = used->cpu_s;
        used->moved_at_s = used->clock_s;
    }
}

/* Returns which limit has passed, or NULL. */
static const char *used_up(const struct used *used, const struct limit *limit)
{
    if (limit->cpu_s > 0 && used->cpu_s > limit->cpu_s)
        return "its limit of CPU time";
    if (limit->stuck_s > 0 && used->clock_s - used->moved_at_s > limit->stuck_s)
        return "it hangs: it uses hardly any CPU time";
    if (used->clock_s > limit->clock_s)
        return "its limit on the clock";
    return NULL;
}

static double now_s(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits for a signal of the set, for one sample at most; 0: no signal has come.
 */
static int signal_next(const sigset_t *set)
{
    const struct timespec most = {.tv_nsec = (long)(1e9 * SAMPLE_S)};
    const int signal = sigtimedwait(set, NULL, &most);

    return signal < 0 ? 0 : signal;
}

/* Reaps ended processes. Returns whether the command has. */
static bool reap(pid_t command, int *status)
{
    bool ended = false;
    int one;
    pid_t pid;

    while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
        if (pid == command) {
            *status = one;
            ended = true;
        }
    return ended;
}

/* Waits for the command, and reaps orphans meanwhile. Returns NULL if it has
 * ended, and otherwise why it is to end. */
static const char *wait_for(pid_t command, const sigset_t *set,
                            const struct limit *limit, struct used *used,
                            int *status)
{
    double last_s = now_s();

    while (!reap(command, status)) {
        const int signal = signal_next(set);
        const double passed_s = now_s() - last_s;
        const char *why;

        if (signal != 0 && signal != SIGCHLD)
            return strsignal(signal);
        if (passed_s < SAMPLE_S)
            continue;
        last_s += passed_s;
        used_add(used, limit, passed_s < 2 * SAMPLE_S ? passed_s : SAMPLE_S);
        why = used_up(used, limit);
        if (why != NULL)
            return why;
    }
    return NULL;
}

/* ---- the command ----------------------------------------------------------
 */

static void start(char **command, const sigset_t *mask)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(command[0], command);
    fprintf(stderr, "uva_run_limited: %s: %s\n", command[0], strerror(errno));
    _exit(CANNOT_RUN);
}

/* Aborts the processes that hang, and waits for the processes that report it.
 */
static void abort_what_hangs(pid_t command, const sigset_t *set, double grace_s,
                             int *status)
{
    const struct limit grace = {.clock_s = grace_s};
    struct used used = {0};

    (void)signal_processes(SIGABRT, false);
    (void)wait_for(command, set, &grace, &used, status);
}

/* When a child dies, its children become children of this process, so that
 * killing and reaping children until there are none reaches every descendant.
 */
static void kill_descendants(pid_t command)
{
    int killed = 0;

    (void)kill(-command, SIGKILL); /* most of them, at the same moment */
    do
        killed += signal_processes(SIGKILL, true);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    if (killed > 0)
        fprintf(stderr, "uva_run_limited: killed %d processes left behind\n",
                killed);
}

/* Runs the command to its end. Returns its status, as of waitpid(2). */
static int run(char **command, const struct limit *limit, const sigset_t *set,
               const sigset_t *mask)
{
    struct used used = {0};
    int status = 0;
    const char *why;
    const pid_t pid = fork();

    if (pid == 0)
        start(command, mask);
    if (pid < 0) {
        perror("uva_run_limited: fork");
        return CANNOT_RUN << 8;
    }
    why = wait_for(pid, set, limit, &used, &status);
    if (why != NULL) {
        fprintf(stderr,
                "uva_run_limited: ended after %.0f s on the clock and %.0f s "
                "of CPU time: %s\n",
                used.clock_s, used.cpu_s, why);
        if (limit->stuck_s > 0 && used_up(&used, limit) != NULL)
            abort_what_hangs(pid, set, limit->stuck_s, &status);
        status = TIMED_OUT << 8;
    }
    kill_descendants(pid);
    return status;
}

int main(int count, char **arguments)
{
    const bool clock = count > 1 && strcmp(arguments[1], "--clock") == 0;
    char **words = arguments + (clock ? 2 : 1);
    const double seconds = count > 2 + clock ? atof(words[0]) : 0;
    const struct limit limit = {.cpu_s = clock ? 0 : seconds,
                                .stuck_s = clock               ? 0
                                           : seconds < STUCK_S ? seconds
                                                               : STUCK_S,
                                .clock_s = clock ? seconds : seconds * CLOCK};
    sigset_t set, mask;
    int status;

    if (seconds <= 0) {
        fprintf(stderr,
                "usage: uva_run_limited [--clock] SECONDS COMMAND...\n");
        return CANNOT_RUN;
    }
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, &mask);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    status = run(words + 1, &limit, &set, &mask);
    if (WIFSIGNALED(status)) { /* ctest is to see the signal */
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
