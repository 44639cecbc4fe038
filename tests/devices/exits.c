/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program to its end, again and again, with a driver that unmaps its
 * memory when the process exits: each run must exit with 0.
 *
 *     exits TIMES WAY [MODULE]
 *
 * | WAY | how the program exits |
 * |---|---|
 * | closed | main() returns when the loop is empty and the runtime closed |
 * | callback | the callback of the close calls exit() |
 * | quiet | main() returns after on_quiet |
 * | shared | main() returns after uva_workers_release() |
 * | other | as closed, but another thread calls exit() |
 * | held | as closed, with an array on the device that was not released |
 * | pending | as closed, with an array to be released after work that hangs |
 * | joined | main() returns after uva_runtime_join() |
 * | busy | a consumer calls exit() in the middle of a stream |
 * | open | main() returns, and the runtime is open |
 * | late | an exit handler closes the runtime, after the driver's |
 *
 * With MODULE the program is opened, run, and closed as a plug-in is. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/exit_run.h"

static int module_run(const char *path, const char *way)
{
    int (*run)(const char *way);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *address = module != NULL ? dlsym(module, "exit_run") : NULL;
    int code;

    if (address == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    memcpy(&run, &address, sizeof(run));
    code = run(way);
    (void)dlclose(module);
    return code;
}

/* Returns in the child, and in the parent when the child has ended well. */
static bool run_again(const char *way)
{
    const pid_t child = fork();
    int status = 0;

    if (child == 0)
        return true;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return false;
    (void)fprintf(stderr, "exits %s: status %d, signal %d\n", way,
                  WEXITSTATUS(status), WTERMSIG(status));
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 3 || atoi(argv[1]) <= 0)
        return 2;
    for (int i = 0; i < atoi(argv[1]); i++)
        if (run_again(argv[2]))
            return argc > 3 ? module_run(argv[3], argv[2]) : exit_run(argv[2]);
    return 0;
}
