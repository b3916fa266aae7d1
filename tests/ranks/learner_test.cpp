// However a batch is divided among ranks and parts, its gradient is that of the whole, and ranks without samples walk
// the same order of units as all others.
#include "training/train/learner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport.hpp"
#include "core/sum_hash.hpp"
#include "nn/device.hpp"
#include "nn/graph/initialize.hpp"
#include "nn/graph/models.hpp"
#include "support/ranks.hpp"
#include "training/train/batches.hpp"
#include "training/train/evaluate.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// There is one per process: from the first test to the last.
std::unique_ptr<nn::Device> device;
class DeviceLife : public testing::Environment {
 public:
  void SetUp() override { device = nn::open_device(1); }
  void TearDown() override { device.reset(); }
};
const auto* const device_life = testing::AddGlobalTestEnvironment(new DeviceLife);

constexpr std::uint64_t n_samples = 12, n_users = 60, n_items = 90;

nn::Network network_of(const Recipe& recipe) {
  if (recipe.model == "movielens")
    return nn::make_model({.name = "movielens", .n_outputs = 1, .n_ids = {n_users, n_items}});
  return nn::make_model({.name = recipe.model, .input = {1, 10, 10}, .n_outputs = 10});
}

/// The samples of the whole batch.
struct Samples {
  std::vector<float> numbers{}, targets{};
  std::vector<std::int64_t> x_ids{}, classes{};
  std::vector<std::uint64_t> ids{};

  explicit Samples(const Recipe& recipe) {
    for (std::uint64_t i = 0; i < n_samples; ++i) {
      ids.push_back(i);
      if (recipe.model == "movielens") {
        x_ids.insert(x_ids.end(), {static_cast<std::int64_t>(i * i % n_users), static_cast<std::int64_t>(i * 7 % 11)});
        targets.push_back(std::sin(static_cast<float>(i)));
      } else {
        for (std::uint64_t k = 0; k < 100; ++k) numbers.push_back(std::sin(static_cast<float>(i * 100 + k * k)));
        classes.push_back(static_cast<std::int64_t>(i * 3 % 10));
      }
    }
  }

  [[nodiscard]] data::Batch batch() const {
    return {.n_global = n_samples,
            .n = n_samples,
            .x = x_ids.empty() ? std::as_bytes(std::span{numbers}) : std::as_bytes(std::span{x_ids}),
            .y = classes.empty() ? std::as_bytes(std::span{targets}) : std::as_bytes(std::span{classes}),
            .ids = ids};
  }
};

/// The digest of the parameters before the first step, on the first rank.
std::string initial_digest(const runtime::Communicator& world, const Recipe& recipe) {
  const auto transport = comm::make_transport(world, {.oversubscribed = true});
  metrics::PhaseTimers timers;
  Learner learner{world, *transport, nullptr, *device, recipe, network_of(recipe), n_samples, timers};
  learner.initialize("");
  std::string digest = learner.digest();
  world.barrier();  // no rank frees what others still read
  return digest;
}

/// The parameters after a step so long that they are almost only its gradient.
std::vector<float> after_long_step(const runtime::Communicator& world, const Recipe& recipe) {
  const auto transport = comm::make_transport(world, {.oversubscribed = true});
  const auto n_ranks = static_cast<std::uint64_t>(world.n_ranks()), rank = static_cast<std::uint64_t>(world.rank());
  metrics::PhaseTimers timers;
  Learner learner{world, *transport, nullptr, *device, recipe, network_of(recipe), (n_samples + n_ranks - 1) / n_ranks,
                  timers};
  learner.initialize("");
  const Samples samples{recipe};
  const std::uint64_t begin = n_samples * rank / n_ranks, end = n_samples * (rank + 1) / n_ranks;
  learner.step(samples.batch().part(begin, end - begin), {.learning_rate = 0x1p20, .epoch = 3});
  const auto parameters = runtime::on_host(learner.synchronizer().arenas().parameters);
  std::vector<float> copy(parameters.begin(), parameters.end());
  world.barrier();  // no rank frees what others still read
  return copy;
}

