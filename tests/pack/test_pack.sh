#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_pack.sh - what tokmap pack reads and writes: documents, inputs of all kinds, splits, limits,
# bad documents, special tokens, damaged inputs; and that nothing but inputs and options counts.

root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${TOKMAP_BUILD:-$root/build}:$PATH
export LC_ALL=C

dir=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_pack_XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

# verdict NAME STATUS WHY
verdict()
{
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        failed=1
        echo "FAIL $1: $3"
    fi
}

# same NAME EXPECTED ACTUAL
same()
{
    [ "$2" = "$3" ]
    verdict "$1" $? "expected $(echo "$2" | head -c 200), found $(echo "$3" | head -c 200)"
}

skip()
{
    echo "skip $1: $2"
}

# The dataset id that packing gives, or the exit code.
id_of()
{
    local code
    tokmap pack --json --force "$@" -o id >.json 2>.err
    code=$?
    [ $code = 0 ] || echo "exit $code: $(head -n 1 .err)"
    sed -n 's/.*"dataset_id": "\([0-9a-f]*\)".*/\1/p' .json
}

reads() # zstd or zlib
{
    tokmap --version | grep "^$1 " | grep -qv 'not in this build'
}

# Bytes as numbers; the independent view of what the tokens must be.
bytes()
{
    od -An -v -tu1 -w1 | tr -d ' '
}

# ---- Documents ----

head -c 400000 /dev/urandom >random.bin
printf 'first\n\nthird \r\n\0zero\nno newline' >lines.txt
: >empty.txt
{ cat random.bin; head -c 300000 /dev/zero | tr '\0' x; printf '\n\nend'; } >big.txt

tokmap pack -q --format text --utf8 raw random.bin empty.txt lines.txt -o files
same tokens_are_the_bytes_and_256_at_the_end_of_each_file \
    "$( (bytes <random.bin; echo 256; echo 256; bytes <lines.txt; echo 256) | cksum)" \
    "$(od -An -v -tu2 -w2 files.bin | tr -d ' ' | cksum)"
same an_empty_file_is_a_document_of_one_token 256 "$(tokmap cat --documents 1 files)"

tokmap pack -q --utf8 raw --lines lines.txt empty.txt big.txt -o lines
{ cat lines.txt; echo; cat big.txt; echo; } >expected.txt
tokmap cat --text lines >actual.txt
cmp -s expected.txt actual.txt
verdict lines_come_back_as_they_were $? "$(cmp expected.txt actual.txt 2>&1)"
same lines_count_as_documents "$(awk 'END { print NR }' expected.txt)" "$(tokmap cat lines | wc -l)"
same a_file_without_lines_has_no_document 0 "$(tokmap pack --json --lines empty.txt -o none |
    sed 's/.*"n_documents": \([0-9]*\).*/\1/')"

tokmap pack -q --format text big.txt lines.txt -o one
tokmap pack -q --format text big.txt lines.txt -o two
cmp -s one.bin two.bin && cmp -s one.tmi two.tmi
verdict the_same_inputs_give_the_same_bytes $? "files differ"

same stdin_gives_what_the_file_gives "$(id_of --format text big.txt)" "$(id_of --format text - <big.txt)"
same slow_stdin_gives_what_the_file_gives "$(id_of --lines lines.txt)" \
    "$({ head -c 3 lines.txt; sleep 0.1; tail -c +4 lines.txt | head -c 5; sleep 0.1
        tail -c +9 lines.txt; } | id_of --lines -)"

tokmap pack -q empty.txt -o summed
same input_checksum_is_the_xxh3_of_the_stored_bytes 2d06800538d394c2 \
    "$(tokmap info --json summed | sed 's/.*"input_checksum": "\([0-9a-f]*\)".*/\1/')"

if [ -z "$TOKMAP_SANITIZED" ]; then
    (
        ulimit -v 60000
        head -c 120000000 /dev/zero | tr '\0' y | tokmap pack -q -j 1 --memory 9M - -o huge
    )
    same a_document_larger_than_the_memory_is_packed 120000001 "$(($(wc -c <huge.bin) / 2))"
    rm -f huge.*
else
    skip a_document_larger_than_the_memory_is_packed "sanitizers need address space"
fi

# ---- Inputs and formats ----

# json FILE KEY: the first number or string of that name in a JSON object.
json()
{
    grep -oE "\"$2\": ?(\"[^\"]*\"|[0-9]+)" "$1" | head -n 1 | sed 's/^[^:]*: *//; s/"//g'
}

# texts P: the documents of a dataset of bytes, one a line.
texts()
{
    tokmap cat --text "$1"
}

