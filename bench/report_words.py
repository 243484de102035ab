# SPDX-License-Identifier: Apache-2.0
"""report_words.py - what the page of report.py says in words: the figures that its first sentence
names, why targets are missed, and what names mean. Each row begins with an expression."""

# The page of tokbench, the name of a row, and what it says: {value} and {share}, of its limit.
HEADLINES = (
    ("load", "zero-copy sample, 4096 tokens", "hands out a sample in {value} without copying it"),
    ("load", "batch gathered, .*, 4096 tokens",
     "copies a batch {share} times as fast as plain copies of the same rows ({value})"),
    ("cold", "direct, 4096 tokens, rate", "reads random rows from the disk at {share} times the "
     "device's own rate ({value})"),
    ("start|scale", r"map, 10\^12 tokens, start", "has the first batch of 10^12 tokens after {value}"),
    ("stall", "cold, direct, .*, p99", "keeps 99 of 100 training steps waiting for {value} at most when "
     "the data are on the disk"),
    ("tokenize, cold", "gpt2, novels: tokmap", "tokenizes English with GPT-2 at {value}"),
    ("pack", "tokmap pack / .*", "packs at {value} the speed of what bounds it"),
    ("gpu", "staged, .*", "copies batches to the GPU at {share} times the rate of the bus ({value})"),
)

# A missed target, and why; it follows "because". A target that is not here has no known reason.
REASONS = (
    ("verify (as it runs )?/", "verify also computes a checksum and the largest id, where a plain read only reads"),
    ("block shuffle(?!.*bytes)", "block shuffle is compared with reads of 1 MiB past the page cache, which a device "
     "serves in bursts"),
    ("tokmap-u16.* / dataloader", "memory bandwidth limits both loaders with rows this long"),
    ("joined / flat", "the rounds of this machine differ by more than the target allows"),
    ("tokmap pack / ", "the parts run at the same time and share the processors"),
    ("tokmap / tiktoken", "tiktoken is compared on words that were not seen before, too"),
    ("largest staged batches", "one thread reads the rows, and keeps about as much a second as it can read"),
    ("of the device's rate|share", "the rate of the device changes between rounds"),
)

# A name of a chart, the expression that finds it, and what it means.
NAMES = (
    ("hot", "hot", "the data are in memory"),
    ("cold", "cold", "the data are not in memory; for tokenizers: words that were not seen before"),
    ("warm", "warm", "words that were seen before"),
    ("direct, populate, read, map", "tokmap, (direct|populate|read)|(direct|populate|read|map), [0-9]",
     "how the loader reads: direct with io_uring past the page cache; populate and read fetch the pages of "
     "the next batches; map waits for each page"),
    ("block shuffle", "block[ -]shuffle", "blocks of neighbouring windows in random order, and windows in random "
     "order within a few blocks"),
    ("u16, u32", "u16|u32", "tokens as they are stored"),
    ("i32, i64", "i32|i64", "inputs and labels as 32-bit or 64-bit numbers"),
    ("views", "views", "pointers to the rows: nothing is copied"),
    ("new", "[a-z0-9]-new", "new arrays for each batch"),
    ("w0, w2", "w[0-9]+", "the number of worker processes"),
    ("tokmap-c", "tokmap-c", "tokmap called from C; the other loaders are called from Python"),
    ("getitems, tuned", "getitems|tuned", "one index operation for a whole batch"),
    ("willneed", "willneed", "NumPy that tells the kernel which rows the next batch needs"),
    ("read-blocks", "read-blocks", "rows of a batch are neighbours in the file, as in llm.c"),
    ("qd 32", "qd [0-9]+", "32 reads run at the same time"),
    ("p99", "p99", "99 of 100 values are not larger"),
    ("capped, staged", "capped|staged", "mixtures with a limit on epochs; with weights that change"),
    ("RSS", "RSS", "resident memory of the process"),
    ("gigatoken-set-up", "gigatoken-set-up", "gigatoken with its tables built before the clock starts"),
    ("novels, tldr", "novels|tldr", "texts: English novels; pages in 39 languages"),
    ("the plain way", "plain way", "another way of doing the same work in the same run: memcpy, a plain read, "
     "reads of the bare device. It is not an upper limit"),
)
