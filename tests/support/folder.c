/* folder.c - see folder.h. */
#include "support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void folder_make(char *path)
{
    if (!mkdtemp(path)) {
        perror(path);
        exit(2);
    }
}

void folder_drop(const char *path)
{
    DIR *entries = opendir(path);
    for (struct dirent *entry = entries ? readdir(entries) : NULL; entry;
         entry = readdir(entries)) {
        (void)unlinkat(dirfd(entries), entry->d_name, 0); /* fails for . and .. */
    }
    if (entries) {
        (void)closedir(entries);
    }
    (void)rmdir(path);
}