printf 'a short text, a short text, a short text, and its end\n' >short.txt
printf '{"text": "one", "n": 1}\n\n{"n": 2, "text": "t\\u0077o"}\r\n{"text": ""}\n{"text":"x"}' >a.jsonl
printf '{"meta": {"body": "deep"}, "text": 3}\n' >nested.jsonl
tokmap pack -q a.jsonl -o auto
same json_lines_are_found_by_the_first_line "$(printf 'one\ntwo\n\nx\n')" "$(texts auto)"
tokmap pack -q short.txt -o short
same and_other_files_are_one_document "$(cat short.txt)" "$(texts short)"
same auto_and_jsonl_give_the_same "$(id_of a.jsonl)" "$(id_of --format jsonl a.jsonl)"
same json_lines_can_be_taken_as_text "$(cat a.jsonl)" \
    "$(tokmap pack -q --format text a.jsonl -o plain && texts plain)"
same the_field_may_be_nested deep \
    "$(tokmap pack -q --field meta.body nested.jsonl -o nested && texts nested)"
printf 'a\t\tb\t\t\t\tc' >tabs.txt
same a_separator_ends_documents "$(printf 'a\nb\n\nc\n')" \
    "$(tokmap pack -q --separator '\t\t' tabs.txt -o tabs && texts tabs)"
mkdir -p corpus/sub
for n in 1 2 10; do
    echo "file $n" >corpus/part-$n.txt
done
echo below >corpus/sub/x.txt
wanted=$(cat corpus/part-1.txt corpus/part-2.txt corpus/part-10.txt corpus/sub/x.txt)
same a_folder_is_all_its_files_in_natural_order "$wanted" \
    "$(tokmap pack -q corpus -o folders && texts folders)"
same a_pattern_is_all_that_it_matches_in_natural_order "$(echo "$wanted" | head -n 3)" \
    "$(tokmap pack -q 'corpus/part-*.txt' -o globs && texts globs)"
printf 'corpus/sub\n\ncorpus/part-2.txt\n' >list
same a_list_names_inputs "$(printf 'below\nfile 2')" \
    "$(tokmap pack -q @list -o listed && texts listed)"
tokmap pack -q corpus -o corpus/part-3 && tokmap pack -f corpus -o corpus/part-3 >.out 2>.err
same the_output_in_a_folder_is_no_input_of_it "$wanted" "$(texts corpus/part-3)"
same and_that_is_reported "tokmap pack: corpus: left out 2 files of the output: corpus/part-3.bin, corpus/part-3.tmi" "$(head -n 1 .err)"
rm corpus/part-3.*
same each_file_of_a_folder_is_an_input 4 "$(tokmap info --json folders >.json; json .json n_inputs)"

# ---- Only inputs and options count ----

awk 'BEGIN { for (i = 0; i < 10000; i++) {
    n = i % 2500 == 2499 ? 40000 : (i * 7919) % 97
    printf "line %d", i
    for (k = 0; k < n; k++) printf " word%d", (i * k) % 1009
    print ""
} }' >words.txt
sed 's/.*/{"text": "&", "n": 1}/' words.txt >words.jsonl
tr '\n' ' ' <words.txt >long.txt
printf 'caf\351\n' >>words.txt
gzip -nc words.txt >words.gz 2>/dev/null || cp words.txt words.gz

# all_of P: everything that P and its splits are.
all_of()
{
    cat "$1.bin" "$1.tmi" "$1"-*.bin "$1"-*.tmi 2>/dev/null | cksum
}

# always_the_same NAME ARGUMENT...: with any number of threads and any memory.
always_the_same()
{
    local name=$1 wanted=
    shift
    for how in "-j 1" "-j 7 --memory 8M" ${TOKMAP_LONG:+"-j 2" "-j 3 --memory 9M" "-j 2 --memory 200M"}; do
        rm -f same.* same-*
        tokmap pack -q "$@" $how -o same || {
            verdict "$name" 1 "exit $?: $how"
            return
        }
        [ -n "$wanted" ] || wanted=$(all_of same)
        [ "$wanted" = "$(all_of same)" ] || {
            verdict "$name" 1 "$how gives another dataset"
            return
        }
    done
    verdict "$name" 0
}

always_the_same threads_and_memory_do_not_count words.txt long.txt words.gz
always_the_same nor_with_json_lines words.jsonl
always_the_same nor_with_lines --lines words.txt long.txt words.gz
always_the_same nor_with_splits --lines words.txt words.gz --split valid=0.01 --split test=0.2
always_the_same nor_with_splits_of_long_documents words.txt long.txt --split valid=0.5
always_the_same nor_with_a_limit_of_documents --lines words.txt long.txt --limit-documents 4321 \
    --split valid=0.1
always_the_same nor_with_a_limit_of_tokens words.jsonl words.jsonl --limit-tokens 3M
always_the_same nor_with_tokens_around_documents --lines words.txt --bos 1 --eod 2
LC_ALL=de_DE.UTF-8 tokmap pack -q --lines words.txt --split valid=0.01 -o other
rm -f same.* same-*
LC_ALL=C tokmap pack -q --lines words.txt --split valid=0.01 -o same
same nor_with_the_locale "$(all_of same)" "$(all_of other)"

