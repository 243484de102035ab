#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_encode.sh - tokmap encode and decode: one line for each line, in order, for any text; and
# back again. Correct ids are tested elsewhere, except for a vocabulary of a few lines.

root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=${TOKMAP_BUILD:-$root/build}:$PATH
python=${PYTHON:-python3}
export LC_ALL=C

dir=$(mktemp -d "${TMPDIR:-/tmp}/tokmap_encode_XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

# same NAME EXPECTED ACTUAL
same()
{
    if [ "$2" = "$3" ]; then
        echo "ok $1"
    else
        failed=1
        echo "FAIL $1: expected $(echo "$2" | head -c 300), found $(echo "$3" | head -c 300)"
    fi
}

# With the tokenizer `bytes`, or the small vocabulary.
encode()
{
    tokmap encode --tokenizer bytes "$@"
}
decode()
{
    tokmap decode --tokenizer bytes "$@"
}

# ---- Lines ----

printf '"a"\n  "b"  \r\n{"text":"c"}\n{"x":[1,{}],"text":"d","y":null}\n""\n{"text":""}' >lines.jsonl
same each_line_gives_an_array "$(printf '[97]\n[98]\n[99]\n[100]\n[]\n[]')" "$(encode lines.jsonl)"
same stdin_is_read_without_an_input "$(encode lines.jsonl)" "$(encode <lines.jsonl)"
same stdin_has_a_name "$(encode lines.jsonl)" "$(encode - <lines.jsonl)"
same nothing_gives_nothing "0" "$(encode </dev/null | wc -c)"
same escapes_become_what_they_mean '[34,92,47,8,12,10,13,9,195,169,240,159,152,128,0]' \
    "$(echo '"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000"' | encode)"
same lone_surrogates_become_the_replacement_character '[239,191,189]' "$(echo '"\ud800"' | encode 2>.err)"
same and_are_told "tokmap encode: stdin: 1 lone surrogate in \\u escapes replaced with U+FFFD" "$(cat .err)"
same slow_input_gives_the_same '[97,98]' "$({ printf '"a'; sleep 0.1; printf 'b"'; sleep 0.1; echo; } | encode)"
if command -v gzip >/dev/null && tokmap --version | grep -q '^zlib *[0-9]'; then
    same compressed_input_is_read "$(encode lines.jsonl)" "$(gzip -c lines.jsonl | encode)"
fi

awk 'BEGIN {
    for (i = 0; i < 100000; i++) printf "\"%d\"\n", i
    printf "\""
    for (i = 0; i < 300000; i++) printf "long %d ", i
    print "\""
    for (i = 0; i < 10; i++) printf "{\"text\": \"%d\"}\n", i
}' >many.jsonl
same order_and_long_lines_are_kept "$(sed 's/{"text": \("[0-9]*"\)}/\1/' many.jsonl | cksum)" \
    "$(encode many.jsonl | decode | cksum)"

# ---- Errors ----

# refused NAME CODE PATTERN COMMAND...: what was right before it has been written.
refused()
{
    local name=$1 code=$2 pattern=$3
    shift 3
    "$@" >.out 2>.err
    same "$name" "$code yes" "$? $(grep -qE "$pattern" .err && echo yes || cat .err)"
}

printf '"good"\n"fine"\n{"text": 3}\n' >bad.jsonl
refused a_field_that_is_no_text_is_an_error 3 "bad.jsonl: line 3: .*'text'" encode bad.jsonl
same the_lines_before_it_are_written 2 "$(wc -l <.out)"
printf '\357\273\277\n\n "a"\n \t\r\n"b"\n\n' >blank.jsonl
same blank_lines_and_a_byte_order_mark_are_passed_over "$(printf '[97]\n[98]')" "$(encode blank.jsonl)"
printf '\357\273\277{"text":"a"}\n\n{"text":"b"}' >blank.jsonl
tokmap pack -q --eod none --format jsonl blank.jsonl -o blank 2>.err
printf '"a"\n\n\357\273\277"b"' >bad.jsonl
same as_in_pack "$(tokmap cat --json blank)" "$(encode blank.jsonl)"
refused but_no_byte_order_mark_elsewhere 3 'bad.jsonl: line 3: byte 0' encode bad.jsonl
printf '"good" x\n' >bad.jsonl
refused what_stands_behind_the_value_is_an_error 3 'bad.jsonl: line 1: byte 7' encode bad.jsonl
printf '{"text": "caf\351"}\n' >bad.jsonl
refused text_that_is_not_utf8_is_an_error 3 'bad.jsonl: line 1: byte 3' encode bad.jsonl
for array in '5' '[' '[1' '[1,' '[1,]' '[,]' '[1 2]' '[1] 2' '[-1]' '[1.5]' '[01]' '[4294967296]' \
    '["a"]' '[[1]]' '[99999999999999999999999]'; do
    printf '[97]\n%s\n' "$array" >bad.txt
    refused "no_array_of_ids_is_an_error: '$array'" 3 'bad.txt: line 2: byte [0-9]' decode bad.txt
