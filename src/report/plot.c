#include "report/plot.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool has_program(const char *name)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        const size_t length = strcspn(path, ":");
        char file[4096];
        const int size = snprintf(file, sizeof file, "%.*s/%s", (int)length, path, name);
        if (size > 0 && (size_t)size < sizeof file && access(file, X_OK) == 0) return true;
        path += length + (path[length] == ':');
    }
    return false;
}

bool psi_figures_possible(void)
{
    return has_program("gnuplot");
}
bool psi_graphs_possible(void)
{
    return has_program("dot");
}

unsigned report_colour(size_t k)
{
    static const unsigned okabe_ito[] = {0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7,
                                         0x56b4e9, 0xd55e00, 0xf0e442, REPORT_GREY};
    enum { N = sizeof okabe_ito / sizeof okabe_ito[0] };
    if (k < N) return okabe_ito[k];
    // hue by the golden angle, as the page's script does
    const double hue = fmod((double)k * 137.508, 360.0), light = k % 2 ? 0.45 : 0.62;
    const double spread = 0.55 * (1.0 - fabs(2.0 * light - 1.0)) / 2.0;
    unsigned colour = 0;
    for (int c = 0; c < 3; c++) { // red at 0, green at 120, blue at 240 degrees
        const double away = fabs(fmod(hue / 60.0 + 9.0 - 2.0 * (double)c, 6.0) - 3.0);
        const double level = light + spread * fmin(1.0, fmax(-1.0, 3.0 - 2.0 * away));
        colour = colour << 8 | (unsigned)(level * 255.0 + 0.5);
    }
    return colour;
}

void report_plot_words(report_text *text, const char *words)
{
    report_put(text, "\"");
    for (const char *c = words; *c; c++) {
        const unsigned char u = (unsigned char)*c;
        const bool plain = u >= 0x80 || (u >= 0x20 && u < 0x7f && !strchr("\"\\`$%@#'", *c));
        report_put_bytes(text, plain ? c : "_", 1);
    }
    report_put(text, "\"");
}

psi_status report_plot_new(psi_ctx *ctx, const psi_figure *at, size_t width, size_t height,
                           report_plot *plot)
{
    *plot = (report_plot){.ctx = ctx,
                          .at = at,
                          .width = width,
                          .height = height,
                          .data = {.ctx = ctx},
                          .script = {.ctx = ctx}};
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
    if (!at->name || !*at->name || strlen(at->name) > 60 ||
        at->name[strspn(at->name, allowed)] != '\0') {
        return FAIL(ctx, PSI_EUSAGE,
                    "a figure's name consists of lower-case letters, digits, '-' and '_'");
    }
    return PSI_OK;
}

void report_plot_free(report_plot *plot)
{
    report_text_free(&plot->data);
    report_text_free(&plot->script);
}

// ---- running a program --------------------------------------------------------------------------

static psi_status first_complaint(report_plot *plot, const char *program, const char *log)
{
    char *text = NULL, line[200];
    size_t size;
    psi_status status = base_read_file(plot->ctx, log, 1 << 20, &text, &size);
    if (status != PSI_OK) return status;
    size_t n = 0;
    for (size_t i = 0; i < size && n + 1 < sizeof line; i++) {
        line[n++] = text[i] >= ' ' ? text[i] : ' ';
    }
    line[n] = '\0';
    base_free(plot->ctx, text);
    return FAIL(plot->ctx, PSI_EINTERNAL, "%s could not draw %s: %s", program, plot->at->name,
                line + strspn(line, " "));
}

