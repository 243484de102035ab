# SPDX-License-Identifier: Apache-2.0
"""Writes the folder mixed/, with files of all kinds as people have them. Those of Parquet need pyarrow."""

import gzip
import io
import json
import os
import tarfile
import zipfile

TEXTS = [f"This is text {i}. It is about whales, rivers and stones, and it has {i % 7} parts." for i in range(60)]
RECORDS = [{"id": f"r{i}", "url": f"https://a.org/{i}", "score": i % 10 / 10, "text": text} for i, text in enumerate(TEXTS)]


def write(name, data):
    with open("mixed/" + name, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def zip_of(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "<w/>")
    return file.getvalue()


def tar_of(name, text):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text.encode()))
    return file.getvalue()


os.makedirs("mixed/sub")
lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
write("readme.md", "# A corpus\n\nIt has files of all kinds.\n")
write("notes.txt", "\n".join(TEXTS))
write("sub/more.txt", TEXTS[3])
write("latin1.txt", "caf\u00e9 au lait, d\u00e9j\u00e0 vu\n".encode("latin-1") * 5)
write("utf16.txt", "\n".join(TEXTS[:5]).encode("utf-16"))
write("book.txt.gz", gzip.compress("\n".join(TEXTS).encode()))
write("empty.txt", b"")
write("records.jsonl", lines)
write("more.jsonl.gz", gzip.compress(lines.encode()))
write("array.json", json.dumps(RECORDS))
write("broken.jsonl", lines[:lines.index("\n") + 1] + '{"text": "no end\n' + lines)
write("other.jsonl", "".join(json.dumps({"id": i, "content": text, "lang": "en"}) + "\n" for i, text in enumerate(TEXTS)))
write("table.csv", "id,score,text\n" + "".join(f'{i},{i % 10 / 10},"{text}"\n' for i, text in enumerate(TEXTS)))
write("table.tsv", "id\tscore\ttext\n" + "".join(f"{i}\t{i % 10 / 10}\t{text}\n" for i, text in enumerate(TEXTS)))
write("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\n%%EOF\n")
write("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(range(256)))
write("icon.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(64))
write("report.docx", zip_of("word/document.xml"))
write("pack.zip", zip_of("a.txt"))
write("archive.tar", tar_of("a.txt", TEXTS[0]))
try:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"id": [f"p{i}" for i in range(60)], "text": TEXTS}), "mixed/table.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"content": TEXTS}), "mixed/other.parquet")
except ImportError:
    print("no pyarrow: no files of Parquet")
