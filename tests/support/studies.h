// What the tests of studies share: somebody who listens and may cancel, a study without its record,
// and the numbers in the files that it leaves.
#ifndef PSI_TESTS_STUDIES_H
#define PSI_TESTS_STUDIES_H

#include "study/study.h"

typedef struct test_listener {
    char text[1 << 15]; // all lines so far, each after a newline; those of progress are indented
    psi_ctx *cancel;    // when this is heard; NULL: never
    const char *when;
} test_listener;

void test_hear(void *user, bool detail, const char *line);

void test_assert_heard(const test_listener *all, const char *words);

psi_study_options test_study_options(const char *output, test_listener *all);

// A study that has just begun in this folder; its results are the caller's.
study test_study_begun(psi_ctx *ctx, char *folder, const psi_study_options *how);

// Runs a study that must succeed, and frees what it says about where things are.
void test_study_run(psi_ctx *ctx, const char *name, const psi_study_options *how);

// The same of one that must fail.
void test_study_refused(psi_ctx *ctx, const char *name, const psi_study_options *how,
                        psi_status status, const char *sentence);

// ---- what it left -------------------------------------------------------------------------------

json_t *test_load(psi_ctx *ctx, const char *folder, const char *name);

// Text of a file; the caller's.
char *test_text(psi_ctx *ctx, const char *folder, const char *name);

void test_assert_text(psi_ctx *ctx, const char *folder, const char *name, const char *expected);

// The claim that begins with these words: what we say, and whether it holds.
const char *test_claim(const json_t *results, const char *words, bool *holds);

double test_number(const json_t *json, const char *key);

// The numbers of one part of a figure's data, words and remarks left out. Returns how many.
size_t test_figure_numbers(psi_ctx *ctx, const char *folder, const char *name, size_t part,
                           double *out, size_t room);

// Some options of a run that is there, as if it had been started with them.
void test_change_options(psi_ctx *ctx, const char *run, json_t *options);

#endif