Recipe recipe_of(const std::string& model) {
  Recipe recipe;
  recipe.model = model;
  recipe.loss = model == "movielens" ? nn::Loss::mse : nn::Loss::cross_entropy;
  recipe.batch = n_samples;
  return recipe;
}

/// For each tensor: the largest difference in units in the last place of its largest element; returns the maximum.
double difference_in_ulp(const Recipe& recipe, const std::vector<float>& found, const std::vector<float>& expected) {
  const auto executor = device->make_executor(network_of(recipe), executor_options(recipe, 1));
  double most = found.size() == expected.size() ? 0 : INFINITY;
  for (const nn::ArenaSlot& slot : executor->slots()) {
    float difference = 0, magnitude = 0;
    for (std::size_t i = slot.slice.offset; i < slot.slice.end(); ++i) {
      difference = std::max(difference, std::abs(found.at(i) - expected.at(i)));
      magnitude = std::max(magnitude, std::abs(expected[i]));
    }
    const float ulp = std::nextafter(magnitude, INFINITY) - magnitude;
    most = std::max(most, static_cast<double>(difference / ulp));
  }
  return most;
}

// Each rank initializes what it owns.
RANKS_TEST(Learner, InitialValuesAreThoseOfOneRank) {
  const auto own_alone = support::world().split(support::world().rank(), 0);
  std::set<std::string> digests;
  for (const char* const model : {"mnist_cnn", "movielens"}) {
    Recipe recipe = recipe_of(model);
    for (const std::uint64_t seed : {1, 2}) {
      recipe.seed = seed;
      const std::string expected = initial_digest(*own_alone, recipe);
      const std::string found = initial_digest(support::world(), recipe);
      EXPECT_EQ(found, support::world().rank() == 0 ? expected : "") << model;
      digests.insert(expected);
    }
  }
  EXPECT_EQ(digests.size(), 4u);
}

// In PyTorch's order of elements, whatever the layout and the owners.
RANKS_TEST(Learner, TheDigestIsTheHashOfAllTensors) {
  const auto transport = comm::make_transport(support::world(), {.oversubscribed = true});
  for (const char* const model : {"mnist_cnn", "movielens"}) {
    const Recipe recipe = recipe_of(model);
    metrics::PhaseTimers timers;
    Learner learner{support::world(), *transport, nullptr, *device, recipe, network_of(recipe), n_samples, timers};
    learner.initialize("");
    std::vector<float> all;
    for (const nn::Parameter& parameter : learner.network().parameters()) {
      std::vector<float> values(nn::n_elements(parameter.shape));
      nn::initialize(parameter, recipe.seed, values);
      all.insert(all.end(), values.begin(), values.end());
    }
    const std::string expected = fmt::format("{:016x}", core::sum_hash(0, all));
    EXPECT_EQ(learner.digest(), support::world().rank() == 0 ? expected : "") << model;
    support::world().barrier();  // no rank frees what others still read
  }
}

// Sums of hundreds of terms that partly cancel, in another order. A step of movielens touches few rows, which are
// exchanged as rows; the reference sums whole tables, because it claims a larger batch.
RANKS_TEST(Learner, GradientsAreThoseOfTheWholeBatch) {
  const auto own_alone = support::world().split(support::world().rank(), 0);
  const runtime::Communicator& alone = *own_alone;
  for (const char* const model : {"mnist_cnn", "movielens"}) {
    Recipe recipe = recipe_of(model);
    Recipe dense = recipe;
    dense.batch = 100 * n_samples;
    const std::vector<float> expected = after_long_step(alone, dense);
    for (const std::uint64_t accumulate : {1, 2, 3}) {
      recipe.accumulate = accumulate;
      EXPECT_LE(difference_in_ulp(recipe, after_long_step(support::world(), recipe), expected), 32)
          << model << " in " << accumulate << " parts";
    }
  }
}

