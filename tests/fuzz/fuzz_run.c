// Anything in the place of one file of a run; the first byte says which. The run is read, with what
// it knows of observations, the record of its refinements and their labels.
#include "fuzz_files.h"

#include "base/json.h"
#include "support/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { FILES = 5, LARGEST = 1 << 20 };
static const char *const NAMES[FILES] = {"run/manifest.json", "run/refinements.jsonl",
                                         "run/latent.npz", "run/clusters.npy", "run/seen.npz"};

// Without checksums, which would keep all readers behind them from seeing anything.
static void make_run(psi_ctx *ctx)
{
    char path[256];
    json_t *manifest;
    test_made_up_run(ctx, fuzz_folder,
                     &(test_run_spec){.n_latent = 3,
                                      .n_actions = 2,
                                      .episodes = 2,
                                      .length = 6,
                                      .dtype = PSI_FLOAT32,
                                      .shape = {1, {2}},
                                      .refinements = 2,
                                      .approximator = "table"});
    const float rows[2][2] = {{0.0f, 0.0f}, {1.0f, 0.0f}}, confidence[2] = {1.0f, 0.5f};
    const int32_t labels[2] = {0, 1};
    const int64_t shape[1] = {2}, dtype = PSI_FLOAT32;
    const psi_array known[] = {{"observations", PSI_FLOAT32, {2, {2, 2}}, rows},
                               {"labels", PSI_INT32, {1, {2}}, labels},
                               {"confidence", PSI_FLOAT32, {1, {2}}, confidence},
                               {"shape", PSI_INT64, {1, {1}}, shape},
                               {"dtype", PSI_INT64, {0, {0}}, &dtype}};
    REQUIRE(psi_arrays_save(ctx, fuzz_path(path, NAMES[4]), known, 5) == PSI_OK);
    REQUIRE(base_json_load(ctx, fuzz_path(path, NAMES[0]), LARGEST, &manifest) == PSI_OK);
    (void)json_object_del(manifest, "checksums");
    REQUIRE(base_json_save(ctx, path, manifest) == PSI_OK);
    json_decref(manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256], *good;
    size_t good_size, n;
    if (size == 0) return 0;
    psi_ctx *ctx = fuzz_ctx();
    if (fuzz_first_time()) make_run(ctx);
    const char *name = NAMES[bytes[0] % FILES];
    REQUIRE(base_read_file(ctx, fuzz_path(path, name), LARGEST, &good, &good_size) == PSI_OK);
    fuzz_put(name, bytes + 1, size - 1);
    psi_run *run;
    const char *folder = fuzz_path(path, "run");
    psi_status status = psi_run_load(ctx, folder, &run);
    fuzz_judge(ctx, status);
    if (status == PSI_OK) {
        for (size_t i = 0; i < run->n_observations; i++) {
            REQUIRE(run->labels[i] >= -1 && run->labels[i] < (int32_t)run->n_latent);
        }
        psi_predictor *predictor;
        fuzz_judge(ctx, psi_predictor_new(ctx, run, &predictor));
        psi_predictor_free(ctx, predictor);
        psi_levels levels;
        fuzz_judge(ctx, psi_run_levels(ctx, run, &levels));
        psi_levels_free(ctx, &levels);
    }
    psi_run_free(ctx, run);
    fuzz_judge(ctx, psi_run_load_so_far(ctx, folder, &run));
    psi_run_free(ctx, run);
    fuzz_judge(ctx, psi_run_check_files(ctx, folder, &n));
    fuzz_put(name, good, good_size);
    base_free(ctx, good);
    psi_ctx_free(ctx);
    return 0;
}
