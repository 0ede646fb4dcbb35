// The benchmarks behind `psifold bench`: each measures on this machine and fills in a JSON object.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/psifold.h>

#include "base/json.h"

psi_status bench_env(psi_ctx *ctx, json_t *results);

#endif
