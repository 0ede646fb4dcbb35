// Anything as a manifest or as the start of a checkpoint in a folder that holds something precious,
// under a name that no manifest may list: whatever is begun, resumed or replaced there, it stays.
// The first byte says which file it is and what is done.
#include "fuzz_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const files[] = {"run/manifest.json", "run/checkpoint/start.json",
                                        "run/checkpoint/result/manifest.json"};
    static const char start[] = "{\"psifold\": \"0.1.0\", \"options\": {}, \"data\": "
                                "\"00000000000000000000000000000000\"}";
    char path[256];
    if (size == 0) return 0;
    (void)fuzz_first_time();
    psi_ctx *ctx = fuzz_ctx();
    const int which = bytes[0] % 3, how = bytes[0] / 3 % 3;
    REQUIRE(base_make_folders(ctx, fuzz_path(path, "run/checkpoint/result")) == PSI_OK);
    fuzz_put("run/Precious", "precious", 8);
    fuzz_put("run/clusters.npy", "listed, perhaps", 15);
    if (which == 2) fuzz_put("run/checkpoint/start.json", start, sizeof start - 1);
    fuzz_put(files[which], bytes + 1, size - 1);
    static const psi_folder_mode modes[] = {PSI_FOLDER_NEW, PSI_FOLDER_REPLACE, PSI_FOLDER_RESUME};
    psi_run_folder *run;
    const char *folder = fuzz_path(path, "run");
    const psi_status status = psi_run_folder_open(ctx, folder, modes[how], &run);
    fuzz_judge(ctx, status);
    REQUIRE((status == PSI_OK) == (run != NULL));
    psi_run_folder_close(run);
    REQUIRE(access(fuzz_path(path, "run/Precious"), F_OK) == 0);
    base_remove(fuzz_path(path, "run"));
    psi_ctx_free(ctx);
    return 0;
}
