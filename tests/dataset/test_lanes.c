/* SPDX-License-Identifier: Apache-2.0 */
/* test_lanes - lanes: what was put is what is read, of flat and of joined datasets, or an error.
 * The values follow from the numbers of the tokens. */
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/le.h"
#include "dataset/lane.h"
#include "support/check.h"
#include "support/faults.h"
#include "support/joined.h"
#include "support/must.h"

static tokmap_error err;

static const shape SMALL = {.name = "small",
                            .vocab_size = 1000,
                            .n_tokens = 900,
                            .n_documents = 30,
                            .n_inputs = 1,
                            .metadata = "{}"};

/* ---- The model ---- */

static uint8_t value_byte(uint64_t byte)
{
    return (uint8_t)(byte * 31 + byte / 251 + byte / 70000);
}

/* The values of these tokens. */
static uint8_t *make_values(uint64_t first, uint64_t n_tokens, uint32_t width)
{
    uint8_t *values = malloc((size_t)(n_tokens * width) + 1);
    CHECK(values != NULL);
    for (uint64_t i = 0; i < n_tokens * width; i++)
        values[i] = value_byte(first * width + i);
    return values;
}

static tokmap_lane_options lane_options(const char *name, uint32_t count)
{
    return (tokmap_lane_options){.struct_size = sizeof(tokmap_lane_options),
                                 .name = name,
                                 .about = "{\"teacher\": \"T\"}",
                                 .type = TOKMAP_LANE_U8,
                                 .count = count,
                                 .goes_with = TOKMAP_WITH_INPUT,
                                 .replace = 1};
}

static tokmap_lane_writer *begin_lane(const tokmap_dataset *ds, const tokmap_lane_options *o)
{
    tokmap_lane_writer *w;
    CHECK_OK(tokmap_lane_writer_open(&w, ds, o, &err), err);
    return w;
}

static void put_range(tokmap_lane_writer *w, uint64_t first, uint64_t n_tokens, uint64_t shift,
                      uint32_t width)
{
    uint8_t *values = make_values(shift + first, n_tokens, width);
    CHECK_OK(tokmap_lane_writer_put(w, first, values, n_tokens, &err), err);
    free(values);
}

static void finish_lane(tokmap_lane_writer *w)
{
    CHECK_OK(tokmap_lane_writer_finish(w, &err), err);
    tokmap_lane_writer_close(w);
}

/* Writes the lane with one put. shift: the number that token 0 has in the model. */
static void write_lane(const tokmap_dataset *ds, const char *name, uint32_t count, uint64_t shift)
{
    const tokmap_lane_options o = lane_options(name, count);
    tokmap_lane_writer *w = begin_lane(ds, &o);
    put_range(w, 0, must_info(ds).n_tokens, shift, count);
    finish_lane(w);
}

static tokmap_lane *open_lane(const tokmap_dataset *ds, const char *name)
{
    tokmap_lane *lane;
    CHECK_OK(tokmap_lane_open(&lane, ds, name, &err), err);
    return lane;
}

/* Whether these values are those of the model, by read and by the map. */
static bool has_values(const tokmap_lane *lane, uint64_t first, uint64_t n, uint32_t width)
{
    uint8_t *wanted = make_values(first, n, width), *got = calloc((size_t)(n * width) + 1, 1);
    const void *mapped;
    CHECK(got != NULL);
    CHECK_OK(tokmap_lane_read(lane, first, n, got, &err), err);
    bool equal = memcmp(wanted, got, (size_t)(n * width)) == 0;
    const tokmap_status status = tokmap_lane_values(lane, first, n, &mapped);
    CHECK(status == TOKMAP_OK || status == TOKMAP_IN_PIECES);
    if (!status && n > 0)
        equal = equal && memcmp(wanted, mapped, (size_t)(n * width)) == 0;
    free(wanted);
    free(got);
    return equal;
}

static void check_lane(const tokmap_dataset *ds, const char *name, uint32_t width)
{
    const uint64_t n_tokens = must_info(ds).n_tokens;
    tokmap_lane *lane = open_lane(ds, name);
    CHECK_OK(tokmap_lane_verify(lane, NULL, &err), err);
    CHECK(has_values(lane, 0, n_tokens, width));
    for (int i = 0; i < 50; i++) {
        const uint64_t first = check_below((uint32_t)n_tokens + 1);
        CHECK(has_values(lane, first, check_below((uint32_t)(n_tokens - first) + 1), width));
    }
    tokmap_lane_close(lane);
}

