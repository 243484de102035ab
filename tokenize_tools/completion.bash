# SPDX-License-Identifier: Apache-2.0
# Bash completion for tokmap and tokbench: the commands or pages, options and words that --help lists, then files.
_tokmap()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words= IFS=$'\n'

    [[ $COMP_CWORD -gt 1 && $program != *tokbench && $command != help ]] || command=
    # The words that the help of an option lists: each on a line, or several with commas.
    if [[ $before == --* ]]; then
        words=$("$program" $command --help 2>/dev/null | awk -v option="$before" '
            /^ +(-.,)? *--/ { inside = $1 == option || $2 == option; match($0, /[^ ]  +[^ ]/)
                              column = RSTART + RLENGTH - 2; next }
            !/^ / { inside = 0 }
            inside && match($0, /[^ ]/) && RSTART == column + 3 {
                if ($0 ~ /[^ ]  +[^ ]/) { print $1; next }
                for (i = 1; i <= NF; i++) if ($i != "or") { sub(/,$/, "", $i); print $i } }')
    fi
    if [[ -z $words && $word == -* ]]; then
        words=$("$program" $command --help 2>/dev/null |
            sed -nE '/^Examples:/q; s/^  (-[a-zA-Z], |    )(--[a-z0-9-]+).*/\2/p')
    elif [[ -z $words && -z $command && $before != --* ]]; then
        words=$("$program" --help 2>/dev/null |
            sed -nE '/^(Commands|Pages):/,/^$/s/^  ([a-z]+) .*/\1/p')
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    compopt -o filenames 2>/dev/null
    COMPREPLY=()
    case $command in
    info | verify | cat | merge | export) # a dataset is named by its prefix
        COMPREPLY=($(compgen -d -- "$word") $(compgen -f -X '!*.tmi' -- "$word" | sed 's/\.tmi$//'))
        ;;
    esac
    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _tokmap tokmap tokbench
