// Feeds every file of the given folders to the fuzz target it is linked with: a crash that was once
// found stays found, also with compilers that have no libFuzzer.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size > 0 ? (size_t)size : 1);
    const int good = size >= 0 && bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (good) LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return good ? 0 : -1;
}

int main(int n, char **argument)
{
    int inputs = 0;
    for (int i = 1; i < n; i++) {
        DIR *folder = opendir(argument[i]);
        if (!folder) {
            fprintf(stderr, "%s cannot be opened\n", argument[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[4096];
            struct stat info;
            snprintf(path, sizeof path, "%s/%s", argument[i], entry->d_name);
            if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
            printf("%s\n", entry->d_name);
            fflush(stdout);
            if (replay_file(path) != 0) {
                fprintf(stderr, "%s cannot be read\n", path);
                return 1;
            }
            inputs++;
        }
        closedir(folder);
    }
    printf("%d inputs\n", inputs);
    return inputs > 0 ? 0 : 1; // an empty corpus would test nothing
}
