/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/number.h"
#include "base/plain_text.h"
#include "cli/json_out.h"

#define MESSAGE_BYTES 2048

static const char *current_program = "tokmap", *current_command;
static struct {
    bool is_known;
    tokmap_error cause;
    char text[MESSAGE_BYTES];
} first_error; /* for cli_print_error */

/* ---- Messages ---- */

void cli_begin(const char *program, const char *command)
{
    current_program = program;
    current_command = command;
}

void cli_print_plain(FILE *out, const char *s, size_t n_bytes)
{
    while (n_bytes) {
        size_t length = plain_text_length(s, n_bytes);
        if (length)
            fwrite(s, 1, length, out);
        else
            fprintf(out, PLAIN_TEXT_ESCAPE, (unsigned char)*s);
        s += length ? length : 1;
        n_bytes -= length ? length : 1;
    }
}

void cli_print_word(FILE *out, const char *before, const char *word, const char *ending)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=:,./@%";
    const bool quoted = !*word || word[strspn(word, plain)];
    fprintf(out, "%s%s", before, quoted ? "'" : "");
    for (size_t n; *word; word += n + (word[n] == '\'')) {
        n = strcspn(word, "'");
        cli_print_plain(out, word, n);
        fputs(word[n] ? "'\\''" : "", out);
    }
    fprintf(out, "%s%s", ending, quoted ? "'" : "");
}

/* File names may contain anything, but a message is always one line without terminal escapes. */
static void print_line(const char *text)
{
    fflush(stdout); /* keeps the order if both go to the same place */
    fputs(current_program, stderr);
    if (current_command)
        fprintf(stderr, " %s", current_command);
    fputs(": ", stderr);
    cli_print_plain(stderr, text, strlen(text));
    putc('\n', stderr);
}

static void __attribute__((format(printf, 1, 0))) print_message(const char *format, va_list args)
{
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    print_line(text);
}

/* Remembers and prints an error of which only status, sys_errno and the like are in `cause`. */
static void print_error(const tokmap_error *cause, const char *text)
{
    if (!first_error.is_known) {
        first_error.is_known = true;
        first_error.cause = *cause;
        snprintf(first_error.text, sizeof first_error.text, "%s", text);
        if (cause->file_bytes > strlen(first_error.text)) /* a part of the name is left out */
            first_error.cause.file_bytes = 0;
    }
    print_line(text);
}

/* Returns the status that is nearest to an exit code. */
static tokmap_status status_of(int code)
{
    static const tokmap_status statuses[] = {[CLI_USAGE] = TOKMAP_ERR_ARGUMENT,
                                             [CLI_INPUT] = TOKMAP_ERR_ARGUMENT,
                                             [CLI_DATASET] = TOKMAP_ERR_CORRUPT,
                                             [CLI_EXISTS] = TOKMAP_ERR_EXISTS};
    return code >= CLI_USAGE && code <= CLI_EXISTS ? statuses[code] : TOKMAP_ERR_IO;
}

static void __attribute__((format(printf, 2, 0)))
print_errors(int code, const char *format, va_list args)
{
    const tokmap_error cause = {.status = status_of(code)};
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    print_error(&cause, text);
}

int cli_error(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_errors(code, format, args);
    va_end(args);
    return code;
}

int cli_error_of_system(int code, int sys_errno, uint32_t file_bytes, const char *text)
{
    const tokmap_error cause = {.status = sys_errno ? TOKMAP_ERR_IO : status_of(code),
                                .sys_errno = sys_errno,
                                .file_bytes = file_bytes};
    print_error(&cause, text);
    return code;
}

void cli_print_error(void)
{
    const tokmap_error *cause = &first_error.cause;
    if (!first_error.is_known)
        return;
    json_out o = json_out_begin_result(stdout);
    json_out_begin(&o, "error", '{');
    json_out_print(&o, "status", "%d", (int)cause->status);
    json_out_print(&o, "errno", "%d", cause->sys_errno);
    json_out_string(&o, "text", first_error.text);
    if (cause->file_bytes)
        json_out_text(&o, "file", first_error.text, cause->file_bytes);
    else
        json_out_string(&o, "file", NULL);
    json_out_number(&o, "offset", cause->file_offset);
    json_out_number(&o, "reason", cause->reason);
    json_out_end(&o, '}');
    puts("}");
}

void cli_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(format, args);
    va_end(args);
}

