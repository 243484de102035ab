// SPDX-License-Identifier: Apache-2.0
// tokmap.hpp - the calls of tokmap for C++17: handles close themselves, and errors are exceptions. Copy it and add the calls
// that you need: tokmap::call makes those that take a tokmap_error last, and tokmap::check takes the status of the others.
#pragma once

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tokmap_loader.h"

namespace tokmap {

struct error : std::runtime_error {
    explicit error(const tokmap_error &e) : std::runtime_error(e.text), detail(e) {}
    tokmap_error detail; // status, reason, sys_errno, the file and the place in it
};

// Returns a status of 0 or more, such as TOKMAP_END, and throws for the others.
template <class Function, class... Arguments>
tokmap_status call(Function *function, Arguments &&...arguments)
{
    tokmap_error e{};
    const tokmap_status status = function(std::forward<Arguments>(arguments)..., &e);
    if (status < 0)
        throw error(e);
    return status;
}

inline void check(tokmap_status status)
{
    if (status < 0)
        throw std::runtime_error(tokmap_status_text(status));
}

using dataset_handle = std::shared_ptr<tokmap_dataset>; // shared by the loaders of a dataset
using loader_handle = std::shared_ptr<tokmap_loader>;

inline dataset_handle open(const std::string &path)
{
    tokmap_dataset *ds = nullptr;
    call(tokmap_dataset_open, &ds, path.c_str());
    return dataset_handle(ds, tokmap_dataset_close);
}

inline std::vector<uint32_t> ids(const dataset_handle &ds, uint64_t first, uint64_t n)
{
    std::vector<uint32_t> found(n);
    call(tokmap_dataset_read_ids, ds.get(), first, n, found.data());
    return found;
}

// Inputs and labels of the steps of one dataset, again and again until max_epochs have passed; 0: for ever. documents: only those
// from the first number up to the second, which is left out.
class loader {
  public:
    loader(dataset_handle data, tokmap_loader_options options, uint64_t max_epochs = 0,
           std::array<uint64_t, 2> documents = {0, UINT64_MAX})
    {
        tokmap_dataset *const datasets[] = {data.get()};
        tokmap_loader_source source{};
        source.datasets = datasets;
        source.n_datasets = 1;
        source.max_epochs = max_epochs;
        source.documents = documents.data();
        options.sources = &source;
        options.n_sources = 1;
        tokmap_loader *l = nullptr;
        call(tokmap_loader_open, &l, &options);
        loader_.reset(l, [data](tokmap_loader *p) { tokmap_loader_close(p); }); // the data stay open until then
        inputs.resize(static_cast<size_t>(options.batch_rows) * options.sequence_length);
        labels.resize(inputs.size());
    }

    bool next() // false: the epochs have passed
    {
        tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
        tokmap_gather_options to = TOKMAP_INIT(tokmap_gather_options);
        to.format = TOKMAP_GATHER_I64;
        to.inputs = inputs.data();
        to.labels = labels.data();
        if (call(tokmap_loader_next, loader_.get(), &batch) == TOKMAP_END)
            return false;
        call(tokmap_batch_gather, &batch, &to);
        return true;
    }

    std::vector<int64_t> inputs, labels;

  private:
    loader_handle loader_;
};

} // namespace tokmap
