// Anything in the place of one file of the checkpoint of an interrupted run; the first byte says
// which. The run is resumed, to the end of its next refinement.
#include "fuzz_files.h"

#include "support/collect.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { FILES = 7, LARGEST = 1 << 20 };
static const char *const NAMES[FILES] = {"start.json",
                                         "state.npz",
                                         "phases.npz",
                                         "rewards.npy",
                                         "next-02.safetensors",
                                         "result/clusters-02.npy",
                                         "result/trunk.safetensors"};

static psi_trajectories *data;
static psi_ctx *owner; // of the data

static void forget_data(void)
{
    psi_trajectories_free(owner, data);
    psi_ctx_free(owner);
}

// Stops the run after so many refinements that were not there before.
typedef struct stopper {
    psi_ctx *ctx;
    size_t left;
} stopper;

static psi_status stop_after(void *user, const psi_cluster_step *step, size_t refinement, size_t n,
                             const int32_t *labels)
{
    (void)step, (void)refinement, (void)n;
    stopper *stop = user;
    if (!labels || --stop->left > 0) return PSI_OK;
    return FAIL(stop->ctx, PSI_ECANCELLED, "stopped");
}

static psi_status go_on(psi_ctx *ctx, const char *folder, size_t refinements)
{
    stopper stop = {ctx, refinements};
    psi_run_folder *to;
    psi_run *run;
    psi_cluster_options options = psi_cluster_defaults();
    options.method = PSI_METHOD_SUCCESSOR_FEATURES;
    options.trunk_steps = options.head_steps = options.representation_steps = 2;
    options.hidden = 4;
    options.max_refinements = 3;
    options.watch = stop_after;
    options.user = &stop;
    psi_status status = psi_run_folder_open(ctx, folder, PSI_FOLDER_RESUME, &to);
    if (status != PSI_OK) return status;
    status = psi_cluster_into(to, NULL, 0, data, &options, &run);
    psi_run_free(ctx, run);
    return status;
}

// The files of a checkpoint, to be put back: a refinement adds some and changes others.
static struct {
    char *bytes;
    size_t size;
} whole[FILES];

static void make_checkpoint(void)
{
    char path[256], name[64];
    owner = fuzz_ctx();
    atexit(forget_data);
    data = test_collect(owner, "point-column-world", 6, 5, NULL);
    REQUIRE(go_on(owner, fuzz_path(path, "run"), 2) == PSI_ECANCELLED);
    for (size_t f = 0; f < FILES; f++) {
        snprintf(name, sizeof name, "run/checkpoint/%s", NAMES[f]);
        REQUIRE(base_read_file(owner, fuzz_path(path, name), LARGEST, &whole[f].bytes,
                               &whole[f].size) == PSI_OK);
        fuzz_seed(f, strrchr(name, '/') + 1, whole[f].bytes, whole[f].size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[256], name[64];
    if (size == 0) return 0;
    if (fuzz_first_time()) make_checkpoint();
    psi_ctx *ctx = fuzz_ctx();
    for (size_t f = 0; f < FILES; f++) {
        snprintf(name, sizeof name, "run/checkpoint/%s", NAMES[f]);
        if (f == bytes[0] % FILES) {
            fuzz_put(name, bytes + 1, size - 1);
        } else {
            fuzz_put(name, whole[f].bytes, whole[f].size);
        }
    }
    fuzz_judge(ctx, go_on(ctx, fuzz_path(path, "run"), 1));
    psi_ctx_free(ctx);
    return 0;
}
