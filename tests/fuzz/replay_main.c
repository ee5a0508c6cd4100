/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of the folders given, and over the empty input: the seeds and
 * former findings stay tested where there is no libFuzzer. Fails when a folder has no file. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static void replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    uint8_t *data = NULL;
    size_t size = 0;
    size_t count;
    do {
        data = realloc(data, size + 65536);
        if (!data) {
            abort();
        }
        count = fread(data + size, 1, 65536, file);
        size += count;
    } while (count > 0);
    (void)fclose(file);
    /* An exact copy, so that the address sanitizer sees a read past the end. */
    uint8_t *exact = realloc(data, size ? size : 1);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int replay_folder(const char *folder) {
    DIR *directory = opendir(folder);
    if (!directory) {
        perror(folder);
        return 0;
    }
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            char path[4096];
            (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            replay_file(path);
            count++;
        }
    }
    closedir(directory);
    return count;
}

int main(int count, char **folders) {
    uint8_t nothing = 0;
    LLVMFuzzerTestOneInput(&nothing, 0);
    for (int i = 1; i < count; i++) {
        int files = replay_folder(folders[i]);
        printf("%s: %d inputs\n", folders[i], files);
        if (files == 0) {
            return 1;
        }
    }
    return 0;
}