# ---- Splits and limits ----

seq 20000 | sed 's/^/document number /' >many.txt
tokmap pack -q --lines many.txt --split valid=0.1 --split test=0.05 -o parts
same each_document_is_in_one_split "$(sort many.txt | cksum)" \
    "$( (texts parts; texts parts-valid; texts parts-test) | sort | cksum)"
n_valid=$(texts parts-valid | wc -l)
n_test=$(texts parts-test | wc -l)
[ "$n_valid" -gt 1800 ] && [ "$n_valid" -lt 2200 ] && [ "$n_test" -gt 850 ] && [ "$n_test" -lt 1150 ]
verdict splits_have_about_their_fraction $? "$n_valid and $n_test of 20000"
sort -R --random-source=random.bin many.txt >shuffled.txt
tokmap pack -q -f --lines shuffled.txt --split valid=0.1 --split test=0.05 -o mixed
same the_split_of_a_document_does_not_depend_on_what_stands_around_it \
    "$(texts parts-test | sort | cksum)" "$(texts mixed-test | sort | cksum)"
same order_is_kept_in_a_split "$(texts parts-valid | cksum)" \
    "$(texts parts-valid | sort -t ' ' -k 3 -n | cksum)"
tokmap pack -q --lines words.txt --split valid=0.000001 -o none_in
same a_split_may_be_empty "0 1" \
    "$(tokmap info --json none_in-valid >.json; echo "$(json .json n_tokens) $(json .json n_inputs)")"
same splits_are_sound 0 "$(tokmap verify -q parts parts-valid parts-test none_in-valid; echo $?)"

same a_limit_of_documents_is_exact "$(head -n 777 many.txt)" \
    "$(tokmap pack -q --lines many.txt --limit-documents 777 -o limited && texts limited)"
tokmap pack -q -f --lines many.txt lines.txt --limit-tokens 1000 -o limited
n=$(($(wc -c <limited.bin) / 2))
last=$(texts limited | tail -n 1 | wc -c)
[ "$n" -ge 1000 ] && [ $((n - last)) -lt 1000 ]
verdict a_limit_of_tokens_ends_with_the_document_that_reaches_it $? "$n tokens, the last has $last"
same what_a_limit_left_out_is_no_input 1 \
    "$(tokmap info --json limited >.json; json .json n_inputs)"
same a_limit_ends_an_endless_input 1000 \
    "$(yes 'and so on' 2>.err | tokmap pack -q --lines - --limit-documents 1000 -o endless &&
        texts endless | wc -l)"

# ---- Bad documents ----

printf '{"text": "good"}\n{"text": }\n{"texd": "no"}\n{"text": "fine"}\nnothing\n' >bad.jsonl
tokmap pack bad.jsonl -o bad >.out 2>.err
same a_bad_document_ends_the_run_with_its_place "3 bad.jsonl:2: byte 26" \
    "$? $(sed -n 's/tokmap pack: \(bad.jsonl:2: byte [0-9]*\).*/\1/p' .err)"
same and_nothing_is_there "" "$(ls bad.bin bad.tmi bad.*partial 2>/dev/null)"
tokmap pack --on-error skip bad.jsonl -o bad --report .report >.out 2>.err
same a_bad_document_is_skipped "0 good fine" "$? $(texts bad | tr '\n' ' ' | sed 's/ $//')"
same skipped_documents_are_counted "3 left 3" \
    "$(json .report bad_documents) left $(grep -c '^tokmap pack: bad.jsonl:[0-9]*: byte' .err)"
same the_report_names_the_record_of_each "2 17 10 3 28 14 5 60 7" \
    "$(grep -o '"line": [0-9]*, "offset": [0-9]*, "n_bytes": [0-9]*' .report | tr -cd '0-9 \n' | tr -s ' \n' ' ' | sed 's/^ //;s/ $//')"
same and_no_file_is_left "bad.bin bad.jsonl bad.tmi" "$(ls bad* | tr '\n' ' ' | sed 's/ $//')"
cp bad.bin before.bin
awk 'BEGIN { for (i = 0; i < 20000; i++) print i % 3 ? "{\"text\": \"word " i "\"}" : "bad " i }' >third.jsonl
always_the_same bad_documents_do_not_change_that --format jsonl --on-error skip -f third.jsonl
tokmap pack -q -f --format jsonl --on-error skip third.jsonl -o same --report .report
same all_bad_documents_are_in_the_report "$(grep -c bad third.jsonl)" "$(grep -o reason .report | wc -l)"
always_the_same nor_do_those_behind_a_limit --format jsonl --on-error skip -f third.jsonl \
    --limit-tokens 7777
