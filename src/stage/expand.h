/* SPDX-License-Identifier: Apache-2.0 */
/* expand.h - does in plain C what the kernel in cuda/expand.cu does: the reference that the kernel
 * is tested against, and the kernel of TOKMAP_STAGE_HOST. Pure. */
#pragma once

#include "stage/expand_job.h"

void tokmap_i_expand(const tokmap_i_expand_job *job);