RANKS_TEST(Learner, GradientsHaveTheSameBitsInLanes) {
  const auto own_alone = support::world().split(support::world().rank(), 0);
  const runtime::Communicator& alone = *own_alone;
  if (4 % support::world().n_ranks() != 0) return;  // 4 lanes
  for (const char* const model : {"mnist_cnn", "movielens"}) {
    for (const std::uint64_t accumulate : {1, 3}) {
      Recipe recipe = recipe_of(model);
      recipe.deterministic = true;
      recipe.accumulate = accumulate;
      EXPECT_EQ(after_long_step(support::world(), recipe), after_long_step(alone, recipe))
          << model << " in " << accumulate << " parts";
    }
  }
}

// No rank needs parameters of others for that; those see where the passes stop being finite.
RANKS_TEST(Learner, OwnersNameAParameterThatIsNotFinite) {
  const Recipe recipe = recipe_of("mnist_cnn");
  const auto transport = comm::make_transport(support::world(), {.oversubscribed = true});
  metrics::PhaseTimers timers;
  Learner learner{support::world(), *transport, nullptr, *device, recipe, network_of(recipe), n_samples, timers};
  learner.initialize("");
  bool is_mine = false;
  learner.synchronizer().visit(parallel::Access::kept, [&](const parallel::StoredPiece& piece) {
    const std::string& name = learner.synchronizer().sharding().slots()[piece.slot].name;
    if (piece.state != "parameter" || name != "conv1.weight") return;
    piece.values.front() = NAN;
    is_mine = true;
  });
  learner.synchronizer().start({});
  const Samples samples{recipe};
  learner.step(samples.batch(), {.learning_rate = 1});  // all ranks have the same samples
  ASSERT_TRUE(learner.not_finite());
  EXPECT_EQ(learner.not_finite()->where == "parameter conv1.weight, after the previous update", is_mine)
      << learner.not_finite()->where;
  EXPECT_TRUE(support::world().any(is_mine));
  const parallel::StepReport report = learner.report_last();
  EXPECT_TRUE(report.not_finite);
  EXPECT_EQ(report.found_parameter, is_mine);
  support::world().barrier();  // no rank frees what others still read
}

/// Passes everything on, and notes what passes report of units: "+unit " if it is needed, "-unit " if it is done.
class NotingHooks final : public nn::Hooks {
 public:
  NotingHooks(nn::Hooks& told, std::string& notes) : told_{told}, notes_{notes} {}

 private:
  void touched(std::size_t slot, std::span<const std::uint64_t> rows) override { told_.touched(slot, rows); }
  void ready(std::size_t slot) override { told_.ready(slot); }
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) override { told_.sum(values, stream); }
  void need(std::size_t unit, runtime::Stream& stream) override {
    notes_ += "+" + std::to_string(unit) + " ";
    told_.need(unit, stream);
  }
  void done(std::size_t unit, runtime::Stream& stream) override {
    notes_ += "-" + std::to_string(unit) + " ";
    told_.done(unit, stream);
  }

  nn::Hooks& told_;
  std::string& notes_;
};

/// The host's executor, with such hooks.
class NotingExecutor final : public nn::Executor {
 public:
  NotingExecutor(std::unique_ptr<nn::Executor> inner, std::string& notes) : inner_{std::move(inner)}, notes_{notes} {}

  std::span<const nn::ArenaSlot> slots() const noexcept override { return inner_->slots(); }
  std::size_t arena_elements() const noexcept override { return inner_->arena_elements(); }
  std::vector<core::Slice> unit_reads() const override { return inner_->unit_reads(); }
  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const override {
    inner_->pack(parameter, rows, logical, elements);
  }
  void unpack(int parameter, core::Slice rows, std::span<const float> elements,
              std::span<float> logical) const override {
    inner_->unpack(parameter, rows, elements, logical);
  }
  void bind(std::span<const nn::SlotPlace> places) override { inner_->bind(places); }
  std::span<float> statistic(int statistic) override { return inner_->statistic(statistic); }
  void enqueue(const data::Batch& batch, nn::Pass pass, const core::StepNumbers& numbers, nn::Hooks& hooks,
               runtime::Stream& stream) override {
    NotingHooks noting{hooks, notes_};
    inner_->enqueue(batch, pass, numbers, noting, stream);
  }
  nn::LossSums sums() override { return inner_->sums(); }
  nn::LayerTimes& layer_times() noexcept override { return inner_->layer_times(); }
  std::vector<std::string> slow_layers() const override { return inner_->slow_layers(); }
  bool computes_in_floats() const override { return inner_->computes_in_floats(); }
  std::size_t n_bytes() const noexcept override { return inner_->n_bytes(); }

