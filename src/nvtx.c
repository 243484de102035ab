#include "nvtx.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "platform_library.h"
#include "platform_thread.h"

typedef void (*function)(void);

/* Numbers of the interface. */
enum {
    TABLE_CALLBACKS = 1,
    TABLE_VERSION = 3,
    MODULE_CORE = 1,
    MODULE_CORE2 = 5,
    N_MODULES = 7,
    N_FUNCTIONS = 16, /* of each of the two modules, number 0 among them, which is none */
    RANGE_PUSH = 9,
    RANGE_POP = 11,
    INTERFACE_VERSION = 3
};

/* What the tool writes to: places for the functions of the modules that every tool knows. */
static function functions[N_MODULES][N_FUNCTIONS];
static function *places[N_MODULES][N_FUNCTIONS];

static int get_module_table(int module, function ***table, unsigned *size)
{
    if (module != MODULE_CORE && module != MODULE_CORE2)
        return 0;
    for (int i = 1; i < N_FUNCTIONS; i++)
        places[module][i] = &functions[module][i];
    *table = places[module];
    if (size)
        *size = N_FUNCTIONS;
    return 1;
}

static void take_tool_version(uint32_t version)
{
    (void)version;
}

static const struct {
    size_t struct_size;
    int (*get_module_table)(int module, function ***table, unsigned *size);
} callbacks = {sizeof callbacks, get_module_table};

static const struct {
    size_t struct_size;
    uint32_t version, reserved;
    void (*take_tool_version)(uint32_t version);
} version_info = {sizeof version_info, INTERFACE_VERSION, 0, take_tool_version};

static const void *get_table(uint32_t id)
{
    return id == TABLE_CALLBACKS ? (const void *)&callbacks
           : id == TABLE_VERSION ? (const void *)&version_info
                                 : NULL;
}

static int (*push)(const char *name);
static int (*pop)(void);

static void find_tool(void)
{
    char why[200];
    int (*initialize)(const void *(*get_table)(uint32_t id));
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path && *path ? tokmap_i_library_open(path, why, sizeof why) : NULL;
    if (!library || !tokmap_i_library_find(library, "InitializeInjectionNvtx2", &initialize) ||
        !initialize(get_table))
        return;
    push = (int (*)(const char *))functions[MODULE_CORE][RANGE_PUSH];
    pop = (int (*)(void))functions[MODULE_CORE][RANGE_POP];
}

void tokmap_i_nvtx_open(void)
{
    static tokmap_i_once once = TOKMAP_I_ONCE;
    tokmap_i_run_once(&once, find_tool);
}

void tokmap_i_nvtx_push(const char *name)
{
    if (push && pop)
        push(name);
}

void tokmap_i_nvtx_pop(void)
{
    if (push && pop)
        pop();
}
