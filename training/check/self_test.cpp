#include "training/check/self_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "core/print.hpp"
#include "core/rng.hpp"
#include "core/suggest.hpp"
#include "core/table.hpp"
#include "nn/executor.hpp"
#include "nn/graph/initialize.hpp"
#include "nn/graph/models.hpp"
#include "nn/own_arenas.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/staging.hpp"
#include "runtime/together.hpp"
#include "training/run/options.hpp"
#include "training/train/open_device.hpp"

namespace lockstep::training {
namespace {

constexpr std::string_view self_test_flag = "--self-test";

/// In a deep network of ReLUs and batch normalization, rounding changes which values pass. In ResNet-18's gradient
/// float32 alone changes 0.2 % and bf16 a third; in ResNet-50's 3 % and all, even in its last block. With one
/// bottleneck per stage it is like ResNet-18 (five seeds: at most 0.9, 12 and 35 % by float32, f16 and bf16). Real
/// errors exceed f32's limit: 130 % with the wrong sign of the gradient of 1x1 convolutions' inputs, 90 % without that
/// of strided ones, 45 % without the gradient of the weights of 1x1 ones.
enum class SelfTestDepth : std::uint8_t { shallow, deep, too_deep };

/// One model on one batch.
struct SelfTestCase {
  nn::ModelSpec model{};
  nn::Loss loss = nn::Loss::cross_entropy;
  std::uint64_t n_samples = 0;
  SelfTestDepth depth = SelfTestDepth::shallow;
  std::string part{};  ///< its name, if it differs from the model's

  [[nodiscard]] const std::string& name() const noexcept { return part.empty() ? model.name : part; }
};

/// The cases cover every kind of layer.
std::vector<SelfTestCase> self_test_cases() {
  return {
      {{.name = "toy", .input = {20}, .n_outputs = 1}, nn::Loss::mse, 64},
      {{.name = "mnist_cnn", .input = {1, 28, 28}, .n_outputs = 10}, nn::Loss::cross_entropy, 16},
      {{.name = "movielens", .n_outputs = 1, .n_ids = {944, 1683}}, nn::Loss::mse, 128},
      {{.name = "resnet18", .input = {3, 64, 64}, .n_outputs = 200}, nn::Loss::cross_entropy, 16, SelfTestDepth::deep},
      {{.name = "resnet50", .input = {3, 64, 64}, .n_outputs = 200, .most_blocks = 1},
       nn::Loss::cross_entropy,
       16,
       SelfTestDepth::deep,
       "bottlenecks"},
      {{.name = "resnet50", .input = {3, 64, 64}, .n_outputs = 1000},
       nn::Loss::cross_entropy,
       8,
       SelfTestDepth::too_deep}};
}

struct SelfTestPrecision {
  std::string_view name;
  nn::Precision precision;
  double limit;       ///< of the error of a loss
  double deep_limit;  ///< of the error of a deep network's gradient

  [[nodiscard]] double gradient_limit(SelfTestDepth depth) const noexcept {
    if (depth == SelfTestDepth::too_deep) return std::numeric_limits<double>::max();
    return depth == SelfTestDepth::deep ? deep_limit : 10 * limit;
  }
};

// TF32 and f16 have 11 bits of significand, bf16 has 8; batch normalization of few samples amplifies their errors. GPUs
// may use TF32 for products in f32. It loses no more than f16, which also stores only 11 bits: f16's error in deep
// networks is a third of f32's limit.
constexpr std::array self_test_precisions{SelfTestPrecision{"f32", nn::Precision::f32, 0.002, 0.4},
                                          SelfTestPrecision{"f16", nn::Precision::f16, 0.005, 0.8},
                                          SelfTestPrecision{"bf16", nn::Precision::bf16, 0.02, 0.8}};

/// The samples of a batch in memory, with all kinds of inputs and targets.
struct SelfTestSamples {
  std::vector<float> x{};
  std::vector<std::int64_t> x_ids{};
  std::vector<float> targets{};
  std::vector<std::int64_t> classes{};
  std::vector<std::uint64_t> ids{};

  explicit SelfTestSamples(const SelfTestCase& given) {
    core::Random random{1};
    for (std::uint64_t i = 0; i < given.n_samples; ++i) {
      ids.push_back(i);
      for (const std::uint64_t n_rows : given.model.n_ids)
        x_ids.push_back(static_cast<std::int64_t>(random.below(n_rows)));
      for (std::uint64_t k = 0; given.model.n_ids.empty() && k < nn::n_elements(given.model.input); ++k)
        x.push_back(static_cast<float>(2 * random.uniform() - 1));
      if (given.loss == nn::Loss::mse)
        targets.push_back(static_cast<float>(random.uniform()));
      else
        classes.push_back(static_cast<std::int64_t>(random.below(given.model.n_outputs)));
    }
  }

