# SPDX-License-Identifier: Apache-2.0
# Bash completion for tokmap and tokbench: the commands or pages, options and words that --help lists, then files.

# Prints these options and words for the commands in Python, whose help would take a moment.
_tokmap_in_python() # command, the word before, the word to complete
{
    case $1$2 in
    importimport) echo hdf5 lmdb megatron datatrove numpy tfrecord webdataset datasets parquet mds litdata ;;
    import--dtype) echo uint16 uint32 int32 int64 ;;
    preprocess--tokenizer-type) echo HuggingFaceTokenizer GPT2BPETokenizer SentencePieceTokenizer \
        GPTSentencePieceTokenizer Llama2Tokenizer ;;
    report--format) echo table csv ;;
    esac
    [[ $3 == -* ]] || return
    case $1 in
    import) echo --output --vocab-size --eod --field --labels --loss-mask --no-mask --dtype --stream --force \
        --json --quiet --help ;;
    preprocess) echo --input --json-keys --output-prefix --append-eod --tokenizer-type --tokenizer-model --vocab-file \
        --merge-file --tokenizer-hf-no-include-special-tokens --tokenizer-hf-include-special-tokens \
        --legacy-tokenizer --workers --memory --restart --partitions --keep-sequential-samples \
        --log-interval --lang --max-documents --use-gigatoken --help ;;
    render) echo --tokenizer --field --chat-template --tools --output --force --json --quiet --help ;;
    report) echo --by --host --top --ledger --all-attempts --until --state --sequence-length --seed --shuffle \
        --windows --max-epochs --ranks --batch-rows --order-of --format --json --help ;;
    trace) echo --step --sample --document --input --where --ledger --all-attempts --until --state \
        --sequence-length --seed --shuffle --windows --max-epochs --ranks --batch-rows --order-of --rank \
        --text --json --help ;;
    esac
}

_tokmap()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words= IFS=$'\n'

    [[ $COMP_CWORD -gt 1 && $program != *tokbench && $command != help ]] || command=
    if [[ $command == @(import|preprocess|render|report|trace) ]]; then
        words=$(_tokmap_in_python "$command" "$before" "$word" | tr ' ' '\n')
    # The words that the help of an option lists: each on a line, or several with commas.
    elif [[ $before == --* ]]; then
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
    info | verify | cat | merge | export | report | trace) # a dataset is named by its prefix
        COMPREPLY=($(compgen -d -- "$word") $(compgen -f -X '!*.tmi' -- "$word" | sed 's/\.tmi$//'))
        ;;
    esac
    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _tokmap tokmap tokbench
