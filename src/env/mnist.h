// Which files MNIST consists of, where they are kept and where they come from.
#ifndef PSI_ENV_MNIST_H
#define PSI_ENV_MNIST_H

#include <psifold/env.h>

enum { ENV_PATH_SIZE = 4096, ENV_MNIST_FILES = 4 };

typedef struct env_mnist_file {
    const char *name, *md5;
} env_mnist_file;

typedef struct env_mnist_source {
    const char *package;                  // of npm, with its version
    const char *folder;                   // inside the package
    env_mnist_file file[ENV_MNIST_FILES]; // train images, train labels, test images, test labels
} env_mnist_source;

extern const env_mnist_source ENV_MNIST;

// psi_mnist_fetch with another package: how it is tested without a network.
psi_status env_mnist_fetch_from(psi_ctx *ctx, const env_mnist_source *source);

#endif
