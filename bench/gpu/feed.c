#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_log(void *context, const char *text)
{
    feed *f = context;
    snprintf(f->log, sizeof f->log, "%s", text);
    fprintf(stderr, "gpubench: the stage says: %s\n", text);
}

bool feed_open(feed *f, const feed_options *o)
{
    tokmap_error err = {0};
    *f = (feed){.ds = NULL};
    if (!fine_status(tokmap_dataset_open(&f->ds, o->data, &err), &err))
        return false;
    const tokmap_dataset *const datasets[] = {f->ds};
    const tokmap_loader_source source = {.datasets = datasets, .n_datasets = 1, .weight = 1};
    tokmap_loader_options loader = o->loader;
    loader.struct_size = sizeof loader;
    loader.sources = &source;
    loader.n_sources = 1;
    bool ok = fine_status(tokmap_loader_open(&f->loader, &loader, &err), &err);
    if (ok && o->stage.outputs != 0) {
        tokmap_cuda_options stage = o->stage;
        stage.struct_size = sizeof stage;
        stage.loader = f->loader;
        stage.log = keep_log;
        stage.log_context = f;
        ok = fine_status(tokmap_cuda_open(&f->stage, &stage, &err), &err);
    }
    if (!ok)
        feed_close(f);
    return ok;
}

void feed_close(feed *f)
{
    tokmap_cuda_close(f->stage);
    tokmap_loader_close(f->loader);
    tokmap_dataset_close(f->ds);
    f->stage = NULL;
    f->loader = NULL;
    f->ds = NULL;
}

bool feed_warm_up(const char *data)
{
    enum {
        AT_ONCE = 1 << 20
    };
    tokmap_dataset *ds;
    tokmap_error err = {0};
    tokmap_dataset_info info = {.struct_size = sizeof info};
    if (!fine_status(tokmap_dataset_open(&ds, data, &err), &err))
        return false;
    tokmap_dataset_get_info(ds, &info);
    uint8_t *buffer = malloc(4 * (size_t)AT_ONCE);
    bool ok = buffer != NULL;
    for (uint64_t i = 0; i < info.n_tokens && ok; i += AT_ONCE) {
        const uint64_t left = info.n_tokens - i;
        ok = fine_status(tokmap_dataset_read(ds, i, left < AT_ONCE ? left : AT_ONCE, buffer, &err),
                         &err);
    }
    free(buffer);
    tokmap_dataset_close(ds);
    return ok;
}

const char *delivery_name(tokmap_cuda_delivery delivery)
{
    static const char *const names[] = {"auto", "push", "pull", "direct"};
    return names[delivery];
}

bool feed_step(feed *f, cudaStream_t stream)
{
    tokmap_cuda_batch batch = {.struct_size = sizeof batch};
    tokmap_error err = {0};
    return fine_status(tokmap_cuda_next(f->stage, &batch, stream, &err), &err) &&
           fine_status(tokmap_cuda_release(f->stage, &batch, stream, &err), &err);
}

bool feed_kept_way(const feed *f, tokmap_cuda_delivery delivery)
{
    tokmap_cuda_info info = {.struct_size = sizeof info};
    tokmap_cuda_get_info(f->stage, &info);
    return info.delivery == delivery ||
           fine(cudaErrorNotSupported, f->log[0] ? f->log : "the stage took another way");
}
