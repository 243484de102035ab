/* platform_library.h - shared libraries that are looked for when the program runs. */
#ifndef TOKMAP_PLATFORM_LIBRARY_H
#define TOKMAP_PLATFORM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The library of that name; NULL: there is none, and `why` says what the system says. It is never
 * unloaded. */
void *tokmap_i_library_open(const char *name, char *why, size_t why_bytes);
/* Writes the address of a function to *function, a pointer to a function of any type; false: the
 * library has no such name. */
bool tokmap_i_library_find(void *library, const char *name, void *function);

#endif /* TOKMAP_PLATFORM_LIBRARY_H */
