#include "data/load/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lockstep::data {
namespace {

// Separates the permutations within windows from that of the chunks.
constexpr std::uint64_t window_salt = 0x9d39'247e'3377'6d41;

/// The epoch's order of chunks, divided into windows that are permuted separately.
class BlockedOrder {
 public:
  BlockedOrder(std::uint64_t n_samples, std::uint64_t window_chunks, std::vector<std::uint64_t> chunk_starts)
      : n_{n_samples}, window_chunks_{window_chunks}, chunk_starts_{std::move(chunk_starts)} {
    core::require(n_ == 0 || (!chunk_starts_.empty() && chunk_starts_.front() == 0), "chunks cover the set");
    core::require(std::is_sorted(chunk_starts_.begin(), chunk_starts_.end()), "chunks start in ascending order");
    chunk_starts_.push_back(n_);
  }

  void begin_epoch(std::uint64_t seed, std::uint64_t epoch) {
    const std::uint64_t n_chunks = chunk_starts_.size() - 1;
    const KeyedPermutation chunk_at{n_chunks, seed, epoch};
    const std::uint64_t window_key = core::Random{seed ^ window_salt, epoch}.next();
    chunks_.clear();
    ends_.clear();
    windows_.clear();
    for (std::uint64_t rank = 0, end = 0; rank < n_chunks; ++rank) {
      chunks_.push_back(chunk_at.at(rank));
      end += length(chunks_.back());
      ends_.push_back(end);
      if ((rank + 1) % window_chunks_ != 0 && rank + 1 < n_chunks) continue;
      const std::uint64_t first = windows_.empty() ? 0 : windows_.back().end;
      windows_.push_back({end, KeyedPermutation{end - first, window_key, windows_.size()}});
    }
  }

  std::uint64_t at(std::uint64_t position) const noexcept {
    const auto window = std::upper_bound(windows_.begin(), windows_.end(), position,
                                         [](std::uint64_t p, const Window& w) { return p < w.end; });
    const std::uint64_t first = window == windows_.begin() ? 0 : std::prev(window)->end;
    const std::uint64_t place = first + window->permutation.at(position - first);
    const auto first_end = ends_.begin() + (window - windows_.begin()) * static_cast<std::ptrdiff_t>(window_chunks_);
    const auto end = std::upper_bound(first_end, ends_.end(), place);
    const std::uint64_t chunk = chunks_[static_cast<std::size_t>(end - ends_.begin())];
    return chunk_starts_[chunk + 1] - (*end - place);
  }

  /// Neighbours in one chunk are spread uniformly over its window, those in two chunks over the epoch.
  double mixing() const noexcept {
    double sum = 0;
    for (std::size_t rank = 0; rank < chunks_.size(); ++rank) {
      const std::size_t window = rank / static_cast<std::size_t>(window_chunks_);
      const std::uint64_t first = window == 0 ? 0 : windows_[window - 1].end;
      const double share = static_cast<double>(windows_[window].end - first) / static_cast<double>(n_);
      const auto n_chunk = static_cast<double>(length(chunks_[rank]));
      if (n_chunk > 0) sum += (n_chunk - 1) * share + 1;
    }
    return n_ > 0 ? sum / static_cast<double>(n_) : 1;
  }

 private:
  struct Window {
    std::uint64_t end;  ///< position after its last
    KeyedPermutation permutation;
  };

  std::uint64_t length(std::uint64_t chunk) const noexcept { return chunk_starts_[chunk + 1] - chunk_starts_[chunk]; }

  std::uint64_t n_;
  std::uint64_t window_chunks_;
  std::vector<std::uint64_t> chunk_starts_;  ///< followed by the end of the last
  std::vector<std::uint64_t> chunks_{};      ///< in the epoch's order
  std::vector<std::uint64_t> ends_{};        ///< by rank in `chunks_`: position after its last without permuted windows
  std::vector<Window> windows_{};
};

}  // namespace

std::string_view name(Order order) noexcept {
  switch (order) {
    case Order::keyed: return "keyed";
    case Order::torch: return "torch";
    case Order::blocked: return "blocked";
    case Order::sequential: break;
  }
  return "sequential";
}

struct Sampler::State {
  std::uint64_t n;
  SamplerOptions options;
  KeyedPermutation keyed{0, 0, 0};
  std::vector<std::uint32_t> torch{};
  std::optional<BlockedOrder> blocked{};
};

Sampler::Sampler(std::uint64_t n_samples, SamplerOptions options, std::vector<std::uint64_t> chunk_starts)
    : state_{std::make_unique<State>(State{n_samples, options})} {
  if (options.order == Order::torch && n_samples >= torch_limit)
    core::fail_usage(
        {.what = fmt::format("order torch cannot order {} samples", n_samples),
         .where = "--order torch",
         .expected = fmt::format("fewer than {} samples: beyond that torch draws differently", torch_limit),
         .fix = "use --order keyed"});
  if (options.order == Order::blocked) {
    if (options.window_chunks == 0)
      core::fail_usage({.what = "a window of 0 chunks", .where = "--window-chunks", .expected = "at least 1"});
    state_->blocked.emplace(n_samples, options.window_chunks, std::move(chunk_starts));
  }
  begin_epoch(0);
}

Sampler::~Sampler() = default;

void Sampler::begin_epoch(std::uint64_t epoch) {
  const std::uint64_t seed = state_->options.seed;
  switch (state_->options.order) {
    case Order::keyed: state_->keyed = KeyedPermutation{state_->n, seed, epoch}; break;
    case Order::torch: state_->torch = torch_permutation(state_->n, seed + epoch); break;
    case Order::blocked: state_->blocked->begin_epoch(seed, epoch); break;
    case Order::sequential: break;
  }
}

std::uint64_t Sampler::at(std::uint64_t position) const noexcept {
  switch (state_->options.order) {
    case Order::keyed: return state_->keyed.at(position);
    case Order::torch: return state_->torch[static_cast<std::size_t>(position)];
    case Order::blocked: return state_->blocked->at(position);
    case Order::sequential: break;
  }
  return position;
}

double Sampler::mixing() const noexcept {
  switch (state_->options.order) {
    case Order::blocked: return state_->blocked->mixing();
    case Order::sequential: return 0;
    default: return 1;
  }
}

}  // namespace lockstep::data
