#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli.sh - what the tokmap command says: stdout, stderr and exit code of each call, compared
# with tests/cli/NAME.expected, and the man page against the help texts.
#
# UPDATE=1 tests/commands/test_cli.sh rewrites the expected files: check them with git diff.

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${TOKMAP_BUILD:-$root/build}
expected=$root/tests/cli
PATH=$build:$PATH
export LC_ALL=C TERM=dumb
unset COLUMNS POSIXLY_CORRECT

dir=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_cli_XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

failed=0
commands='pack plan status join index info verify cat merge redact export encode decode import preprocess render report
    trace try completion'
version=$(sed -n 's/.*TOKMAP_VERSION_TEXT "\(.*\)"/\1/p' "$root/include/tokmap.h")

ok()
{
    echo "ok $1"
}

fail()
{
    failed=1
    echo "FAIL $1: $2"
}

# Versions of tokmap and of the libraries are not what is tested here.
normal()
{
    sed -e "s/tokmap $version/tokmap VERSION/" \
        -e 's/^\(xxHash\|zstd\|zlib\|ISA-L\)\( *\)[0-9].*/\1\2VERSION/' \
        -e 's/^\(zstd\|zlib\|ISA-L\)\( *\)not in this build$/\1\2VERSION/' "$1"
}

# says NAME COMMAND...: runs it and compares all that can be seen from outside.
says()
{
    local name=$1 code
    shift
    "$@" </dev/null >"$dir/.out" 2>"$dir/.err"
    code=$?
    {
        echo "exit $code"
        echo "--- stdout"
        normal "$dir/.out"
        echo "--- stderr"
        normal "$dir/.err"
    } >"$dir/.actual"
    if [ -n "$UPDATE" ]; then
        cp "$dir/.actual" "$expected/$name.expected"
    fi
    if cmp -s "$expected/$name.expected" "$dir/.actual"; then
        ok "$name"
    else
        fail "$name" "differs from tests/cli/$name.expected"
        diff "$expected/$name.expected" "$dir/.actual" | sed 's/^/    /'
    fi
}

# quietly COMMAND...: a step that prepares a case.
quietly()
{
    "$@" >"$dir/.out" 2>&1 || {
        fail setup "$*: $(cat "$dir/.out")"
        exit 1
    }
}

