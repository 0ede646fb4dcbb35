// Running a command: results, errors, progress, Ctrl-C.
#include "cli/internal.h"

#include "base/memory.h"
#include "base/progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_print(cli_call *cli, const char *format, ...)
{
    if (cli->json || cli->silent) return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

void cli_complain(const char *format, ...)
{
    va_list arguments;
    fputs("psifold: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

psi_status cli_set(cli_call *cli, const char *key, json_t *value)
{
    if (value && json_object_set_new(cli->result, key, value) == 0) return PSI_OK;
    return FAIL(cli->ctx, PSI_ENOMEM, "no memory for the result %s", key);
}

const char *cli_count(char buffer[CLI_NUMBER], uint64_t count)
{
    char digits[CLI_NUMBER];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *next = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *next++ = ',';
        *next++ = digits[i];
    }
    *next = '\0';
    return buffer;
}

const char *cli_bytes(char buffer[CLI_NUMBER], double bytes)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB"};
    size_t u = 0;
    while (bytes >= 1000.0 && u + 1 < CLI_COUNT(unit)) {
        bytes /= 1000.0;
        u++;
    }
    snprintf(buffer, CLI_NUMBER, u == 0 ? "%.0f %s" : "%.1f %s", bytes, unit[u]);
    return buffer;
}

const char *cli_duration(char buffer[CLI_NUMBER], double seconds)
{
    const long whole = (long)(seconds + 0.5);
    if (seconds < 10.0) {
        snprintf(buffer, CLI_NUMBER, "%.1f s", seconds);
    } else if (whole < 60) {
        snprintf(buffer, CLI_NUMBER, "%ld s", whole);
    } else if (whole < 3600) {
        snprintf(buffer, CLI_NUMBER, "%ld min %ld s", whole / 60, whole % 60);
    } else {
        snprintf(buffer, CLI_NUMBER, "%ld h %ld min", whole / 3600, whole / 60 % 60);
    }
    return buffer;
}

// The only things a signal handler may know: which context to cancel, and what to tell the shell.
static psi_ctx *volatile interrupted_ctx;
static volatile sig_atomic_t interrupted_by;

static void on_interrupt(int number)
{
    interrupted_by = number;
    if (interrupted_ctx) psi_cancel(interrupted_ctx);
}

static void set_handler(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;
    sigemptyset(&action.sa_mask);
    // what nohup, or a shell that puts us into the background, has switched off stays off
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
}

static void catch_signals(psi_ctx *ctx)
{
    static const int stop[] = {SIGINT, SIGTERM, SIGHUP};
    interrupted_ctx = ctx;
    // one chance to stop in good order: a second Ctrl-C ends the process at once
    for (size_t i = 0; i < CLI_COUNT(stop); i++) {
        set_handler(stop[i], ctx ? on_interrupt : SIG_DFL, (int)SA_RESETHAND);
    }
    // a reader that goes away, or a file that may not grow, is a write that fails, with a sentence
    if (ctx) set_handler(SIGPIPE, SIG_IGN, 0);
    if (ctx) set_handler(SIGXFSZ, SIG_IGN, 0);
}

// What shells say of a program that a signal has ended, or the status's own.
static int exit_code(psi_status status)
{
    enum { SIGNALLED = 128 };
    if (status == PSI_ECANCELLED && interrupted_by) return SIGNALLED + (int)interrupted_by;
    return psi_status_exit_code(status);
}

void cli_close_line(cli_call *cli)
{
    if (!cli->line_open) return;
    fputs("\r\033[K", stderr);
    cli->line_open = false;
}

static void show_log(void *user, psi_log_level level, const char *sentence)
{
    cli_call *cli = user;
    if (cli->silent || (cli->quiet && level == PSI_LOG_NOTE)) return;
    cli_close_line(cli);
    fprintf(stderr, "%s: %s\n", level == PSI_LOG_WARNING ? "warning" : "note", sentence);
}

static void show_bar(cli_call *cli, const psi_progress *progress)
{
    enum { WIDTH = 20 };
    char bar[WIDTH + 1], duration[CLI_NUMBER];
    const double share = progress->total ? (double)progress->done / (double)progress->total : 0.0;
    for (int i = 0; i < WIDTH; i++) bar[i] = (double)i < share * WIDTH ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%-30s [%s] %3.0f %%", progress->phase, bar, 100.0 * share);
    if (progress->seconds_left >= 0.0) {
        fprintf(stderr, "  %s left", cli_duration(duration, progress->seconds_left));
    }
    fflush(stderr);
    cli->line_open = true;
}

static void show_progress(void *user, const psi_progress *progress)
{
    static const double LINE_EVERY = 10.0; // seconds, where there is no terminal
    cli_call *cli = user;
    if (cli->quiet) return;
    const bool finished = progress->done == progress->total;
    if (cli->on_terminal) {
        if (finished) {
            cli_close_line(cli);
        } else {
            show_bar(cli, progress);
        }
        return;
    }
    const double now = base_seconds();
    if (finished || now - cli->reported < LINE_EVERY) return;
    cli->reported = now;
    char done[CLI_NUMBER], left[CLI_NUMBER];
    fprintf(stderr, "%s: %s done", progress->phase, cli_count(done, progress->done));
    if (progress->total) fprintf(stderr, " of %s", cli_count(left, progress->total));
    if (progress->seconds_left >= 0.0) {
        fprintf(stderr, ", %s left", cli_duration(left, progress->seconds_left));
    }
    fputc('\n', stderr);
}

psi_status cli_make_ctx(cli_call *cli)
{
    const psi_options options = {.size = sizeof options,
                                 .log = show_log,
                                 .progress = show_progress,
                                 .user = cli,
                                 .threads = (int)cli->threads,
                                 .max_memory = cli->max_memory ? cli->max_memory
                                                               : (size_t)base_memory_here().total};
    const psi_status status = psi_ctx_new(&options, &cli->ctx);
    if (status != PSI_OK) {
        cli_complain("%s: there is not even enough to begin with; --threads 1 needs least",
                     psi_status_meaning(status));
        return status;
    }
    cli->on_terminal = isatty(STDERR_FILENO) != 0;
    cli->reported = base_seconds();
    catch_signals(cli->ctx);
    return PSI_OK;
}

static psi_status print_json(cli_call *cli)
{
    char *text =
        json_dumps(cli->result, JSON_INDENT(2) | JSON_REAL_PRECISION(17) | JSON_ENSURE_ASCII);
    if (!text) return FAIL(cli->ctx, PSI_ENOMEM, "the result cannot be written as JSON");
    puts(text);
    free(text);
    return PSI_OK;
}

int cli_execute(const cli_command *command, int argc, char **argv)
{
    cli_call cli = {.result = json_object()};
    psi_status status = command->run(&cli, argc, argv);
    cli_close_line(&cli);
    const bool helped = status == PSI_ECANCELLED && !cli.ctx;
    if (status != PSI_OK && cli.ctx) {
        if (!cli.silent) cli_complain("%s", psi_error(cli.ctx)->message);
        json_object_clear(cli.result);
        json_object_set_new(cli.result, "error", json_string(psi_error(cli.ctx)->message));
        json_object_set_new(cli.result, "status", json_string(psi_status_name(status)));
    }
    if (cli.json && cli.ctx) {
        const psi_status printed = print_json(&cli);
        if (status == PSI_OK) status = printed;
    }
    json_decref(cli.result);
    if (status != PSI_OK && cli.ctx) cli_end_job(&cli, exit_code(status));
    catch_signals(NULL);
    psi_ctx_free(cli.ctx);
    // a full disk behind a redirected stdout must not look like success
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_complain("the output could not be written");
        if (status == PSI_OK) status = PSI_EIO;
    }
    return helped ? 0 : exit_code(status);
}
