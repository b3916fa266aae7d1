#include "training/shard/class_counts.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "data/read/shard_set.hpp"

namespace lockstep::training::shard {
namespace {

constexpr std::uint64_t no_label = std::numeric_limits<std::uint64_t>::max();

template <class T>
std::uint64_t to_label(T value) {
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) {
      if (value < 0) return no_label;
    }
    return static_cast<std::uint64_t>(value);
  } else {
    return no_label;
  }
}

void count_shard(const data::ShardReader& reader, core::DType dtype, ClassCounts& counts) {
  const data::ArrayIndex& y = *reader.index().find("y");
  std::vector<std::byte> labels(y.chunk_bytes());
  for (std::uint64_t first = 0; first < y.n_rows; first += y.chunk_rows) {
    const std::uint64_t n = std::min(y.chunk_rows, y.n_rows - first);
    reader.read_rows(y, first, n, std::span{labels}.first(n * y.row_bytes));
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t label = label_at(dtype, labels, i);
      ++(label < counts.by_class.size() ? counts.by_class[label] : counts.n_out_of_range);
    }
  }
}

}  // namespace

std::uint64_t label_at(core::DType dtype, std::span<const std::byte> labels, std::size_t index) {
  return core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    T value{};
    std::memcpy(&value, labels.subspan(index * sizeof(T), sizeof(T)).data(), sizeof(T));
    return to_label(value);
  });
}

ClassCounts count_classes(const std::string& folder, const data::Manifest& manifest, const std::string& split,
                          int first_shard, int stride) {
  ClassCounts counts{.by_class = std::vector<std::uint64_t>(manifest.spec.classes.size())};
  const data::ShardSet set{folder, split, 1};
  for (auto shard = static_cast<std::size_t>(first_shard); shard < set.n_shards();
       shard += static_cast<std::size_t>(stride))
    count_shard(*set.open(shard), manifest.spec.y.dtype, counts);
  return counts;
}

ClassCounts sum(const runtime::Communicator& world, const ClassCounts& mine) {
  std::vector<std::uint64_t> row = mine.by_class;
  row.push_back(mine.n_out_of_range);
  const auto all = runtime::gather_values(world, std::span<const std::uint64_t>{row});
  ClassCounts total{.by_class = std::vector<std::uint64_t>(mine.by_class.size())};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t column = i % row.size();
    (column < total.by_class.size() ? total.by_class[column] : total.n_out_of_range) += all[i];
  }
  return total;
}

}  // namespace lockstep::training::shard
