// SPDX-License-Identifier: Apache-2.0
// use_hpp DATASET MISSING - uses docs/examples/tokmap.hpp, for test_example.sh: prints the first five ids, compares them with
// the first labels of a loader, and asks for a dataset that does not exist.
#include <cstdio>

#include "tokmap.hpp"

int main(int, char **argv)
{
    tokmap::dataset_handle ds = tokmap::open(argv[1]);
    const std::vector<uint32_t> first = tokmap::ids(ds, 0, 5);
    tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
    options.sequence_length = 16;
    options.batch_rows = 2;
    options.shuffle = TOKMAP_SHUFFLE_NONE;
    tokmap::loader loader(std::move(ds), options, 1);
    if (!loader.next() || loader.inputs[0] != first[0] || loader.labels[3] != first[4])
        return 1;
    int n_steps = 1;
    while (loader.next())
        n_steps++;
    if (n_steps < 2)
        return 2;
    std::printf("%u %u %u %u %u\n", first[0], first[1], first[2], first[3], first[4]);
    try {
        tokmap::open(argv[2]);
    } catch (const tokmap::error &e) {
        std::printf("not there: %d\n", e.detail.status);
    }
    return 0;
}