static tokmap_dataset *make_dataset(const shape *s, const char *name)
{
    must_store(s, check_path(name));
    return must_open(check_path(name));
}

/* ---- Flat datasets ---- */

TEST(a_lane_has_the_values_that_were_put)
{
    const uint32_t counts[] = {1, 2, 3, 64, 192, 5000, 65536};
    shape s = SMALL;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        tokmap_dataset *ds = make_dataset(&s, "p");
        write_lane(ds, "a", counts[i], 0);
        check_lane(ds, "a", counts[i]);
        tokmap_dataset_close(ds);
    }
}

TEST(info_says_what_the_writer_was_told)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "topk-ids_1", 8, 0);
    tokmap_lane *lane = open_lane(ds, "topk-ids_1");
    tokmap_lane_info info = TOKMAP_INIT(tokmap_lane_info);
    CHECK_INT(tokmap_lane_get_info(lane, &info), TOKMAP_OK);
    CHECK_STR(info.name, "topk-ids_1");
    CHECK_STR(info.path, check_path("p.topk-ids_1.tml"));
    CHECK_STR(info.about, "{\"teacher\": \"T\"}");
    CHECK(info.type == TOKMAP_LANE_U8 && info.goes_with == TOKMAP_WITH_INPUT);
    CHECK(info.count == 8 && info.token_bytes == 8 && info.n_tokens == 900);
    CHECK(info.offset == 8192 && info.hash != 0);
    tokmap_lane_close(lane);
    tokmap_dataset_close(ds);
}

TEST(an_empty_dataset_has_empty_lanes)
{
    tokmap_dataset *ds = make_dataset(&SHAPE_EMPTY, "p");
    write_lane(ds, "a", 4, 0);
    tokmap_lane *lane = open_lane(ds, "a");
    CHECK_OK(tokmap_lane_verify(lane, NULL, &err), err);
    CHECK(has_values(lane, 0, 0, 4));
    CHECK_INT(tokmap_lane_read(lane, 0, 1, &err, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_lane_close(lane);
    tokmap_dataset_close(ds);
}

/* ---- Puts ---- */

enum {
    N_THREADS = 8,
    WIDE = 3000 /* 900 tokens have almost three blocks */
};

static struct {
    tokmap_lane_writer *w;
    uint64_t order[900];
    uint64_t n_left;
    pthread_mutex_t mutex;
    tokmap_status status;
} many;

static void *put_some(void *context)
{
    (void)context;
    for (;;) {
        pthread_mutex_lock(&many.mutex);
        const bool any = many.n_left > 0;
        const uint64_t token = any ? many.order[--many.n_left] : 0;
        pthread_mutex_unlock(&many.mutex);
        if (!any)
            return NULL;
        uint8_t values[WIDE];
        for (uint64_t i = 0; i < WIDE; i++)
            values[i] = value_byte(token * WIDE + i);
        const tokmap_status status = tokmap_lane_writer_put(many.w, token, values, 1, NULL);
        pthread_mutex_lock(&many.mutex);
        many.status = status ? status : many.status;
        pthread_mutex_unlock(&many.mutex);
    }
}

TEST(puts_of_eight_threads_in_any_order_equal_one_put)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    pthread_t threads[N_THREADS];
    const tokmap_lane_options o = lane_options("many", WIDE);
    write_lane(ds, "one", WIDE, 0);
    many.w = begin_lane(ds, &o);
    many.n_left = 900;
    pthread_mutex_init(&many.mutex, NULL);
    for (uint32_t i = 0; i < 900; i++)
        many.order[i] = i;
    for (uint32_t i = 899; i > 0; i--) {
        const uint32_t k = check_below(i + 1);
        const uint64_t token = many.order[i];
        many.order[i] = many.order[k];
        many.order[k] = token;
    }
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, put_some, NULL), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(many.status, TOKMAP_OK);
    finish_lane(many.w);
    CHECK(files_are_equal(check_path("p.one.tml"), check_path("p.many.tml")));
    check_lane(ds, "many", WIDE);
    tokmap_dataset_close(ds);
}