done
printf '[97]\n[1,257]\n' >bad.txt
refused an_id_that_is_not_there_is_an_error 3 'bad.txt: line 2: the tokenizer bytes has no token with the id 257' \
    decode bad.txt
printf '\357\273\277 [ ] \n\t[97 ,\t98]\r\n\n \r\n' >blanks.txt
same blanks_in_arrays_do_not_count "$(printf '""\n"ab"')" "$(decode blanks.txt)"
same bytes_that_are_no_utf8_become_the_replacement_character '"a\ufffd"' \
    "$(echo '[97,255]' | decode)"
same and_so_does_a_part_of_a_character '"a\ufffdb\ufffd"' "$(echo '[97,226,130,98,240,159,152]' | decode)"

# ---- Datasets ----

printf 'one\ntwo "2"\n' >text.txt
tokmap pack -q --lines --eod none text.txt -o data
same datasets_are_decoded "$(printf '"one"\n"two \\"2\\""')" "$(tokmap cat --json data | decode)"

# ---- A vocabulary ----

if ! command -v "$python" >/dev/null; then
    echo "skip vocabularies: $python not found"
    exit $failed
fi
"$python" - <<'END'
import json
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
letters = {b: chr(b) for b in printable}
for b in range(256):
    letters.setdefault(b, chr(256 + len(letters) - len(printable)))