same utf8_errors_make_bad_documents "good" \
    "$(printf 'caf\351\ngood\n' | tokmap pack -q --lines --utf8 error --on-error skip - -o utf8 &&
        texts utf8)"

# ---- Unigram: the parts of a document go in order ----

# Scores are sums of each other except for rounding, so that the best depends on everything before.
cat >unigram.py <<'END'
import random
from oracle_spm import NORMAL, UNKNOWN, small_model
rng = random.Random(5)
letters = "abcd.\u2581"
pieces = {"<unk>": 0.0, **{c: -3.1 - rng.randrange(9) / 10 for c in letters}}
while len(pieces) < 60:
    parts = rng.choices([p for p in pieces if p != "<unk>"], k=2)
    if "\u2581" not in parts[1]:
        pieces["".join(parts)] = sum(pieces[p] for p in parts)
rows = [(p, score, UNKNOWN if p == "<unk>" else NORMAL) for p, score in pieces.items()]
open("unigram.model", "wb").write(small_model(rows, 1))
words = ["".join(rng.choices("abcd", k=rng.randint(1, 7))) for _ in range(5000)]
text = " ".join(rng.choices(words, k=500000))
open("unigram.txt", "w").write(text)
open("unigram.line", "w").write('"%s"\n' % text)
open("unigram.lines", "w").writelines(" ".join(rng.choices(words, k=n)) + "\n" for n in [9] * 3000 + [400000] + [9] * 3000 + [300000])
END
if ! command -v "${PYTHON:-python3}" >/dev/null; then
    skip unigram_takes_documents_of_any_size "${PYTHON:-python3} not found"
else
    PYTHONPATH=$root/tests/oracles "${PYTHON:-python3}" unigram.py
    unigram()
    {
        tokmap pack --tokenizer unigram.model --eod none -q "$@"
    }
    for how in "-j 1 --memory 8M" "-j 3 --memory 8M" "-j 2 --memory 256M"; do
        unigram -f $how unigram.txt -o large
        same "unigram_takes_documents_of_any_size_with_$(echo "$how" | tr -d ' -')" \
            "$(tokmap encode --tokenizer unigram.model unigram.line | tr -d '[]' | tr ',' ' ' | cksum)" \
            "$(tokmap cat large | cksum)"
    done
    always_the_same unigram_does_not_depend_on_threads_and_memory \
        --lines unigram.lines unigram.txt --tokenizer unigram.model --eod 1 --split valid=0.5
    wanted=$(all_of same)
    rm -f same.* same-*
    # Waits for the end of a killed process: until then it holds its lock.
    for seconds in 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.5 0.6; do
        [ ! -e same.tmi ] || break
        TOKMAP_CHECKPOINT_MS=0 tokmap pack -q --lines unigram.lines unigram.txt --tokenizer unigram.model --eod 1 \
            --split valid=0.5 -j 2 --memory 8M -o same &
        sleep "$seconds"
        kill -KILL $!
        wait $!
    done 2>/dev/null
    [ -e same.tmi ] || tokmap pack -q --lines unigram.lines unigram.txt --tokenizer unigram.model --eod 1 \
        --split valid=0.5 -j 2 --memory 8M -o same
    same and_killed_in_a_document_it_goes_on_to_the_same "$wanted" "$(all_of same)"
fi

# ---- Special tokens ----

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
    skip special_tokens "$python not found"
else
    PYTHONPATH=$root/tests/oracles:$root/tests/pack "$python" -c 'import pack_corpus
print(pack_corpus.small_vocabulary([("a", "b")], ["<|endoftext|>", "<x>"]))' >tokenizer.json
    printf 'abc\nab<x>c\n<x>\nend\n' >special.txt

    # ids WORD...: of special.txt, one line for each document.
    ids()
    {
        tokmap pack -f --lines --tokenizer tokenizer.json "$@" special.txt -o special >.out 2>.err &&
            tokmap cat special | tr '\n' '/'
    }

    same specials_are_plain_text "256 99 257/256 60 120 62 99 257/60 120 62 257/101 110 100 257/" "$(ids)"
    grep -q "2 special tokens written in the text" .err
    verdict specials_that_are_text_are_counted $? "$(cat .err)"
    same specials_match "256 99 257/256 258 99 257/258 257/101 110 100 257/" "$(ids --specials match)"
    same specials_are_dropped "256 99 257/256 99 257/257/101 110 100 257/" "$(ids --specials drop)"
    ids --specials error
    same a_special_token_may_be_an_error \
        "3 tokmap pack: special.txt: document 2: byte 2: the special token <x> is in its text" \
        "$? $(head -n 1 .err)"
    { head -c 300000 /dev/zero | tr '\0' ' '; printf '\303\251 word <|endoftext|>'; } >far.txt
    tokmap pack --specials error --memory 8M --tokenizer tokenizer.json far.txt -o far >.out 2>.err
    same its_place_and_all_of_it_are_told \
        "tokmap pack: far.txt: document 1: byte 300008: the special token <|endoftext|> is in its text" \
        "$(head -n 1 .err)"
    same documents_with_special_tokens_are_skipped "256 99 257/101 110 100 257/" \
        "$(ids --specials error --on-error skip)"
    same eod_may_be_a_token_as_it_is_written "256 99 258/256 60 120 62 99 258/60 120 62 258/101 110 100 258/" \
        "$(ids --eod '<x>')"

    # The files beside a tokenizer.json.
    mkdir beside
    sed 's/<x>/<eos>/' tokenizer.json >beside/tokenizer.json
    # eod WORD...: the token that ends a document, or the exit code and the message.
    eod()
    {
        tokmap pack -f --tokenizer beside/tokenizer.json "$@" one.txt -o special >.out 2>.err ||
            { echo "$? $(head -n 1 .err)"; return; }
        tokmap cat special | sed 's/.* //'
    }
    printf 'abc' >one.txt
    same two_tokens_that_may_end_a_document_are_refused '2 tokmap pack: tokenizer.json: more than one token may be '\