 private:
  std::unique_ptr<nn::Executor> inner_;
  std::string& notes_;
};

class NotingDevice final : public nn::Device {
 public:
  std::string notes{};

  std::unique_ptr<nn::Executor> make_executor(const nn::Network& network, const nn::ExecutorOptions& options) override {
    return std::make_unique<NotingExecutor>(device->make_executor(network, options), notes);
  }
};

/// Calls use(learner, batches) with a made set of `n` samples to evaluate. Returns the notes of this rank.
template <class Use>
std::string notes_of(std::uint64_t n, std::uint64_t batch, std::uint64_t accumulate, const Use& use) {
  Recipe recipe = recipe_of("toy");
  recipe.loss = nn::Loss::mse;
  recipe.synthetic = true;
  recipe.synthetic_samples = n;
  recipe.val_split = "train";
  recipe.batch = batch;
  recipe.accumulate = accumulate;
  recipe.loader_threads = 0;
  const runtime::Communicator& world = support::world();
  NotingDevice noting;
  const OpenBatches open = open_batches(world, noting, recipe, false, {}, {});
  const auto transport = comm::make_transport(world, {.oversubscribed = true});
  metrics::PhaseTimers timers;
  Learner learner{world,
                  *transport,
                  nullptr,
                  noting,
                  recipe,
                  make_network(recipe, open.evaluation->info()),
                  open.evaluation->most(),
                  timers};
  learner.initialize("");
  use(learner, *open.evaluation);
  world.barrier();  // no rank frees what others still read
  return noting.notes;
}

// Ranks with fewer samples, or none, make as many passes as the one with the most.
TEST(Learner, EvaluatesInAsManyPassesOnEachRank) {
  struct Row {
    std::uint64_t n, batch, accumulate, n_passes;
  };
  for (const Row& row : {Row{7, 6, 1, 2}, {7, 6, 2, 3}, {2, 6, 1, 1}, {12, 6, 1, 2}, {12, 6, 2, 4}, {13, 12, 3, 3}}) {
    std::string expected;
    for (std::uint64_t i = 0; i < row.n_passes; ++i) expected += "+0 -0 ";
    support::on_ranks({0, 0, 0}, [&] {
      const auto evaluate = [&](Learner& learner, Batches& batches) {
        const auto sums = evaluate_split(
            support::world(), batches, learner, [] { return false; }, [](double) {});
        EXPECT_EQ(sums.value().n, row.n);
      };
      EXPECT_EQ(notes_of(row.n, row.batch, row.accumulate, evaluate), expected)
          << row.n << " samples in batches of " << row.batch << ", in " << row.accumulate << " parts";
    });
  }
}

TEST(Learner, TriesOutOnRanksWithoutSamplesToo) {
  support::on_ranks({0, 0, 0}, [] {
    const auto try_out = [](Learner& learner, Batches& batches) {
      batches.begin_epoch(0);
      const data::Batch& batch = *batches.next();
      EXPECT_EQ(batch.n, support::world().rank() == 0 ? 0u : 1u);
      learner.try_out(batch.part(0, batch.n));
    };
    EXPECT_EQ(notes_of(2, 6, 1, try_out), "+0 -0 +0 -0 +0 -0 ") << "evaluation, forward and backward";
  });
}

}  // namespace
}  // namespace lockstep::training