/* Which tokens have values is a bitmap in the test, and extents in the writer. */
TEST(a_token_gets_values_once)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    const tokmap_lane_options o = lane_options("a", 2);
    uint8_t *values = make_values(0, 900, 2);
    for (int round = 0; round < 300; round++) {
        bool has[900] = {false};
        tokmap_lane_writer *w = begin_lane(ds, &o);
        tokmap_status status = TOKMAP_OK;
        for (int i = 0; i < 200 && !status; i++) {
            const uint32_t first = check_below(900);
            const uint32_t n = check_below(900 - first < 12 ? 900 - first + 1 : 12);
            bool is_free = true;
            for (uint32_t t = first; t < first + n; t++)
                is_free = is_free && !has[t];
            if (!is_free && i % 7 != 6)
                continue;
            status = tokmap_lane_writer_put(w, first, values + 2 * (size_t)first, n, &err);
            CHECK_INT(status, is_free ? TOKMAP_OK : TOKMAP_ERR_ARGUMENT);
            for (uint32_t t = first; t < first + n; t++)
                has[t] = true;
        }
        uint32_t n_has = 0;
        for (uint32_t t = 0; t < 900; t++)
            n_has += has[t];
        if (status)
            CHECK_SAYS(err.text, "has its values already");
        CHECK_INT(tokmap_lane_writer_finish(w, &err), TOKMAP_ERR_ARGUMENT);
        CHECK(status || n_has < 900);
        CHECK_SAYS(err.text, status ? "has its values already" : "has no values");
        tokmap_lane_writer_close(w);
        CHECK(!file_is_there(check_path("p.a.tml")));
        CHECK(!file_is_there(check_path("p.a.tml.partial")));
    }
    free(values);
    tokmap_dataset_close(ds);
}

TEST(what_is_left_out_of_a_partial_lane_is_a_hole_of_zeros)
{
    shape s = SMALL;
    s.n_tokens = 40000;
    tokmap_dataset *ds = make_dataset(&s, "p");
    tokmap_lane_options o = lane_options("a", 1000);
    struct stat st;
    o.partial = 1;
    tokmap_lane_writer *w = begin_lane(ds, &o);
    put_range(w, 20000, 10, 0, 1000);
    uint8_t *zeros = calloc(8000, 1000);
    CHECK(zeros != NULL);
    CHECK_OK(tokmap_lane_writer_put(w, 1000, zeros, 8000, &err), err);
    finish_lane(w);
    tokmap_lane *lane = open_lane(ds, "a");
    CHECK_OK(tokmap_lane_verify(lane, NULL, &err), err);
    CHECK(has_values(lane, 20000, 10, 1000));
    CHECK_OK(tokmap_lane_read(lane, 0, 8000, zeros, &err), err);
    for (size_t i = 0; i < 8000000; i++)
        CHECK_EQ(zeros[i], 0);
    free(zeros);
    CHECK_INT(stat(check_path("p.a.tml"), &st), 0);
    CHECK(st.st_size > 40000000 && st.st_blocks * 512 < 4000000);
    tokmap_lane_close(lane);
    tokmap_dataset_close(ds);
}

TEST(what_cannot_be_a_lane_is_refused)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    tokmap_lane_writer *w, *second;
    tokmap_lane_options o = lane_options("a b", 1);
    static char about[3970];
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "'a b' is not the name of a lane");
    o = lane_options("a", 65537);
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "more than 65536 bytes");
    o = lane_options("a", 1);
    o.type = (tokmap_lane_type)12;
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "type is 12");
    o.type = TOKMAP_LANE_F8_E5M2;
    o.goes_with = (tokmap_goes_with)2;
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "goes_with is 2");
    o = lane_options("a", 1);
    memset(about, 'x', sizeof about - 1);
    o.about = about;
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_ARGUMENT, err,
                  "about has 3969 bytes");
    about[3968] = 0;
    w = begin_lane(ds, &o);
    CHECK_REFUSED(tokmap_lane_writer_open(&second, ds, &o, &err), TOKMAP_ERR_LOCKED, err,
                  "another process is writing this file");
    CHECK_REFUSED(tokmap_lane_writer_put(w, 890, about, 11, &err), TOKMAP_ERR_ARGUMENT, err,
                  "11 tokens from token 890");
    tokmap_lane_writer_close(w);
    write_lane(ds, "a", 1, 0);
    o.replace = 0;
    CHECK_REFUSED(tokmap_lane_writer_open(&w, ds, &o, &err), TOKMAP_ERR_EXISTS, err, "exists");
    CHECK(err.reason == TOKMAP_REASON_REPLACEABLE);
    check_lane(ds, "a", 1);
    tokmap_dataset_close(ds);
}