'the one that ends a document: "<|endoftext|>" (257, tokenizer.json) and "<eos>" (258, tokenizer.json); '\
'choose one with --eod ID or --eod TOKEN, or --eod none' "$(eod)"
    same then_one_can_be_chosen "258 257" "$(eod --eod '<eos>') $(eod --eod 257)"
    echo '{"bos_token": null, "eos_token": {"content": "<eos>", "special": true}}' >beside/tokenizer_config.json
    same tokenizer_config_says_what_ends_a_document 258 "$(eod)"
    echo '{"bos_token_id": 97}' >beside/generation_config.json
    same and_that_none_begins_one "256 99 258" "$(eod --bos auto >.out; tokmap cat special)"
    rm beside/generation_config.json
    echo '{"eos_token": "<eos>"}' >beside/tokenizer_config.json
    same which_may_not_be_stated \
        '2 tokmap pack: the tokenizer tokenizer.json does not say which token begins a document; choose one with --bos ID or '\
'--bos TOKEN, or --bos none' "$(eod --bos auto)"
    echo '{"max_length": 1e3, "eos_token_id": 258}' >beside/generation_config.json
    same generation_config_may_agree 258 "$(eod)"
    echo '{"eos_token_id": [258, 97]}' >beside/generation_config.json
    same or_be_refused '2 tokmap pack: tokenizer.json: more than one token may be the one that ends a document: '\
'"<eos>" (258, tokenizer_config.json) and "a" (97, generation_config.json); choose one with --eod ID or --eod TOKEN, '\
'or --eod none' "$(eod)"
    same which_concerns_only_who_asks "256 99 98" "$(eod --eod 98 >.out; tokmap cat special)"
    echo '{"eos_token": "<eos>"}' >beside/tokenizer_config.json
    echo '{"bos_token_id": 97, "eos_token_id": 9999}' >beside/generation_config.json
    same an_id_without_a_token_is_an_error '3 tokmap pack: tokenizer: generation_config.json beside tokenizer.json: '\
