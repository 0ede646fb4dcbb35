// Networks in files: what is saved is what is loaded, and damaged files are refused.
#include "support/support.h"

#include "nn/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static psi_net_spec spec_of(psi_net_kind kind)
{
    const psi_shape shape = kind == PSI_NET_MLP ? (psi_shape){1, {6}} : (psi_shape){3, {3, 28, 28}};
    static const float mean[] = {0.25f, -1, 3, 0.1f, 7, 1e-7f},
                       scale[] = {1 / 255.0f, 2, 0.3f, 1, 1, 5};
    psi_net_spec spec =
        psi_net_defaults(kind, &shape, kind == PSI_NET_MLP ? PSI_FLOAT32 : PSI_UINT8, 2, 5);
    spec.mean = mean;
    spec.scale = scale;
    return spec;
}

static void files_come_back_the_same(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    for (int kind = PSI_NET_MLP; kind <= PSI_NET_RESNET18; kind++) {
        const psi_net_spec spec = spec_of((psi_net_kind)kind);
        const char *path = test_path(folder, "net.safetensors");
        psi_net *net, *back;
        assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
        assert_ok(ctx, psi_net_save(ctx, net, path));
        assert_ok(ctx, psi_net_load(ctx, path, &back));
        assert_int_equal(psi_net_tensor_count(net), psi_net_tensor_count(back));
        for (size_t t = 0; t < psi_net_tensor_count(net); t++) {
            psi_tensor_info info;
            assert_ok(ctx, psi_net_tensor_info(ctx, net, t, &info));
            const size_t bytes = psi_shape_size(&info.shape) * sizeof(psi_real);
            psi_real *a = malloc(bytes), *b = malloc(bytes);
            assert_ok(ctx, psi_net_tensor_get(ctx, net, t, a));
            assert_ok(ctx, psi_net_tensor_get(ctx, back, t, b));
            assert_memory_equal(a, b, bytes);
            free(a);
            free(b);
        }
        const size_t channels = kind == PSI_NET_MLP ? 6 : 3;
        assert_memory_equal(psi_net_spec_of(back)->mean, spec.mean, channels * sizeof(float));
        assert_memory_equal(psi_net_spec_of(back)->scale, spec.scale, channels * sizeof(float));
        psi_net_free(ctx, net);
        psi_net_free(ctx, back);
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// One training step, from here on the same whether the moments went through a file or not.
static void moments_come_back_the_same(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "adam.safetensors");
    const psi_net_spec spec = spec_of(PSI_NET_MLP);
    psi_net_spec narrow = spec;
    narrow.hidden[0] = 8;
    psi_net *net, *copy, *other;
    psi_adam *adam, *back, *smaller;
    psi_work *work;
    const float inputs[] = {1, 2, 3, 4, 5, 6, 0, 1, 0, 1, 0, 1};
    const int32_t targets[] = {1, 4};
    const psi_labels labels = {.targets = targets};
    double loss, same;
    assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
    assert_ok(ctx, psi_net_new(ctx, &narrow, 3, &other));
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &adam));
    assert_ok(ctx, psi_adam_new(ctx, net, NULL, &back));
    assert_ok(ctx, psi_adam_new(ctx, other, NULL, &smaller));
    assert_ok(ctx,
              psi_work_new(ctx, net,
                           &(psi_work_options){.size = sizeof(psi_work_options), .max_batch = 2},
                           &work));
    for (int i = 0; i < 3; i++) {
        assert_ok(ctx, psi_net_train_step(ctx, net, work, adam, inputs, &labels, 2, 0.01, &loss));
    }
    assert_ok(ctx, psi_net_clone(ctx, net, &copy));
    assert_ok(ctx, psi_adam_save(ctx, adam, path));
    assert_ok(ctx, psi_adam_load(ctx, back, path));
    assert_status(ctx, psi_adam_load(ctx, smaller, path), PSI_ESHAPE);
    for (int i = 0; i < 3; i++) {
        assert_ok(ctx, psi_net_train_step(ctx, net, work, adam, inputs, &labels, 2, 0.01, &loss));
        assert_ok(ctx, psi_net_train_step(ctx, copy, work, back, inputs, &labels, 2, 0.01, &same));
        assert_true(loss == same);
    }
    psi_work_free(ctx, work);
    psi_adam_free(ctx, adam);
    psi_adam_free(ctx, back);
    psi_adam_free(ctx, smaller);
    psi_net_free(ctx, net);
    psi_net_free(ctx, copy);
    psi_net_free(ctx, other);
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

