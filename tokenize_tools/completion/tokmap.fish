# SPDX-License-Identifier: Apache-2.0
# Fish completion for tokmap and tokbench: asks the program, which knows its commands, options and words.

function __tokmap_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l said ($words[1] --complete $words[2..-1] 2>/dev/null)
    set -l word (string replace -r '^--[a-z0-9-]+=' '' -- $words[-1])
    set -l before (string sub -l (math (string length -- $words[-1]) - (string length -- "$word")) -- $words[-1])
    switch "$said[1]"
        case :folders
            printf '%s\n' $before(__fish_complete_directories "$word" '')
        case :files :datasets
            printf '%s\n' $before(__fish_complete_path "$word" '')
            set -l indexes $word*.tmi # a dataset is named without .tmi
            test $said[1] = :datasets; and printf '%s\n' $before(string replace -r '\.tmi$' '' -- $indexes)
        case '?*'
            printf '%s\n' $said
    end
end
complete -c tokmap -f -a '(__tokmap_complete)'
complete -c tokbench -f -a '(__tokmap_complete)'
