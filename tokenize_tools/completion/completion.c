/* SPDX-License-Identifier: Apache-2.0 */
#include "completion/completion.h"

#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "completion_scripts.h" /* made from the scripts of this folder */

enum {
    BASH,
    FISH,
    ZSH
};

static const cli_word shells[] = {
    {"bash", BASH, "in ~/.bashrc: eval \"$(tokmap completion bash)\""},
    {"fish", FISH, "tokmap completion fish >~/.config/fish/completions/tokmap.fish"},
    {"zsh", ZSH, "in ~/.zshrc, after compinit: eval \"$(tokmap completion zsh)\""},
    {NULL},
};

static const cli_word *list_shells(void)
{
    return shells;
}

static const cli_option option_table[] = {{NULL}};

static const cli_manual manual = {
    .usage = "tokmap completion SHELL",
    .about = "Prints the script with which a shell completes the commands, options and values of "
             "tokmap and tokbench. 'make install' and packages install it.",
    .list_title = "Shells",
    .get_list = list_shells,
    .options = option_table,
    .examples = "  eval \"$(tokmap completion bash)\"\n",
    .operand = "shell",
    .n_least = 1,
    .n_most = 1,
};

int completion_command(int argc, char **argv)
{
    static const char *const scripts[] = {[BASH] = completion_tokmap_bash,
                                          [FISH] = completion_tokmap_fish,
                                          [ZSH] = completion__tokmap};
    const int code = cli_parse_options(&manual, argc, argv, NULL);
    if (code != CLI_GO_ON)
        return code;
    const cli_word *shell = cli_find_word(shells, argv[optind]);
    if (!shell)
        return cli_refuse_word("shell", argv[optind], shells);
    fputs(scripts[shell->value], stdout);
    return cli_finish();
}
