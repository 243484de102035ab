/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/python/hand_over.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/options.h"
#include "system/memory_file.h"
#include "system/python_package.h"

/* Prints a string in ASCII. Other bytes become \udc80 to \udcff, which in Python stand for the
 * bytes of file names. */
static void print_string(json_out *o, const char *s)
{
    putc('"', o->out);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c >= 0x7f)
            fprintf(o->out, "\\u%s%02x", c < 0x80 ? "00" : "dc", c);
        else
            fprintf(o->out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
    }
    putc('"', o->out);
}

static void print_value(json_out *o, const char *key, const cli_setting *setting)
{
    uint64_t number;
    if (setting->option->kind == CLI_FLAG) {
        json_out_bool(o, key, true);
    } else if (setting->option->kind == CLI_NUMBER && cli_parse_u64(setting->value, &number)) {
        json_out_number(o, key, number);
    } else {
        json_out_key(o, key);
        print_string(o, setting->value);
    }
}

/* Prints the name of an option that was given, with underscores, and its last value, or all values
 * of a list. */
static void print_option(json_out *o, const cli_option *option)
{
    char key[64];
    size_t n;
    const cli_setting *settings = cli_get_settings(&n);
    snprintf(key, sizeof key, "%s", option->name);
    for (char *dash; (dash = strchr(key, '-'));)
        *dash = '_';
    if (option->kind != CLI_LIST) {
        while (settings[n - 1].option != option)
            n--;
        print_value(o, key, &settings[n - 1]);
        return;
    }
    json_out_begin(o, key, '[');
    for (size_t i = 0; i < n; i++) {
        if (settings[i].option == option)
            print_value(o, NULL, &settings[i]);
    }
    json_out_end(o, ']');
}

/* Returns NULL if memory is out. */
static char *print_options(const cli_option *options)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    json_out o = {.out = out};
    json_out_begin(&o, NULL, '{');
    for (; options->name; options++) {
        if (cli_is_given(options->name))
            print_option(&o, options);
    }
    json_out_end(&o, '}');
    memory_file_close(out, &text);
    return text.text;
}

int hand_over(const cli_manual *manual, int argc, char **argv)
{
    union {
        bool flag;
        uint32_t word;
        uint64_t number;
        const char *text;
    } target; /* of all options: only what was given is handed over */
    int code = cli_parse_options(manual, argc, argv, &target);
    if (code != CLI_GO_ON)
        return code;
    const size_t n_operands = (size_t)(argc - optind);
    char *options = print_options(manual->options);
    char **command = calloc(n_operands + 2, sizeof *command);
    if (options && command) {
        command[0] = argv[0];
        command[1] = options;
        memcpy(command + 2, argv + optind, n_operands * sizeof *command);
        code = python_package_replace((int)n_operands + 2, command);
    } else {
        code = cli_no_memory();
    }
    free(options);
    free(command);
    return code;
}
