/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "pack/segments.h"
#include "pack/spill.h"
#include "system/platform.h"
#include "system/platform_thread.h"
#include "system/work_thread.h"

enum {
    MOST_READERS = 64,
    MOST_SEGMENTS = 1024, /* segments that are begun, and not yet handed out */
    MOST_UNUSED = 64      /* jobs, and buffers for text, that are kept for their next use */
};
/* An encoder that has waited so long for text looks whether readers can be added. */
#define PATIENCE_NS UINT64_C(2000000)
/* The use of the processors is measured over at least so much time. */
#define MEASURE_NS UINT64_C(20000000)
/* Memory for an input that is not compressed: blocks that are read ahead, and a window. */
#define MEMORY_OF_INPUT ((uint64_t)3 << 19)

typedef struct read_segment {
    pack_reports *reports; /* of the current read; first, because callbacks get its address */
    pack_pipeline *pipeline;
    pack_segment what;
    struct read_segment *next;
    corpus *corpus;          /* while it is read */
    pack_job *first, *last;  /* its jobs that were not handed out */
    pack_job *unread;        /* the first one that no encoder has */
    uint64_t encoded;        /* memory of its encoded jobs */
    tokmap_i_condition room; /* its reader waits for this: */
    bool waits;
    uint64_t wanted;   /* memory for inputs; 0: room for a job */
    uint64_t reserved; /* memory for inputs that it has */
    bool at_end, failed_within;
    int status;
    failure error; /* comes after its jobs */
} read_segment;

struct pack_pipeline {
    pack_pipeline_options options;
    const pack_inputs *inputs;
    pack_spill *spill;   /* for jobs that are ahead; NULL: there is none */
    uint64_t spill_from; /* how much memory jobs may take before some are moved to it */
    uint64_t most;       /* memory for jobs, and as much for inputs */
    size_t batch_bytes;  /* of text in a job */
    size_t usual;        /* memory of a job: the text, and its tokens as the largest were */
    tokmap_i_thread readers[MOST_READERS], *encoders;
    unsigned n_readers, most_readers, n_encoders;
    /* Before the segment with the turn, and after the last job. Only the caller uses them; before
     * the inputs from which this run begins all is 0. */
    corpus_place before, after;
    size_t text_capacity;
    size_t most_unused;
    uint32_t n_processors;

    tokmap_i_mutex lock;
    tokmap_i_condition text;  /* encoders wait for it, */
    tokmap_i_condition ids;   /* the caller for this one, */
    tokmap_i_condition ended; /* and readers that want a segment for this one */
    read_segment *turn, *newest;
    size_t n_segments; /* from `turn` on */
    size_t n_open;     /* segments that are not read to their end */
    pack_divider divider;
    bool cuts;          /* a reader finds out where the next part of a file begins */
    size_t n_jobs;      /* all other jobs with documents, also `out` */
    size_t n_unread;    /* jobs among them that no encoder has taken */
    uint64_t of_jobs;   /* memory of all jobs, */
    uint64_t of_filled; /* and of those that readers fill: what was `usual` when they began */
    uint64_t of_inputs; /* memory */
    pack_job *out;      /* the caller has it */
    pack_job *unused;   /* empty jobs */
    uint8_t *texts[MOST_UNUSED];
    size_t n_unused, n_texts;
    uint64_t looked_ns, used_ns; /* the last look at the use of the processors, and what it was */
    size_t waited_for;           /* the largest job, if threads wait because of it */
    size_t largest;              /* of those that another document waited for */
    uint64_t most_encoded;       /* memory of the encoded jobs of a segment */
    uint32_t n_waiting_ahead;    /* readers without the turn that wait for room for a job */
    pack_use use;                /* but CPU time, and bytes */
    bool looks;                  /* an encoder waits to look whether readers can be added */
    bool stop;
    bool no_memory; /* a thread ran out of memory */
};

/* ---- Room ---- */

/* Whether all segments before this one were read to their end. */
static bool is_oldest(const pack_pipeline *p, const read_segment *s)
{
    const read_segment *before = p->turn;
    while (before != s && before->at_end)
        before = before->next;
    return before == s;
}