'byte 41: eos_token_id is 9999, and tokenizer.json has no such token; choose the token with --eod' "$(eod)"
    same a_document_may_begin_with_what_is_stated "97 256 99 98" \
        "$(eod --bos auto --eod 98 >.out; tokmap cat special)"
    rm -r beside
    same bos_may_be_an_id "1 256 99 257/1 256 60 120 62 99 257/1 60 120 62 257/1 101 110 100 257/" \
        "$(ids --bos 1)"
    same ids_beyond_the_vocabulary_make_it_larger "70001 u32" \
        "$(ids --eod 70000 >.out; tokmap info --json special >.json
            echo "$(json .json vocab_size) $(json .json dtype)")"
    same and_that_is_reported "tokmap pack: --eod 70000: the tokenizer tokenizer.json has only 259 ids, so the \
vocabulary of the dataset becomes larger, and each token takes 4 bytes instead of 2" "$(head -n 1 .err)"
    same an_id_just_above_the_vocabulary_is_reported_too \
        "256 99 259/ the tokenizer tokenizer.json has only 259 ids, so the vocabulary of the dataset becomes larger" \
        "$(ids --eod 259 --limit-documents 1) $(sed -n 's/.*259: \(the tok.*\)/\1/p' .err)"
    ids -q --eod 70000 >.out
    same but_not_to_the_quiet "" "$(cat .err)"
    awk 'BEGIN { for (i = 0; i < 300; i++) {
        n = i % 40 == 7 ? 30000 : i % 50
        printf "%s", i % 9 == 4 ? "<x>" : ""
        for (k = 0; k < n; k++) printf " ab word%d", k
        print i % 7 == 3 ? "<x>" : ""
    } }' >late.txt
    always_the_same nor_with_special_tokens_that_are_errors --tokenizer tokenizer.json \
        --specials error --on-error skip --lines late.txt --split valid=0.3
    same and_all_others_are_there "$(grep -vc '<x>' late.txt)" \
        "$(($(tokmap cat same | wc -l) + $(tokmap cat same-valid | wc -l)))"
    mkdir begin
    # With a limit, everything is reported and counted as if the input ended there.
    awk 'BEGIN { for (i = 0; i < 9000; i++) print i % 3 == 1 ? "bad " i : "{\"text\": \"" \
        (i % 5 ? "" : "caf\351 ") (i % 7 ? "" : "<x>") (i % 11 ? i : "") "\"}" }' >mixed.jsonl
    for n in 1 2 1001 4000; do
        head -n $(((n - 1) / 2 * 3 + (n - 1) % 2 * 2 + 1)) mixed.jsonl >begin/mixed.jsonl
        for where in . begin; do
            (
                cd $where || exit
                tokmap pack -f --utf8 replace --on-error skip --tokenizer "$dir/tokenizer.json" mixed.jsonl -o p \
                    --report .report $([ $where = . ] && echo --limit-documents $n) >.out 2>.err
                grep -oE '"(text_bytes|empty_d|bad_|mended|replace|specials_in)[a-z]*": [^,]*|"skipped".*' .report >.told
                tokmap info --json p | grep -o '"counts":[^}]*' >>.told
                cat .err >>.told
            )
        done
        cmp -s .told begin/.told && [ "$(wc -l <.told)" -gt 5 ]
        verdict "nothing_behind_a_limit_of_${n}_documents_counts" $? "$(diff .told begin/.told | head -n 3 | tr '\n' ' ')"
    done
    always_the_same nor_with_special_tokens_that_match --tokenizer tokenizer.json \
        --specials match --lines late.txt --split valid=0.3
    tokmap pack -q --tokenizer tokenizer.json --lines special.txt -o twin
    tokmap info --json twin | sed 's/.*"tokenizer"://' >.json
    same the_metadata_names_the_tokenizer "tokenizer.json byte-level BPE 16.0.0" \
        "$(json .json name) $(json .json family) $(json .json unicode)"
    same and_has_the_checksum_of_the_file 16 "$(json .json file_xxh3 | tr -d '\n' | wc -c)"
fi

# ---- The report ----

if command -v "$python" >/dev/null; then
    tokmap pack -q --lines lines.txt many.txt --split valid=0.1 -o reported --report report.json
    "$python" - <<'END'
import json
report = json.load(open("report.json"))
inputs = {}
for dataset in report["datasets"]:
    for entry in dataset["inputs"]:
        total = inputs.setdefault(entry["name"], [0, 0])
        total[0] += entry["n_documents"]
        total[1] += entry["n_tokens"]
assert list(inputs) == ["lines.txt", "many.txt"], inputs
assert inputs["many.txt"][0] == 20000, inputs
assert sum(t for _, t in inputs.values()) == report["n_tokens"], (inputs, report["n_tokens"])
assert [d["index_file"] for d in report["datasets"]] == ["reported.tmi", "reported-valid.tmi"]
assert report["peak_memory_bytes"] > 0 and report["resumed"] is False
assert report["stored_bytes"] == sum(len(open(n, "rb").read()) for n in inputs)
END
    verdict the_report_adds_up $? "see the assertion above"
fi

# ---- Compressed inputs ----

plain=$(id_of --format text big.txt)
if ! reads zlib; then
    printf '\x1f\x8b\x08\0' >any.gz
    same gzip_is_refused_where_the_build_has_no_zlib \
        "exit 3: tokmap pack: any.gz: byte 0: gzip data cannot be read, because this build has no zlib" "$(id_of --format text any.gz)"
elif ! command -v gzip >/dev/null; then
    skip gzip "gzip not found"
else
    gzip -nc big.txt >big.gz
    same gzip_gives_what_plain_gives "$plain" "$(id_of --format text big.gz)"
    same gzip_is_told_by_content_not_by_name "$plain" "$(cp big.gz x.txt && id_of --format text x.txt)"
    same gzip_from_stdin "$plain" "$(id_of --format text - <big.gz)"
    { head -c 100000 big.txt | gzip -nc; tail -c +100001 big.txt | gzip -nc; } >members.gz
    same gzip_members_are_one_input "$plain" "$(id_of --format text members.gz)"
    cp big.txt plain.gz
    same plain_text_named_gz_is_plain_text "$plain" "$(id_of --format text plain.gz)"
    same empty_gzip_is_an_empty_document "$(id_of --format text empty.txt)" "$(gzip -nc empty.txt | id_of --format text -)"
