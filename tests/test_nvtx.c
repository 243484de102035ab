/* Ranges for a profiler: a tool is found as NVTX tools are, is handed tables it can write to, and
 * sees ranges that nest. */
#include <dlfcn.h>

#include "stage_case.h"

/* As a tool sees the interface. Its counters are what the test reads. */
static const char tool[] =
    "#include <stdint.h>\n"
    "#include <stddef.h>\n"
    "#include <string.h>\n"
    "typedef void (*function)(void);\n"
    "typedef struct { size_t size; int (*get)(int, function ***, unsigned *); } callbacks;\n"
    "typedef struct { size_t size; uint32_t version, x; void (*set)(uint32_t); } version;\n"
    "int depth, n_fills, n_nexts, n_wrong, table_version; unsigned core_size;\n"
    "static _Thread_local int mine;\n"
    "static int push(const char *name)\n"
    "{\n"
    "    n_fills += !strcmp(name, \"tokmap fill\");\n"
    "    n_nexts += !strcmp(name, \"tokmap next\");\n"
    "    return mine++;\n"
    "}\n"
    "static int pop(void) { n_wrong += mine < 1; return --mine; }\n"
    "int InitializeInjectionNvtx2(const void *(*table)(uint32_t))\n"
    "{\n"
    "    function **core, **core2; unsigned n;\n"
    "    const callbacks *c = table(1); const version *v = table(3);\n"
    "    if (!c || !v || table(99) || c->size != sizeof *c) return 0;\n"
    "    table_version = (int)v->version; v->set(3);\n"
    "    if (!c->get(1, &core, &core_size) || !c->get(5, &core2, &n) || core[0]) return 0;\n"
    "    for (unsigned i = 1; i < core_size; i++) if (!core[i] || *core[i]) return 0;\n"
    "    if (c->get(2, &core2, &n)) return 0;\n"
    "    *core[9] = (function)push; *core[11] = (function)pop;\n"
    "    return 1;\n"
    "}\n";

static int number(void *library, const char *name)
{
    const int *n = dlsym(library, name);
    return n ? *n : -1;
}

TEST(a_tool_sees_the_ranges_of_a_stage)
{
    char command[2000], source[600], library[600];
    snprintf(source, sizeof source, "%s", check_path("tool.c"));
    snprintf(library, sizeof library, "%s", check_path("tool.so"));
    FILE *f = fopen(source, "w");
    CHECK(f && fputs(tool, f) >= 0 && fclose(f) == 0);
    const char *cc = getenv("CC");
    snprintf(command, sizeof command, "%s -shared -fPIC -o %s %s 2>/dev/null", cc ? cc : "cc",
             library, source);
    if (system(command) != 0)
        SKIP("no compiler for the tool");
    setenv("NVTX_INJECTION64_PATH", library, 1);
    open_corpus();
    const options o = {0};
    tokmap_loader *l = open_loader(&o);
    tokmap_cuda *s = NULL;
    tokmap_error err;
    const tokmap_cuda_options so = {.struct_size = sizeof so,
                                    .loader = l,
                                    .device = TOKMAP_CUDA_HOST,
                                    .no_thread = 1,
                                    .nvtx = 1};
    CHECK_INT(tokmap_cuda_open(&s, &so, &err), TOKMAP_OK);
    for (int i = 0; i < 10; i++) {
        tokmap_cuda_batch b = {.struct_size = sizeof b};
        CHECK_INT(tokmap_cuda_next(s, &b, NULL, &err), TOKMAP_OK);
        CHECK_INT(tokmap_cuda_release(s, &b, NULL, &err), TOKMAP_OK);
    }
    tokmap_cuda_close(s);
    tokmap_loader_close(l);
    close_corpus();
    void *handle = dlopen(library, RTLD_NOW);
    CHECK(handle != NULL);
    CHECK_INT(number(handle, "n_nexts"), 10);
    CHECK_INT(number(handle, "n_fills"), 11); /* and the one that was prepared */
    CHECK_INT(number(handle, "n_wrong"), 0);
    CHECK_INT(number(handle, "table_version"), 3);
    dlclose(handle);
    remove(source);
    remove(library);
}
