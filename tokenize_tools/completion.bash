# Bash completion for tokmap: the commands and options that `tokmap --help` lists, then files.
_tokmap()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local tokmap=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words= IFS=$'\n'

    [[ $COMP_CWORD -gt 1 ]] || command=
    case $before in
    --to) words=$'megatron\nllmc\nraw' ;;
    --dtype) words=$'u16\nu32' ;;
    --pattern) words=$'gpt2\np50k\np50k_edit\ncl100k\no200k\no200k_harmony\nllama3\nllama4\nqwen2\nqwen2.5\nqwen3\ndeepseek3\ntekken' ;;
    --specials) words=$'text\nmatch\nerror\ndrop' ;;
    --utf8) words=$'replace\nerror\nraw' ;;
    --on-error) words=$'fail\nskip\ncollect' ;;
    --format) [[ $command != pack ]] || words=$'auto\ntext\nlines\njsonl' ;;
    esac
    if [[ -z $words && $word == -* ]]; then
        words=$("$tokmap" $command --help 2>/dev/null |
            sed -n 's/^ *\(-[a-zA-Z], \)*\(--[a-z-]*\).*/\2/p')
    elif [[ -z $words && -z $command ]]; then
        words=$("$tokmap" --help 2>/dev/null |
            sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
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
complete -F _tokmap tokmap
