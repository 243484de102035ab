#!/usr/bin/env bash
# test_pack.sh - what tokmap pack reads and writes: documents, compressed inputs, damaged inputs.

root=$(cd "$(dirname "$0")/.." && pwd)
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

tokmap pack -q random.bin empty.txt lines.txt -o files
same tokens_are_the_bytes_and_256_at_the_end_of_each_file \
    "$( (bytes <random.bin; echo 256; echo 256; bytes <lines.txt; echo 256) | cksum)" \
    "$(od -An -v -tu2 -w2 files.bin | tr -d ' ' | cksum)"
same an_empty_file_is_a_document_of_one_token 256 "$(tokmap cat --documents 1 files)"

tokmap pack -q --lines lines.txt empty.txt big.txt -o lines
{ cat lines.txt; echo; cat big.txt; echo; } >expected.txt
tokmap cat --text lines >actual.txt
cmp -s expected.txt actual.txt
verdict lines_come_back_as_they_were $? "$(cmp expected.txt actual.txt 2>&1)"
same lines_count_as_documents "$(awk 'END { print NR }' expected.txt)" "$(tokmap cat lines | wc -l)"
same a_file_without_lines_has_no_document 0 "$(tokmap pack --json --lines empty.txt -o none |
    sed 's/.*"n_documents": \([0-9]*\).*/\1/')"

tokmap pack -q big.txt lines.txt -o one
tokmap pack -q big.txt lines.txt -o two
cmp -s one.bin two.bin && cmp -s one.tmi two.tmi
verdict the_same_inputs_give_the_same_bytes $? "files differ"

same stdin_gives_what_the_file_gives "$(id_of big.txt)" "$(id_of - <big.txt)"
same slow_stdin_gives_what_the_file_gives "$(id_of --lines lines.txt)" \
    "$({ head -c 3 lines.txt; sleep 0.1; tail -c +4 lines.txt | head -c 5; sleep 0.1
        tail -c +9 lines.txt; } | id_of --lines -)"

tokmap pack -q empty.txt -o source
same source_checksum_is_the_xxh3_of_the_stored_bytes 2d06800538d394c2 \
    "$(tokmap info --json source | sed 's/.*"input_xxh3": "\([0-9a-f]*\)".*/\1/')"

if [ -z "$TOKMAP_SANITIZED" ]; then
    (
        ulimit -v 50000
        head -c 120000000 /dev/zero | tr '\0' y | tokmap pack -q - -o huge
    )
    same a_document_larger_than_the_memory_is_packed 120000001 "$(($(wc -c <huge.bin) / 2))"
    rm -f huge.*
else
    skip a_document_larger_than_the_memory_is_packed "sanitizers need address space"
fi

# ---- Compressed inputs ----

plain=$(id_of big.txt)
if ! reads zlib; then
    printf '\x1f\x8b\x08\0' >any.gz
    same gzip_is_refused_where_the_build_has_no_zlib \
        "exit 3: tokmap pack: any.gz: byte 0: gzip data, and this build has no zlib" "$(id_of any.gz)"
elif ! command -v gzip >/dev/null; then
    skip gzip "gzip not found"
else
    gzip -nc big.txt >big.gz
    same gzip_gives_what_plain_gives "$plain" "$(id_of big.gz)"
    same gzip_is_told_by_content_not_by_name "$plain" "$(cp big.gz x.txt && id_of x.txt)"
    same gzip_from_stdin "$plain" "$(id_of - <big.gz)"
    { head -c 100000 big.txt | gzip -nc; tail -c +100001 big.txt | gzip -nc; } >members.gz
    same gzip_members_are_one_input "$plain" "$(id_of members.gz)"
    cp big.txt plain.gz
    same plain_text_named_gz_is_plain_text "$plain" "$(id_of plain.gz)"
    same empty_gzip_is_an_empty_document "$(id_of empty.txt)" "$(gzip -nc empty.txt | id_of -)"
fi
if ! reads zstd; then
    printf '\x28\xb5\x2f\xfd' >any.zst
    same zstd_is_refused_where_the_build_has_no_zstd \
        "exit 3: tokmap pack: any.zst: byte 0: zstd data, and this build has no zstd" \
        "$(id_of any.zst)"
