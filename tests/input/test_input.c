/* SPDX-License-Identifier: Apache-2.0 */
/* test_input.c - the decompressors, each alone, at every chunk size, and the damage that they
 * detect. */
#include "input/input.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <xxhash.h>

#include "codec/decoder.h"
#include "support/check.h"
#include "support/stored.h"

/* Stands in front of libc's. */
static bool is_interrupted;

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
    errno = EINTR;
    return is_interrupted
               ? -1
               : (int)syscall(SYS_ppoll, fds, n, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
}

/* Runs of text and of noise, so that there are matches, literals and stored blocks. */
static uint8_t *make_plain(size_t n_bytes)
{
    uint8_t *plain = malloc(n_bytes + 1);
    for (size_t i = 0; i < n_bytes; i++) {
        bool noise = i / 3000 % 3 == 0;
        plain[i] = (uint8_t)(noise || i < 20 ? check_below(256) : plain[i - 1 - check_below(20)]);
    }
    return plain;
}

static stored_form form_of(const decoder *d)
{
    return strcmp(d->name, "gzip") == 0 ? STORED_GZIP : STORED_ZSTD;
}

/* The decoders of this build that can be tested; by_input: only those that input.c chooses. */
static const decoder *next_decoder(size_t *i, bool by_input)
{
    for (; *i < n_decoders; ++*i) {
        const decoder *d = &decoders[*i];
        stored probe = stored_make(form_of(d), (const uint8_t *)"x", 1, 1);
        bool works = d->create && probe.bytes && (!by_input || decoder_find(d->name) == d);
        free(probe.bytes);
        if (works)
            return &decoders[(*i)++];
    }
    return NULL;
}

static void need_decoders(void)
{
    size_t i = 0;
    if (!next_decoder(&i, true))
        SKIP("this build has no decompressor that could be tested");
}

typedef struct outcome {
    uint8_t *bytes; /* malloced */
    size_t n_bytes;
    ssize_t result; /* the last one */
    failure err;
    uint64_t stored_bytes, checksum;
} outcome;

