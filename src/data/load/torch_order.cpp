#include <numeric>
#include <random>
#include <utility>

#include "core/error.hpp"
#include "data/load/sampler.hpp"

namespace lockstep::data {

std::vector<std::uint32_t> torch_permutation(std::uint64_t n, std::uint64_t seed) {
  core::require(n < torch_limit, "torch_permutation gets fewer samples than torch_limit");
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0u);
  // torch uses the lower 32 bits of a seed. Its exchange takes the modulus of a random number, slightly biased.
  std::mt19937 random{static_cast<std::uint32_t>(seed)};
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    std::swap(order[i], order[i + static_cast<std::size_t>(random() % (order.size() - i))]);
  return order;
}

}  // namespace lockstep::data
