// What was found, and what was judged of it, while something else is tried.
#include "cluster/clustering.h"

#include "base/context.h"

#include <math.h>

double cluster_share_open(double doubtful, double past)
{
    return fmax(doubtful, past);
}

cluster_answer cluster_set_aside(clustering_run *run)
{
    psi_run *result = run->result;
    const cluster_answer aside = {run->found,      result->doubts, result->n_doubts,
                                  result->verdict, result->margin, result->doubtful,
                                  result->past};
    run->found = (by_evidence){0};
    result->doubts = NULL;
    result->n_doubts = 0;
    return aside;
}

void cluster_answer_free(psi_ctx *ctx, cluster_answer *aside)
{
    refine_by_evidence_free(ctx, &aside->found);
    base_free(ctx, aside->doubts);
    *aside = (cluster_answer){0};
}

void cluster_take_back(clustering_run *run, cluster_answer *aside)
{
    psi_run *result = run->result;
    cluster_answer other = cluster_set_aside(run);
    cluster_answer_free(run->ctx, &other);
    run->found = aside->found;
    result->doubts = aside->doubts;
    result->n_doubts = aside->n_doubts;
    result->n_latent = aside->found.n_latent;
    result->verdict = aside->verdict;
    result->margin = aside->margin;
    result->doubtful = aside->doubtful;
    result->past = aside->past;
    result->converged = aside->found.converged;
    *aside = (cluster_answer){0};
}
