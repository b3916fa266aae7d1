#include "training/train/running_statistics.hpp"

#include <algorithm>
#include <iterator>

#include "parallel/lanes.hpp"

namespace lockstep::training {

RunningStatistics::RunningStatistics(const runtime::Communicator& world, comm::Transport& transport,
                                     const Recipe& recipe, const nn::Network& network, nn::Executor& executor,
                                     metrics::PhaseTimers& timers)
    : world_{world},
      network_{network},
      executor_{executor},
      timers_{timers},
      world_sum_{transport, world.n_ranks(), recipe.deterministic},
      is_deterministic_{recipe.deterministic},
      has_lanes_{recipe.has_lanes()},
      n_rows_{has_lanes_ ? recipe.lanes / static_cast<std::size_t>(world.n_ranks()) : 1} {
  for (const nn::Statistic& statistic : network.statistics()) n_channels_ += statistic.n_channels;
  rows_.resize(n_rows_ * n_channels_);
}

void RunningStatistics::start() {
  for (std::size_t i = 0; i < n_rows_; ++i) take(row(i));
}

void RunningStatistics::keep() {
  if (executor_.device_statistics().values.size() > 0) return;
  take_current();
  before_ = rows_;
}

void RunningStatistics::restore() {
  rows_.swap(before_);
  use_own();
}

// Lanes have given their rows back.
void RunningStatistics::take_current() {
  if (!has_lanes_) take(row(0));
}

void RunningStatistics::take(std::span<float> to) {
  for (std::size_t i = 0; i < network_.statistics().size(); ++i) {
    const auto values = executor_.statistic(static_cast<int>(i));
    std::ranges::copy(values, to.begin());
    to = to.subspan(values.size());
  }
}

void RunningStatistics::give(std::span<const float> from) {
  for (std::size_t i = 0; i < network_.statistics().size(); ++i) {
    const auto values = executor_.statistic(static_cast<int>(i));
    std::ranges::copy(from.first(values.size()), values.begin());
    from = from.subspan(values.size());
  }
}

// Lanes are added by the tree of a deterministic run, on this rank and then over ranks.
std::vector<float> RunningStatistics::average(std::uint64_t weight) {
  if (n_channels_ == 0) return {};
  const metrics::PhaseTimers::Scope scope{timers_, metrics::Phase::communication};
  take_current();
  std::vector<double> sums(n_channels_ + 1), of_rows(n_rows_);
  for (std::size_t i = 0; i < n_channels_; ++i) {
    for (std::size_t r = 0; r < n_rows_; ++r) of_rows[r] = static_cast<double>(weight) * static_cast<double>(row(r)[i]);
    sums[i] = parallel::sum_lanes(of_rows);
  }
  sums.back() = static_cast<double>(weight * n_rows_);
  world_sum_.sum(sums);
  std::vector<float> mean(n_channels_);
  for (std::size_t i = 0; i < n_channels_; ++i) mean[i] = static_cast<float>(sums[i] / sums.back());
  return mean;
}

std::vector<RunningStatistics::Saved> RunningStatistics::gather() {
  if (is_deterministic_) take_current();
  const std::vector<float> all =
      is_deterministic_ ? runtime::gather_values(world_, std::span<const float>{rows_}) : average(1);
  std::vector<Saved> saved;
  if (world_.rank() != 0) return saved;
  std::size_t first = 0;  // channel of the statistic in a row
  for (const nn::Statistic& statistic : network_.statistics()) {
    const std::size_t n_rows = all.size() / n_channels_, n = statistic.n_channels;
    Saved& one = saved.emplace_back(Saved{.box = checkpoint::whole("statistic/" + statistic.name, {n_rows, n})});
    for (std::size_t r = 0; r < n_rows; ++r)
      std::ranges::copy(std::span{all}.subspan(r * n_channels_ + first, n), std::back_inserter(one.values));
    first += n;
  }
  return saved;
}

void RunningStatistics::load(const checkpoint::Checkpoint& from) {
  const std::size_t n_all = n_rows_ * static_cast<std::size_t>(world_.n_ranks());
  const std::size_t first_own = n_rows_ * static_cast<std::size_t>(world_.rank());
  std::size_t first = 0;
  for (const nn::Statistic& statistic : network_.statistics()) {
    const std::string name = "statistic/" + statistic.name;
    const auto found = from.find(name);
    const std::size_t n_saved = found ? found->n_rows : 1, n = statistic.n_channels;
    std::vector<float> values(n_saved * n);
    from.read(checkpoint::whole(name, {n_saved, n}), values);
    std::vector<double> of_rows(n_saved);
    for (std::size_t channel = 0; channel < n; ++channel) {
      for (std::size_t r = 0; r < n_saved; ++r) of_rows[r] = values[r * n + channel];
      const auto mean = static_cast<float>(parallel::sum_lanes(of_rows) / static_cast<double>(n_saved));
      for (std::size_t r = 0; r < n_rows_; ++r)
        row(r)[first + channel] = n_saved == n_all ? values[(first_own + r) * n + channel] : mean;
    }
    first += n;
  }
  use_own();
}

}  // namespace lockstep::training