/* Whether the reader of the segment need not wait. Call with the lock held. */
static bool may_go(const pack_pipeline *p, const read_segment *s)
{
    const bool has_turn = s == p->turn;
    const uint64_t room = has_turn ? p->most : p->most - p->most / 8;
    if (p->stop || (has_turn && !s->wanted && !s->first && !p->out))
        return true;
    return s->wanted ? p->of_inputs + s->wanted <= p->most || is_oldest(p, s)
                     : p->of_jobs + p->usual <= room && p->n_unread < 6 * p->n_encoders + 6;
}

/* Wakes the readers that may go on: that of the turn, and others as far as there is room. */
static void wake_readers(pack_pipeline *p)
{
    uint64_t n_left = p->most > p->of_jobs ? 1 + (p->most - p->of_jobs) / p->usual : 1;
    for (read_segment *s = p->turn; s && n_left > 0; s = s->next)
        if (s->waits && may_go(p, s)) {
            tokmap_i_condition_signal(&s->room);
            n_left -= !p->stop;
        }
}

/* Notes the largest job, if there are too few to keep all threads busy. */
static void note_largest(pack_pipeline *p)
{
    if (p->n_jobs > p->n_encoders)
        return;
    if (p->out)
        p->waited_for = MAX(p->waited_for, p->out->memory);
    for (const read_segment *s = p->turn; s; s = s->next)
        for (const pack_job *job = s->first; job; job = job->next)
            p->waited_for = MAX(p->waited_for,
                                job->is_done ? job->memory : 2 * job->memory); /* tokens follow */
}

/* Waits for memory for inputs, or with 0 for room for a job. False: the reader must end. Call with
 * the lock held. */
static bool wait_for_room(pack_pipeline *p, read_segment *s, uint64_t wanted)
{
    s->wanted = wanted;
    s->waits = true;
    while (!may_go(p, s)) {
        const bool is_ahead = !wanted && s != p->turn;
        if (!wanted && s == p->turn)
            note_largest(p);
        p->n_waiting_ahead += is_ahead;
        const uint64_t begun = tokmap_i_now_ns();
        tokmap_i_condition_wait(&s->room, &p->lock);
        p->use.reading -= tokmap_i_now_ns() - begun;
        p->n_waiting_ahead -= is_ahead;
    }
    s->waits = false;
    return !p->stop;
}

/* Takes memory for inputs, until the segment has so much. */
static bool take_memory(read_segment *s, uint64_t n_bytes)
{
    pack_pipeline *p = s->pipeline;
    bool ok = true;
    tokmap_i_mutex_lock(&p->lock);
    if (n_bytes > s->reserved)
        ok = wait_for_room(p, s, n_bytes - s->reserved);
    p->of_inputs += n_bytes - s->reserved;
    s->reserved = n_bytes;
    wake_readers(p); /* it may have become less */
    tokmap_i_mutex_unlock(&p->lock);
    return ok;
}

static bool reserve(void *context, uint64_t n_bytes)
{
    read_segment *s = context;
    const uint64_t least = s->what.in_turn ? s->pipeline->most : 0;
    return take_memory(s, MAX(MEMORY_OF_INPUT + n_bytes, least));
}

/* ---- Readers ---- */

static pack_job *take_unused(pack_pipeline *p)
{
    pack_job *job = p->unused;
    if (job) {
        p->unused = job->next;
        p->n_unused--;
    } else {
        job = calloc(1, sizeof *job);
    }
    if (job && !job->batch.text && p->n_texts > 0) {
        job->batch.text = p->texts[--p->n_texts];
        job->batch.capacity = p->text_capacity;
    }
    return job;
}

/* Keeps an empty job for the next read. */
static void give_job_back(pack_pipeline *p, pack_job *job)
{
    if (p->n_unused == p->most_unused) {
        pack_job_free(job);
        free(job);
        return;
    }
    job->next = p->unused;
    p->unused = job;
    p->n_unused++;
}