elif ! command -v zstd >/dev/null; then
    skip zstd "zstd not found"
else
    zstd -qc big.txt >big.zst
    same zstd_gives_what_plain_gives "$plain" "$(id_of big.zst)"
    same zstd_is_told_by_content_not_by_name "$plain" "$(cp big.zst x.gz && id_of x.gz)"
    same zstd_from_stdin "$plain" "$(id_of - <big.zst)"
    { head -c 100000 big.txt | zstd -qc; printf '\x5a\x2a\x4d\x18\x03\0\0\0abc'
        tail -c +100001 big.txt | zstd -qc; } >frames.zst
    same zstd_frames_are_one_input_and_skippable_frames_are_skipped "$plain" "$(id_of frames.zst)"
    same empty_zstd_is_an_empty_document "$(id_of empty.txt)" "$(zstd -qc empty.txt | id_of -)"
fi
if reads zstd; then
    # Frames by hand: no checksum, a window of 2^27 or 2^28, one raw block with the byte x.
    printf '\x28\xb5\x2f\xfd\0\x88\x09\0\0x' >window27.zst
    printf '\x28\xb5\x2f\xfd\0\x90\x09\0\0x' >window28.zst
    same zstd_window_of_128_MiB_is_read "$(printf x | id_of -)" "$(id_of window27.zst)"
    same zstd_window_of_256_MiB_is_refused "exit 3: tokmap pack: window28.zst: byte 0: damaged zstd \
data: it needs a window of more than 128 MiB" "$(id_of window28.zst)"
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

printf 'a short text, a short text, a short text, and its end\n' >short.txt
# sweep CODEC FILE MAGIC_BYTES: every truncation is refused, every changed byte too unless it changes
# nothing.
sweep()
{
    local n i wanted bad=0 refused=0
    n=$(wc -c <"$2")
    for ((i = $3; i < n; i++)); do
        head -c "$i" "$2" >cut.bin
        tokmap pack -q cut.bin -o id 2>.err
        [ $? = 3 ] && grep -q "cut.bin: byte $i: truncated $1 data" .err || {
            bad=$((bad + 1))
            cp .err "bad"
        }
        rm -f id.*
    done
    verdict "every_truncation_of_$1_is_refused_with_its_place" $bad \
        "$bad are not: $(cat bad 2>/dev/null)"
    wanted=$(id_of short.txt)
    bad=0
    for ((i = $3; i < n; i++)); do
        cp "$2" changed
        printf "\\x$(printf %x $(($(od -An -tu1 -j "$i" -N 1 "$2") ^ 0x55)))" |
            dd of=changed bs=1 seek="$i" conv=notrunc 2>/dev/null
        case $(id_of changed) in
        "$wanted") ;;
        "exit 3: "*"changed: byte "*) refused=$((refused + 1)) ;;
        *) bad=$((bad + 1)) ;;
        esac
        rm -f id.*
    done
    [ $bad = 0 ] && [ $refused -gt $((n / 2)) ]
    verdict "every_changed_byte_of_$1_is_refused_or_harmless" $? "$bad gave other tokens"
}

if reads zlib && command -v gzip >/dev/null; then
    gzip -nc short.txt >short.gz
    sweep gzip short.gz 2
    { cat short.gz; printf 'more'; } >tail.gz
    refused text_behind_gzip_is_refused \
        "tail.gz: byte $(wc -c <short.gz): something that is not gzip" tail.gz
    { cat short.gz; head -c 10 short.gz; } >half.gz
    refused half_a_second_member_is_refused "truncated gzip data" half.gz
fi
if reads zstd && command -v zstd >/dev/null; then
    zstd -qc short.txt >short.zst
    sweep zstd short.zst 4
    { cat short.zst; printf 'more'; } >tail.zst
    refused text_behind_zstd_is_refused \
        "tail.zst: byte $(wc -c <short.zst): something that is not zstd" tail.zst
fi

mkdir folder
refused a_folder_is_refused "folder: is a folder" folder
refused a_missing_file_is_refused "nothing: No such file" nothing

exit $failed
