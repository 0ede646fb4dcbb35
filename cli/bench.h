// What `psifold bench` can measure: one function per room, each adding its figures to an object.
#ifndef PSI_CLI_BENCH_H
#define PSI_CLI_BENCH_H

#include <psifold/psifold.h>

#include <jansson.h>

psi_status bench_mdp(psi_ctx *ctx, json_t *results);

#endif