/* Waits for room, and takes it. NULL: the reader must end. */
static pack_job *take_room(pack_pipeline *p, read_segment *s)
{
    tokmap_i_mutex_lock(&p->lock);
    pack_job *job = wait_for_room(p, s, 0) ? take_unused(p) : NULL;
    if (job) {
        job->next = NULL;
        job->is_done = false;
        job->memory = p->usual;
        p->of_jobs += job->memory;
        p->of_filled += job->memory;
    } else {
        s->corpus = NULL;
        p->no_memory |= !p->stop;
        tokmap_i_condition_signal(&p->ids);
    }
    tokmap_i_mutex_unlock(&p->lock);
    return job;
}

/* Adds a job to its segment. Call with the lock held. */
static void add_job(pack_pipeline *p, read_segment *s, pack_job *job)
{
    job->memory = pack_job_memory(job);
    p->of_jobs += job->memory;
    p->n_jobs++;
    p->n_unread++;
    if (s->last)
        s->last->next = job;
    if (!s->first)
        s->first = job;
    if (!s->unread)
        s->unread = job;
    s->last = job;
    if (job->batch.n_bytes > 0)
        p->largest = MAX(p->largest, p->waited_for);
    tokmap_i_condition_signal(&p->text);
}

static void end_segment(pack_pipeline *p, read_segment *s, int status, const failure *err)
{
    s->corpus = NULL;
    s->at_end = true;
    s->status = status;
    s->error = *err;
    p->of_inputs -= s->reserved;
    s->reserved = 0;
    p->n_open--;
    wake_readers(p);
    tokmap_i_condition_broadcast(&p->text);
    tokmap_i_condition_signal(&p->ids);
}

/* Reads a job of the segment. False: there are no more. */
static bool read_job(pack_pipeline *p, read_segment *s, corpus *c)
{
    failure err = {.text = ""};
    pack_job *job = take_room(p, s);
    if (!job)
        return false;
    s->reports = &job->reports;
    s->reports->n_bytes = s->reports->n_items = s->reports->n_moments = 0;
    s->reports->no_memory = false;
    const int status = corpus_read(c, &job->batch, &err);
    tokmap_i_mutex_lock(&p->lock);
    p->of_jobs -= job->memory;
    p->of_filled -= job->memory;
    if (status == 1) {
        add_job(p, s, job);
    } else {
        s->failed_within = corpus_failed_within(c);
        end_segment(p, s, status, &err);
        give_job_back(p, job);
    }
    tokmap_i_mutex_unlock(&p->lock);
    return status == 1;
}

static void read_all(pack_pipeline *p, read_segment *s)
{
    const uint64_t begun = tokmap_i_now_ns();
    failure err = {.text = ""};
    corpus_options options = pack_segment_options(&s->what, p->inputs, p->options.corpus);
    corpus_place from = {.input = UINT64_MAX};
    options.reader.context = s;
    options.reserve = reserve;
    if (p->options.from)
        from = *p->options.from;
    const bool resumes = from.input == s->what.first && !pack_segment_continues(&s->what);
    from.input = 0;
    if (!take_memory(s, s->what.in_turn ? p->most : MEMORY_OF_INPUT))
        return;
    corpus *c = corpus_open(p->inputs->names + s->what.first, s->what.n, &options,
                            resumes ? &from : NULL, &err);
    tokmap_i_mutex_lock(&p->lock);
    s->corpus = c;
    if (!c)
        end_segment(p, s, -1, &err);
    tokmap_i_mutex_unlock(&p->lock);
    while (c && read_job(p, s, c)) {
    }
    corpus_close(c); /* s may be gone */
    tokmap_i_mutex_lock(&p->lock);
    p->use.reading += tokmap_i_now_ns() - begun;
    tokmap_i_mutex_unlock(&p->lock);
}

/* Takes the next segment. Call with the lock held; it is released while the file is read. */
static void take_next(pack_pipeline *p, pack_segment *what)
{
    *what = pack_divider_look(&p->divider);
    if (pack_divider_may_cut(&p->divider, what)) {
        p->cuts = true;
        tokmap_i_mutex_unlock(&p->lock);
        pack_divider_cut(&p->divider, what);
        tokmap_i_mutex_lock(&p->lock);
        p->cuts = false;
        tokmap_i_condition_broadcast(&p->ended);
    }
    pack_divider_take(&p->divider, what);
}