TEST(a_killed_writer_leaves_what_the_next_one_discards)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "a", 4, 7);
    const file_bytes old = file_load(check_path("p.a.tml"));
    const pid_t child = fork();
    if (child == 0) {
        const tokmap_lane_options o = lane_options("a", 4);
        tokmap_lane_writer *w = begin_lane(ds, &o);
        put_range(w, 0, 450, 0, 4);
        kill(getpid(), SIGKILL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(file_is_there(check_path("p.a.tml.partial")));
    CHECK(file_holds(check_path("p.a.tml"), &old));
    write_lane(ds, "a", 4, 0);
    check_lane(ds, "a", 4);
    CHECK(!file_is_there(check_path("p.a.tml.partial")));
    free(old.data);
    tokmap_dataset_close(ds);
}

/* ---- Damage ---- */

/* Opens the lane of `ds` and verifies it; the values are right, or there is an error. */
static tokmap_status try_lane(const tokmap_dataset *ds, const char *name, uint32_t width)
{
    tokmap_lane *lane;
    tokmap_status status = tokmap_lane_open(&lane, ds, name, &err);
    if (!status)
        status = tokmap_lane_verify(lane, NULL, &err);
    CHECK(!status || err.text[0]);
    if (!status)
        CHECK(has_values(lane, 0, must_info(ds).n_tokens, width));
    tokmap_lane_close(lane);
    return status;
}

TEST(every_damaged_byte_is_found)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "a", 2, 0);
    const char *path = check_path("p.a.tml");
    const file_bytes good = file_load(path);
    CHECK_EQ(good.n_bytes, 8192 + 1800);
    for (size_t at = 0; at < good.n_bytes; at++) {
        const uint8_t flip = (uint8_t)(1 + check_below(255));
        good.data[at] ^= flip;
        CHECK(file_store(path, good.data, good.n_bytes));
        if (try_lane(ds, "a", 2) == TOKMAP_OK)
            CHECK_FAIL("byte %zu is changed by %u", at, flip);
        CHECK_SAYS(err.text, path);
        good.data[at] ^= flip;
    }
    for (size_t n = 0; n < good.n_bytes; n += 97) {
        CHECK(file_store(path, good.data, n));
        CHECK(try_lane(ds, "a", 2) != TOKMAP_OK);
    }
    free(good.data);
    tokmap_dataset_close(ds);
}

static void sign(file_bytes *lane)
{
    le_put64(lane->data + 120, tokmap_i_checksum(lane->data, 120));
}

