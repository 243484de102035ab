#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a fuzzing service gets: each target of tests/fuzz, with its seeds. The programs are stand-ins here: `make
# fuzz` builds the same ones.

. "$(dirname "$0")/../support/report.sh"
mkdir "$work/out"

cat >"$work/make" <<'EOF'
#!/usr/bin/env bash
[[ " $* " != *" fuzz-programs "* ]] || {
    for word; do [[ $word != BUILD=* ]] || build=${word#BUILD=}; done
    mkdir -p "$build"
    for file in tests/fuzz/fuzz_*.c; do : >"$build/$(basename "$file" .c)"; done
    exit
}
exec make "$@"
EOF
chmod +x "$work/make"
said=$(CC=cc CXX=c++ LIB_FUZZING_ENGINE=none OUT=$work/out WORK=$work MAKE=$work/make \
    bash "$root/tests/fuzz/build_service.sh" 2>&1) || said="failed: $said"

wanted=$(cd "$root/tests/fuzz" && for file in fuzz_*.c; do
    printf '%s\n%s_seed_corpus.zip %d\n' "${file%.c}" "${file%.c}" "$(find "corpus/${file:5:-2}" -type f | wc -l)"
done | sort)
got=$(cd "$work/out" && python3 -c 'import pathlib, zipfile
for path in pathlib.Path().iterdir():
    print(path, *([len(zipfile.ZipFile(path).namelist())] if path.suffix == ".zip" else []))' | sort)
[ "$got" = "$wanted" ] && ! grep -q ' 0$' <<<"$wanted"
outcome every_target_and_its_seeds $? "$said $(diff <(echo "$wanted") <(echo "$got") | head -n 5)"
exit $status
