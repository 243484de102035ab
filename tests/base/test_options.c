/* SPDX-License-Identifier: Apache-2.0 */
/* test_options - one rule for the options of every call: what this library does not know, behind
 * the struct that it knows, must be 0. */

#include "support/check.h"
#include "support/must.h"
#include "tokmap_stage.h"
#include "tokmap_tokenizer.h"
#include "tokmap_writer.h"

enum {
    MORE = 24 /* bytes that a newer header might have */
};

/* Each call with nothing but its options: whatever else is wrong comes after them. */
static tokmap_status open_writer(const void *options, tokmap_error *err)
{
    tokmap_writer *w;
    return tokmap_writer_open(&w, check_path("p"), options, err);
}

static tokmap_status adopt(const void *options, tokmap_error *err)
{
    tokmap_writer *w;
    return tokmap_writer_adopt(&w, check_path("p.bin"), options, err);
}

static tokmap_status open_loader(const void *options, tokmap_error *err)
{
    tokmap_loader *l;
    return tokmap_loader_open(&l, options, err);
}

static tokmap_status open_stage(const void *options, tokmap_error *err)
{
    tokmap_stage *s;
    return tokmap_stage_open(&s, options, err);
}

static tokmap_status gather(const void *options, tokmap_error *err)
{
    const tokmap_batch b = {.struct_size = sizeof b};
    return tokmap_batch_gather(&b, options, err);
}

static tokmap_dataset *ds;

static tokmap_status verify(const void *options, tokmap_error *err)
{
    return tokmap_dataset_verify(ds, options, NULL, err);
}

static tokmap_status write_rows(const void *options, tokmap_error *err)
{
    return tokmap_rows_write(ds, options, NULL, err);
}

static tokmap_status open_view(const void *options, tokmap_error *err)
{
    tokmap_view *v;
    return tokmap_view_open(&v, ds, options, err);
}

static tokmap_status write_view(const void *options, tokmap_error *err)
{
    return tokmap_view_write(ds, options, NULL, err);
}

static tokmap_status add_column(const void *options, tokmap_error *err)
{
    tokmap_column_writer *w;
    return tokmap_column_writer_open(&w, ds, options, err);
}

typedef struct call {
    const char *name;
    size_t n_bytes;
    tokmap_status (*run)(const void *options, tokmap_error *err);
} call;

static const call calls[] = {
    {"tokmap_writer_options", sizeof(tokmap_writer_options), open_writer},
    {"tokmap_adopt_options", sizeof(tokmap_adopt_options), adopt},
    {"tokmap_loader_options", sizeof(tokmap_loader_options), open_loader},
    {"tokmap_gather_options", sizeof(tokmap_gather_options), gather},
    {"tokmap_stage_options", sizeof(tokmap_stage_options), open_stage},
    {"tokmap_verify_options", sizeof(tokmap_verify_options), verify},
    {"tokmap_rows_options", sizeof(tokmap_rows_options), write_rows},
    {"tokmap_view_options of open", sizeof(tokmap_view_options), open_view},
    {"tokmap_view_options of write", sizeof(tokmap_view_options), write_view},
    {"tokmap_column_options", sizeof(tokmap_column_options), add_column},
};

/* Whether the options are refused for this reason; NULL: for none that concerns them as a whole. */
static void expect(const call *c, const uint8_t *options, const char *why)
{
    static const char *const reasons[] = {"struct_size", "does not know"};
    tokmap_error err = {0};
    const tokmap_status status = c->run(options, &err);
    if (why && (status != TOKMAP_ERR_ARGUMENT || !strstr(err.text, why)))
        CHECK_FAIL("%s: %d, '%s' does not say '%s'", c->name, (int)status, err.text, why);
    for (int i = 0; i < 2 && !why; i++)
        if (strstr(err.text, reasons[i]))
            CHECK_FAIL("%s: %s", c->name, err.text);
}

static void set_size(uint8_t *options, size_t n_bytes)
{
    memcpy(options, &n_bytes, sizeof n_bytes);
}

static void check_call(const call *c)
{
    uint8_t *options = calloc(1, c->n_bytes + MORE); /* no byte more, for AddressSanitizer */
    expect(c, NULL, c->run == verify ? NULL : "NULL");
    expect(c, options, "struct_size");
    set_size(options, 8);
    expect(c, options, "struct_size");
    set_size(options, SIZE_MAX);
    expect(c, options, "struct_size");
    set_size(options, c->n_bytes + MORE);
    expect(c, options, NULL);
    for (size_t i = 0; i < MORE; i++) {
        options[c->n_bytes + i] = 1;
        expect(c, options, "does not know");
        options[c->n_bytes + i] = 0;
    }
    set_size(options, c->n_bytes);
    options[c->n_bytes] = 1; /* is not the caller's */
    expect(c, options, NULL);
    free(options);
}

TEST(what_this_library_does_not_know_is_refused_and_not_ignored)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w = must_begin(check_path("ds"), &options);
    must_finish(w);
    ds = must_open(check_path("ds"));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        check_call(&calls[i]);
    tokmap_dataset_close(ds);
}

/* Padding after the last field would be a field that is not checked. */
TEST(no_options_end_with_padding)
{
#define ENDS_AT(type, last) (offsetof(type, last) + sizeof((type *)0)->last)
    CHECK_EQ(ENDS_AT(tokmap_writer_options, on_progress), sizeof(tokmap_writer_options));
    CHECK_EQ(ENDS_AT(tokmap_adopt_options, replace), sizeof(tokmap_adopt_options));
    CHECK_EQ(ENDS_AT(tokmap_loader_options, n_lanes), sizeof(tokmap_loader_options));
    CHECK_EQ(ENDS_AT(tokmap_rows_options, view), sizeof(tokmap_rows_options));
    CHECK_EQ(ENDS_AT(tokmap_gather_options, loader), sizeof(tokmap_gather_options));
    CHECK_EQ(ENDS_AT(tokmap_stage_options, edit), sizeof(tokmap_stage_options));
    CHECK_EQ(ENDS_AT(tokmap_verify_options, n_segments), sizeof(tokmap_verify_options));
    CHECK_EQ(ENDS_AT(tokmap_view_options, on_progress), sizeof(tokmap_view_options));
    CHECK_EQ(ENDS_AT(tokmap_column_options, reserved), sizeof(tokmap_column_options));
    CHECK_EQ(ENDS_AT(tokmap_encode_options, token_offsets), sizeof(tokmap_encode_options));
}
