/* SPDX-License-Identifier: Apache-2.0 */
/* open_input.h - opens an input with the reader of its format. */
#pragma once

#include "formats/reader.h"

/* The path, the part and the options must stay valid until the reader is closed. The format of a
 * part, by options->format: lines, JSON lines or Parquet. stop_fd: see window.h. */
reader *reader_open(const input_source *source, const reader_options *options, int stop_fd,
                    failure *err);
