# SPDX-License-Identifier: Apache-2.0
# Bash completion for tokmap and tokbench: asks the program, which knows its commands, options and words.

_tokmap()
{
    local words=() word=${COMP_WORDS[COMP_CWORD]} said i IFS=$'\n'
    for ((i = 1; i <= COMP_CWORD; i++)); do # --format=jsonl is three words here
        [[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
    done
    [[ $word != = ]] || { word= && words+=(""); }
    said=$("${COMP_WORDS[0]/#\~/$HOME}" --complete "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    [[ $said != :* ]] || compopt -o filenames 2>/dev/null
    case $said in
    :folders) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    :datasets) # named without .tmi
        mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -f -X '!*.tmi' -- "$word" | sed 's/\.tmi$//') ;;
    :files) ;;
    *) [[ -z $said ]] || mapfile -t COMPREPLY < <(cut -f 1 <<<"$said") ;;
    esac
    [[ ($said != :files && $said != :datasets) || ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -F _tokmap tokmap tokbench
