/* kernels.cu - see kernels.h. */
#include "kernels.h"

#define THREADS 1024
#define AT_ONCE 4 /* words that a thread has under way: 64 KiB a block */
#define TILE 2048
#define SUM_THREADS 256
#define WORK_THREADS 256
#define WORK_BLOCKS 1056 /* a multiple of the multiprocessors of most devices */

/* ---- Pull ---- */

static __device__ const uint4 *word_of(const slices &s, uint32_t words_of_slice, uint64_t i)
{
    const uint32_t slice = (uint32_t)(i / words_of_slice), word = (uint32_t)(i % words_of_slice);
    const uint64_t begin = s.offsets[slice] & ~(uint64_t)15;
    return (const uint4 *)(s.source + begin) + word;
}

static __global__ void __launch_bounds__(THREADS) pull(const slices s, uint4 *to)
{
    const uint32_t words_of_slice = s.n_bytes / 16 + 1;
    const uint64_t n = (uint64_t)s.n * words_of_slice, step = (uint64_t)gridDim.x * THREADS;
    for (uint64_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += AT_ONCE * step) {
        uint4 words[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * step < n)
                words[k] = *word_of(s, words_of_slice, i + k * step);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (i + k * step < n)
                to[i + k * step] = words[k];
    }
}

extern "C" cudaError_t kernel_pull(const slices *s, void *to, uint32_t n_blocks,
                                   cudaStream_t stream)
{
    pull<<<n_blocks, THREADS, 0, stream>>>(*s, (uint4 *)to);
    return cudaGetLastError();
}

/* ---- Pull and expand: a block makes one tile of one slice after another ---- */

static __global__ void __launch_bounds__(THREADS) pull_expand(const slices s, token_outputs to)
{
    __shared__ uint4 words[(TILE + 1) * 2 / 16 + 2];
    const uint32_t length = s.n_bytes / 2 - 1, n_tiles = (length + TILE - 1) / TILE;
    for (uint32_t t = blockIdx.x; t < s.n * n_tiles; t += gridDim.x) {
        const uint32_t slice = t / n_tiles, begin = t % n_tiles * TILE;
        const uint32_t n = length - begin < TILE ? length - begin : TILE;
        const uint64_t first = s.offsets[slice] + 2ull * begin;
        const uint32_t n_words = (uint32_t)((first % 16 + 2 * (n + 1) + 15) / 16);
        const uint4 *source = (const uint4 *)(s.source + (first & ~(uint64_t)15));
        for (uint32_t i = threadIdx.x; i < n_words; i += THREADS)
            words[i] = source[i];
        __syncthreads();
        const uint16_t *tokens = (const uint16_t *)((const uint8_t *)words + first % 16);
        for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
            const uint64_t at = (uint64_t)slice * length + begin + i;
            to.inputs[at] = tokens[i];
            to.labels[at] = tokens[i + 1];
        }
        __syncthreads();
    }
}

extern "C" cudaError_t kernel_pull_expand(const slices *s, const token_outputs *to,
                                          uint32_t n_blocks, cudaStream_t stream)
{
    pull_expand<<<n_blocks, THREADS, 0, stream>>>(*s, *to);
    return cudaGetLastError();
}

/* ---- Sums ---- */

static __global__ void sum_words(const summed s, unsigned long long *sum)
{
    __shared__ unsigned long long block_sum;
    uint64_t mine = 0, place = 0;
    if (threadIdx.x == 0)
        block_sum = 0;
    __syncthreads();
    for (int a = 0; a < MAX_SUMMED; a++) {
        for (uint64_t i = blockIdx.x * SUM_THREADS + threadIdx.x; i < s.n_words[a];
             i += (uint64_t)gridDim.x * SUM_THREADS)
            mine += sum_of_word(s.words[a][i], place + i);
        place += s.n_words[a];
    }
    atomicAdd(&block_sum, (unsigned long long)mine);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(sum, block_sum);
}

extern "C" cudaError_t kernel_sum(const summed *s, uint64_t *sum, cudaStream_t stream)
{
    sum_words<<<32, SUM_THREADS, 0, stream>>>(*s, (unsigned long long *)sum);
    return cudaGetLastError();
}

extern "C" cudaError_t kernel_read(const void *memory, uint64_t n_bytes, uint64_t *sum,
                                   cudaStream_t stream)
{
    const summed s = {{(const uint32_t *)memory}, {n_bytes / 4}};
    sum_words<<<256, SUM_THREADS, 0, stream>>>(s, (unsigned long long *)sum);
    return cudaGetLastError();
}

/* ---- Time ---- */

static __device__ uint64_t global_ns(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void wait(uint64_t ns)
{
    const uint64_t begun = global_ns();
    while (global_ns() - begun < ns)
        __nanosleep(200);
}

extern "C" cudaError_t kernel_wait(uint64_t ns, cudaStream_t stream)
{
    wait<<<1, 1, 0, stream>>>(ns);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(WORK_THREADS) work(float *result, uint32_t n_loops)
{
    float a = threadIdx.x, b = blockIdx.x, c = 1, d = 2;
    for (uint32_t i = 0; i < n_loops; i++) {
        a = a * 0.999f + 0.5f;
        b = b * 0.998f + 0.5f;
        c = c * 0.997f + 0.5f;
        d = d * 0.996f + 0.5f;
    }
    if (a + b + c + d == 0.12345f) /* never, and the compiler cannot know */
        *result = a;
}

extern "C" cudaError_t kernel_work(float *result, uint32_t n_loops, cudaStream_t stream)
{
    work<<<WORK_BLOCKS, WORK_THREADS, 0, stream>>>(result, n_loops);
    return cudaGetLastError();
}