/* Reads out_bytes at a time. */
static outcome read_all(const uint8_t *bytes, size_t n_bytes, size_t out_bytes)
{
    char name[64];
    outcome o = {.bytes = malloc(1)};
    size_t n_room = 1;
    uint8_t *out = malloc(out_bytes);
    int fd = memfd_create("input", MFD_CLOEXEC);
    CHECK(write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    input *in = input_open(&(input_source){.path = name}, -1, &o.err);
    o.result = in ? 1 : -1;
    while (o.result > 0) {
        o.result = input_read(in, out, out_bytes, &o.err);
        if (o.result <= 0)
            break;
        if (o.n_bytes + (size_t)o.result > n_room)
            o.bytes = realloc(o.bytes, n_room = 2 * (o.n_bytes + (size_t)o.result));
        memcpy(o.bytes + o.n_bytes, out, (size_t)o.result);
        o.n_bytes += (size_t)o.result;
    }
    if (o.result == 0)
        CHECK_INT(input_read(in, out, out_bytes, &o.err), 0);
    if (in) {
        o.stored_bytes = input_stored(in).n_bytes;
        o.checksum = input_stored(in).checksum;
    }
    input_close(in);
    free(out);
    close(fd);
    return o;
}

static void check_plain(const outcome *o, const uint8_t *plain, size_t n_plain, const stored *s)
{
    if (o->result < 0)
        CHECK_FAIL("%s", o->err.text);
    CHECK_EQ(o->n_bytes, n_plain);
    CHECK(n_plain == 0 || memcmp(o->bytes, plain, n_plain) == 0);
    CHECK_EQ(o->stored_bytes, s->n_bytes);
    CHECK_EQ(o->checksum, XXH3_64bits(s->bytes, s->n_bytes));
}

TEST(every_decoder_gives_the_plain_bytes_whatever_is_asked_for_at_a_time)
{
    static const size_t sizes[] = {0, 1, 100, 65536, 700000}, outs[] = {1, 2, 3, 17, 4096, 1 << 20};
    const decoder *d;
    need_decoders();
    for (size_t i = 0; (d = next_decoder(&i, true)) != NULL;) {
        for (size_t k = 0; k < 5 * 6 * 3; k++) {
            size_t n_plain = sizes[k % 5], n_parts = k / 30 == 0 ? 1 : k / 30 == 1 ? 2 : 7;
            size_t out_bytes = outs[k / 5 % 6];
            if (n_plain / out_bytes > 200000)
                continue;
            uint8_t *plain = make_plain(n_plain);
            stored s = stored_make(form_of(d), plain, n_plain, n_parts);
            outcome o = read_all(s.bytes, s.n_bytes, out_bytes);
            check_plain(&o, plain, n_plain, &s);
            free(plain);
            free(s.bytes);
            free(o.bytes);
        }
        printf("note %s by %s\n", d->name, d->library);
    }
}

/* Calls the decoder directly, with in_bytes of the stored data at a time. Returns false when it
 * stops. */
static bool decode_in_steps(const decoder *d, const stored *s, size_t in_bytes, size_t out_bytes,
                            outcome *o)
{
    void *state = d->create();
    size_t n_fed = 0;
    decoder_result r = DECODER_MORE;
    *o = (outcome){.bytes = malloc(1 << 20)};
    for (size_t n_idle = 0; n_idle < 3 && r != DECODER_FAILED && o->n_bytes <= 1 << 19;) {
        size_t n_in = in_bytes < s->n_bytes - n_fed ? in_bytes : s->n_bytes - n_fed;
        uint8_t *in = malloc(n_in + 1); /* so that writing beyond its end is detected */
        memcpy(in, s->bytes + n_fed, n_in);
        decoder_buffers b = {in, n_in, o->bytes + o->n_bytes, out_bytes};
        r = d->decode(state, &b, &o->err);
        size_t n_read = n_in - b.in_bytes, n_written = out_bytes - b.out_bytes;
        n_fed += n_read;
        o->n_bytes += n_written;
        n_idle = n_read || n_written ? 0 : n_idle + 1;
        free(in);
        if (r == DECODER_FRAME_END && n_fed == s->n_bytes)
            break;
    }
    d->destroy(state);
    return r == DECODER_FRAME_END && n_fed == s->n_bytes;
}

TEST(every_decoder_takes_its_input_in_steps_of_any_size)
{
    static const size_t steps[] = {1, 2, 5, 64, 5000};
    const decoder *d;
    need_decoders();
    uint8_t *plain = make_plain(50000);
    for (size_t i = 0; (d = next_decoder(&i, false)) != NULL;) {
        for (size_t k = 0; k < 25; k++) {
            outcome o;
            stored s = stored_make(form_of(d), plain, 50000, 3);
            CHECK(decode_in_steps(d, &s, steps[k % 5], steps[k / 5], &o));
            CHECK(o.n_bytes == 50000 && memcmp(o.bytes, plain, 50000) == 0);
            free(o.bytes);
            free(s.bytes);
        }
    }
    free(plain);
}

TEST(every_truncation_is_an_error_with_its_place)
{
    const decoder *d;
    need_decoders();
    uint8_t *plain = make_plain(900);
    for (size_t i = 0; (d = next_decoder(&i, true)) != NULL;) {
        stored s = stored_make(form_of(d), plain, 900, 2);
        size_t n_magic = form_of(d) == STORED_GZIP ? 2 : 4, n_whole = 0;
        for (size_t n = n_magic; n < s.n_bytes; n++) {
            outcome o = read_all(s.bytes, n, 333);
            char said[200];
            snprintf(said, sizeof said, ": byte %zu: truncated %s data: its end is missing", n,
                     d->name);
            if (o.result == 0) /* between two members or frames */
                n_whole++;
            else if (!strstr(o.err.text, said) && !strstr(o.err.text, "trailing data"))
                CHECK_FAIL("%s %zu: %s", d->library, n, o.err.text);
            CHECK(o.n_bytes <= 900 && memcmp(o.bytes, plain, o.n_bytes) == 0);
            free(o.bytes);
        }
        CHECK_EQ(n_whole, form_of(d) == STORED_GZIP ? 1 : 2);
        free(s.bytes);
    }
    free(plain);
}

TEST(no_changed_byte_gives_other_plain_bytes)
{
    const decoder *d;
    need_decoders();
    uint8_t *plain = make_plain(3000);
    for (size_t i = 0; (d = next_decoder(&i, false)) != NULL;) {
        stored s = stored_make(form_of(d), plain, 3000, 2);
        size_t n_refused = 0, n_same = 0, n_changed = 0;
        for (size_t at = form_of(d) == STORED_GZIP ? 2 : 4; at < s.n_bytes; at++) {
            s.bytes[at] ^= (uint8_t)(1u << at % 8);
            outcome o;
            bool good = decode_in_steps(d, &s, s.n_bytes, 1000, &o);
            bool same = good && o.n_bytes == 3000 && memcmp(o.bytes, plain, 3000) == 0;
            n_changed++;
            n_refused += !good;
            n_same += same;
            if (good && !same)
                CHECK_FAIL("%s: byte %zu", d->library, at);
            s.bytes[at] ^= (uint8_t)(1u << at % 8);
            free(o.bytes);
        }
        printf("note %s: %zu changes refused, %zu harmless\n", d->library, n_refused, n_same);
        CHECK(n_refused > n_changed * 9 / 10 && n_same < 40);
        free(s.bytes);
    }
    free(plain);
}

TEST(gzip_headers_with_every_field_are_read)
{
    static const uint8_t head[] = {0x1f, 0x8b, 8,   0x1c, 1,   2,   3,   4, 0,   3,   4,   0,   'e',
                                   'x',  't',  'r', 'n',  'a', 'm', 'e', 0, 'n', 'o', 't', 'e', 0};
    const decoder *d;
    need_decoders();
    for (size_t i = 0; (d = next_decoder(&i, false)) != NULL;) {
        if (form_of(d) != STORED_GZIP)
            continue;
        stored s = stored_make(STORED_GZIP, (const uint8_t *)"hello", 5, 1);
        CHECK(s.n_bytes > 10);
        stored longer = {malloc(sizeof head + s.n_bytes), sizeof head + s.n_bytes - 10};
        memcpy(longer.bytes, head, sizeof head);
        memcpy(longer.bytes + sizeof head, s.bytes + 10, s.n_bytes - 10);
        outcome o;
        CHECK(decode_in_steps(d, &longer, longer.n_bytes, 100, &o));
        CHECK(o.n_bytes == 5 && memcmp(o.bytes, "hello", 5) == 0);
        free(o.bytes);
        longer.bytes[2] = 7; /* no such method */
        CHECK(!decode_in_steps(d, &longer, longer.n_bytes, 100, &o));
        CHECK_SAYS(o.err.text, "damaged gzip data: ");
        free(o.bytes);
        free(longer.bytes);
        free(s.bytes);
    }
}

TEST(trailing_data_after_compressed_data_is_an_error)
{
    static const char *const behind[] = {"x", "more text", "\x1f", "\0\0\0\0"};
    const decoder *d;
    need_decoders();
    for (size_t i = 0; (d = next_decoder(&i, true)) != NULL;) {
        for (size_t k = 0; k < 4; k++) {
            stored s = stored_make(form_of(d), (const uint8_t *)"hello", 5, 1);
            size_t n = s.n_bytes;
            char said[64];
            stored_add(&s, STORED_PLAIN, (const uint8_t *)behind[k],
                       k == 3 ? 4 : strlen(behind[k]));
            outcome o = read_all(s.bytes, s.n_bytes, 100);
            snprintf(said, sizeof said, ": byte %zu: trailing data that is not %s", n, d->name);
            CHECK(o.result < 0 && o.n_bytes == 5 && strstr(o.err.text, said));
            free(o.bytes);
            free(s.bytes);
        }
    }
}

TEST(an_open_input_ends_when_it_is_told_to_stop)
{
    int stop[2], data[2];
    char name[64];
    failure err;
    CHECK(pipe(stop) == 0 && pipe(data) == 0 && write(data[1], "abcdef", 6) == 6);
    snprintf(name, sizeof name, "/proc/self/fd/%d", data[0]);
    input *in = input_open(&(input_source){.path = name}, stop[0], &err);
    char bytes[16];
    CHECK(in && input_read(in, bytes, sizeof bytes, &err) == 6);
    CHECK(write(stop[1], "", 1) == 1);
    CHECK_INT(input_read(in, bytes, sizeof bytes, &err), -1);
    CHECK_INT(err.status, ECANCELED);
    input_close(in);
    for (int i = 0; i < 2; i++) {
        close(stop[i]);
        close(data[i]);
    }
}

TEST(an_input_whose_calls_are_always_interrupted_is_an_error)
{
    failure err;
    char byte;
    input *in = input_open(&(input_source){.path = "/dev/zero"}, -1, &err);
    CHECK(in && input_read(in, &byte, 1, &err) == 1);
    input_close(in);
    is_interrupted = true;
    in = input_open(&(input_source){.path = "/dev/zero"}, -1, &err);
    is_interrupted = false;
    CHECK(!in && err.status == EINTR);
}