TEST(headers_that_cannot_be_are_refused_although_they_are_signed)
{
    static const struct {
        unsigned at;
        uint32_t value;
        tokmap_status status;
        const char *says;
    } cases[] = {{8, 2, TOKMAP_ERR_VERSION, "a newer format"},
                 {68, 1, TOKMAP_ERR_VERSION, "a newer format"},
                 {116, 1, TOKMAP_ERR_VERSION, "a newer format"},
                 {12, 0, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {12, 12, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {16, 0, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {16, 1, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {16, UINT32_MAX, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {20, 2, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {24, 1, TOKMAP_ERR_MISMATCH, "other tokens"},
                 {64, 3969, TOKMAP_ERR_CORRUPT, "impossible type or sizes"},
                 {64, 3, TOKMAP_ERR_CORRUPT, "'about'"},
                 {56, 3, TOKMAP_ERR_CORRUPT, "do not match their hash"}};
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "a", 2, 0);
    const char *path = check_path("p.a.tml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_bytes lane = file_load(path);
        const uint32_t good = le_get32(lane.data + cases[i].at);
        le_put32(lane.data + cases[i].at, cases[i].value);
        sign(&lane);
        CHECK(file_store(path, lane.data, lane.n_bytes));
        CHECK_REFUSED(try_lane(ds, "a", 2), cases[i].status, err, cases[i].says);
        le_put32(lane.data + cases[i].at, good);
        sign(&lane);
        CHECK(file_store(path, lane.data, lane.n_bytes));
        CHECK_INT(try_lane(ds, "a", 2), TOKMAP_OK);
        free(lane.data);
    }
    tokmap_dataset_close(ds);
}

static void take_damage(void *context, const tokmap_damage *damage)
{
    tokmap_damage *out = context;
    *out = *damage;
}

TEST(verify_names_the_block_that_is_damaged)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "a", WIDE, 0);
    file_bytes lane = file_load(check_path("p.a.tml"));
    lane.data[8192 + (1 << 20) + 5] ^= 1;
    CHECK(file_store(check_path("p.a.tml"), lane.data, lane.n_bytes));
    free(lane.data);
    tokmap_lane *opened = open_lane(ds, "a");
    tokmap_damage damage = {0};
    const tokmap_verify_options o = {
        .struct_size = sizeof o, .n_threads = 3, .context = &damage, .on_damage = take_damage};
    CHECK_REFUSED(tokmap_lane_verify(opened, &o, &err), TOKMAP_ERR_CORRUPT, err,
                  "block 1 (bytes 1056768-2105343) does not match its checksum");
    CHECK(damage.kind == TOKMAP_DAMAGE_BLOCK && damage.block_index == 1);
    CHECK(damage.first_token == 349 && damage.n_tokens == 351);
    tokmap_lane_close(opened);
    tokmap_dataset_close(ds);
}

TEST(a_lane_of_other_tokens_is_refused)
{
    shape other = SMALL;
    other.seed = SMALL.seed + 1;
    tokmap_dataset *ds = make_dataset(&SMALL, "p"), *second = make_dataset(&other, "q");
    tokmap_lane *lane;
    write_lane(ds, "a", 2, 0);
    CHECK_INT(rename(check_path("p.a.tml"), check_path("q.a.tml")), 0);
    CHECK_REFUSED(tokmap_lane_open(&lane, second, "a", &err), TOKMAP_ERR_MISMATCH, err,
                  "values of other tokens");
    CHECK_REFUSED(tokmap_lane_open(&lane, ds, "a", &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no lane 'a'");
    CHECK_REFUSED(tokmap_lane_open(&lane, ds, "../a", &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no lane '../a'");
    tokmap_dataset_close(ds);
    tokmap_dataset_close(second);
}

/* ---- Joined datasets ---- */

/* Writes the datasets cell-0 to cell-3 with lanes "a", and P, which joins them. */
static tokmap_dataset *make_joined(uint32_t width)
{
    const tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 1000, .eod_id = TOKMAP_NO_ID, .replace = 1};
    tokmap_writer *w;
    uint64_t first = 0;
    CHECK_OK(tokmap_writer_open_joined(&w, check_path("P"), &o, &err), err);
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        shape s = SMALL;
        s.n_tokens = 200 + 111 * i;
        s.seed = 5 + i;
        snprintf(name, sizeof name, "cell-%u", i);
        tokmap_dataset *ds = make_dataset(&s, name);
        write_lane(ds, "a", width, first);
        first += s.n_tokens;
        CHECK_OK(tokmap_writer_join(w, ds, NULL, &err), err);
        tokmap_dataset_close(ds);
    }
    must_finish(w);
    return must_open(check_path("P"));
}

TEST(a_joined_dataset_has_the_lanes_of_its_token_files)
{
    for (uint32_t width = 1; width <= 2000; width = width * 7 + 1) {
        tokmap_dataset *ds = make_joined(width);
        check_lane(ds, "a", width);
        tokmap_lane *lane = open_lane(ds, "a");
        tokmap_lane_info info = TOKMAP_INIT(tokmap_lane_info);
        uint64_t hash;
        CHECK_INT(tokmap_lane_get_info(lane, &info), TOKMAP_OK);
        CHECK(!info.path && info.hash == 0 && info.n_tokens == 1466);
        CHECK_OK(tokmap_i_lane_hash(lane, &hash, &err), err);
        CHECK(hash != 0);
        tokmap_lane_close(lane);
        /* A lane over all tokens comes first. */
        write_lane(ds, "a", width, 0);
        check_lane(ds, "a", width);
        CHECK_INT(unlink(check_path("P.a.tml")), 0);
        tokmap_dataset_close(ds);
    }
}

TEST(lanes_of_token_files_are_checked_when_they_are_used)
{
    uint8_t values[1466 * 2];
    tokmap_dataset *ds = make_joined(2);
    const char *path = check_path("cell-2.a.tml"), *aside = check_path("aside");
    tokmap_lane *lane;
    /* it does not exist */
    CHECK_INT(rename(path, aside), 0);
    lane = open_lane(ds, "a");
    CHECK_OK(tokmap_lane_read(lane, 0, 500, values, &err), err);
    CHECK_REFUSED(tokmap_lane_read(lane, 0, 1466, values, &err), TOKMAP_ERR_IO, err, path);
    CHECK_REFUSED(tokmap_lane_verify(lane, NULL, &err), TOKMAP_ERR_IO, err, path);
    CHECK_INT(rename(aside, path), 0);
    CHECK_OK(tokmap_lane_read(lane, 0, 1466, values, &err), err);
    tokmap_lane_close(lane);
    /* it has another type, other tokens, another size */
    shape s = SMALL;
    s.n_tokens = 200 + 111 * 2;
    s.seed = 7;
    tokmap_dataset *cell = must_open(check_path("cell-2"));
    write_lane(cell, "a", 3, 0);
    tokmap_dataset_close(cell);
    lane = open_lane(ds, "a");
    CHECK_REFUSED(tokmap_lane_read(lane, 0, 1466, values, &err), TOKMAP_ERR_MISMATCH, err,
                  "another type, another count");
    tokmap_lane_close(lane);
    s.seed = 77;
    cell = make_dataset(&s, "other");
    write_lane(cell, "a", 2, 0);
    tokmap_dataset_close(cell);
    CHECK_INT(rename(check_path("other.a.tml"), path), 0);
    lane = open_lane(ds, "a");
    CHECK_REFUSED(tokmap_lane_read(lane, 0, 1466, values, &err), TOKMAP_ERR_MISMATCH, err,
                  "values of other tokens");
    CHECK_REFUSED(tokmap_lane_verify(lane, NULL, &err), TOKMAP_ERR_CORRUPT, err,
                  "values of other tokens");
    /* without the index of the cell, only verify finds that */
    CHECK_INT(unlink(check_path("cell-2.tmi")), 0);
    CHECK_OK(tokmap_lane_read(lane, 0, 1466, values, &err), err);
    CHECK_REFUSED(tokmap_lane_verify(lane, NULL, &err), TOKMAP_ERR_CORRUPT, err,
                  "are of other tokens");
    tokmap_lane_close(lane);
    CHECK_INT(truncate(path, 4096), 0);
    lane = open_lane(ds, "a");
    CHECK_REFUSED(tokmap_lane_read(lane, 0, 1466, values, &err), TOKMAP_ERR_CORRUPT, err,
                  "but its header states");
    tokmap_lane_close(lane);
    CHECK_INT(unlink(check_path("cell-0.a.tml")), 0);
    CHECK_REFUSED(tokmap_lane_open(&lane, ds, "a", &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no lane 'a'");
    tokmap_dataset_close(ds);
}

TEST(two_token_files_with_one_lane_file_are_refused)
{
    const joined_part parts[] = {{"x.bin", 300, 0}, {"y.bin", 200, 0}, {"x.npy", 400, 0}};
    shape s = SMALL;
    s.n_tokens = 300;
    must_store(&SMALL, check_path("flat"));
    joined_store(check_path("flat"), check_path("P"), parts, 3);
    tokmap_dataset *ds = must_open(check_path("P")), *other = make_dataset(&s, "other");
    tokmap_lane *lane;
    write_lane(other, "a", 2, 0);
    CHECK_INT(rename(check_path("other.a.tml"), check_path("x.a.tml")), 0);
    tokmap_dataset_close(other);
    CHECK_REFUSED(tokmap_lane_open(&lane, ds, "a", &err), TOKMAP_ERR_MISMATCH, err,
                  "would be the lane of both");
    write_lane(ds, "a", 2, 0);
    check_lane(ds, "a", 2);
    tokmap_dataset_close(ds);
}

TEST(neither_the_process_nor_a_child_has_to_stay)
{
    char cwd[4096];
    uint8_t values[1466 * 2];
    tokmap_dataset *ds = make_joined(2);
    CHECK(getcwd(cwd, sizeof cwd) && chdir(check_dir()) == 0);
    tokmap_dataset *here = must_open("P");
    tokmap_lane *lane = open_lane(here, "a");
    CHECK_INT(chdir("/"), 0);
    CHECK_OK(tokmap_lane_read(lane, 0, 700, values, &err), err);
    const pid_t child = fork();
    if (child == 0)
        _exit(tokmap_lane_read(lane, 0, 1466, values, NULL) != TOKMAP_OK);
    must_end(child);
    CHECK(has_values(lane, 0, 1466, 2));
    CHECK_INT(chdir(cwd), 0);
    tokmap_lane_close(lane);
    tokmap_dataset_close(here);
    tokmap_dataset_close(ds);
}

/* ---- Redacting ---- */

static const uint64_t deleted[] = {0, 3, 4, 17, 29};
#define N_DELETED (sizeof deleted / sizeof *deleted)

static void redact(const tokmap_dataset *ds, const char *prefix, bool joined)
{
    const tokmap_writer_options o = {.struct_size = sizeof o,
                                     .vocab_size = must_info(ds).vocab_size,
                                     .eod_id = TOKMAP_NO_ID,
                                     .replace = 1};
    tokmap_redact_info info = TOKMAP_INIT(tokmap_redact_info);
    tokmap_writer *w;
    CHECK_OK(joined ? tokmap_writer_open_joined(&w, prefix, &o, &err)
                    : tokmap_writer_open(&w, prefix, &o, &err),
             err);
    CHECK_OK(tokmap_writer_redact(w, ds, deleted, N_DELETED, &info, &err), err);
    must_finish(w);
}

/* The lane has zeros for all tokens of deleted documents, and else the values of the model. */
static void check_redacted(const tokmap_dataset *ds, uint32_t width)
{
    tokmap_lane *lane = open_lane(ds, "a");
    const uint64_t n_tokens = must_info(ds).n_tokens;
    uint8_t *values = make_values(0, n_tokens, width), *got = malloc((size_t)n_tokens * width);
    CHECK(got != NULL);
    for (size_t i = 0; i < N_DELETED; i++) {
        tokmap_document d;
        CHECK_INT(tokmap_dataset_document(ds, deleted[i], &d), TOKMAP_OK);
        memset(values + d.first_token * width, 0, (size_t)d.n_tokens * width);
    }
    CHECK_OK(tokmap_lane_verify(lane, NULL, &err), err);
    CHECK_OK(tokmap_lane_read(lane, 0, n_tokens, got, &err), err);
    CHECK(memcmp(values, got, (size_t)n_tokens * width) == 0);
    free(values);
    free(got);
    tokmap_lane_close(lane);
}

TEST(a_redacted_lane_has_zeros_for_deleted_documents)
{
    for (uint32_t width = 1; width < 5000; width = width * 5 + 2) {
        tokmap_dataset *ds = make_dataset(&SMALL, "p");
        write_lane(ds, "a", width, 0);
        tokmap_lane *lane = open_lane(ds, "a");
        redact(ds, check_path("q"), false);
        tokmap_dataset *q = must_open(check_path("q"));
        CHECK_OK(tokmap_lane_redact(lane, q, deleted, N_DELETED, &err), err);
        check_redacted(q, width);
        check_lane(ds, "a", width);
        tokmap_dataset_close(q);
        /* in place */
        redact(ds, check_path("p"), false);
        q = must_open(check_path("p"));
        CHECK_INT(try_lane(q, "a", width), TOKMAP_ERR_MISMATCH);
        CHECK_OK(tokmap_lane_redact(lane, q, deleted, N_DELETED, &err), err);
        check_redacted(q, width);
        tokmap_lane_close(lane);
        tokmap_dataset_close(q);
        tokmap_dataset_close(ds);
    }
}

TEST(only_token_files_with_deleted_documents_get_new_lanes)
{
    for (uint32_t width = 1; width < 5000; width = width * 6 + 1) {
        tokmap_dataset *ds = make_joined(width);
        tokmap_lane *lane = open_lane(ds, "a");
        redact(ds, check_path("Q"), true);
        tokmap_dataset *q = must_open(check_path("Q"));
        const file_bytes second = file_load(check_path("cell-1.a.tml"));
        CHECK_OK(tokmap_lane_redact(lane, q, deleted, N_DELETED, &err), err);
        check_redacted(q, width);
        check_lane(ds, "a", width);
        CHECK(file_holds(check_path("cell-1.a.tml"), &second));
        free(second.data);
        tokmap_dataset_close(q);
        tokmap_lane_close(lane);
        tokmap_dataset_close(ds);
    }
}

TEST(a_lane_that_is_damaged_where_it_is_redacted_is_refused)
{
    tokmap_dataset *ds = make_dataset(&SMALL, "p");
    write_lane(ds, "a", 3, 0);
    file_bytes bytes = file_load(check_path("p.a.tml"));
    bytes.data[bytes.n_bytes - 1] ^= 1;
    CHECK(file_store(check_path("p.a.tml"), bytes.data, bytes.n_bytes));
    free(bytes.data);
    tokmap_lane *lane = open_lane(ds, "a");
    redact(ds, check_path("q"), false);
    tokmap_dataset *q = must_open(check_path("q"));
    CHECK_REFUSED(tokmap_lane_redact(lane, q, deleted, N_DELETED, &err), TOKMAP_ERR_CORRUPT, err,
                  "does not match its checksum");
    CHECK_REFUSED(tokmap_lane_redact(lane, q, (uint64_t[]){5, 5}, 2, &err), TOKMAP_ERR_ARGUMENT,
                  err, "must ascend");
    CHECK_REFUSED(tokmap_lane_redact(lane, q, (uint64_t[]){30}, 1, &err), TOKMAP_ERR_ARGUMENT, err,
                  "documents[0] is 30: must ascend, below 30");
    CHECK(!file_is_there(check_path("q.a.tml")) && !file_is_there(check_path("q.a.tml.partial")));
    tokmap_dataset_close(q);
    tokmap_lane_close(lane);
    tokmap_dataset_close(ds);
}

/* ---- Faults ---- */

static void use_everything(const tokmap_dataset *ds, const tokmap_dataset *redacted)
{
    const tokmap_lane_options o = lane_options("b", 2);
    uint8_t values[1466 * 2];
    tokmap_lane_writer *w;
    tokmap_lane *lane;
    memset(values, 1, sizeof values);
    tokmap_status status = tokmap_lane_open(&lane, ds, "a", &err);
    CHECK_INT(status, err.status);
    if (!status) {
        status = tokmap_lane_read(lane, 0, 1466, values, &err);
        CHECK_INT(status, err.status);
        for (uint64_t i = 0; i < sizeof values && !status; i++)
            CHECK_EQ(values[i], value_byte(i));
        status = tokmap_lane_verify(
            lane,
            &(tokmap_verify_options){.struct_size = sizeof(tokmap_verify_options), .n_threads = 1},
            &err);
        CHECK_INT(status, err.status);
        status = tokmap_lane_redact(lane, redacted, deleted, N_DELETED, &err);
        CHECK_INT(status, err.status);
    }
    tokmap_lane_close(lane);
    status = tokmap_lane_writer_open(&w, ds, &o, &err);
    CHECK_INT(status, err.status);
    if (!status)
        status = tokmap_lane_writer_put(w, 700, values, 766, &err);
    if (!status)
        status = tokmap_lane_writer_put(w, 0, values, 700, &err);
    if (!status)
        status = tokmap_lane_writer_finish(w, &err);
    CHECK_INT(status, err.status);
    tokmap_lane_writer_close(w);
    CHECK(status == TOKMAP_OK || err.text[0]);
}

TEST(each_call_that_fails_is_an_error_and_nothing_is_kept)
{
    tokmap_dataset *ds = make_joined(2);
    redact(ds, check_path("Q"), true);
    tokmap_dataset *q = must_open(check_path("Q"));
    static const struct {
        unsigned calls;
        int errno_value;
    } sweeps[] = {{FAULT_ALL_FILE_CALLS, EIO}, {FAULT_MMAP, ENOMEM}, {FAULT_MEMORY, 0}};
    use_everything(ds, q);
    const unsigned n_before = n_open_files();
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps - !FAULT_MEMORY_WORKS; i++) {
        uint64_t n = 0;
        for (bool struck = true; struck; n++) {
            fault_arm(FAULT_ONCE, sweeps[i].calls, sweeps[i].errno_value, n + 1);
            use_everything(ds, q);
            struck = fault_disarm();
            CHECK_EQ(n_open_files(), n_before);
        }
        CHECK(n > 1);
    }
    CHECK_EQ(n_mapped_files(".tml"), 0);
    check_redacted(q, 2);
    tokmap_dataset_close(q);
    tokmap_dataset_close(ds);
}
