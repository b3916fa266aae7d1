#include "parallel/host_places.hpp"

#include <algorithm>

namespace lockstep::parallel {
namespace {

std::size_t pooled_elements(std::span<const Share> shares, const BucketPlaces& places) {
  std::size_t n = 0;
  for (std::size_t b = 0; b < shares.size(); ++b)
    if (places.is_pooled(b)) n += core::round_up(shares[b].updated.count, alignment);
  return n;
}

}  // namespace

HostPlaces plan_host_places(Strategy strategy, const Sharding& sharding, const UnitTurns& turns,
                            const Placement& placement, bool is_one_pass) {
  const std::vector<core::Slice> buckets{sharding.buckets().begin(), sharding.buckets().end()};
  const auto units = sharding.units();
  const bool has_units = std::ranges::any_of(units, [](const auto& unit) { return unit.has_value(); });
  const auto plan = [&](bool has_pool, const UnitsMeet& meet) {
    return has_pool && has_units ? BucketPlaces{buckets, units, meet} : BucketPlaces{buckets};
  };
  return {.parameters = plan(divides_parameters(strategy) && placement.n_nodes > 1,
                             [&](std::size_t a, std::size_t b) { return turns.parameters_meet(a, b); }),
          .gradients = plan(divides_gradients(strategy) && is_one_pass && placement.nodes.size() > 1,
                            [&](std::size_t a, std::size_t b) { return turns.gradients_meet(a, b); })};
}

KeptElements count_kept(const Sharding& sharding, const HostPlaces& places) {
  KeptElements kept{.parameters = places.parameters.n_elements(),
                    .pool = places.parameters.n_pool_elements(),
                    .gradients = places.gradients.n_elements()};
  for (std::size_t owner = 0; owner < sharding.n_owners(); ++owner) {
    for (std::size_t part = 0; part < sharding.n_nodes(); ++part) {
      const std::vector<Share> shares = sharding.shares_of(owner, part);
      std::size_t updated = 0;
      for (const Share& share : shares) updated += share.updated.count;
      kept.updated = std::max(kept.updated, updated);
      kept.parts =
          std::max(kept.parts, pooled_elements(shares, places.parameters) + pooled_elements(shares, places.gradients));
    }
  }
  return kept;
}

OwnParts::OwnParts(std::span<const Share> shares, const BucketPlaces& places)
    : memory_{core::Bytes{pooled_elements(shares, places) * sizeof(float)}} {
  std::span<float> rest = memory_.as<float>();
  std::ranges::fill(rest, 0.0F);
  for (std::size_t b = 0; b < shares.size(); ++b) {
    const std::size_t n = places.is_pooled(b) ? shares[b].updated.count : 0;
    parts_.push_back(rest.first(n));
    rest = rest.subspan(core::round_up(n, alignment));
  }
}

}  // namespace lockstep::parallel
