#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "data/synth/streams.hpp"
#include "data/synth/synth.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t rank = 4;

/// A user's preferences or an item's properties: a bias and a vector.
struct Taste {
  float bias = 0;
  std::array<float, rank> factors{};
};

class RatingsSource final : public Source {
 public:
  explicit RatingsSource(const SynthOptions& options) : options_{options} {
    check_count(options.users, "--users");
    check_count(options.items, "--items");
    if (options_.samples == 0) options_.samples = 100'836;  // as many as MovieLens' small set
    spec_.x = {core::DType::int32, {2}};
    spec_.y = {core::DType::float32, {}};
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override { return {{"train", options_.samples}}; }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      core::Random random = synth_random(options_.seed, SynthKind::ratings, split, first + i);
      const std::uint64_t user = random.below(options_.users);
      // The cube of a uniform number: the first 1 % of the items get 22 % of the ratings (0.01 to the power of 1/3).
      const double place = std::pow(random.uniform(), 3) * static_cast<double>(options_.items);
      const std::uint64_t item = std::min(static_cast<std::uint64_t>(place), options_.items - 1);
      const std::array<std::int32_t, 2> ids{static_cast<std::int32_t>(user), static_cast<std::int32_t>(item)};
      const float rating = rate(taste(user_stream, user), taste(item_stream, item), uniform(random, -1, 1));
      std::memcpy(x.data() + i * sizeof(ids), ids.data(), sizeof(ids));
      std::memcpy(y.data() + i * sizeof(rating), &rating, sizeof(rating));
    }
  }

 private:
  static void check_count(std::uint64_t n, const char* flag) {
    constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
    if (n == 0 || n > most) {
      core::fail_usage({.what = "a value of " + std::to_string(n),
                        .where = flag,
                        .expected = "1 to 2147483647",
                        .fix = "give a value in that range"});
    }
  }

  [[nodiscard]] Taste taste(std::uint64_t stream, std::uint64_t id) const {
    core::Random random = synth_random(options_.seed, SynthKind::ratings, stream, id);
    Taste taste{.bias = uniform(random, -0.8F, 0.8F)};
    for (float& factor : taste.factors) factor = uniform(random, -1, 1);
    return taste;
  }

  // Rounds to halves, as people rate.
  static float rate(const Taste& user, const Taste& item, float noise) {
    float rating = 3.5F + user.bias + item.bias + noise;
    for (std::size_t k = 0; k < rank; ++k) rating += user.factors[k] * item.factors[k];
    return std::clamp(std::round(2 * rating) / 2, 0.5F, 5.0F);
  }

  SynthOptions options_;
  SetSpec spec_{};
};

}  // namespace

std::unique_ptr<Source> synth_ratings(const SynthOptions& options) { return std::make_unique<RatingsSource>(options); }

}  // namespace lockstep::data
