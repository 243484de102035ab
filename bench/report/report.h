/* report.h - `tokbench report`: result files to one HTML page and to Markdown tables.
 *
 * A result file is what `tokbench --json` and bench/peers/compare.py write: {"schema": 1,
 * "command", "machine": {"cpu", "processors", "memory_gib", "kernel", "architecture"}, "rows":
 * [...]}. A machine may have "gpu". A row has "page", "name", "unit", "median", "values"; and where
 * it has an aim, "target": {"at_least" or "at_most": number, "reached": bool}.
 *
 * A row may say more, and is drawn better then:
 *
 * "system"    Whose figure it is: "tokmap", "tokmap, gather", "nanoGPT". Rates (units that end in
 *             "/s") of several systems are drawn side by side. Ours begin with "tokmap". Within a
 *             group each system comes once.
 * "group"     Rows of one group are drawn together, under this title: "hot, int64, 1024 tokens".
 *             Without it the last part of the name counts when it is like "1024 tokens", else the
 *             page. A group that begins with "gpu" says that a GPU was there and did the work; a
 *             word "cuda" or "h2d" in the name says the same. Nothing that was measured with a
 *             stand-in for the GPU may be named so.
 * "limit"     Name of the row in the same file that does the same work plainly; with a fraction
 *             also what needs no row: "steps that never wait".
 * "fraction"  This figure as a part of that limit, 1 for all of it; the median over rounds. Without
 *             it the medians are divided when both have one unit, the other way round for times.
 * "x"         Place on the horizontal axis, above 0, and
 * "x_unit"    what that counts. Absent: "tokens", the size of the corpus; times and memory against
 *             it are how tokmap starts up. Something else: "tokens a row", "bytes". Rows that only
 *             differ in a part of the name that begins with a digit ("open, 10^9 tokens") are one
 *             line. Without "x", "10^9 tokens" in the name is one.
 * "left_out"  Why there is no figure ("not installed"); then no "unit", "median" or "values".
 * "version"   Of the system, and
 * "note"      what a reader has to know about its figures. Both are shown once for a system.
 *
 * A latency is a row for each percentile: a word "p50", "p99", "p99.9" or "max" in names that are
 * the same but for it, the unit a time: "stall p50, 5 ms step". In a group they are those of one
 * system. On the page "stall", and where a
 * GPU did the work, the p99 are drawn against 50 us too. */
#ifndef TOKMAP_REPORT_H
#define TOKMAP_REPORT_H

/* argv[0] is "report". Returns the exit code. */
int report_command(int argc, char **argv);

#endif /* TOKMAP_REPORT_H */