fi
if ! reads zstd; then
    printf '\x28\xb5\x2f\xfd' >any.zst
    same zstd_is_refused_where_the_build_has_no_zstd \
        "exit 3: tokmap pack: any.zst: byte 0: zstd data cannot be read, because this build has no zstd" \
        "$(id_of --format text any.zst)"
elif ! command -v zstd >/dev/null; then
    skip zstd "zstd not found"
else
    zstd -qc big.txt >big.zst
    same zstd_gives_what_plain_gives "$plain" "$(id_of --format text big.zst)"
    same zstd_is_told_by_content_not_by_name "$plain" "$(cp big.zst x.gz && id_of --format text x.gz)"
    same zstd_from_stdin "$plain" "$(id_of --format text - <big.zst)"
    { head -c 100000 big.txt | zstd -qc; printf '\x5a\x2a\x4d\x18\x03\0\0\0abc'
        tail -c +100001 big.txt | zstd -qc; } >frames.zst
    same zstd_frames_are_one_input_and_skippable_frames_are_skipped "$plain" "$(id_of --format text frames.zst)"
    same empty_zstd_is_an_empty_document "$(id_of --format text empty.txt)" "$(zstd -qc empty.txt | id_of --format text -)"
fi
if reads zstd; then
    # Frames by hand: no checksum, a window of 2^27 or 2^28, one raw block with the byte x.
    printf '\x28\xb5\x2f\xfd\0\x88\x09\0\0x' >window27.zst
    printf '\x28\xb5\x2f\xfd\0\x90\x09\0\0x' >window28.zst
    same zstd_window_of_128_MiB_is_read "$(printf x | id_of --format text -)" "$(id_of --format text window27.zst)"
    same zstd_window_of_256_MiB_is_refused "exit 3: tokmap pack: window28.zst: byte 0: zstd data with a \
window of more than 128 MiB is not supported; compress it again without --long, or with --long=27" "$(id_of --format text window28.zst)"
fi

# ---- Damaged inputs ----

rm -f id.*
# refused NAME PATTERN FILE: exit 3, the place, nothing written.
refused()
{
    local code
    tokmap pack "$3" -o id >.out 2>.err
    code=$?
    [ $code = 3 ] && grep -qE "$2" .err && [ ! -s .out ] && [ -z "$(ls id.* 2>/dev/null)" ]
    verdict "$1" $? "exit $code: $(head -n 1 .err) $(ls id.* 2>/dev/null)"
}

if reads zlib && command -v gzip >/dev/null; then
    gzip -nc short.txt >short.gz
    { cat short.gz; printf 'more'; } >tail.gz
    refused trailing_text_after_gzip_is_refused \
        "tail.gz: byte $(wc -c <short.gz): trailing data that is not gzip" tail.gz
    { cat short.gz; head -c 10 short.gz; } >half.gz
    refused half_a_second_member_is_refused "truncated gzip data" half.gz
fi
if reads zstd && command -v zstd >/dev/null; then
    zstd -qc short.txt >short.zst
    { cat short.zst; printf 'more'; } >tail.zst
    refused trailing_text_after_zstd_is_refused \
        "tail.zst: byte $(wc -c <short.zst): trailing data that is not zstd" tail.zst
fi

mkdir folder
refused an_empty_folder_is_refused "folder: the folder contains no files to pack" folder
refused a_missing_file_is_refused "nothing: No such file" nothing

# ---- Files that would be read and written, or written twice ----

printf '{"text": "good"}\n{"bad": 1}\n' >own.jsonl
cp own.jsonl w.skipped.partial
cp own.jsonl rr.json.partial

# clash NAME MESSAGE ARGUMENTS: exit status 2 or 5, the message, and no file is changed.
clash()
{
    local name=$1 message=$2 before code
    shift 2
    before=$(cksum own.jsonl w.skipped.partial rr.json.partial)
    tokmap pack "$@" >.out 2>.err
    code=$?
    [[ $code = [25] ]] && grep -qF "$message" .err && [ "$(cksum own.jsonl w.skipped.partial rr.json.partial)" = "$before" ]
    verdict "$name" $? "exit $code: $(head -n 1 .err)"
}

both="is an input, so it cannot be an output" twice="is named for two outputs"
clash the_places_of_bad_documents_do_not_replace_an_input "$both" \
    w.skipped.partial --format jsonl --on-error skip -f -o w
clash a_report_does_not_replace_an_input "$both" rr.json.partial --report rr.json -o w
for link in "" h.; do
    printf '{"ids": []}' >specials.json
    echo own.jsonl >lst
    [ -z "$link" ] || for file in lst specials.json tokenizer.json merges.txt; do
        ln -f $file h.$file 2>/dev/null
    done
    clash "a_report_does_not_replace_${link}the_list_of_inputs" "${link}lst: is a list of inputs" \
        @lst --report ${link}lst -o w
    [ -e tokenizer.json ] || continue
    clash "a_report_does_not_replace_${link}the_tokenizer" "${link}tokenizer.json: is part of the tokenizer" \
        w.skipped.partial --tokenizer tokenizer.json --report ${link}tokenizer.json -o w
    printf '#version: 0.2\na b\n' >merges.txt
    "$python" -c 'import json
