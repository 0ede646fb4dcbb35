// Benchmarks of the rooms: each adds its figures to results, which `psifold bench` prints.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/base.h>

#include <jansson.h>

psi_status bench_env(psi_ctx *ctx, json_t *results);

#endif
