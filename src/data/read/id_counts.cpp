#include "data/read/id_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "data/read/shard_set.hpp"
#include "runtime/together.hpp"

namespace lockstep::data {
namespace {

[[noreturn]] void fail_no_id(const std::string& value, std::size_t column, const std::string& folder) {
  core::fail_usage({.what = fmt::format("x has the number {} in column {}, which is not an id", value, column),
                    .where = folder,
                    .expected = fmt::format("ids from 0 to {}", most_ids - 1),
                    .fix = "number what the ids stand for from 0 on, as lockstep shard import movielens does"});
}

void add_rows(const SetSpec& spec, std::span<const std::byte> x, const std::string& folder,
              std::vector<std::uint64_t>& counts) {
  core::visit(spec.x.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < x.size() / sizeof(T); ++i) {
        T id;
        std::memcpy(&id, x.data() + i * sizeof(T), sizeof(T));
        const std::size_t column = i % counts.size();
        if (std::cmp_less(id, 0) || std::cmp_greater_equal(id, most_ids))
          fail_no_id(std::to_string(id), column, folder);
        counts[column] = std::max(counts[column], static_cast<std::uint64_t>(id) + 1);
      }
    }
  });
}

void add_shard(const ShardReader& reader, const SetSpec& spec, const std::string& folder,
               const std::function<void()>& on_progress, std::vector<std::uint64_t>& counts) {
  const ArrayIndex& x = *reader.index().find("x");
  std::vector<std::byte> rows(x.chunk_bytes());
  for (std::uint64_t first = 0; first < x.n_rows; first += x.chunk_rows) {
    const std::uint64_t n = std::min(x.chunk_rows, x.n_rows - first);
    const auto here = std::span{rows}.first(n * x.row_bytes);
    reader.read_rows(x, first, n, here);
    add_rows(spec, here, folder, counts);
    on_progress();
  }
}

}  // namespace

std::vector<std::uint64_t> count_ids(const runtime::Communicator& world, const std::string& folder,
                                     const Manifest& manifest, const std::function<void()>& on_progress) {
  std::vector<std::uint64_t> mine(manifest.spec.x.n_elements());
  runtime::together(world, [&] {
    std::size_t n_shards = 0;  // in earlier splits
    for (const Split& split : manifest.splits) {
      const ShardSet set{folder, manifest, split.name, 1};
      for (std::size_t shard = 0; shard < set.n_shards(); ++shard)
        if ((n_shards + shard) % static_cast<std::size_t>(world.n_ranks()) == static_cast<std::size_t>(world.rank()))
          add_shard(*set.open(shard), manifest.spec, folder, on_progress, mine);
      n_shards += set.n_shards();
    }
  });
  const auto all = runtime::gather_values(world, std::span<const std::uint64_t>{mine});
  for (std::size_t i = 0; i < all.size(); ++i) mine[i % mine.size()] = std::max(mine[i % mine.size()], all[i]);
  world.broadcast(std::as_writable_bytes(std::span{mine}));
  return mine;
}

}  // namespace lockstep::data