/* Begins the next segment. NULL: there is none. */
static read_segment *take_segment(pack_pipeline *p)
{
    read_segment *s = calloc(1, sizeof *s);
    tokmap_i_mutex_lock(&p->lock);
    while (!p->stop && !pack_divider_is_over(&p->divider) &&
           (p->n_segments == MOST_SEGMENTS || p->cuts))
        tokmap_i_condition_wait(&p->ended, &p->lock);
    const bool is_wanted = !p->stop && !pack_divider_is_over(&p->divider);
    if (s && is_wanted) {
        tokmap_i_condition_init(&s->room);
        s->pipeline = p;
        take_next(p, &s->what);
        p->n_segments++;
        p->n_open++;
        if (p->newest)
            p->newest->next = s;
        p->newest = s;
        if (!p->turn)
            p->turn = s;
    } else if (is_wanted) {
        p->no_memory = true;
        tokmap_i_condition_signal(&p->ids);
    }
    tokmap_i_mutex_unlock(&p->lock);
    if (is_wanted)
        return s;
    free(s);
    return NULL;
}

static void *run_reader(void *arg)
{
    pack_pipeline *p = arg;
    read_segment *s;
    work_thread_begin(WORK_READ);
    while ((s = take_segment(p)) != NULL)
        read_all(p, s);
    work_thread_end(WORK_READ);
    return NULL;
}

static bool start_reader(pack_pipeline *p)
{
    const bool started = tokmap_i_thread_start(&p->readers[p->n_readers], run_reader, p) == 0;
    p->n_readers += started;
    return started;
}

/* How many processors the process has left unused since the last call; 0: it is not known. */
static double n_unused_processors(pack_pipeline *p)
{
    const uint64_t now = tokmap_i_now_ns(), used = tokmap_i_cpu_ns();
    if (now - p->looked_ns < MEASURE_NS)
        return 0;
    const double n_used = (double)(used - p->used_ns) / (double)(now - p->looked_ns);
    p->looked_ns = now;
    p->used_ns = used;
    return p->n_processors - n_used;
}

/* Adds readers, if they would have something to do, memory, and processors. Call with the lock
 * held. */
static void add_readers(pack_pipeline *p)
{
    if (p->of_jobs - p->of_filled >= p->most / 2 || pack_divider_is_over(&p->divider) ||
        p->n_readers >= p->most_readers || p->n_segments == MOST_SEGMENTS ||
        pack_divider_look(&p->divider).in_turn)
        return;
    const double n_unused = n_unused_processors(p);
    unsigned n_wanted = n_unused > 0.5 ? (unsigned)(n_unused + 0.5) : 0;
    n_wanted = MIN(n_wanted, MIN(p->n_readers, p->most_readers - p->n_readers));
    for (; n_wanted > 0 && p->most_readers > p->n_readers; n_wanted--)
        if (!start_reader(p))
            p->most_readers = p->n_readers;
}

/* ---- Encoders ---- */

/* Takes the first job that no encoder has, of the oldest segment. */
static pack_job *take_unread(pack_pipeline *p, read_segment **from)
{
    read_segment *s = p->turn;
    while (s && !s->unread)
        s = s->next;
    *from = s;
    if (!s)
        return NULL;
    pack_job *job = s->unread;
    s->unread = job->next;
    p->n_unread--;
    return job;
}

/* One encoder that waits looks whether readers can be added. Call with the lock held. */
static void wait_for_text(pack_pipeline *p)
{
    const uint64_t begun = tokmap_i_now_ns();
    if (p->looks || pack_divider_is_over(&p->divider) || p->n_readers >= p->most_readers) {
        tokmap_i_condition_wait(&p->text, &p->lock);
    } else {
        p->looks = true;
        if (!tokmap_i_condition_wait_until(&p->text, &p->lock, begun + PATIENCE_NS))
            add_readers(p);
        p->looks = false;
    }
    p->use.encoders_waited += tokmap_i_now_ns() - begun;
}

