/* nvtx.h - named ranges for a profiler that is attached to this process, by the interface that NVTX
 * libraries and tools have agreed on: the tool is a library named by an environment variable, and
 * is handed a table to write its functions to. */
#ifndef TOKMAP_NVTX_H
#define TOKMAP_NVTX_H

/* Finds the tool, once for the process; without one the calls below do nothing. */
void tokmap_i_nvtx_open(void);
/* Ranges of a thread nest. */
void tokmap_i_nvtx_push(const char *name);
void tokmap_i_nvtx_pop(void);

#endif /* TOKMAP_NVTX_H */