int cli_no_memory(void)
{
    const tokmap_error cause = {.status = TOKMAP_ERR_MEMORY};
    print_error(&cause, "out of memory");
    return CLI_AGAIN;
}

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_errors(CLI_USAGE, format, args);
    va_end(args);
    fprintf(stderr, "Try '%s%s%s --help'.\n", current_program, current_command ? " " : "",
            current_command ? current_command : "");
    return CLI_USAGE;
}

/* ---- Library errors ---- */

const char *cli_hint(const tokmap_error *err)
{
    switch (err->sys_errno) {
    case ENOSPC:
    case EDQUOT:
        return "Free some disk space and run the command again.";
    case EFBIG:
        return "Raise the limit on file sizes (ulimit -f) and run the command again.";
    case EMFILE:
        return "Raise the limit on open files (ulimit -n) and run the command again.";
    default:
        break;
    }
    if (err->reason == TOKMAP_REASON_REPLACEABLE)
        return "Use --force to replace it, or choose another name.";
    return NULL;
}

void cli_print_hint(const tokmap_error *err)
{
    const char *hint = cli_hint(err);
    if (hint)
        fprintf(stderr, "%s\n", hint);
}

static void print_with_hint(const tokmap_error *err, const char *text)
{
    print_error(err, text);
    cli_print_hint(err);
}

int cli_errno_exit_code(int sys_errno)
{
    switch (sys_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case EINTR:
        return CLI_AGAIN;
    default:
        return CLI_INPUT;
    }
}

int cli_failure_exit_code(const failure *f)
{
    return f->status > 0 ? cli_errno_exit_code(f->status) : CLI_INPUT;
}

int cli_print_failure(const failure *f)
{
    const int code = cli_failure_exit_code(f);
    const tokmap_error cause = {.status = f->status > 0 ? TOKMAP_ERR_IO : status_of(code),
                                .sys_errno = MAX(f->status, 0),
                                .file_bytes = f->file_bytes};
    print_with_hint(&cause, f->text);
    return code;
}

int cli_exit_code(const tokmap_error *err)
{
    switch (err->status) {
    case TOKMAP_OK:
    case TOKMAP_END:
        return CLI_OK;
    case TOKMAP_ERR_MEMORY:
        return CLI_AGAIN;
    case TOKMAP_ERR_IO:            /* without an errno value: a file was too short */
    case TOKMAP_ERR_NOT_A_DATASET: /* with one: there is no index */
        return err->sys_errno ? cli_errno_exit_code(err->sys_errno) : CLI_DATASET;
    case TOKMAP_ERR_VERSION:
    case TOKMAP_ERR_CORRUPT:
    case TOKMAP_ERR_MISMATCH:
        return CLI_DATASET;
    case TOKMAP_ERR_UNSUPPORTED:
        return CLI_INPUT;
    case TOKMAP_ERR_EXISTS:
    case TOKMAP_ERR_LOCKED:
        return CLI_EXISTS;
    case TOKMAP_ERR_ARGUMENT:
        return CLI_USAGE;
    case TOKMAP_IN_PIECES:   /* not an error */
    case TOKMAP_NOT_READY:   /* not an error */
    case TOKMAP_ERR_FORKED:  /* no command forks */
    case TOKMAP_ERR_DEVICE:  /* no command uses a GPU */
    case TOKMAP_ERR_STOPPED: /* no command stops a call */
        break;
    }
    return CLI_INTERNAL;
}

int cli_fail(const tokmap_error *err)
{
    print_with_hint(err, err->text[0] ? err->text : tokmap_status_text(err->status));
    return cli_exit_code(err);
}

int cli_fail_because(const char *path, const char *why, int sys_errno)
{
    const tokmap_error err = {
        .status = TOKMAP_ERR_IO, .sys_errno = sys_errno, .file_bytes = (uint32_t)strlen(path)};
    char text[MESSAGE_BYTES];
    snprintf(text, sizeof text, "%s: %s: %s", path, why, strerror(sys_errno));
    print_with_hint(&err, text);
    return cli_exit_code(&err);
}

int cli_fail_errno(const char *path, const char *what, int sys_errno)
{
    char why[100];
    snprintf(why, sizeof why, "cannot %s", what);
    return cli_fail_because(path, why, sys_errno);
}

tokmap_dataset_info cli_dataset_info(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(ds, &info);
    return info;
}

tokmap_writer_options cli_writer_options_like(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    return (tokmap_writer_options){
        .struct_size = sizeof(tokmap_writer_options),
        .vocab_size = info.vocab_size,
        .has_eod = info.eod_id != TOKMAP_NO_ID,
        .eod_id = info.eod_id,
        .token_bytes = info.token_bytes,
    };
}