/* Waits for the next job to encode, and returns its segment. NULL: there are no more. */
static pack_job *take_text(pack_pipeline *p, read_segment **from)
{
    pack_job *job = NULL;
    tokmap_i_mutex_lock(&p->lock);
    while (!p->stop && !(job = take_unread(p, from)) &&
           (p->n_open > 0 || !pack_divider_is_over(&p->divider)))
        wait_for_text(p);
    if (job && !p->looks) /* another one that waits is to look */
        tokmap_i_condition_signal(&p->text);
    tokmap_i_mutex_unlock(&p->lock);
    return job;
}

/* Gives the text back, unless it is needed to say why a document is left out. */
static void give_text_back(pack_pipeline *p, pack_job *job)
{
    corpus_batch *b = &job->batch;
    if (job->n_specials > 0)
        return;
    if (b->capacity == p->text_capacity && p->n_texts < p->most_unused)
        p->texts[p->n_texts++] = b->text;
    else
        free(b->text);
    b->text = NULL;
    b->capacity = 0;
}

static void count_memory(pack_pipeline *p, pack_job *job)
{
    p->of_jobs -= job->memory;
    job->memory = pack_job_memory(job);
    p->of_jobs += job->memory;
}

/* Moves the job to the file if it is ahead and memory is short. Call with the lock held; it is
 * released while the file is written. */
static void spill(pack_pipeline *p, const read_segment *s, pack_job *job)
{
    if (!p->spill || s == p->turn || p->of_jobs < p->spill_from || job->n_specials > 0)
        return;
    tokmap_i_mutex_unlock(&p->lock);
    pack_spill_put(p->spill, job);
    tokmap_i_mutex_lock(&p->lock);
    count_memory(p, job);
}

static void encode_all(pack_pipeline *p, encoder *e)
{
    pack_job *job;
    read_segment *from;
    pack_marks marks = {p->options.parts};
    bool ok = true;
    while (ok && (job = take_text(p, &from)) != NULL) {
        ok = pack_job_encode(job, &marks, e);
        tokmap_i_mutex_lock(&p->lock);
        give_text_back(p, job);
        count_memory(p, job);
        p->usual = MAX(p->usual, p->batch_bytes + MIN(job->memory, 2 * p->batch_bytes));
        from->encoded += job->memory;
        p->most_encoded = MAX(p->most_encoded, from->encoded);
        if (ok)
            spill(p, from, job);
        job->is_done = true;
        p->no_memory = p->no_memory || !ok;
        wake_readers(p);
        tokmap_i_condition_signal(&p->ids);
        tokmap_i_mutex_unlock(&p->lock);
    }
    pack_marks_free(&marks);
}

static void *run_encoder(void *arg)
{
    pack_pipeline *p = arg;
    const pack_parts *parts = p->options.parts;
    const encoder_options options = {.cache_bytes = parts->options->memory / 2,
                                     .specials = parts->options->specials};
    work_thread_begin(WORK_ENCODE);
    encoder *e = encoder_new(parts->tokenizer->tokenizer, &options);
    if (e) {
        encode_all(p, e);
    } else {
        tokmap_i_mutex_lock(&p->lock);
        p->no_memory = true;
        tokmap_i_condition_signal(&p->ids);
        tokmap_i_mutex_unlock(&p->lock);
    }
    encoder_free(e);
    work_thread_end(WORK_ENCODE);
    return NULL;
}

/* ---- The caller ---- */

/* The next segment gets the turn. */
static void end_turn(pack_pipeline *p)
{
    read_segment *s = p->turn;
    p->turn = s->next;
    if (!p->turn)
        p->newest = NULL;
    p->n_segments--;
    tokmap_i_condition_signal(&p->ended);
    p->before = p->after;
    tokmap_i_condition_free(&s->room);
    free(s);
    wake_readers(p);
}