// torchvision's resnet18 has 122 entries, in this order; ours are followed by the heads.
static void resnet18_has_torchvisions_names(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    const psi_net_spec spec = spec_of(PSI_NET_RESNET18);
    psi_net *net;
    psi_tensor_info info;
    assert_ok(ctx, psi_net_new(ctx, &spec, 3, &net));
    assert_int_equal(psi_net_tensor_count(net), 122 + 2);
    const struct {
        size_t index;
        const char *name;
        psi_shape shape;
    } known[] = {{0, "conv1.weight", {4, {64, 3, 7, 7}}},
                 {1, "bn1.weight", {1, {64}}},
                 {5, "bn1.num_batches_tracked", {0, {0}}},
                 {30, "layer2.0.conv1.weight", {4, {128, 64, 3, 3}}},
                 {42, "layer2.0.downsample.0.weight", {4, {128, 64, 1, 1}}},
                 {43, "layer2.0.downsample.1.weight", {1, {128}}},
                 {120, "fc.weight", {2, {1000, 512}}},
                 {121, "fc.bias", {1, {1000}}},
                 {122, "head.weight", {2, {10, 1000}}},
                 {123, "head.bias", {1, {10}}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_ok(ctx, psi_net_tensor_info(ctx, net, known[i].index, &info));
        assert_string_equal(info.name, known[i].name);
        assert_int_equal(info.shape.rank, known[i].shape.rank);
        for (size_t d = 0; d < info.shape.rank; d++) {
            assert_int_equal(info.shape.dim[d], known[i].shape.dim[d]);
        }
    }
    assert_status(ctx, psi_net_tensor_info(ctx, net, 124, &info), PSI_EUSAGE);
    psi_net_free(ctx, net);
    psi_ctx_free(ctx);
}

// A file with these notes and one tensor.
static psi_status load_with(psi_ctx *ctx, const char *path, const nn_file_note *notes, size_t n)
{
    const float number = 1;
    const nn_named_tensor tensor = {"head.weight", NN_F32, 2, {1, 1}, &number};
    psi_net *net;
    assert_ok(ctx, nn_safetensors_save(ctx, path, &tensor, 1, notes, n));
    const psi_status status = psi_net_load(ctx, path, &net);
    assert_null(net);
    return status;
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    psi_ctx *ctx = test_ctx(1);
    char *folder = test_folder();
    const char *path = test_path(folder, "net.safetensors");
    nn_file_note notes[] = {{"psifold.net", "mlp"},   {"psifold.dtype", "float32"},
                            {"psifold.input", "1"},   {"psifold.hidden", ""},
                            {"psifold.heads", "1,1"}, {"psifold.mean", "0"},
                            {"psifold.scale", "1"}};
    assert_status(ctx, load_with(ctx, path, notes, 0), PSI_EFORMAT);
    assert_status(ctx, load_with(ctx, path, notes, 6), PSI_EFORMAT);
    assert_status(ctx, load_with(ctx, path, notes, 7), PSI_EMISSING); // no head.bias
    const struct {
        size_t note;
        const char *value;
    } damage[] = {{0, "perceptron"},
                  {2, "1,"},
                  {2, "99999999999999999999"},
                  {2, "1073741824,1073741824,1073741824,1073741824"},
                  {2, "-1"},
                  {2, "0"},
                  {3, "1000000000,1000000000"},
                  {3, "1,2,3,4,5,6,7,8,9"},
                  {4, "1"},
                  {4, "0,1"},
                  {5, "nan"},
                  {5, "0,0"},
                  {6, "x"}};
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        const char *kept = notes[damage[i].note].value;
        notes[damage[i].note].value = damage[i].value;
        assert_int_not_equal(load_with(ctx, path, notes, 7), PSI_OK);
        notes[damage[i].note].value = kept;
    }
    test_folder_free(folder);
    psi_ctx_free(ctx);
}

static psi_status save_and_load(psi_ctx *ctx, void *folder)
{
    const psi_shape shape = {3, {1, 8, 8}};
    const psi_net_spec spec = psi_net_defaults(PSI_NET_CNN, &shape, PSI_UINT8, 2, 3);
    const char *path = test_path(folder, "net.safetensors"), *onnx = test_path(folder, "net.onnx");
    psi_net *net = NULL, *back = NULL;
    psi_status status = psi_net_new(ctx, &spec, 1, &net);
    if (status == PSI_OK) status = psi_net_save(ctx, net, path);
    if (status == PSI_OK) status = psi_net_load(ctx, path, &back);
    if (status == PSI_OK) status = psi_net_save_onnx(ctx, net, onnx);
    psi_net_free(ctx, net);
    psi_net_free(ctx, back);
    return status;
}

static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    char *folder = test_folder();
    assert_true(test_fault_sweep(save_and_load, folder) > 20);
    struct stat info;
    assert_int_equal(stat(test_path(folder, "net.onnx"), &info), 0);
    assert_true(info.st_size > 100000);
    test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back_the_same),
        cmocka_unit_test(moments_come_back_the_same),
        cmocka_unit_test(resnet18_has_torchvisions_names),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(running_out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