bool cli_is_joined(const tokmap_dataset_info *info)
{
    return !info->token_path;
}

const char *cli_tokens_name(const tokmap_dataset_info *info)
{
    return cli_is_joined(info) ? info->index_path : info->token_path;
}

/* ---- stdout ---- */

int cli_finish(void)
{
    static int reported;
    if (reported)
        return reported;
    int reason = ferror(stdout) ? errno : 0; /* callers come here right after a failed write */
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    if (errno)
        reason = errno;
    reported = reason && cli_errno_exit_code(reason) == CLI_AGAIN ? CLI_AGAIN : CLI_INTERNAL;
    cli_error(reported, "cannot write the output: %s",
              reason ? strerror(reason) : "a write failed");
    cli_print_hint(&(tokmap_error){.sys_errno = reason});
    return reported;
}

/* ---- Numbers ---- */

bool cli_parse_u64(const char *text, uint64_t *out)
{
    const char *p = text;
    uint64_t value, factor = 1;
    const size_t n_digits = strspn(p, "0123456789");
    if (!number_read_digits(p, n_digits, &value))
        return false;
    p += n_digits;
    static const char letters[] = "kmgt";
    const char *letter = *p ? strchr(letters, *p | 0x20) : NULL;
    if (letter) {
        const bool binary = (*++p | 0x20) == 'i';
        for (const char *l = letters; l <= letter; l++)
            factor *= binary ? 1024 : 1000;
        p += binary;
        p += (*p | 0x20) == 'b';
    }
    if (*p || __builtin_mul_overflow(value, factor, &value))
        return false;
    *out = value;
    return true;
}

bool cli_parse_range(const char *text, uint64_t total, uint64_t *first, uint64_t *end)
{
    char left[40];
    const char *colon = strchr(text, ':');
    size_t n_left = colon ? (size_t)(colon - text) : strlen(text);
    if (n_left >= sizeof left || *text == '\0')
        return false;
    memcpy(left, text, n_left);
    left[n_left] = '\0';
    uint64_t a = 0, b = total;
    if ((n_left && !cli_parse_u64(left, &a)) ||
        (colon && colon[1] && !cli_parse_u64(colon + 1, &b)))
        return false;
    if (!colon) {
        if (a >= total)
            return false;
        b = a + 1;
    }
    if (a > b || b > total)
        return false;
    *first = a;
    *end = b;
    return true;
}

int cli_refuse_text(const char *option, const failure *err)
{
    if (err->status == ENOMEM)
        return cli_no_memory();
    return cli_usage("%s: character %" PRIu64 ": %s", option, err->place, err->text);
}

int cli_refuse_range(const char *option, const char *range, const char *noun, uint64_t total)
{
    uint64_t first, end;
    if (!cli_parse_range(range, UINT64_MAX, &first, &end))
        return cli_usage(
            "%s %s: must be FIRST:END with FIRST at most END, FIRST:, :END or a number", option,
            range);
    return cli_usage("%s %s: the dataset has only %s", option, range, cli_count_of(total, noun).s);
}

cli_text cli_count(uint64_t n)
{
    cli_text text = {.s = ""};
    char digits[24];
    int n_digits = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *p = text.s;
    for (int i = 0; i < n_digits; i++) {
        if (i && (n_digits - i) % 3 == 0)
            *p++ = ',';
        *p++ = digits[i];
    }
    *p = '\0';
    return text;
}

cli_text cli_count_of(uint64_t n, const char *noun)
{
    cli_text text = cli_count(n);
    size_t n_used = strlen(text.s);
    snprintf(text.s + n_used, sizeof text.s - n_used, " %s%s", noun, n == 1 ? "" : "s");
    return text;
}