static void set_error(const pack_pipeline *p, const read_segment *s, pack_error *err)
{
    char more[80] = "";
    const bool changed = s->error.status == FAILURE_CHANGED;
    const bool other_plan = changed && p->options.parts->cell;
    if (s->failed_within && p->after.counts.documents > 0)
        snprintf(more, sizeof more, "; documents read before it: %" PRIu64,
                 p->after.counts.documents);
    pack_error_set(err, other_plan ? CLI_DATASET : cli_failure_exit_code(&s->error), "%s%s",
                   s->error.text, more);
    pack_error_set_cause(err, MAX(s->error.status, 0), s->error.file_bytes);
    if (changed)
        err->hint = other_plan
                        ? "Update the plan with tokmap plan --update; if size and time of the "
                          "input are still those of the plan, touch it first."
                        : "Run the same command again, which resumes before this input if "
                          "its size or time has changed; or use --restart to start over.";
    err->start_over = changed;
}

/* Returns what the next call will return, except for the job. Call with the lock held. */
static pack_next next_state(pack_pipeline *p, pack_error *err)
{
    if (p->no_memory) {
        pack_error_set(err, CLI_AGAIN,
                       "out of memory; use fewer threads (-j), or --max-document to refuse large "
                       "documents");
        return PACK_FAILED;
    }
    while (p->turn && !p->turn->first && p->turn->at_end && p->turn->status == 0)
        end_turn(p);
    const read_segment *s = p->turn;
    if (!s)
        return pack_divider_is_over(&p->divider) ? PACK_END : PACK_NOTHING_YET;
    if (s->first)
        return s->first->is_done ? PACK_JOB : PACK_NOTHING_YET;
    if (!s->at_end)
        return PACK_NOTHING_YET;
    set_error(p, s, err);
    return PACK_FAILED;
}

/* Turns the counts of a part that continues a file into counts of the file. */
static void join_counts(const pack_pipeline *p, corpus_counts *counts, bool at_end)
{
    if (at_end) /* the file counts, when all of it was read */
        counts->stored_bytes += p->turn->what.begin.offset;
    else
        counts->input_records += p->before.counts.input_records;
}

/* Makes the place in a part that continues a file that of the file. */
static void join_place(const pack_pipeline *p, corpus_place *place)
{
    const corpus_place *before = &p->before;
    const bool at_end = place->input > 0;
    join_counts(p, &place->counts, at_end);
    if (at_end)
        return;
    place->plain_offset += before->plain_offset;
    place->stored.n_bytes = place->stored.n_bytes
                                ? place->stored.n_bytes + p->turn->what.begin.offset
                                : before->stored.n_bytes;
    place->stored.checksum += before->stored.checksum;
}

/* Turns places and counts of a segment into places and counts of all inputs. */
static void place_job(pack_pipeline *p, pack_job *job)
{
    const pack_segment *what = &p->turn->what;
    const bool joins = pack_segment_continues(what);
    corpus_place *after = &job->batch.after;
    if (joins)
        join_place(p, after);
    after->input += what->first;
    corpus_counts_add(&after->counts, &p->before.counts);
    for (size_t i = 0; i < job->reports.n_items; i++)
        job->reports.items[i].input += what->first;
    for (size_t i = 0; i < job->reports.n_moments; i++) {
        corpus_counts *counts = &job->reports.moments[i].counts;
        if (joins)
            join_counts(p, counts, counts->stored_bytes > 0);
        corpus_counts_add(counts, &p->before.counts);
    }
    p->after = *after;
}

/* Turns size and checksum of the last part of a file into size and checksum of the file. */
static void join_end(const pack_pipeline *p, pack_job *job)
{
    const pack_segment *what = &p->turn->what;
    corpus_batch *b = &job->batch;
    if (!pack_segment_continues(what) || b->n_ends == 0 || !b->ends[b->n_ends - 1].input)
        return;
    b->ends[b->n_ends - 1].stored_bytes += what->begin.offset;
    b->ends[b->n_ends - 1].checksum += p->before.stored.checksum;
}