vocab = {letters[b]: b for b in range(256)}
vocab.update({"ab": 256, "abc": 257})
added = [{"id": 258, "content": "<x>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False},
         {"id": 259, "content": "  ", "special": False, "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False}]
merges = [("a", "b"), ("ab", "c")]
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
def model(merges):
    return {"added_tokens": added, "normalizer": None, "post_processor": None, "decoder": byte_level,
            "pre_tokenizer": byte_level,
            "model": {"type": "BPE", "vocab": vocab, "merges": merges}}
json.dump(model([" ".join(m) for m in merges]), open("old.json", "w"))
json.dump(model([list(m) for m in merges]), open("new.json", "w"))
json.dump(vocab, open("small-vocab.json", "w"))
open("small-merges.txt", "w").write("#version: 0.2\n" + "".join("%s %s\n" % m for m in merges))
json.dump({"<y>": 260}, open("more.json", "w"))
import base64
tokens = [bytes([b]) for b in range(256)] + [b"ab", b"abc"]
with open("small.tiktoken", "wb") as out:
    for rank, token in enumerate(tokens):
        out.write(base64.b64encode(token) + b" %d\n" % rank)
END
texts='"abc ab<x>c  <x>"'
same merges_are_followed '[257,32,256,60,120,62,99,259,60,120,62]' \
    "$(echo "$texts" | tokmap encode --tokenizer old.json)"
same both_forms_of_merges_are_read "$(echo "$texts" | tokmap encode --tokenizer old.json)" \
    "$(echo "$texts" | tokmap encode --tokenizer new.json)"
same specials_match '[257,32,256,258,99,259,258]' \
    "$(echo "$texts" | tokmap encode --tokenizer old.json --specials match)"
same specials_are_dropped '[257,32,256,99,259]' \
    "$(echo "$texts" | tokmap encode --tokenizer old.json --specials drop)"
refused specials_may_be_an_error 3 'stdin: line 1: byte 6 of the text: the special token <x>$' \
    bash -c "echo '$texts' | tokmap encode --tokenizer old.json --specials error"
same more_specials_may_be_given '[97,260,258]' \
    "$(echo '"a<y><x>"' | tokmap encode --tokenizer old.json --specials match --specials-file more.json)"
echo '{"<y>": "x"}' >wrong.json
refused an_error_in_them_names_their_file 3 'tokenizer: wrong.json: byte 8: expected an id as key or value$' \
    encode --tokenizer old.json --specials-file wrong.json lines.jsonl
same specials_are_decoded '"abc ab<x>c  <x>"' \
    "$(echo "$texts" | tokmap encode --tokenizer old.json --specials match | tokmap decode --tokenizer old.json)"
same merges_txt_beside_vocab_json_is_found '[257,32,256]' \
    "$(echo '"abc ab"' | tokmap encode --tokenizer small-vocab.json)"
same ranks_with_a_pattern_are_read '[257,32,256]' \
    "$(echo '"abc ab"' | tokmap encode --tokenizer small.tiktoken --pattern gpt2:any)"
refused ranks_without_a_pattern_are_refused 3 'tokenizer: small.tiktoken: .*--pattern' \
    encode --tokenizer small.tiktoken lines.jsonl
refused an_unknown_pattern_is_refused 3 'tokenizer: small.tiktoken: .*gpt9' \
    encode --tokenizer small.tiktoken --pattern gpt9 lines.jsonl
sed 's/"decoder": {[^}]*}/"decoder": {"type": "Fuse"}/' old.json >fuse.json
same a_decoder_that_is_not_known_does_not_hinder_encoding '[257,32,256]' \
    "$(echo '"abc ab"' | tokmap encode --tokenizer fuse.json)"
refused but_decoding 3 'tokenizer: fuse.json: its decoder is not supported' \
    bash -c "echo '[97]' | tokmap decode --tokenizer fuse.json"
sed 's/"pre_tokenizer": {"type": "ByteLevel"/"pre_tokenizer": {"type": "Magic"/' old.json >magic.json
refused a_component_that_is_not_known_is_refused_by_name 3 'tokenizer: magic.json: .*Magic' \
    encode --tokenizer magic.json lines.jsonl
head -c 1000 old.json >cut.json
refused half_a_file_is_refused_with_its_place 3 'tokenizer: cut.json: byte 1000' \
    encode --tokenizer cut.json lines.jsonl

# ---- cat --text ----

printf 'abc ab\n\303\244 \377' >text.txt
for tokenizer in old.json small-vocab.json bytes; do
    tokmap pack -q text.txt --tokenizer $tokenizer --utf8 replace --eod 300 -o made-with-$tokenizer
done
text=$(printf 'abc ab\n\303\244 \357\277\275')
same cat_prints_the_text_of_a_tokenizer_file "$text" "$(tokmap cat --text --tokenizer old.json made-with-old.json)"
same cat_takes_a_vocabulary_too "$text" "$(tokmap cat --text --tokenizer small-vocab.json made-with-small-vocab.json)"
same cat_prints_the_text_of_some_tokens "$(printf '0\t ab')" \
    "$(tokmap cat --text --tokenizer old.json --with-index --tokens 1:3 made-with-old.json)"
same cat_finds_the_tokenizer_in_this_folder "$text" "$(tokmap cat --text made-with-old.json)"
mkdir elsewhere
same cat_finds_the_tokenizer_beside_the_dataset "$text" "$(cd elsewhere && tokmap cat --text ../made-with-old.json)"
cp new.json elsewhere/old.json
mv old.json hidden.json
refused cat_says_what_prints_the_text 3 \
    'made-with-old.json.tmi: its tokenizer is "old.json", which is not .*--tokenizer; .*tokmap decode' \
    bash -c 'cd elsewhere && tokmap cat --text ../made-with-old.json'
mv hidden.json old.json
for other in new.json bytes; do
    refused "cat_refuses_another_tokenizer, $other" 3 'its tokenizer is "old.json": .*another file' \
        tokmap cat --text --tokenizer $other made-with-old.json
done
refused cat_refuses_a_file_for_bytes 3 'its tokenizer is "bytes": .*another file' \
    tokmap cat --text --tokenizer old.json made-with-bytes
refused cat_refuses_an_id_that_is_none 4 'id 10000 at token 1 is not an id of the tokenizer .old.json' \
    bash -c 'printf "\141\000\020\047" >raw.bin && tokmap index -q --dtype u16 --eod none raw.bin &&
        tokmap cat --text --tokenizer old.json raw'
refused cat_needs_text_for_a_tokenizer 2 'tokenizer works only with --text' tokmap cat --tokenizer old.json made-with-old.json
refused cat_needs_a_tokenizer_for_a_pattern 2 'only with --tokenizer' tokmap cat --text --pattern gpt2 made-with-old.json
rm small-merges.txt
refused vocab_json_without_merges_is_refused 3 'tokenizer: small-vocab.json: .*merges.txt' \
    encode --tokenizer small-vocab.json lines.jsonl

exit $failed
