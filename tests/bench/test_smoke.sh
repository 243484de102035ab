#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_smoke.sh - tokbench measures, writes JSON, gives a verdict and refuses a wrong page. `make test-bench` tests the rest.

. "$(dirname "$0")/../support/report.sh"
tokbench=$build/tokbench

said=$("$tokbench" mix load --rounds 1 --load-mib 4 --dir "$work" --json - 2>&1 >"$work/out.json")
outcome smoke_pages_are_measured $? "$said"
"$python" - "$work/out.json" <<'END'
import json, sys
pages = {row["page"] for row in json.load(open(sys.argv[1]))["rows"]}
sys.exit(0 if pages >= {"mix", "load"} else "pages: %s" % pages)
END
outcome smoke_the_json_has_the_pages $? "the pages are missing"
[ -z "$(ls "$work" | grep -v out.json)" ]
outcome smoke_no_data_are_left $? "$(ls "$work")"
"$tokbench" loda >/dev/null 2>&1
[ $? = 2 ]
outcome smoke_a_wrong_page_is_refused $? "another status"
exit $status