/* The caller gives the job back. */
static void take_back(pack_pipeline *p)
{
    pack_job *job = p->out;
    corpus_batch *b = &job->batch;
    pack_job_empty(job);
    if (b->capacity != p->text_capacity) { /* of a long document that is left out */
        free(b->text);
        b->text = NULL;
        b->capacity = 0;
    }
    tokmap_i_mutex_lock(&p->lock);
    p->out = NULL;
    p->n_jobs--;
    p->of_jobs -= job->memory;
    give_job_back(p, job);
    wake_readers(p);
    tokmap_i_mutex_unlock(&p->lock);
}

/* Waits for what changes the state. False: it is late. Call with the lock held. */
static bool wait_for_ids(pack_pipeline *p, uint64_t until)
{
    const bool starves = p->n_unread == 0 && p->n_waiting_ahead > 0;
    const uint64_t begun = tokmap_i_now_ns();
    const bool in_time = tokmap_i_condition_wait_until(&p->ids, &p->lock, until);
    const uint64_t waited = tokmap_i_now_ns() - begun;
    p->use.main_waited += waited;
    p->use.starved += starves ? waited : 0;
    return in_time;
}

/* Gets a job back from the file. */
static pack_next unspill(pack_pipeline *p, pack_job *job, pack_error *err)
{
    const int error = pack_spill_get(p->spill, job);
    tokmap_i_mutex_lock(&p->lock);
    count_memory(p, job);
    tokmap_i_mutex_unlock(&p->lock);
    if (error == 0)
        return PACK_JOB;
    pack_error_from_system(err, p->options.parts->options->prefix,
                           "read tokens back from the temporary file beside it", error);
    return PACK_FAILED;
}

pack_next pack_pipeline_next(pack_pipeline *p, unsigned wait_ms, pack_job **job, pack_error *err)
{
    const uint64_t until = tokmap_i_now_ns() + wait_ms * UINT64_C(1000000);
    if (p->out)
        take_back(p);
    tokmap_i_mutex_lock(&p->lock);
    pack_next next = next_state(p, err);
    while (next == PACK_NOTHING_YET && wait_for_ids(p, until))
        next = next_state(p, err);
    if (next == PACK_JOB) {
        read_segment *s = p->turn;
        p->out = *job = s->first;
        s->first = s->first->next;
        p->out->next = NULL;
        if (!s->first) {
            s->last = NULL;
            wake_readers(p);
        }
        place_job(p, p->out);
    }
    tokmap_i_mutex_unlock(&p->lock);
    if (next == PACK_JOB && p->out->spilled.is)
        next = unspill(p, p->out, err);
    if (next == PACK_JOB)
        join_end(p, p->out);
    return next;
}

/* ---- Start and end ---- */

/* Makes the file for jobs that are ahead, if there will be any. */
static void open_spill(pack_pipeline *p)
{
    const char *asked = getenv("TOKMAP_TEST_SPILL"); /* at most so many bytes, of all jobs ahead */
    const uint64_t most = asked ? strtoull(asked, NULL, 10) : UINT64_MAX;
    p->spill_from = asked ? 0 : p->most / 2;
    if (pack_divider_is_over(&p->divider))
        return;
    const pack_segment first = pack_divider_look(&p->divider);
    if (first.first + first.n < p->inputs->n || pack_divider_may_cut(&p->divider, &first))
        p->spill = pack_spill_open(p->options.parts->options->prefix, most);
}

