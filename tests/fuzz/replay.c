/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program of this folder on files, so that its corpus is a test wherever
 * it is built: replay FILE|FOLDER... Needs no fuzzer library. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "fuzz/fuzz_input.h"

static int replay_files;

static void replay_die(const char *path)
{
    (void)fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(2);
}

/* Reads a file into a block of exactly its size. */
static uint8_t *replay_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes;
    long end;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        replay_die(path);
    end = ftell(file);
    rewind(file);
    *size = (size_t)end;
    bytes = malloc(*size + (*size == 0));
    if (end < 0 || bytes == NULL || fread(bytes, 1, *size, file) != *size)
        replay_die(path);
    (void)fclose(file);
    return bytes;
}

static void replay_file(const char *path)
{
    size_t size;
    uint8_t *bytes = replay_read(path, &size);

    (void)fprintf(stderr, "replay: %s\n", path); /* the last one fails */
    (void)LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    replay_files++;
}

static void replay_folder(DIR *folder, const char *path)
{
    const struct dirent *entry;
    char name[4096];

    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        replay_file(name);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder == NULL) {
            replay_file(argv[i]);
            continue;
        }
        replay_folder(folder, argv[i]);
        (void)closedir(folder);
    }
    (void)fprintf(stderr, "replay: %d files\n", replay_files);
    return replay_files == 0; /* an empty corpus proves no rule */
}
