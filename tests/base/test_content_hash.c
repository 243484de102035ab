/* SPDX-License-Identifier: Apache-2.0 */
/* test_content_hash - the hash that can be joined: published check values, a naive twin, the scalar
 * and the vector code, joining. */

#include "base/content_hash.h"
#include "support/check.h"

enum {
    MOST = 3000
};

static uint8_t bytes[MOST + 64];

static void fill(uint64_t seed)
{
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

/* A bit at a time, as polynomials are divided by hand: bits[0] is the highest power. */
static uint64_t remainder_by_hand(uint64_t polynomial, const uint8_t *data, size_t n_bytes)
{
    uint64_t rest = 0; /* the highest bit is the highest power */
    for (size_t i = 0; i < n_bytes * 8 + 64; i++) {
        const uint64_t next = i < n_bytes * 8 ? data[i / 8] >> (i % 8) & 1 : 0;
        const uint64_t out = rest >> 63;
        rest = rest << 1 | next;
        rest ^= out ? polynomial : 0;
    }
    uint64_t reflected = 0;
    for (int i = 0; i < 64; i++)
        reflected |= (rest >> i & 1) << (63 - i);
    return reflected;
}

static tokmap_i_content_hash hash_of(const void *data, size_t n_bytes)
{
    tokmap_i_content_hash h = {0};
    tokmap_i_content_hash_add(&h, data, n_bytes);
    return h;
}

TEST(the_published_check_values_come_out)
{
    const tokmap_i_content_hash h = hash_of("123456789", 9);
    CHECK_EQ(h.crc[1], 0xe9c6d914c4b8d9ca); /* CRC-64/REDIS */
    /* CRC-64/NVME starts with ones, and inverts the result. */
    uint8_t with_start[17] = {0};
    memcpy(with_start, "123456789", 9);
    for (int i = 0; i < 8; i++)
        with_start[i] ^= 0xff;
    CHECK_EQ(~hash_of(with_start, 9).crc[0], 0xae8b14860a799888);
}

TEST(every_length_and_place_gives_the_remainder)
{
    fill(1);
    for (size_t n = 0; n < 800; n++) {
        const uint8_t *data = bytes + n % 17;
        const tokmap_i_content_hash h = hash_of(data, n);
        CHECK_EQ(h.crc[0], remainder_by_hand(0xad93d23594c93659, data, n));
        CHECK_EQ(h.crc[1], remainder_by_hand(0xad93d23594c935a9, data, n));
        for (int engine = CONTENT_SCALAR; engine <= CONTENT_512; engine++) {
            tokmap_i_content_hash other = {0};
            tokmap_i_content_hash_add_with(&other, data, n, (tokmap_i_content_engine)engine);
            CHECK(memcmp(&h, &other, sizeof h) == 0);
        }
    }
}

TEST(parts_give_the_hash_of_the_whole)
{
    fill(2);
    const tokmap_i_content_hash whole = hash_of(bytes, MOST);
    for (size_t cut = 0; cut <= MOST; cut += cut < 200 ? 1 : 97) {
        tokmap_i_content_hash added = hash_of(bytes, cut), joined = added;
        const tokmap_i_content_hash rest = hash_of(bytes + cut, MOST - cut);
        tokmap_i_content_hash_add(&added, bytes + cut, MOST - cut);
        tokmap_i_content_hash_join(&joined, &rest);
        CHECK(memcmp(&added, &whole, sizeof whole) == 0);
        CHECK(memcmp(&joined, &whole, sizeof whole) == 0);
    }
}

TEST(joining_long_sequences_is_associative)
{
    fill(3);
    tokmap_i_content_hash a = hash_of(bytes, 100), b = hash_of(bytes + 100, 900), c = a;
    b.n_bytes = UINT64_C(1) << 45; /* as if zeros came before it */
    c.n_bytes = (UINT64_C(1) << 61) + 12345;
    tokmap_i_content_hash left = a, right = b;
    tokmap_i_content_hash_join(&left, &b);
    tokmap_i_content_hash_join(&left, &c);
    tokmap_i_content_hash_join(&right, &c);
    tokmap_i_content_hash_join(&a, &right);
    CHECK(memcmp(&left, &a, sizeof a) == 0);
}

TEST(tokens_of_two_bytes_hash_as_those_of_four)
{
    enum {
        N = 10000
    };
    static uint16_t narrow[N];
    static uint32_t wide[N];
    for (size_t i = 0; i < N; i++)
        wide[i] = narrow[i] = (uint16_t)(i * 40503u >> 3);
    for (size_t n = 0; n <= N; n = n * 3 + 1) {
        tokmap_i_content_hash a = {0}, b = {0};
        tokmap_i_content_hash_add_tokens(&a, narrow, n, 2);
        tokmap_i_content_hash_add_tokens(&b, wide, n, 4);
        CHECK(memcmp(&a, &b, sizeof a) == 0);
        CHECK_EQ(a.n_bytes, 4 * n);
    }
}

/* Errors that are likely: a flipped bit, swapped tokens, moved blocks, and zeros. */
TEST(likely_accidents_change_the_hash)
{
    fill(4);
    const tokmap_i_content_hash h = hash_of(bytes, MOST);
    for (size_t i = 0; i < MOST; i++) {
        bytes[i] ^= (uint8_t)(1 << i % 8);
        const tokmap_i_content_hash other = hash_of(bytes, MOST);
        CHECK(other.crc[0] != h.crc[0] && other.crc[1] != h.crc[1]);
        bytes[i] ^= (uint8_t)(1 << i % 8);
    }
    uint8_t moved[MOST];
    for (size_t by = 1; by < MOST; by++) {
        memcpy(moved, bytes + by, MOST - by);
        memcpy(moved + MOST - by, bytes, by);
        const tokmap_i_content_hash other = hash_of(moved, MOST);
        CHECK(other.crc[0] != h.crc[0] && other.crc[1] != h.crc[1]);
    }
    memset(moved, 0, sizeof moved);
    const tokmap_i_content_hash zeros = hash_of(moved, 8), more = hash_of(moved, 16);
    CHECK(memcmp(&zeros, &more, sizeof zeros) != 0);
}
