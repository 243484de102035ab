#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is built is protected as the Makefile asks: position independent, read-only after start, stack
# protector, fortified calls, control-flow marks; no executable stack, text relocation or search path. It
# does not name the folder where it was built.

. "$(dirname "$0")/../support/report.sh"
[ -z "${TOKMAP_SANITIZED#qemu}" ] || skip_all hardening "a sanitizer changes what is linked"
command -v readelf >/dev/null || skip_all hardening "readelf not found (package binutils)"
taken=$(sed -n 's/^OLD_HARDENING := //p' "$build/config.mk")
export LC_ALL=C

built() # product: its file; an emulator runs the one in elf/
{
    [ -e "$build/elf/$1" ] && echo "$build/elf/$1" || echo "$build/$1"
}

has() # file, property
{
    case $2 in
    pie) readelf -h "$1" | grep -q 'Type: *DYN' ;;
    relro) readelf -lW "$1" | grep -q GNU_RELRO ;;
    now) readelf -d "$1" | grep -q BIND_NOW ;;
    no_executable_stack) readelf -lW "$1" | grep -q 'GNU_STACK.* RW  *0x' ;;
    no_writable_code) ! readelf -lW "$1" | grep -q 'LOAD.* RWE' ;;
    no_text_relocation) ! readelf -d "$1" | grep -q TEXTREL ;;
    no_search_path) ! readelf -d "$1" | grep -qE '\((RPATH|RUNPATH)\)' ;;
    stack_protector) readelf --dyn-syms -W "$1" | grep -q '__stack_chk_\(fail\|guard\)' ;;
    fortified) readelf --dyn-syms -W "$1" | grep -q '__[a-z]*_chk@' ;;
    marks) readelf -n "$1" | grep -qE 'IBT, SHSTK|BTI, PAC|BTI$' ;;
    esac
}

# What was asked for, by the flags that the compiler took.
properties="no_executable_stack no_writable_code no_text_relocation no_search_path"
for pair in pie:-pie relro:relro now:now stack_protector:stack-protector \
    fortified:FORTIFY 'marks:-fcf-protection|-mbranch-protection'; do
    if grep -qE -e "${pair#*:}" <<<"$taken"; then
        properties="$properties ${pair%%:*}"
    else
        echo "skip ${pair%%:*}: the build is without ${pair#*:}, which the compiler, CPPFLAGS or CFLAGS exclude"
    fi
done

# The linker marks a file if all parts are marked, and some of them come with the C library.
printf 'int main(void) { return 0; }\n' >"$work/empty.c"
if [[ $properties == *marks* ]]; then
    for object in $(find "$build/obj/src" "$build/obj/tokenize_tools" "$build/obj/bench" -name '*.o'); do
        has "$object" marks || echo "$object"
    done >"$work/log"
    verdict each_object_has_marks "$(head -n 3 "$work/log" | tr '\n' ' ')"
    ${CC:-cc} -pie $(grep -oE -e '-(fcf|mbranch)-[^ ]*' <<<"$taken") "$work/empty.c" -o "$work/empty" 2>/dev/null
    has "$work/empty" marks || {
        echo "skip each_product_has_marks: the start files of this C library have none"
        properties=${properties/ marks/}
    }
fi

for property in $properties; do
    for product in libtokmap.so libtokmap_tokenizer.so tokmap tokbench; do
        has "$(built "$product")" "$property" || echo "$product"
    done >"$work/log"
    verdict "each_product_has_$property" "$(tr '\n' ' ' <"$work/log")"
done

# make reproducible compares all bytes; this is what differs most easily.
if [[ $PWD != /*/* ]]; then
    echo "skip no_product_names_a_folder: ./src has the name of a folder above, $PWD"
else
    verdict no_product_names_a_folder "$(grep -lF -e "$PWD" -e "$(realpath "$build")" "$build"/libtokmap{,_tokenizer}.a \
        "$build"/libtokmap{,_tokenizer}.so "$(built tokmap)" "$(built tokbench)" | tr '\n' ' ')"
fi

# Each check can fail: these two files have no property.
printf '__asm__(".text\\n.globl f\\nf:\\n.quad f\\n");\n' >"$work/bare.c"
${CC:-cc} -shared -z notext -z norelro -z lazy -z execstack -Wl,-rpath,/nowhere "$work/bare.c" \
    -o "$work/bare.so" 2>"$work/why" && ${CC:-cc} -no-pie -static -nostdlib -Wl,-N,-e,main "$work/empty.c" \
    -o "$work/bare" 2>>"$work/why" || echo "$(tail -n 1 "$work/why")" >"$work/unbuilt"
if [ -s "$work/unbuilt" ]; then
    echo "skip a_file_without_the_properties_is_found: $(cat "$work/unbuilt")"
else
    for property in relro now no_executable_stack no_text_relocation no_search_path stack_protector \
        fortified marks; do
        ! has "$work/bare.so" $property || echo "$property"
    done >"$work/log"
    for property in pie no_writable_code; do
        ! has "$work/bare" $property || echo "$property"
    done >>"$work/log"
    verdict a_file_without_the_properties_is_found "$(tr '\n' ' ' <"$work/log")"
fi
exit $status
