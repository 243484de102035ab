/* kernels.h - the experiments' kernels, as calls in C. Each returns what starting it returned. */
#ifndef KERNELS_H
#define KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MAX_SLICES = 64,
    MAX_SUMMED = 5
};

/* Slices of 16-bit tokens, somewhere in memory that the device can read. */
typedef struct slices {
    const uint8_t *source;        /* aligned to 16 */
    uint64_t offsets[MAX_SLICES]; /* in bytes: any that are even */
    uint32_t n, n_bytes;          /* of each: a multiple of 16 */
} slices;

/* Whole words of 16 bytes around each slice, one slice behind the other: n_bytes + 16 each. */
cudaError_t kernel_pull(const slices *s, void *to, uint32_t n_blocks, cudaStream_t stream);
/* The same into inputs (int32) and labels (int64): n_bytes / 2 - 1 of a slice. */
typedef struct token_outputs {
    int32_t *inputs;
    int64_t *labels;
} token_outputs;
cudaError_t kernel_pull_expand(const slices *s, const token_outputs *to, uint32_t n_blocks,
                               cudaStream_t stream);

/* A sum that depends on every word of up to five arrays and on its place; *sum was 0. */
typedef struct summed {
    const uint32_t *words[MAX_SUMMED]; /* NULL: none */
    uint64_t n_words[MAX_SUMMED];
} summed;
cudaError_t kernel_sum(const summed *s, uint64_t *sum, cudaStream_t stream);

/* All n_bytes of memory that the device can read, into *sum. */
cudaError_t kernel_read(const void *memory, uint64_t n_bytes, uint64_t *sum, cudaStream_t stream);
/* Does nothing for so long, on one multiprocessor. */
cudaError_t kernel_wait(uint64_t ns, cudaStream_t stream);
/* Arithmetic on all of them. */
cudaError_t kernel_work(float *result, uint32_t n_loops, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

/* What kernel_sum adds for one word. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    sum_of_word(uint32_t word, uint64_t place)
{
    uint64_t x = word ^ (place + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

#endif /* KERNELS_H */
