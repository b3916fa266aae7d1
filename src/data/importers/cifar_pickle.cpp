#include "data/importers/cifar_pickle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "data/importers/pickle.hpp"

namespace lockstep::data {
namespace {

using PickleKind = PickleValue::Kind;

[[noreturn]] void fail_content(const std::string& path, const std::string& what, const std::string& expected) {
  core::fail_usage({.what = what,
                    .where = path,
                    .expected = expected,
                    .fix = "fetch the archive again, or check which set it is: cifar10 or cifar100"});
}

/// The rows of an array that is stored column by column, one after another.
Input to_rows(const Input& input, const PickleValue& array) {
  constexpr std::uint64_t rows_together = 256;
  const std::uint64_t n_rows = array.shape[0], n_columns = array.shape[1];
  SpoolWriter spool;
  std::vector<std::byte> rows, column;
  for (std::uint64_t first = 0; first < n_rows; first += rows_together) {
    column.resize(std::min(rows_together, n_rows - first));
    rows.resize(column.size() * n_columns);
    for (std::uint64_t j = 0; j < n_columns; ++j) {
      input.read_at(array.offset + j * n_rows + first, column);
      for (std::uint64_t i = 0; i < column.size(); ++i) rows[i * n_columns + j] = column[i];
    }
    spool.append(rows);
  }
  return Input{input.name(), std::move(spool).finish()};
}

}  // namespace

PickledBatch read_pickled_batch(const std::string& path, const char* labels_key, std::uint64_t n_classes,
                                std::uint64_t image_bytes) {
  Input input{path};
  const Pickle pickle{input};
  const PickleValue& images = pickle.at("data", PickleKind::array);
  const PickleValue& labels = pickle.at(labels_key, PickleKind::list);
  if (images.shape.size() != 2 || images.shape[1] != image_bytes)
    fail_content(path, fmt::format("'data' of shape [{}]", fmt::join(images.shape, ", ")),
                 fmt::format("[n, {}]", image_bytes));
  if (labels.items.size() != images.shape[0])
    fail_content(path, fmt::format("{} labels in '{}'", labels.items.size(), labels_key),
                 fmt::format("{}, one for each image", images.shape[0]));
  std::vector<std::byte> numbers;
  for (const std::uint32_t item : labels.items) {
    const PickleValue& label = pickle.value(item);
    if (label.kind != PickleKind::number || !std::in_range<std::uint8_t>(label.number) ||
        static_cast<std::uint64_t>(label.number) >= n_classes)
      fail_content(path, fmt::format("label {} in '{}', record {}", label.number, labels_key, numbers.size()),
                   fmt::format("0 to {}", n_classes - 1));
    numbers.push_back(static_cast<std::byte>(label.number));
  }
  if (images.is_by_columns) return {.input = to_rows(input, images), .offset = 0, .labels = std::move(numbers)};
  return {.input = std::move(input), .offset = images.offset, .labels = std::move(numbers)};
}

std::vector<std::string> read_pickled_names(const std::string& path, const char* key, std::uint64_t n_classes) {
  const Input input{path};
  const Pickle pickle{input};
  const PickleValue& list = pickle.at(key, PickleKind::list);
  if (list.items.size() != n_classes)
    fail_content(path, fmt::format("{} class names in '{}'", list.items.size(), key), fmt::format("{}", n_classes));
  std::vector<std::string> names;
  for (const std::uint32_t item : list.items) names.push_back(pickle.text(pickle.value(item)));
  return names;
}

}  // namespace lockstep::data