psi_status report_plot_run(report_plot *plot, const char *const *arguments)
{
    psi_status status = PSI_OK;
    char *log = NULL, name[80];
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ended = 0;
    if (!has_program(arguments[0])) {
        return FAIL(plot->ctx, PSI_EMISSING, "%s is not installed: figures need it", arguments[0]);
    }
    snprintf(name, sizeof name, "%s.log", plot->at->name);
    TRY(base_join(plot->ctx, plot->at->folder, name, &log));
    if (posix_spawn_file_actions_init(&actions) != 0) {
        status = FAIL(plot->ctx, PSI_ENOMEM, "no memory to run %s", arguments[0]);
        goto done;
    }
    posix_spawn_file_actions_addchdir_np(&actions, plot->at->folder);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int failed =
        posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        status = FAIL(plot->ctx, failed == ENOMEM ? PSI_ENOMEM : PSI_EIO, "%s cannot be run: %s",
                      arguments[0], strerror(failed));
        goto done;
    }
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
        status = first_complaint(plot, arguments[0], log);
    }
    (void)unlink(log);
done:
    base_free(plot->ctx, log);
    return status;
}

// ---- gnuplot ------------------------------------------------------------------------------------

static psi_status save(report_plot *plot, const report_text *text, const char *ending)
{
    psi_status status = PSI_OK;
    char *path = NULL, name[80];
    snprintf(name, sizeof name, "%s%s", plot->at->name, ending);
    TRY(base_join(plot->ctx, plot->at->folder, name, &path));
    TRY(report_text_save(text, path, true));
done:
    base_free(plot->ctx, path);
    return status;
}

// A label of the caller's in the script: single quotes are where gnuplot interprets nothing.
static void put_label(report_text *script, const char *command, const char *words)
{
    if (!words) return;
    report_putf(script, "    set %s '", command);
    for (const char *c = words; *c; c++) {
        const bool plain = (unsigned char)*c >= 0x20 && *c != '\'' && *c != '`';
        report_put_bytes(script, plain ? c : "_", 1);
    }
    report_put(script, "' textcolor rgb ink\n");
}

psi_status report_plot_draw(report_plot *plot)
{
    psi_status status = PSI_OK;
    const char *name = plot->at->name;
    report_text whole = {.ctx = plot->ctx};
    char file[80];
    report_putf(&whole,
                "# gnuplot %s.gp draws %s.svg, %s-dark.svg and %s.png from %s.dat\n"
                "set encoding utf8\n"
                "DATA = '%s.dat'\n"
                "do for [look in 'light dark png'] {\n"
                "    reset\n"
                "    dark = look eq 'dark'\n"
                "    ink = dark ? '#e6e9ec' : '#1b1f24'\n"
                "    muted = dark ? '#a4adb6' : '#57606a'\n"
                "    line = dark ? '#3a424a' : '#d0d7de'\n"
                "    paper = dark ? '#14171a' : '#ffffff'\n"
                "    accent = dark ? '#56b4e9' : '#0072b2'\n"
                "    if (look eq 'png') {\n"
                "        set terminal pngcairo noenhanced size %zu,%zu font 'sans,12' fontscale 2 "
                "linewidth 2 pointscale 2 background rgb paper\n"
                "        set output '%s.png'\n"
                "    } else {\n"
                "        set terminal svg noenhanced size %zu,%zu font 'sans-serif,13' background "
                "rgb paper\n"
                "        set output dark ? '%s-dark.svg' : '%s.svg'\n"
                "    }\n"
                "    set border 3 lc rgb muted\n"
                "    set tics nomirror textcolor rgb ink\n"
                "    set key textcolor rgb ink\n"
                "    set style fill solid noborder\n",
                name, name, name, name, name, name, 2 * plot->width, 2 * plot->height, name,
                plot->width, plot->height, name, name);
    put_label(&whole, "xlabel", plot->at->x_label);
    put_label(&whole, "ylabel", plot->at->y_label);
    if (plot->script.bytes) report_put_bytes(&whole, plot->script.bytes, plot->script.size);
    report_put(&whole, "    unset output\n}\n");
    TRY(plot->script.status);
    TRY(save(plot, &plot->data, ".dat"));
    TRY(save(plot, &whole, ".gp"));
    snprintf(file, sizeof file, "%s.gp", name);
    const char *const arguments[] = {"gnuplot", "-d", file, NULL};
    TRY(report_plot_run(plot, arguments));
done:
    report_text_free(&whole);
    return status;
}