  [[nodiscard]] data::Batch batch() const {
    return {.n_global = ids.size(),
            .n = ids.size(),
            .x = x_ids.empty() ? std::as_bytes(std::span{x}) : std::as_bytes(std::span{x_ids}),
            .y = classes.empty() ? std::as_bytes(std::span{targets}) : std::as_bytes(std::span{classes}),
            .ids = ids};
  }
};

class NoHooks final : public nn::Hooks {
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t) override {}
  void sum(runtime::DeviceSpan<double>, runtime::Stream&) override {}
};

/// The result: the mean loss, and the gradient of each parameter in PyTorch's order.
struct SelfTestResult {
  double loss = 0;
  std::vector<std::vector<float>> gradients{};
};

/// A forward and backward pass in training, on the device in use.
SelfTestResult compute(nn::Device& device, const SelfTestCase& given, nn::Precision precision) {
  const nn::Network network = nn::make_model(given.model);
  const auto executor = device.make_executor(
      network, {.max_batch = given.n_samples, .loss = given.loss, .precision = precision, .is_deterministic = true});
  std::vector<float> here(executor->arena_elements());
  std::vector<float> values;
  for (const nn::ArenaSlot& slot : executor->slots()) {
    const nn::Parameter& parameter = network.parameters()[static_cast<std::size_t>(slot.parameter)];
    values.resize(nn::n_elements(parameter.shape));
    nn::initialize(parameter, 1, values);
    executor->pack(slot.parameter, slot.all_rows(), values, slot.slice.of(std::span{here}));
  }
  const nn::OwnArenas arenas{*executor, here};
  const SelfTestSamples samples{given};
  const core::StepNumbers numbers{.scale = precision == nn::Precision::f16 ? 1024.0F : 1,  // small values would be lost
                                  .sample_weight = 1.0F / static_cast<float>(given.n_samples)};
  NoHooks hooks;
  runtime::Stream stream;
  for (const nn::Pass pass : {nn::Pass::forward, nn::Pass::backward})
    executor->enqueue(samples.batch(), pass, numbers, hooks, stream);
  SelfTestResult result{.loss = executor->sums().loss / static_cast<double>(given.n_samples)};
  stream.wait();
  runtime::Staging{}.fetch(runtime::as_bytes(arenas.gradients()), std::as_writable_bytes(std::span{here}));
  for (const nn::ArenaSlot& slot : executor->slots()) {
    const nn::Parameter& parameter = network.parameters()[static_cast<std::size_t>(slot.parameter)];
    result.gradients.emplace_back(nn::n_elements(parameter.shape));
    executor->unpack(slot.parameter, slot.all_rows(), slot.slice.of(std::span{here}), result.gradients.back());
    for (float& value : result.gradients.back()) value /= numbers.scale;
  }
  return result;
}

/// The norm of the difference divided by that of the expected value; NaN if one is NaN.
double relative_error(std::span<const std::vector<float>> found, std::span<const std::vector<float>> expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const double value = expected[i][k], off = found[i][k] - value;
      difference += off * off;
      norm += value * value;
    }
  }
  return std::sqrt(difference / norm);
}

core::Table result_table() {
  return core::Table{{{.header = "model", .unit = "", .width = 12, .align = core::Align::left},
                      {.header = "precision", .unit = "", .width = 9, .align = core::Align::left},
                      {.header = "loss", .unit = "(error)", .width = 9},
                      {.header = "limit", .unit = "", .width = 7},
                      {.header = "gradient", .unit = "(error)", .width = 9},
                      {.header = "limit", .unit = "", .width = 7},
                      {.header = "", .unit = "", .align = core::Align::left}}};
}

/// Prints a row and returns whether both of its errors are within their limits.
bool tell_row(const core::Table& table, const SelfTestCase& given, const SelfTestPrecision& precision,
              const SelfTestResult& found, const SelfTestResult& expected) {
  const double of_loss = std::abs(found.loss - expected.loss) / std::abs(expected.loss);
  const double of_gradient = relative_error(found.gradients, expected.gradients);
  const double limit = precision.gradient_limit(given.depth);
  const bool is_good = of_loss <= precision.limit && of_gradient <= limit;  // false for NaN
  core::print(table.row({given.name(), std::string{precision.name}, fmt::format("{:.1e}", of_loss),
                         fmt::format("{:.0e}", precision.limit), fmt::format("{:.1e}", of_gradient),
                         given.depth == SelfTestDepth::too_deep ? "finite" : fmt::format("{:.0e}", limit),
                         is_good ? "ok" : "FAILED"}));
  return is_good;
}

