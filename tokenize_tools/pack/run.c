/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/run.h"

#include "cli/cli.h"
#include "pack/dry_run.h"
#include "pack/look.h"
#include "pack/names.h"
#include "pack/option_rows.h"
#include "pack/report.h"
#include "pack/session.h"
#include "system/process.h"

static int run_session(const pack_parts *parts, pack_kinds *kinds)
{
    pack_report_file report;
    process_catch_interrupts();
    int code = pack_look(parts, kinds, NULL);
    if (code == CLI_OK)
        code = pack_report_begin(&report, parts->options);
    if (code != CLI_OK)
        return code;
    code = pack_session_run(parts, report.text_file);
    return pack_report_end(&report, code);
}

int pack_run(const pack_options *options, char **names, size_t n_names)
{
    pack_inputs inputs;
    tokenizer_file file = {0};
    pack_tokens tokens;
    const pack_parts parts = {
        .options = options, .tokenizer = &file, .tokens = &tokens, .inputs = &inputs};
    process_share_heap();
    int code = pack_inputs_find(&inputs, names, n_names, options);
    if (code == CLI_OK)
        code = pack_tokens_open(&tokens, &file, options);
    if (code == CLI_OK)
        code = pack_names_check(options);
    if (code == CLI_OK)
        code = options->dry_run ? pack_dry_run(&parts, &inputs.kinds)
                                : run_session(&parts, &inputs.kinds);
    if (code == CLI_OK && !options->dry_run)
        code = pack_options_say_bytes(options);
    tokenizer_file_close(&file);
    pack_inputs_free(&inputs);
    return code;
}
