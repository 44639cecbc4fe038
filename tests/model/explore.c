/* SPDX-License-Identifier: Apache-2.0 */
/* In the first memory store buffers are on, so code that passes there is
 * correct on x86 in every order. A schedule ends at a state seen before
 * (sim/engine.h); the output also shows how many schedules ran to their own
 * end. */
#include "model/explore.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_S = 120, STEPS = 10000 };

struct verdict {
    int64_t schedules;
    int64_t ended; /* schedules that ran to their own end */
    int64_t wrong_at;
    char wrong[256]; /* the first failure; "" without a failure */
};

static const char *explore_once(const struct explore_kernel *kernel,
                                const struct sim_plan *plan,
                                struct verdict *verdict)
{
    memset(kernel->memory, 0, kernel->size);
    if (kernel->prepare != NULL)
        kernel->prepare();
    verdict->schedules++;
    switch (sim_run(plan, kernel->first, NULL)) {
    case SIM_SEEN:
        return NULL;
    case SIM_DONE:
        verdict->ended++;
        return kernel->wrong();
    case SIM_CUT:
        return "it does not come to an end";
    default:
        verdict->ended++;
        return sim_failure();
    }
}

static const struct sim_plan on_x86 = {.buffers = true};

static struct verdict explore(const struct explore_kernel *kernel,
                              struct sim_plan plan)
{
    struct verdict verdict = {0};

    plan.scheduler = SIM_EXHAUSTIVE;
    plan.steps = STEPS;
    plan.memory = kernel->memory;
    plan.memory_size = kernel->size;
    do {
        const char *wrong = explore_once(kernel, &plan, &verdict);

        if (wrong != NULL) {
            verdict.wrong_at = verdict.schedules;
            (void)snprintf(verdict.wrong, sizeof(verdict.wrong), "%s", wrong);
            sim_restart();
            break;
        }
    } while (sim_next());
    return verdict;
}

static void holds(const struct explore_kernel *kernel,
                  const struct sim_plan *plan, const char *memory)
{
    const struct verdict verdict = explore(kernel, *plan);

    (void)printf("%s%s: %lld schedules, %lld to an end of their own: %s\n",
                 kernel->name, memory, (long long)verdict.schedules,
                 (long long)verdict.ended,
                 verdict.wrong_at == 0 ? "holds" : verdict.wrong);
    if (verdict.wrong_at != 0)
        sim_print_trail(stdout);
    (void)fflush(stdout);
    ck_assert_msg(verdict.wrong_at == 0, "%s%s: %s", kernel->name, memory,
                  verdict.wrong);
}

static void finds(const struct explore_kernel *kernel,
                  const struct sim_plan *plan, const char *mutant)
{
    const struct verdict verdict = explore(kernel, *plan);

    if (verdict.wrong_at == 0)
        (void)printf("%s, %s: survived %lld schedules\n", kernel->name, mutant,
                     (long long)verdict.schedules);
    else
        (void)printf("%s, %s: found at schedule %lld: %s\n", kernel->name,
                     mutant, (long long)verdict.wrong_at, verdict.wrong);
    (void)fflush(stdout);
    ck_assert_msg(verdict.wrong_at != 0, "%s survives: %s", kernel->name,
                  mutant);
}

void explore_holds(const struct explore_kernel *kernel)
{
    holds(kernel, &on_x86, "");
}

void explore_finds(const struct explore_kernel *kernel, const char *mutant)
{
    finds(kernel, &on_x86, mutant);
}

void explore_finds_spoiled(const struct explore_kernel *kernel,
                           const void *word, enum sim_defect defect,
                           const char *mutant)
{
    sim_spoil(word, defect);
    explore_finds(kernel, mutant);
    sim_spoil(NULL, SIM_SOUND);
}

void explore_holds_weak(const struct explore_kernel *kernel, int preemptions)
{
    const char *more = getenv("UVA_MODEL_PREEMPTIONS");
    const struct sim_plan weak = {.weak = true,
                                  .preemptions = more != NULL && preemptions > 0
                                                     ? atoi(more)
                                                     : preemptions};
    char memory[64];

    (void)snprintf(memory, sizeof(memory), " (weak memory, %d preemptions)",
                   weak.preemptions);
    holds(kernel, &weak, weak.preemptions > 0 ? memory : " (weak memory)");
}

void explore_finds_weak(const struct explore_kernel *kernel, const void *word,
                        enum sim_defect defect, const char *mutant)
{
    const struct sim_plan weak = {.weak = true, .preemptions = 3};

    sim_spoil(word, defect);
    finds(kernel, &weak, mutant);
    sim_spoil(NULL, SIM_SOUND);
}

void *explore_alloc(void *ctx, size_t size, size_t align)
{
    struct explore_arena *arena = ctx;
    const size_t at = (arena->used + align - 1) & ~(align - 1);

    if (at + size > arena->size)
        sim_fail("the arena is too small");
    arena->used = at + size;
    return arena->bytes + at;
}

void explore_dealloc(void *ctx, void *block, size_t size)
{
    struct explore_arena *arena = ctx;

    memset(block, 0, size);
    if ((char *)block + size == arena->bytes + arena->used)
        arena->used -= size;
}

int explore_main(const char *name, ...)
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create("model");
    const TTest *test;
    SRunner *runner;
    va_list all;
    int failed;

    tcase_set_timeout(tests, TIMEOUT_S);
    va_start(all, name);
    while ((test = va_arg(all, const TTest *)) != NULL)
        tcase_add_test(tests, test);
    va_end(all);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
