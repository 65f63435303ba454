/* replay.c - runs a fuzz target over stored inputs, without a fuzzer: every file of the
 * directories named. Each input is in a block of just its size, so that a sanitizer sees a
 * read past its end. A corpus without inputs is a failure. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "check.h"

static _Noreturn void give_up(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(2);
}

static size_t length_of(FILE *file, const char *path)
{
    long length = -1;
    if (fseek(file, 0, SEEK_END) == 0) {
        length = ftell(file);
    }
    if (length < 0 || fseek(file, 0, SEEK_SET) != 0) {
        give_up(path, strerror(errno));
    }
    return (size_t)length;
}

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        give_up(path, strerror(errno));
    }
    size_t num_bytes = length_of(file, path);
    uint8_t *data = malloc(num_bytes > 0 ? num_bytes : 1);
    if (!data || fread(data, 1, num_bytes, file) != num_bytes) {
        give_up(path, "cannot be read");
    }
    (void)fclose(file);
    fprintf(stderr, "%s: %zu bytes\n", path, num_bytes); /* the last one is to blame */
    (void)LLVMFuzzerTestOneInput(data, num_bytes);
    free(data);
}

static int replay_directory(const char *directory)
{
    DIR *entries = opendir(directory);
    if (!entries) {
        give_up(directory, strerror(errno));
    }
    int num_inputs = 0;
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.') {
            continue;
        }
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path) {
            give_up(directory, "its path is too long");
        }
        replay_file(path);
        num_inputs++;
    }
    (void)closedir(entries);
    return num_inputs;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int num_inputs = replay_directory(argv[i]);
        printf("%s: %d inputs replayed\n", argv[i], num_inputs);
        if (num_inputs == 0) {
            give_up(argv[i], "no inputs, and nothing replayed is not a pass");
        }
    }
    return argc > 1 ? 0 : 2;
}
