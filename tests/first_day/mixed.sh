#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first day of an engineer of a small lab: a folder of files of all kinds, a vocabulary of Hugging Face, scores that come
# later, a benchmark, a deletion, and a notebook.

. "$(dirname "$0")/typed.sh"

$python "$root/tests/first_day/mixed_files.py" >made || exit 1
[ -e mixed/table.parquet ] || skip_all "$day" "no pyarrow for $python"
mkdir tok
PYTHONPATH=$root/tests/oracles:$root/tests/pack $python -c "import pack_corpus; print(pack_corpus.small_vocabulary(), end='')" >tok/tokenizer.json

# ---- The folder ----

typed all_unsuitable_files_are_named_at_once 3 'tokmap pack mixed/ --tokenizer tok -o data/train' <<'END'
PDF document: mixed/paper.pdf
UTF-16 text: mixed/utf16.txt
mixed/other.parquet
PNG
JPEG
! ...
END
typed a_dry_run_has_a_verdict_for_each_file 3 'tokmap pack mixed/ --tokenizer tok --dry-run' <<'END'
mixed/archive.tar, packed as
mixed/notes.txt, packed as text
mixed/array.json, packed as jsonl
mixed/table.parquet, packed as parquet
mixed/other.parquet, unsuitable
mixed/latin1.txt, unsuitable
mixed/other.jsonl, needs
content
END
typed a_table_is_taken_as_it_is 0 'tokmap pack mixed/table.csv mixed/table.tsv --where "score >= 0.5" --meta id,score --tokenizer tok -o data/table && tokmap info data/table' <<'END'
score, float64
END
typed the_field_is_named_where_text_is_missing 3 'tokmap pack mixed/other.jsonl --tokenizer tok -o data/other' <<'END'
content
lang
END
all='mixed/ --tokenizer tok --skip-unsuitable --exclude other.jsonl --exclude "table.?sv" --on-error skip'
typed both_kinds_are_refused_with_commands 3 "tokmap pack $all -o data/train --write-lists" <<'END'
Pack each kind by itself:
--tokenizer tok
! ...
END
grep '^  tokmap ' "$work/said" >pasted
typed these_commands_can_be_pasted 0 'cat pasted && bash -e pasted && tokmap info data/train' <<'END'
tokmap merge data/train-text data/train-records -o data/train
inputs:           9
END
typed bad_lines_are_reported 0 'tokmap pack mixed/broken.jsonl --tokenizer tok --on-error skip -o data/broken' <<'END'
1 bad
END
typed a_bad_line_is_named 3 'tokmap pack mixed/broken.jsonl --tokenizer tok -o data/broken2' <<'END'
mixed/broken.jsonl:2
END
typed utf16_as_text_names_the_file 0 'tokmap pack mixed/utf16.txt mixed/latin1.txt --format text --utf8 replace -o data/odd' <<'END'
mixed/utf16.txt
mixed/latin1.txt
END

# ---- Vocabularies ----

typed a_bare_name_says_how_the_hub_is_named 3 'tokmap pack mixed/notes.txt --tokenizer gpt2 -o data/n' <<'END'
a repository of the Hub is OWNER/NAME, as in hf://openai-community/gpt2
END
typed a_folder_is_a_tokenizer 0 'tokmap pack mixed/notes.txt --tokenizer tok/ -o data/notes && tokmap info data/notes' <<'END'
tokenizer.json
END
typed a_missing_package_is_named_as_it_is_called 0 'grep -rn "tokmap\[" '"$root"'/README.md '"$root"'/docs '"$root"'/python; [ $? = 1 ]' </dev/null
typed try_proves_it_on_the_spot 0 'tokmap try tok mixed/notes.txt' <<'END'
nothing is left
END

# ---- Fields ----

typed a_misspelt_field_of_lines_is_refused 3 'tokmap pack mixed/records.jsonl --tokenizer tok --meta idd -o data/idd; status=$?; ls data/idd.tmi; exit $status' <<'END'
the nearest one is id
No such file
END
typed a_misspelt_column_of_parquet_is_refused 3 'tokmap pack mixed/table.parquet --tokenizer tok --meta idd -o data/idd' <<'END'
--meta
idd
END
typed a_field_that_some_inputs_lack_is_null_there 0 'tokmap pack mixed/records.jsonl mixed/table.parquet --tokenizer tok --meta id,url -o data/both && tokmap info data/both' <<'END'
url
END

# ---- From Python ----

typed python_packs_and_loads 0 "python3 -c '
import tokmap
report = tokmap.pack([\"mixed/records.jsonl\", \"mixed/more.jsonl.gz\"], tokenizer=\"tok\", output=\"data/python\", meta=[\"id\", \"score\"])
print(report)
loader = tokmap.Loader([\"data/python\", \"data/notes\"], 32, 4, windows=\"best_fit\", max_epochs=1)
print(loader)
page = loader._repr_html_()
print(\"and 1 more\" in page, len(list(loader)))
print(\"and 1 more\" in tokmap.open([\"data/python\", \"data/notes\"])._repr_html_())
view = tokmap.open(\"data/python\").where(\"score >= 0.7\")
print(view, len(view._repr_html_()))
'" <<'END'
Loader of python and 1 more
True
tokmap.View where 'score >= 0.7'
! False
END
typed a_misspelt_argument_of_pack_is_corrected 1 "python3 -c 'import tokmap; tokmap.pack(\"mixed/notes.txt\", \"tok\", \"data/m\", on_eror=\"skip\")'" <<'END'
did you mean on_error
END
typed torch_that_is_missing_is_named 0 "mkdir -p hidden && echo 'raise ModuleNotFoundError(\"No module named (torch)\", name=\"torch\")' >hidden/torch.py && PYTHONPATH=hidden:\$PYTHONPATH python3 -c '
import tokmap
try:
    tokmap.Loader(\"data/notes\", 16, framework=\"torch\")
except ModuleNotFoundError as error:
    print(error)'" <<'END'
Install it: pip install torch
END

# ---- Later ----

typed scores_that_came_later 0 "for i in \$(seq 120); do echo '{\"quality\": '\$((i % 5))'}'; done >scores.jsonl; tokmap columns add data/python scores.jsonl && tokmap columns list data/python &&
    tokmap info data/python --where 'quality >= 3'" <<'END'
quality
48
END
typed a_benchmark_of_her_own 0 'cp tok/tokenizer.json data/ && echo "{\"question\": \"It is about whales, rivers and stones, and it has 3 parts\"}" >mine.jsonl &&
    tokmap scan data/python --against mine.jsonl --fields question --name mine -n 4' <<'END'
mine
END
typed text_is_shown_without_naming_the_tokenizer 0 'tokmap cat data/python --documents 0:1 --text' <<'END'
This is text 0
END
typed merge_names_the_way_out 4 'tokmap merge data/python data/notes -o data/all' <<'END'
--meta
Loader
END
typed a_deletion 0 'tokmap redact data/python --documents 3:4 -o data/python2' <<'END'
data/python still has these documents
END
typed the_words_that_people_search_lead_somewhere 0 "for word in decontaminate deduplicate curriculum anneal forget GDPR; do grep -rlqi \$word $root/docs/*.md || echo no page on \$word; done" <<'END'
! no page
END
exit $status
