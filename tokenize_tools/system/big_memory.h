/* big_memory.h - memory for large tables that are read at random: zeroed, in huge pages where the
 * system gives them. The only system call of the tokenizers. */
#ifndef TOKMAP_BIG_MEMORY_H
#define TOKMAP_BIG_MEMORY_H

#include <stddef.h>

/* NULL: out of memory. */
void *big_memory_new(size_t n_bytes);
void big_memory_free(void *memory, size_t n_bytes);

#endif /* TOKMAP_BIG_MEMORY_H */