patch_byte() # file, offset, octal value
{
    printf "\\$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# ---- Help and misuse ----

says help tokmap --help
says version tokmap --version
says no_arguments tokmap
for command in pack plan preprocess trace report; do # -h lists only some of their options
    says "short_help_$command" tokmap "$command" -h
done
says short_help tokmap -h
says option_misspelt tokmap pack --tokeniser bytes
says help_of_an_unknown_command tokmap help frobnicate
says unknown_command tokmap frobnicate
says misspelt_command tokmap verfy
mkdir alone broken
cp "$(command -v tokmap)" alone
printf '#!/nonexistent/python\n' >broken/tokmap-python
chmod +x broken/tokmap-python
says command_in_python_without_the_package env PATH=/nonexistent alone/tokmap trace --step 1
says command_in_python_without_its_interpreter env PATH=:/nonexistent:broken alone/tokmap trace --step 1
for command in import preprocess render trace report try; do
    if [ "$(PATH=/nonexistent alone/tokmap help $command)" = "$(tokmap $command --help)" ]; then
        ok "help_of_${command}_needs_no_python"
    else
        fail "help_of_${command}_needs_no_python" "another text"
    fi
done
rm -r alone broken
says unknown_first_option tokmap --verbose
for command in $commands; do
    says "help_$command" tokmap "$command" --help
    help=$(tokmap "$command" --help)
    if [ "$(tokmap help "$command")" = "$help" ] && [ "$(tokmap "$command" -h | head -n 1)" = "${help%%$'\n'*}" ] &&
        [ "$(tokmap "$command" -h | tail -n 1)" = "'tokmap $command --help' prints the whole help." ]; then
        ok "ways_to_the_help_of_${command}_agree"
    else
        fail "ways_to_the_help_of_${command}_agree" "they differ"
    fi
    tokmap "$command" --no-such-option >.out 2>.err
    code=$?
    if [ $code = 2 ] && [ ! -s .out ] && grep -q -- --no-such-option .err; then
        ok "${command}_names_an_unknown_option_and_exits_2"
    else
        fail "${command}_names_an_unknown_option_and_exits_2" "exit $code: $(head -n 1 .err)"
    fi
done
says option_without_value tokmap cat --tokens
says option_with_unwanted_value tokmap cat --json=yes d
says unknown_short_option tokmap verify -x d
says option_ambiguous tokmap pack --limit 3 one.txt -o x
says option_that_is_required tokmap export --to raw d
says option_with_an_empty_value tokmap encode --tokenizer '' a
says option_with_a_wrong_word tokmap export --to csv d -o q
says info_without_dataset tokmap info

# ---- pack and the datasets that the rest looks at ----

printf 'one\n' >one.txt
printf 'twenty-two' >two.txt
printf 'a\n\nbc\r\nlast' >lines.txt
says pack_files tokmap pack one.txt two.txt -o d
says pack_lines tokmap pack --lines lines.txt -o lines
says pack_json bash -c 'tokmap pack --json one.txt -o json | sed "s/\"cpu_seconds\".*\"spilled/..., \"spilled/"'
says pack_quiet tokmap pack -q one.txt -o quiet
says pack_again tokmap pack one.txt -o d
says info_of_what_a_killed_writer_left bash -c 'touch left.bin.partial; tokmap info left; rm left.*'
says pack_force tokmap pack --force one.txt two.txt -o d.bin
says pack_without_output tokmap pack one.txt
says pack_without_input tokmap pack -o x
says pack_missing_input tokmap pack one.txt missing.txt -o x
says pack_empty_folder bash -c 'mkdir empty_folder && tokmap pack empty_folder -o x'
says pack_broken_link bash -c 'mkdir links && ln -s nowhere links/to && tokmap pack links -o x'
says pack_list_of_lists bash -c 'printf "one.txt\n@two\n" >list && tokmap pack @list -o x'
says pack_stdin_twice tokmap pack - - -o x
says pack_file_twice tokmap pack 'one.*' one.txt -o twice
rm twice.bin twice.tmi
says pack_into_missing_folder tokmap pack one.txt -o missing/deeper/x
rm -r missing
says pack_pattern_in_a_missing_folder tokmap pack 'nope/*.jsonl' -o x
says pack_pattern_without_match tokmap pack 'nope*.jsonl' -o x
tokmap pack --dry-run one.txt -o missing/x --report missing/too/report >.out 2>&1
code=$?
if [ $code = 0 ] && [ ! -e missing ]; then
    ok a_dry_run_makes_no_folder
else
    fail a_dry_run_makes_no_folder "exit $code: $(head -n 1 .out)"
fi
says pack_unknown_tokenizer tokmap pack --tokenizer gpt2 one.txt -o x
cp one.txt ./-o.txt
says pack_name_with_dash tokmap pack -o dash -- -o.txt
for name in own.bin own.tmi own.bin.partial own.tmi.partial own.tmi.replaced; do
    cp one.txt $name
    tokmap pack -f $name -o own.bin >.out 2>.err
    code=$?
    if [ $code = 2 ] && cmp -s one.txt $name && [ "$(ls own.*)" = $name ]; then
        ok "pack_refuses_its_output_${name}_as_an_input"
    else
        fail "pack_refuses_its_output_${name}_as_an_input" "exit $code: $(head -n 1 .err)"
    fi
    rm -f own.*
done
cp one.txt own.bin
ln own.bin link.txt
says pack_onto_input tokmap pack -f link.txt -o own
says pack_onto_stdin bash -c 'tokmap pack -f - -o own <own.bin'
rm own.bin
mkdir folder
says pack_folder_as_output tokmap pack one.txt -o folder/
says pack_root_as_output tokmap pack one.txt -o /
says pack_suffix_in_a_folder_as_output tokmap pack one.txt -o folder/.bin
says pack_empty_input tokmap pack '' -o x
quietly tokmap pack -q one.txt -o twin.bin.bin
says pack_tells_of_the_dataset_it_wrote tokmap pack two.txt -o twin.bin
quietly tokmap pack --lines /dev/null -o empty

printf '{"id": 1, "text": "one"}\n{"id": 2}\n{"text": "tw\\u00f6"}\n{"text": "broken\n' >some.jsonl
says pack_bad_document tokmap pack some.jsonl -o x
says pack_bad_documents_skipped tokmap pack --on-error skip some.jsonl -o x
says pack_bad_documents_reported bash -c 'tokmap pack -qf --on-error skip some.jsonl -o x --report r.json &&
    sed "s/.*\"skipped\"/\"skipped\"/" r.json; rm r.json; ls x*'
rm -f x.*
printf 'caf\351 <eod> \303\244\n' >latin.txt
says pack_notes tokmap pack --utf8 replace latin.txt -o x
says pack_raw bash -c 'tokmap pack -f --utf8 raw latin.txt -o x && tokmap cat x'
says pack_bad_utf8 tokmap pack -f --utf8 error latin.txt -o x
says pack_tokens_around bash -c 'tokmap pack -f --bos 0 --eod "<eod>" one.txt -o x && tokmap cat x'
says pack_without_end bash -c 'tokmap pack -f --eod none one.txt two.txt -o x && tokmap cat x'
says pack_separated bash -c 'printf "a||b||c" >sep.txt
    tokmap pack -f --separator "||" sep.txt -o x && tokmap cat --text x'
says pack_split bash -c 'seq 30 >30.txt; tokmap pack -f --lines --split valid=0.2 30.txt -o x &&
    tokmap cat --text x-valid'
says pack_split_metadata bash -c 'tokmap info --json x-valid | sed "s/.*\"metadata\"/\"metadata\"/"'
says pack_limit_documents tokmap pack -f --lines --limit-documents 7 30.txt -o x
says pack_limit_tokens tokmap pack -f --lines --limit-tokens 50 30.txt one.txt -o x
says pack_limit_tokens_exactly bash -c 'yes 123456789 | head -n 9 >nine.txt; for n in 29 30 31; do
    tokmap pack -q -f --lines --limit-tokens $n nine.txt -o x && tokmap info --json x | grep -o "\"n_documents\": [0-9]*" | head -n 1; done'
says pack_dry_run tokmap pack --dry-run --split valid=0.005 one.txt two.txt lines.txt -o y
says pack_dry_run_json tokmap pack --dry-run --json one.txt two.txt -o y
says pack_dry_run_without_output tokmap pack --dry-run one.txt
says pack_dry_run_stdin tokmap pack --dry-run - -o y
rm -f x.* x-valid.*
says pack_last_format_counts bash -c 'tokmap pack --format jsonl --lines -qj2 30.txt --eo=none -o x &&
    tokmap info --no-lengths x | grep -E "documents|end of"'
rm -f x.*
says pack_bad_format tokmap pack --format xml one.txt -o x
says pack_bad_on_error tokmap pack --on-error maybe one.txt -o x
says pack_bad_utf8_word tokmap pack --utf8 latin1 one.txt -o x
says pack_bad_specials tokmap pack --specials keep one.txt -o x
says pack_bad_separator tokmap pack --separator '\q' one.txt -o x
says pack_bad_split tokmap pack --split valid=2 one.txt -o x
says pack_bad_split_name tokmap pack --split a/b=0.1 one.txt -o x
says pack_split_of_dots tokmap pack --split ..=0.1 one.txt -o x
says pack_split_of_32_characters tokmap pack one.txt -o longest --split abcdefghijklmnopqrstuvwxyz-_.012=0.5 -q
says pack_split_of_33_characters tokmap pack one.txt -o longer --split abcdefghijklmnopqrstuvwxyz-_.0123=0.5
longest=$(printf './%.0s' $(seq 2029))out
says pack_longest_path_of_a_split tokmap pack one.txt -o "$longest" --split v=0.5 -q
says pack_too_long_a_path_of_a_split tokmap pack one.txt -o "${longest}s" --split v=0.5 -q
says pack_split_hexadecimal tokmap pack --split a=0x1p-3 one.txt -o x
says pack_limit_hexadecimal tokmap pack --limit-documents 0x10 one.txt -o x
says pack_split_twice tokmap pack --split a=0.1 --split a=0.2 one.txt -o x
says pack_split_of_everything tokmap pack --split a=0.5 --split b=0.5 one.txt -o x
says pack_bad_threads tokmap pack -j 0 one.txt -o x
says pack_bad_memory tokmap pack --memory 1M one.txt -o x
TOKMAP_CHECKPOINT_MS=2s says pack_bad_checkpoint_interval tokmap pack one.txt -o x
says pack_bad_limit tokmap pack --limit-documents 0 one.txt -o x
says pack_bad_eod tokmap pack --eod '<|endoftext|>' one.txt -o x
says pack_wide_eod tokmap pack --dry-run --eod 70000 one.txt -o x
says pack_bos_unknown tokmap pack --bos auto one.txt -o x
says pack_bad_max_document tokmap pack --max-document 3G one.txt -o x
says pack_pattern_of_bytes tokmap pack --pattern gpt2 one.txt -o x
says pack_tokenizer_that_is_text tokmap pack --tokenizer one.txt one.txt -o x
says pack_tokenizer_folder tokmap pack --tokenizer folder one.txt -o x
says pack_report_onto_input tokmap pack --report one.txt one.txt -o x

# ---- encode and decode ----

printf '"hi"\n{"text": "\\u00e9\\ud800", "n": 1}\n""\n' >texts.jsonl
says encode tokmap encode --tokenizer bytes texts.jsonl
says decode bash -c 'tokmap encode --tokenizer bytes texts.jsonl 2>&- |
    tokmap decode --tokenizer bytes'
says encode_without_tokenizer tokmap encode texts.jsonl
says encode_two_inputs tokmap encode --tokenizer bytes a b
says encode_missing_input tokmap encode --tokenizer bytes missing.jsonl
says encode_bad_json bash -c 'printf "\"a\"\n{\"text\": x}\n" | tokmap encode --tokenizer bytes'
says encode_no_field bash -c 'echo "{\"body\": \"x\"}" | tokmap encode --tokenizer bytes'
says encode_blank_lines bash -c 'printf "\n\"a\"\n \n\"b\"\n" | tokmap encode --tokenizer bytes'
says encode_field bash -c 'echo "{\"a\": {\"b\": \"x\"}}" |
    tokmap encode --field a.b --tokenizer bytes'
says encode_not_utf8 bash -c 'printf "\"a\\xff\"" | tokmap encode --tokenizer bytes'
says decode_bad_array bash -c 'echo "[1, 2" | tokmap decode --tokenizer bytes'
says decode_bad_id bash -c 'printf "[97]\n[97, 300]\n" | tokmap decode --tokenizer bytes'
says decode_closed_stdout bash -c 'echo "[97]" | tokmap decode --tokenizer bytes >&-'
says encode_full_disk bash -c 'echo "\"a\"" | tokmap encode --tokenizer bytes >/dev/full'
printf '\001\000\002\000\003\000' >borderless.bin
quietly tokmap index --dtype u16 --eod none borderless.bin
printf '\001\000\000\000\002\000\001\000' >wide.bin
quietly tokmap index --dtype u32 --eod 1 wide.bin

# ---- info ----

says info tokmap info d
says info_inputs tokmap info --inputs --no-lengths d lines
says info_lines tokmap info lines
says info_empty tokmap info empty
says info_borderless tokmap info borderless
says info_wide tokmap info wide
says info_json tokmap info --json d empty borderless
says info_json_no_lengths tokmap info --json --no-lengths lines
says info_several tokmap info --no-lengths d.tmi lines.bin
says info_mixed_dtypes tokmap info --no-lengths d wide
says info_one_missing tokmap info --no-lengths missing quiet
printf 'text' >text.tmi
says info_not_an_index tokmap info text.tmi
says info_empty_name tokmap info ''
says info_folder tokmap info d folder/
cp d.bin flat.bin
says info_suggests_index tokmap info flat
says info_suggests_index_for_the_file tokmap info flat.bin

says info_card tokmap info --card d
says info_card_with_another_option tokmap info --card --json d
says info_card_of_two tokmap info --card d lines
says info_of_an_object_in_a_store tokmap info s3://bucket/data/train
says pack_from_a_store tokmap pack 'https://me:hush@host/corpus/a.jsonl?sig=hush' -o x

# ---- verify ----

says verify tokmap verify d.bin lines.tmi
says verify_quiet tokmap verify -q d
says verify_json tokmap verify --json d
says verify_fraction_of_one_block_reads_it tokmap verify --fraction 0.01 -j 2 d
head -c 3000000 /dev/zero | tr '\000' a >six_blocks.txt
quietly tokmap pack six_blocks.txt -o six
says verify_half tokmap verify --fraction 0.5 --seed 3 six
says verify_json_missing tokmap verify --json missing d
says verify_bad_fraction tokmap verify --fraction 2 d
says verify_bad_threads tokmap verify --threads=0 d
says verify_too_many_threads tokmap verify -j 65 d
says verify_files tokmap verify --files d
says verify_files_of_two tokmap verify --files d six
says verify_files_without_index tokmap verify --files missing
says verify_segments_backwards tokmap verify --segments 3-1 d
says verify_segments_that_are_not_there tokmap verify --segments 1-2 d
for name in bad badindex; do
    cp d.bin $name.bin
    cp d.tmi $name.tmi
done
patch_byte bad.bin 8 377
says verify_damaged_block tokmap verify d bad
says verify_damaged_block_quiet tokmap verify -q bad
says verify_damaged_block_json tokmap verify --json bad
says verify_files_damaged tokmap verify --files bad
# The last byte is the closing brace of the metadata.
patch_byte badindex.tmi $(($(wc -c <badindex.tmi) - 1)) 175
quietly tokmap verify badindex
patch_byte badindex.tmi $(($(wc -c <badindex.tmi) - 1)) 40
says verify_damaged_metadata tokmap verify badindex
says info_damaged_metadata tokmap info --no-lengths badindex
says info_damaged_metadata_json bash -c \
    'tokmap info --json badindex | sed "s/.*\"inputs\"/...&/; s/.*\(\"metadata\"\)/...\1/"'
head -c 6 d.bin >bad.bin
says verify_truncated tokmap verify bad

# ---- cat ----

says cat tokmap cat d
says cat_ids tokmap cat --ids lines
says cat_json tokmap cat --json lines
says cat_with_index tokmap cat --with-index lines
says cat_json_with_index tokmap cat --json --with-index d
says cat_text tokmap cat --text d
says cat_text_lines tokmap cat --text lines
says cat_text_with_index tokmap cat --text --with-index lines
says cat_raw bash -c 'tokmap cat --raw d | od -An -tu1 -v'
says cat_one_document tokmap cat --documents 1 d
says cat_no_document tokmap cat --documents 1:1 d
says cat_last_documents tokmap cat --documents 2: lines
says cat_raw_documents bash -c 'tokmap cat --raw --documents 0:2 lines | od -An -tu1 -v'
says cat_token_range tokmap cat --tokens 2:8 --with-index d
says cat_token_range_over_an_empty_document tokmap cat --tokens 1:4 --with-index lines
says cat_one_token tokmap cat --tokens 4 d
says cat_raw_tokens bash -c 'tokmap cat --raw --tokens 3:6 d | od -An -tu1 -v'
says cat_borderless tokmap cat borderless
says cat_borderless_json tokmap cat --json --tokens :2 borderless
says cat_borderless_documents tokmap cat --documents 0 borderless
says cat_empty tokmap cat empty
says cat_wide tokmap cat wide
says cat_text_unknown_tokenizer tokmap cat --text borderless
says cat_range_too_far tokmap cat --documents 0:3 d
says cat_range_backwards tokmap cat --tokens 5:4 d
says cat_range_malformed tokmap cat --tokens 1-2 d
says cat_two_ranges tokmap cat --tokens 1 --documents 1 d
says cat_two_forms tokmap cat --json --raw d
says cat_two_datasets tokmap cat d lines
says cat_full_disk bash -c 'tokmap cat d >/dev/full'
says cat_closed_stdout bash -c 'tokmap cat d >&-'

# ---- join (tests/plan/test_join.py has the rest) ----

says join_without_plan tokmap join -o joined
says join_without_output tokmap join run.plan
says join_missing_plan tokmap join run.plan -o joined
printf 'tokmap plan 3\n' >new.plan
says join_newer_plan tokmap join new.plan -o joined

# ---- merge ----

says merge tokmap merge d lines empty -o merged
says merge_order tokmap cat --with-index merged
says merge_keeps_inputs tokmap info --inputs --no-lengths merged
says merge_metadata bash -c 'tokmap info --json merged | sed "s/.*\"metadata\"/\"metadata\"/"'
says merge_is_sound tokmap verify merged
says merge_again tokmap merge d lines -o merged
says merge_json tokmap merge --json --force d lines -o merged
says merge_folder_as_output tokmap merge d lines -o folder/
quietly tokmap merge -q d -o twice.bin.bin
says merge_tells_of_the_dataset_it_wrote tokmap merge lines -o twice.bin
says merge_onto_input tokmap merge --force d lines -o d.tmi
says merge_widths tokmap merge d wide -o x
says merge_borderless tokmap merge borderless d -o x
says merge_damaged_input bash -c 'cp d.bin bad.bin; printf "\377" |
    dd of=bad.bin bs=1 seek=8 conv=notrunc 2>/dev/null; tokmap merge d bad -o x'
says merge_unknown_vocabulary tokmap merge wide -o wide1
says merge_id_above_vocabulary tokmap merge wide --vocab-size 1000 -o x
printf '\001\000\000\000\002\000\000\000' >narrow.bin
quietly tokmap index --dtype u32 --eod 2 narrow.bin
says merge_wide_tokens_of_a_small_vocabulary tokmap merge narrow --vocab-size 1000 -o narrow1
for end in bin tmi; do cp wide.$end again.$end; done
says merge_given_vocabulary tokmap merge wide again --vocab-size 65539 -o wide2
says merge_other_vocabulary tokmap merge d --vocab-size 300 -o x
printf '\001\000' >shared.npy
quietly tokmap index --dtype u16 --eod none shared.npy
says pack_onto_the_index_of_another_file bash -c 'echo x >x.txt; tokmap pack -f x.txt -o shared'
rm shared.npy shared.tmi x.txt
says merge_without_output tokmap merge d lines
printf '\001\000\002\000' >eod.bin
quietly tokmap index --dtype u16 --eod 2 --vocab-size 257 eod.bin
says merge_other_end_of_document tokmap merge d eod -o x
cp eod.bin vocab.bin
quietly tokmap index --dtype u16 --eod 2 --vocab-size 300 vocab.bin
says merge_two_vocabularies tokmap merge d vocab -o x

# ---- Patterns of datasets ----

mkdir shards
for n in 1 2 10; do
    quietly tokmap pack -q one.txt two.txt -o shards/part-$n
    cp shards/part-$n.bin shards/raw-$n.bin
done
says info_pattern bash -c "tokmap info --no-lengths 'shards/*' | grep file"
mv shards/part-2.tmi shards/part-2.tmi.replaced # as a killed writer may leave it
mv shards/part-2.bin shards/part-2.bin.replaced
echo new >shards/part-2.bin
says info_of_a_dataset_set_aside tokmap info --no-lengths shards/part-2
says verify_pattern tokmap verify 'shards/part-*.tmi'
says merge_pattern tokmap merge 'shards/part-?' -o in/a/new/folder/merged
says merge_pattern_with_an_unfinished_dataset tokmap merge 'shards/*' -o unfinished
says index_pattern tokmap index --dtype u16 --eod 256 'shards/raw-*.bin'
says verify_pattern_without_match tokmap verify d 'shards/none-*'
says info_pattern_in_a_missing_folder tokmap info 'nope/*'
mkdir -p ds/a
quietly tokmap pack -q one.txt -o ds/a/d
ln -s /not/there ds/b
for command in info verify 'merge -o x'; do
    # shellcheck disable=SC2086 # words
    says "${command%% *}_pattern_with_a_broken_link" tokmap $command 'ds/?/d'
done
rm -r ds
cp d.bin 'd[1].bin'
cp d.tmi 'd[1].tmi'
says verify_a_name_that_looks_like_a_pattern tokmap verify 'd[1]'
says export_into_a_missing_folder tokmap export --to llmc d -o out/of/here/d
rm -r in out shards

# ---- Pipes and names ----

tokmap pack -q --lines <(seq 100000) -o many
if tokmap cat many 2>.err | head -n 1 >.out && [ ! -s .err ]; then
    ok cat_ends_silently_when_the_reader_has_enough
else
    fail cat_ends_silently_when_the_reader_has_enough "$(head -n 1 .err)"
fi
tokmap info "$(printf 'no\nsuch\033[31mfile')" >.out 2>.err
tokmap info "$(printf 'no\302\233file')" 2>>.err
if [ "$(wc -l <.err)" = 2 ] && ! grep -q "$(printf '\302\233')" .err && ! grep -q "$(printf '\033')" .err; then
    ok messages_are_one_line_without_escapes_from_file_names
else
    fail messages_are_one_line_without_escapes_from_file_names "$(cat -v .err)"
fi

leftover=$(find . -name 'x.*' -o -name '*.partial')
if [ -z "$leftover" ]; then
    ok failed_commands_left_no_file_behind
else
    fail failed_commands_left_no_file_behind "$leftover"
fi

# ---- Man pages ----

# same_options NAME HELP MAN
same_options()
{
    if [ -n "$2" ] && [ "$2" = "$3" ]; then
        ok "$1"
    else
        fail "$1" "$(diff <(echo "$2") <(echo "$3") | grep '^[<>]' | tr '\n' ' ')"
    fi
}

if said=$("${PYTHON:-python3}" "$root/tests/house/man_options.py" ${UPDATE:+--write} 2>&1); then
    ok man_pages_have_the_options_of_help
else
    fail man_pages_have_the_options_of_help "$said"
fi
# The message that lists the names has the names of the table in presets.c.
echo 'IQ== 0' >ranks.tiktoken
patterns=$(tokmap encode --tokenizer ranks.tiktoken ranks.tiktoken 2>&1 | sed -n 's/.*--pattern (\(.*\))$/\1/p' |
    sed 's/, /\n/g')
[ -n "$patterns" ] || fail patterns_are_listed "no list in the message"
completed() # what the completion offers for the last of these words
{
    bash --norc -c 'source "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tokmap
        printf "%s\n" "${COMPREPLY[@]}"' "$root/tokenize_tools/completion/tokmap.bash" "$@"
}
for command in pack encode decode; do
    same_options "patterns_in_the_help_and_completion_of_${command}_are_those_of_the_table" "$patterns" \
        "$(completed tokmap "$command" --pattern '')"
done
# Between the line that names its --help and `end`, each option is an item that begins with its name.
options_in_man() # command
{
    local page=$*
    awk -v first=".\\\\\" $* --help" '$0 == first { inside = 1 } $0 == ".\\\" end" { inside = 0 }
        inside && is_item && /"\\-\\-/ { sub(/.*"\\-\\-/, "--"); gsub(/ .*|"/, ""); gsub(/\\-/, "-"); print }
        { is_item = $0 == ".TP" || $0 == ".TQ" }' "$root/docs/man/${page// /-}.1"
    echo --help
}
for command in tokbench tokmap $(printf 'tokmap-%s ' $commands); do
    same_options "options_in_man_and_completion_of_$command" "$(options_in_man ${command/-/ })" \
        "$(completed ${command/-/ } --)"
done
says completion_of_words bash -c "$(declare -f completed); root=$root
    completed tokmap help c &&
    completed tokmap pack --on-error '' && completed tokmap pack --format j &&
    completed tokmap index --format '' && completed tokmap export --to '' && completed tokbench load s"

# The words that the completion has for an operand, and for options with a long name, are a list in the help.
while read -r command before; do
    words=$(completed tokmap "$command" $before '' | sed -e ':a' -e 'N' -e '$!ba' \
        -e 's/\n\([^\n]*\)$/ or \1/; s/\n/, /g')
    help=$(tokmap "$command" --help | tr -s '\n ' '  ')
    same_options "words_in_the_completion_of_$command$before" "$(grep -o " $words" <<<"$help")" " $words"
done <<END
import
import --dtype
preprocess --tokenizer-type
report --format
END

for page in "$root"/docs/man/*.[1357]; do
    name=man_page_$(basename "$page")
    long=none widest=71
    [[ $page == *.h.3 ]] && long='input text line longer than 80 bytes' widest=100 # code as in the header
    if ! command -v groff >/dev/null; then
        echo "skip ${name}_renders_without_warnings: groff not found"
    elif warnings=$(groff -t -man -ww -Tutf8 -z "$page" 2>&1) && [ -z "$warnings" ]; then
        ok "${name}_renders_without_warnings"
    else
        fail "${name}_renders_without_warnings" "$(echo "$warnings" | head -n 1)"
    fi
    if ! command -v mandoc >/dev/null; then
        echo "skip ${name}_is_what_mandoc_expects: mandoc not found"
    elif warnings=$(mandoc -T lint "$page" 2>&1 | grep -v "$long") || [ -z "$warnings" ]; then
        ok "${name}_is_what_mandoc_expects"
    else
        fail "${name}_is_what_mandoc_expects" "$(echo "$warnings" | head -n 1)"
    fi
    # Lines that are not filled, such as examples, fit a terminal too. 78 is what man leaves of 80.
    wide=$(awk -v widest=$widest '/^\.nf/ { on = 1 } /^\.fi/ { on = 0 } on && length(unquoted = $0) {
        gsub(/\\\((aq|ga|ha|ti|rs)/, "x", unquoted); gsub(/\\f[BIR]/, "", unquoted); gsub(/\\[-e]/, "x", unquoted)
        if (length(unquoted) > widest) print }' "$page")
    if [ -z "$wide" ]; then
        ok "${name}_fits_80_columns"
    else
        fail "${name}_fits_80_columns" "$(echo "$wide" | head -n 1)"
    fi
done

exit $failed
