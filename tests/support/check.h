/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - the little that a test program needs. check.c has its main.
 *
 *     TEST(open_refuses_a_folder)
 *     {
 *         CHECK_INT(tokmap_dataset_open(&ds, check_dir(), &err), TOKMAP_ERR_NOT_A_DATASET);
 *     }
 *
 * `test_x` runs all tests in their order, `test_x NAME...` only these. A
 * failed check ends its test, by longjmp: do not check in threads; in a forked child it ends the
 * child with status 1. Exit status: 0 all passed, 1 some failed, 77 all skipped. */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void check_add_##name(void)                                \
    {                                                                                              \
        check_add(#name, test_##name);                                                             \
    }                                                                                              \
    static void test_##name(void)

#define CHECK(cond) ((cond) ? (void)0 : CHECK_FAIL("%s", #cond))
#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a, (a), (b))   /* unsigned 64 bits */
#define CHECK_INT(a, b) check_int(__FILE__, __LINE__, #a, (a), (b)) /* signed: status, exit code */
#define CHECK_STR(a, b) check_str(__FILE__, __LINE__, #a, (a), (b))
/* Of what returns NULL, or what is wrong. */
#define CHECK_NO_PROBLEM(problem) check_no_problem(__FILE__, __LINE__, (problem))
#define CHECK_SAYS(text, part) check_says(__FILE__, __LINE__, (text), (part))
/* Of a call that has filled a tokmap_error: it works, or fails and says why. */
#define CHECK_OK(status, err) ((status) ? CHECK_FAIL("%s", (err).text) : (void)0)
#define CHECK_REFUSED(status, wanted, err, part)                                                   \
    (CHECK_INT(status, wanted), CHECK_SAYS((err).text, part))
#define CHECK_FAIL(...) check_end('F', __FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...) check_end('s', __FILE__, __LINE__, __VA_ARGS__)

void check_add(const char *name, void (*test)(void));
__attribute__((noreturn, format(printf, 4, 5))) void check_end(char outcome, const char *file,
                                                               int line, const char *format, ...);
void check_eq(const char *file, int line, const char *what, uint64_t a, uint64_t b);
void check_int(const char *file, int line, const char *what, int64_t a, int64_t b);
void check_str(const char *file, int line, const char *what, const char *a, const char *b);
void check_no_problem(const char *file, int line, const char *problem);
void check_says(const char *file, int line, const char *text, const char *part);

/* Runs a part of a test. False: a check in it failed; then the test has failed, but continues. */
bool check_part(void (*part)(void *), void *context);
/* Why the last failed check failed. */
const char *check_why(void);

/* `make test` may write gigabytes, `make test-long` asks for many more random cases; sanitizer
 * builds are slow and map a lot of memory. */
bool check_large(void);
bool check_long(void);
bool check_sanitized(void);
/* make test-aarch64, by qemu. check_sanitized is true, too. */
bool check_emulated(void);
/* Random, and the same in each run: 32 bits, a number below n, one chance in n. */
uint32_t check_bits(void);
uint32_t check_below(uint32_t n);
bool check_one_in(uint32_t n);
/* A number that follows from two others, and looks random. */
uint64_t check_mix(uint64_t a, uint64_t b);
/* A folder for this test only, empty at first, removed afterwards. */
const char *check_dir(void);
/* Removes a folder and all that is in it. */
void check_remove(const char *folder);
/* check_dir()/name. The text is valid for the next 15 calls. */
const char *check_path(const char *name);
