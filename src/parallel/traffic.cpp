#include "parallel/traffic.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "parallel/host_places.hpp"

namespace lockstep::parallel {
namespace {

class Counter {
 public:
  Counter(const Sharding& sharding, const TrafficSetting& setting)
      : sharding_{sharding},
        setting_{setting},
        placement_{place(setting.nodes, setting.is_deterministic)},
        owners_{comm::one_rank_each(placement_.n_nodes)},
        n_gathers_{gathers_of_step()} {}

  [[nodiscard]] comm::Cost all() {
    if (placement_.n_nodes == 1) return {};
    for (std::size_t owner = 0; owner < sharding_.n_owners(); ++owner) {
      const std::vector<Share> shares = sharding_.shares_of(owner);
      for (std::size_t b = 0; b < shares.size(); ++b) add_bucket(shares[b], n_gathers_[b]);
      if (sharding_.n_nodes() > 1 && setting_.clips) add_norms(owner, 1);
      if (sharding_.n_nodes() > 1 && setting_.has_norms) add_norms(owner, 2);
      if (!placement_.has_idle_ranks()) add(halt, owners_);
    }
    if (placement_.has_idle_ranks()) add(halt, setting_.nodes);
    add_tables();
    return total_;
  }

 private:
  /// Whether any rank halts.
  static constexpr comm::Call halt{.dtype = core::DType::uint64, .op = comm::ReduceOp::max, .n_elements = 1};

  static comm::Cost cost_of(const comm::Call& call, std::span<const int> nodes) {
    if (call.n_elements == 0) return {};
    return comm::choose(call, nodes).algorithm->implementation(call.collective).cost(call, nodes);
  }
  void add(const comm::Call& call, std::span<const int> nodes) {
    const comm::Cost cost = cost_of(call, nodes);
    total_.messages += cost.messages;
    total_.bytes += cost.bytes;
  }
  /// For one owner of each node.
  void add(const comm::Call& call) { add(call, owners_); }

  /// How often each bucket is gathered: after its update, or by passes that need it.
  [[nodiscard]] std::vector<std::uint64_t> gathers_of_step() const {
    std::vector<std::uint64_t> n(sharding_.buckets().size(), 1);
    const UnitTurns turns{setting_.unit_reads, setting_.prefetch};
    const BucketPlaces places =
        plan_host_places(setting_.strategy, sharding_, turns, placement_, setting_.n_passes == 1).parameters;
    if (places.n_pool_elements() == 0) return n;
    for (std::size_t b = 0; b < n.size(); ++b) n[b] = places.is_pooled(b) ? 0 : 1;
    HeldUnits held{turns, places};
    for (std::uint64_t pass = 0; pass < 2 * setting_.n_passes; ++pass)
      for (const std::size_t unit : turns.order(pass % 2 == 1).units)
        for (const std::size_t gathered : held.need(unit, pass % 2 == 1)) ++n[*places.bucket_of(gathered)];
    return n;
  }

  void add_bucket(const Share& share, std::uint64_t n_gathers) {
    if (share.is_divided()) {
      const auto add_times = [&](comm::Collective collective, std::uint64_t n) {
        for (; n > 0; --n)
          add({.collective = collective,
               .n_elements = share.summed.count,
               .is_order_fixed = setting_.is_deterministic,
               .cuts = share.cuts});
      };
      add_times(comm::Collective::reduce_scatter, 1);
      return add_times(comm::Collective::all_gather, n_gathers);
    }
    std::size_t n_of_tables = 0;
    for (const Piece& piece : pieces_in(sharding_.slots(), share.summed))
      if (is_table(piece.slot)) n_of_tables += piece.slice.count;
    add({.n_elements = share.summed.count - n_of_tables, .is_order_fixed = setting_.is_deterministic});
  }

  /// The norms of blocks, `width` for each.
  void add_norms(std::size_t owner, std::size_t width) {
    const std::vector<Share> shares = sharding_.shares_of(owner);
    std::vector<std::size_t> cuts{0};
    for (std::size_t part = 0; part < sharding_.n_nodes(); ++part) {
      const auto slices = sharding_.slices_of(owner * sharding_.n_nodes() + part);
      std::size_t n_blocks = 0;
      for (std::size_t b = 0; b < shares.size(); ++b)
        if (shares[b].is_divided()) n_blocks += blocks_in(sharding_.slots(), slices[b]).size();
      cuts.push_back(cuts.back() + width * n_blocks);
    }
    add({.collective = comm::Collective::all_gather,
         .dtype = core::DType::float64,
         .n_elements = cuts.back(),
         .is_order_fixed = setting_.is_deterministic,
         .cuts = cuts});
  }

  /// Each node sends a touched row and its place to each other node, or all nodes sum the table.
  void add_tables() {
    const std::uint64_t n_others = owners_.size() - 1;
    for (std::size_t slot = 0; slot < sharding_.slots().size(); ++slot) {
      if (!is_table(slot)) continue;
      const comm::Call whole{.n_elements = sharding_.slots()[slot].slice.count,
                             .is_order_fixed = setting_.is_deterministic};
      const std::uint64_t of_rows =
          setting_.rows_touched[slot] * (sharding_.slots()[slot].row_elements + 2) * sizeof(float) * n_others;
      total_.bytes += std::min(cost_of(whole, owners_).bytes, of_rows);
    }
  }

  [[nodiscard]] bool is_table(std::size_t slot) const { return sharding_.slots()[slot].row_elements > 0; }

  const Sharding& sharding_;
  const TrafficSetting& setting_;
  Placement placement_;
  std::vector<int> owners_;               ///< the nodes of the ranks that own the same slices
  std::vector<std::uint64_t> n_gathers_;  ///< by bucket
  comm::Cost total_{};
};

}  // namespace

comm::Cost count_traffic(const Sharding& sharding, const TrafficSetting& setting) {
  return Counter{sharding, setting}.all();
}

}  // namespace lockstep::parallel
