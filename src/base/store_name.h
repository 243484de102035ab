/* SPDX-License-Identifier: Apache-2.0 */
/* store_name.h - names of objects in a store or on a server, such as s3://bucket/train: whether a
 * name is one, and what a command says about it. Pure. */
#pragma once

#include <stdbool.h>

/* Whether the name begins with s3://, gs://, az://, https:// or http://, in upper or lower case. */
bool store_name_is(const char *name);

#define STORE_NAME_TEXT_BYTES 640
/* Says that commands do not open such a name, and what to do instead. Leaves out of the name what
 * may be secret: the user and the password before the host, and all from a '?' or '#' on. */
void store_name_refuse(const char *name, char text[STORE_NAME_TEXT_BYTES]);
