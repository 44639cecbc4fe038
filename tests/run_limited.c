/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one test with a time limit and leaves no process of it behind:
 *
 *     uva_run_limited SECONDS COMMAND [ARGUMENT...]
 *
 * It exits as the command does, and with 124 if the command was still running
 * after that many seconds. In either case it kills whatever the command has
 * started and not waited for, also in sessions of their own: orphans become
 * children of this process, because it is their subreaper (prctl(2)).
 * uva_add_test() puts it in front of every test. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_OUT = 124, CANNOT_RUN = 125 };

static void start(char **command, const sigset_t *mask)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvp(command[0], command);
    fprintf(stderr, "uva_run_limited: %s: %s\n", command[0], strerror(errno));
    _exit(CANNOT_RUN);
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Waits for the next of these signals, at most that long. Returns 0 when the
 * time is over. */
static int next_signal(const sigset_t *set, double seconds)
{
    struct timespec most = {.tv_sec = (time_t)seconds};
    int signal;

    most.tv_nsec = (long)(1e9 * (seconds - (double)most.tv_sec));
    do
        signal = sigtimedwait(set, NULL, &most);
    while (signal < 0 && errno == EINTR);
    return signal < 0 ? 0 : signal;
}

/* Waits for the command, and reaps orphans meanwhile. Returns whether the
 * command has ended; otherwise its time is over, or this process is to end. */
static bool wait_for(pid_t command, const sigset_t *set, double seconds,
                     int *status)
{
    const double end = now() + seconds;

    for (;;) {
        const double left = end - now();
        int signal, one;
        pid_t pid;

        while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
            *status = one;
            if (pid == command)
                return true;
        }
        signal = left <= 0 ? 0 : next_signal(set, left);
        if (signal != SIGCHLD) {
            fprintf(stderr, "uva_run_limited: killed after %.0f s (%s)\n",
                    seconds - (end - now()),
                    signal == 0 ? "its limit" : strsignal(signal));
            *status = TIMED_OUT << 8;
            return false;
        }
    }
}

/* The parent of a process, as in proc(5); 0 if the process has ended. */
static pid_t parent_of(const char *pid)
{
    char path[300], text[512] = "", state, *end;
    int parent = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    end = strrchr(text, ')'); /* the name before it may contain anything */
    if (end == NULL || sscanf(end, ") %c %d", &state, &parent) != 2)
        return 0;
    return state == 'Z' ? 0 : parent;
}

/* Kills each child of this process. Returns how many there were. */
static int kill_children(void)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    while (all != NULL && (entry = readdir(all)) != NULL)
        if (parent_of(entry->d_name) == getpid()) {
            (void)kill((pid_t)atoi(entry->d_name), SIGKILL);
            count++;
        }
    if (all != NULL)
        (void)closedir(all);
    return count;
}

/* When a child dies, its children become those of this process, so that killing
 * and reaping children until there are none reaches every descendant. */
static void kill_descendants(pid_t command)
{
    int killed = 0;

    (void)kill(-command, SIGKILL); /* most of them, at the same moment */
    do
        killed += kill_children();
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    if (killed > 0)
        fprintf(stderr, "uva_run_limited: killed %d processes left behind\n",
                killed);
}

int main(int count, char **arguments)
{
    const double seconds = count > 2 ? atof(arguments[1]) : 0;
    sigset_t set, mask;
    int status = 0;
    pid_t command;

    if (seconds <= 0) {
        fprintf(stderr, "usage: uva_run_limited SECONDS COMMAND...\n");
        return CANNOT_RUN;
    }
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, &mask);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    command = fork();
    if (command == 0)
        start(arguments + 2, &mask);
    if (command < 0) {
        perror("uva_run_limited: fork");
        return CANNOT_RUN;
    }
    (void)wait_for(command, &set, seconds, &status);
    kill_descendants(command);
    if (WIFSIGNALED(status)) { /* ctest is to see the signal */
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