pack_pipeline *pack_pipeline_start(const pack_pipeline_options *options, pack_error *err)
{
    const pack_options *o = options->parts->options;
    pack_pipeline *p = calloc(1, sizeof *p);
    tokmap_i_thread *encoders = calloc(o->n_threads, sizeof *encoders);
    if (!p || !encoders) {
        pack_error_no_memory(err);
        free(p);
        free(encoders);
        return NULL;
    }
    p->options = *options;
    p->inputs = options->parts->inputs;
    p->most = o->memory / 4 * o->n_threads;
    p->batch_bytes = options->corpus->batch_bytes;
    p->usual = p->batch_bytes + p->batch_bytes / 2;
    p->text_capacity = options->corpus->batch_bytes + INPUT_PADDING;
    p->most_unused = MIN(2 * (size_t)o->n_threads + 4, (size_t)MOST_UNUSED);
    p->n_processors = tokmap_i_n_processors();
    p->most_readers = MOST_READERS;
    p->encoders = encoders;
    p->divider = pack_divider_begin(p->inputs, options->corpus, options->from);
    if (options->from)
        p->after = *options->from;
    open_spill(p);
    const char *asked = getenv("TOKMAP_TEST_READERS"); /* so many from the start, and no more */
    if (asked)
        p->most_readers = (unsigned)MAX(1, MIN(strtol(asked, NULL, 10), MOST_READERS));
    p->looked_ns = tokmap_i_now_ns();
    p->used_ns = tokmap_i_cpu_ns();
    tokmap_i_mutex_init(&p->lock);
    tokmap_i_condition_init(&p->text);
    tokmap_i_condition_init(&p->ids);
    tokmap_i_condition_init(&p->ended);
    tokmap_i_mutex_lock(&p->lock);
    while (p->n_readers < (asked ? p->most_readers : 1) && start_reader(p)) {
    }
    while (p->n_readers > 0 && p->n_encoders < o->n_threads &&
           tokmap_i_thread_start(&p->encoders[p->n_encoders], run_encoder, p) == 0)
        p->n_encoders++;
    const bool started = p->n_encoders == o->n_threads;
    tokmap_i_mutex_unlock(&p->lock);
    if (started)
        return p;
    pack_error_set(err, CLI_AGAIN, "cannot start a thread; use fewer (-j)");
    pack_pipeline_close(p, NULL);
    return NULL;
}

/* Starving for less is not worth a word. */
#define LEAST_STARVED_NS UINT64_C(1000000000)

/* When the threads have ended. */
static void set_use(const pack_pipeline *p, pack_use *use)
{
    const pack_options *o = p->options.parts->options;
    const uint64_t jobs = MAX(p->n_readers, 2) * p->most_encoded;
    const uint64_t for_documents = 4 * (uint64_t)p->largest;     /* as `most`, */
    const uint64_t for_inputs = jobs / 7 * 8 / o->n_threads * 4; /* and in may_go */
    use->main_waited = p->use.main_waited;
    use->encoders_waited = p->use.encoders_waited;
    use->starved = p->use.starved;
    use->reading = p->use.reading;
    use->n_encoders = p->n_encoders;
    use->n_processors = p->n_processors;
    use->spilled_bytes = p->spill ? pack_spill_written(p->spill) : 0;
    if (for_documents > o->memory)
        use->memory_for_documents = for_documents;
    if (p->use.starved > LEAST_STARVED_NS && for_inputs > o->memory)
        use->memory_for_inputs = for_inputs;
}

static void free_jobs(pack_job *job)
{
    while (job) {
        pack_job *next = job->next;
        pack_job_free(job);
        free(job);
        job = next;
    }
}

void pack_pipeline_close(pack_pipeline *p, pack_use *use)
{
    if (!p)
        return;
    tokmap_i_mutex_lock(&p->lock);
    p->stop = true;
    tokmap_i_condition_broadcast(&p->text);
    tokmap_i_condition_broadcast(&p->ended);
    wake_readers(p);
    for (read_segment *s = p->turn; s; s = s->next)
        if (s->corpus)
            corpus_interrupt(s->corpus);
    tokmap_i_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_encoders; i++)
        tokmap_i_thread_join(p->encoders[i]);
    for (unsigned i = 0; i < p->n_readers; i++) /* encoders start no more of them */
        tokmap_i_thread_join(p->readers[i]);
    while (p->turn) {
        free_jobs(p->turn->first);
        end_turn(p);
    }
    if (use)
        set_use(p, use);
    free_jobs(p->out);
    free_jobs(p->unused);
    for (size_t i = 0; i < p->n_texts; i++)
        free(p->texts[i]);
    pack_spill_close(p->spill);
    pack_divider_end(&p->divider);
    tokmap_i_mutex_free(&p->lock);
    tokmap_i_condition_free(&p->text);
    tokmap_i_condition_free(&p->ids);
    tokmap_i_condition_free(&p->ended);
    free(p->encoders);
    free(p);
}