print(json.dumps(json.load(open("tokenizer.json"))["model"]["vocab"]))' >vocab.json
    [ -z "$link" ] || ln -f merges.txt h.merges.txt
    clash "a_report_does_not_replace_${link}the_merges" "${link}merges.txt: is part of the tokenizer" \
        w.skipped.partial --tokenizer vocab.json --eod none --report ${link}merges.txt -o w
done
echo "somebody's" >theirs
ln -s theirs symbolic
clash a_dataset_does_not_replace_a_link_to_its_list "is a list of inputs" @lst -f -o k \
    $(ln lst k.tmi)
tokmap pack -q --format text -o w own.jsonl --report symbolic 2>.err
same a_report_does_not_replace_a_symbolic_link "2 somebody's" "$? $(cat symbolic)"
rm -f w.bin w.tmi symbolic

# A temporary name of a run may be another name of a foreign file: that file stays unchanged.
for suffix in bin.partial tmi.partial tmj.partial skipped.partial report.partial; do
    for how in "ln" "ln -s"; do
        echo "not ours" >victim
        $how victim v.$suffix
        TOKMAP_CHECKPOINT_MS=0 tokmap pack -q --on-error skip --format jsonl own.jsonl -o v \
            --report v.report 2>.err
        same "the_file_that_v.${suffix}_${how// /_}_leads_to_stays" "not ours" "$(cat victim)"
        rm -f v.* victim
    done
done
clash a_report_does_not_replace_the_dataset "$twice" own.jsonl --report z.bin -o z
if mknod device c 1 3 2>/dev/null; then # never one of the machine: a mistake would replace it
    clash a_report_does_not_replace_a_device "is not a regular file" own.jsonl --report device -o z
    [ -c device ]
    verdict the_device_is_still_there $? "it is no device any more"
else
    skip a_report_does_not_replace_a_device "devices cannot be made here"
fi
echo "not ours" >there.json
clash a_report_does_not_replace_a_file_without_force "there.json: already exists" \
    own.jsonl --format jsonl --report there.json -o z
same and_the_file_and_the_dataset_are_as_before "not ours " "$(cat there.json) $(ls z.bin z.tmi 2>/dev/null)"
tokmap pack -q -f --on-error skip own.jsonl --format jsonl --report there.json -o z
same with_force_it_does 1 "$(grep -c '"schema_version"' there.json)"
rm -f z.* device

# appends NAME ARGUMENTS: a command that would add to its own input is refused, and the file stays.
appends()
{
    local name=$1 before
    shift
    before=$(cksum <own.texts)
    timeout 120 tokmap "$@" >>own.texts 2>.err
    same "$name" "2 stdout: is the input $before" \
        "$? $(grep -o 'stdout: is [a-z]* input' .err) $(cksum <own.texts)"
}
echo '"text"' >own.texts
appends encode_does_not_write_into_its_input encode --tokenizer bytes own.texts
appends encode_does_not_write_into_its_stdin encode --tokenizer bytes - <own.texts
echo '[97]' >own.texts
appends decode_does_not_write_into_its_input decode --tokenizer bytes own.texts
tokmap pack -q --format text own.jsonl -o k2
before=$(cksum <k2.bin)
tokmap cat k2 >>k2.bin 2>.err
same cat_does_not_write_into_its_dataset "2 $before" "$? $(cksum <k2.bin)"

# ---- A run that is not finished ----

{ seq 300000; printf 'caf\351\n'; } >numbers.txt
TOKMAP_CHECKPOINT_MS=0 tokmap pack -q --lines --utf8 error numbers.txt -o unfinished 2>.err
for command in info verify cat "export --to raw -o e"; do
    tokmap $command unfinished 2>.err
    same "${command%% *}_says_that_a_run_is_unfinished" "3 was interrupted; the last checkpoint has N" \
        "$? $(grep -oE 'was interrupted; the last checkpoint has [1-9]' .err | sed 's/.$/N/')"
done
tokmap pack -q --lines lines.txt -o whole
cp unfinished.tmi.partial whole.tmi.partial
tokmap info --no-lengths whole >.out 2>.err
same a_dataset_that_is_being_replaced_is_shown_and_that_is_said "0 1 killed before the first checkpoint" \
    "$? $(grep -c '^tokens:' .out) $(grep -o 'killed before the first checkpoint' .err)"

printf 'BZh91AY&SY....' >shard.bz2
refused files_of_other_formats_are_named "shard.bz2: is a bzip2 file" shard.bz2

exit $failed