/// Returns the named models, or all. Throws core::Error (usage).
std::vector<SelfTestCase> cases_of(const std::vector<std::string>& models) {
  const std::vector<SelfTestCase> all = self_test_cases();
  if (models.empty()) return all;
  std::vector<std::string> names;
  for (const SelfTestCase& given : all) names.push_back(given.name());
  std::vector<SelfTestCase> asked;
  for (const std::string& model : models) {
    const auto found = std::ranges::find(names, model);
    if (found == names.end()) core::fail_unknown("model", model, std::string{self_test_flag}, names);
    asked.push_back(all[static_cast<std::size_t>(found - names.begin())]);
  }
  return asked;
}

/// Refuses all flags except `taken`. Throws core::Error (usage).
void refuse_flags_of_training(const std::vector<std::string>& arguments, const std::vector<std::string>& taken) {
  RecipeWords words;
  RunOptions options;
  Invocation launch;
  core::Flags flags{""};
  declare_recipe(flags, words);
  declare_run(flags, options);
  declare_launch(flags, launch);
  const std::vector<std::string> of_training = flags.names();
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (std::ranges::find(of_training, name) == of_training.end() || std::ranges::find(taken, name) != taken.end())
      continue;
    core::fail_usage({.what = fmt::format("{} cannot be combined with {}", name, self_test_flag),
                      .where = name,
                      .expected = fmt::format("names of models, and no flags but {}", core::join(taken)),
                      .fix = "leave it out"});
  }
}

/// Thrown for the signal that asks for an end.
struct SelfTestStopped {
  int signal;
};

void stop_if_asked() {
  if (const int signal = runtime::pending_interrupt()) throw SelfTestStopped{signal};
}

int self_test(const runtime::Session& session, const runtime::DeviceRequest& request,
              const std::vector<SelfTestCase>& cases, runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Activity::setup);
  const runtime::Communicator& world = session.world();
  std::vector<SelfTestResult> expected;
  std::size_t n_failed = 0, n_rows = 0;
  const auto complaint = core::complaint_of([&] {
    if (world.n_ranks() > 1)
      core::fail_usage({.what = fmt::format("{} ranks were started", world.n_ranks()),
                        .where = std::string{self_test_flag},
                        .expected = "one",
                        .fix = "start it without a launcher, on each node in turn"});
    const auto host = nn::open_device(1);
    const runtime::DeviceChoice choice = choose_training_device(world, runtime::discover_topology(world), request);
    core::print("device  {}\n", to_text(choice).empty() ? "host" : to_text(choice));
    for (const SelfTestCase& given : cases) {
      expected.push_back(compute(*host, given, nn::Precision::f32));
      stop_if_asked();
      watchdog.beat();
    }
    const runtime::DeviceTraits traits = runtime::traits_of(choice);
    const runtime::UseDevice use{choice};
    const auto gpu = open_accelerator(choice, 1);
    nn::Device& device = gpu ? *gpu : *host;
    const core::Table table = result_table();
    core::print(table.header());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (const SelfTestPrecision& precision : self_test_precisions) {
        if (precision.precision == nn::Precision::f16 && !traits.has_f16) continue;
        if (precision.precision == nn::Precision::bf16 && !traits.has_bf16) continue;
        ++n_rows;
        if (!tell_row(table, cases[i], precision, compute(device, cases[i], precision.precision), expected[i]))
          ++n_failed;
        stop_if_asked();
        watchdog.beat();
      }
    }
    core::print("verdict {}\n", n_failed == 0
                                    ? "the device computes the same as the host"
                                    : fmt::format("{} of {} differ by more than the limit", n_failed, n_rows));
  });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return core::to_int(n_failed == 0 ? core::ExitCode::ok : core::ExitCode::failed);
}

}  // namespace

bool asks_for_self_test(const std::vector<std::string>& arguments) {
  return std::ranges::find(arguments, self_test_flag) != arguments.end();
}

Invocation parse_self_test(const std::vector<std::string>& arguments) {
  auto request = std::make_shared<runtime::DeviceRequest>();
  request->kind = runtime::accelerated;  // otherwise the test would be pointless
  Invocation invocation;
  core::Flags flags{"lockstep train --self-test [MODEL ...] [flags]"};
  bool is_asked = false;
  flags.toggle(std::string{self_test_flag}, is_asked);
  flags.choice("--device", "device", request->kind, runtime::all_device_kinds);
  flags.seconds("--timeout", invocation.timeout);
  std::vector<std::string> models;
  flags.words("MODEL", models, 0);
  refuse_flags_of_training(arguments, flags.names());
  flags.parse(arguments);
  invocation.run = [request, cases = cases_of(models)](const runtime::Session& session, runtime::Watchdog& watchdog) {
    try {
      return self_test(session, *request, cases, watchdog);
    } catch (const SelfTestStopped& stopped) {
      return 128 + stopped.signal;
    }
  };
  return invocation;
}

}  // namespace lockstep::training