cli_text cli_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    cli_text text = {.s = ""};
    if (bytes < 1024) {
        snprintf(text.s, sizeof text.s, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    /* 1023.95 would print as 1024.0 */
    for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1024;
    snprintf(text.s, sizeof text.s, "%.1f %s", value, units[unit]);
    return text;
}

cli_text cli_hex(const uint8_t id[16])
{
    cli_text text = {.s = ""};
    for (int i = 0; i < 16; i++)
        snprintf(text.s + 2 * i, 3, "%02x", id[i]);
    return text;
}

/* ---- Progress ---- */

static uint64_t read_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_progress_begin(cli_progress *p, const char *verb, bool quiet)
{
    const char *term = getenv("TERM"), *form = getenv("TOKMAP_PROGRESS");
    *p = (cli_progress){.verb = verb, .enabled = !quiet};
    p->as_json = form && strcmp(form, "json") == 0;
    p->on_terminal = !p->as_json && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    p->started_ns = p->last_ns = read_clock();
}

uint64_t cli_progress_ns(const cli_progress *p)
{
    return read_clock() - p->started_ns;
}

bool cli_progress_is_due(cli_progress *p)
{
    const uint64_t now = read_clock();
    const uint64_t pause = p->on_terminal || p->as_json ? 200000000u : 10000000000u;
    if (!p->enabled || now - p->last_ns < pause)
        return false;
    p->last_ns = now;
    return true;
}

/* Prints {"progress": {...}} on a line. */
static void print_progress_json(const cli_progress *p, const char *text)
{
    json_out o = {.out = stderr};
    json_out_begin(&o, NULL, '{');
    json_out_begin(&o, "progress", '{');
    json_out_string(&o, "command", p->verb);
    json_out_number(&o, "n_bytes", p->bytes_done);
    json_out_known(&o, "total_bytes", p->bytes_total, p->bytes_total > 0);
    json_out_print(&o, "seconds", "%.3f", (double)cli_progress_ns(p) / 1e9);
    json_out_string(&o, "text", text);
    json_out_bool(&o, "ended", p->has_ended);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    putc('\n', stderr);
    fflush(stderr);
}

void cli_progress_draw(const cli_progress *p, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (p->as_json) {
        print_progress_json(p, text);
        return;
    }
    /* Turns automatic wrapping off, so that a line wider than the terminal is cut: in a wrapped
     * line, \r only goes to the start of the last row. */
    fprintf(stderr, p->on_terminal ? "\r\033[?7l%s\033[?7h\033[K" : "%s\n", text);
    fflush(stderr);
}

static cli_text format_rates(const cli_progress *p, uint64_t n_bytes)
{
    cli_text text = p->rates;
    if (!*text.s) {
        text = cli_bytes((uint64_t)((double)n_bytes * 1e9 / (double)cli_progress_ns(p)));
        strcat(text.s, "/s");
    }
    return text;
}

/* Prints "verify: 3.4 MiB of 3.4 GiB (0%), 3.4 MiB/s, 12 s left", without the parts that are not
 * known. */
void cli_progress_update(cli_progress *p, uint64_t bytes_done, uint64_t bytes_total)
{
    char total[80] = "", left[64] = "";
    p->bytes_done = bytes_done;
    p->bytes_total = bytes_total;
    if (!cli_progress_is_due(p))
        return;
    const double rate = (double)(bytes_done - p->bytes_before) * 1e9 / (double)cli_progress_ns(p);
    if (bytes_total > 0)
        snprintf(total, sizeof total, " of %s (%.0f%%)", cli_bytes(bytes_total).s,
                 100.0 * (double)bytes_done / (double)bytes_total);
    double seconds = p->seconds_left;
    if (seconds == 0 && bytes_total > 0 && rate > 0 && bytes_total >= bytes_done)
        seconds = (double)(bytes_total - bytes_done) / rate;
    if (seconds > 0 || (bytes_total > 0 && bytes_done == bytes_total))
        snprintf(left, sizeof left, ", %.0f s left%s", seconds > 0 ? seconds : 0.0,
                 p->left_for ? p->left_for : "");
    cli_progress_draw(p, "%s: %s%s, %s%s%s", p->verb, cli_bytes(bytes_done).s, total,
                      format_rates(p, bytes_done).s, left, p->notes);
}

static bool is_shown(const cli_progress *p)
{
    return p->enabled && (p->as_json || (p->on_terminal && p->last_ns != p->started_ns));
}

void cli_progress_end(cli_progress *p, uint64_t bytes_done)
{
    const uint64_t n_bytes = bytes_done - p->bytes_before;
    if (!is_shown(p))
        return;
    char text[512];
    p->bytes_done = bytes_done;
    p->has_ended = true;
    snprintf(text, sizeof text, "%s: %s in %.1f s, %s%s", p->verb, cli_bytes(n_bytes).s,
             (double)cli_progress_ns(p) / 1e9, format_rates(p, n_bytes).s, p->notes);
    if (p->as_json)
        print_progress_json(p, text);
    else
        fprintf(stderr, "\r%s\033[K\n", text);
}

void cli_progress_clear(cli_progress *p)
{
    if (is_shown(p) && !p->as_json) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}
