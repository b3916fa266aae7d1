// The device operations of steps of the shipped recipes' models, at full size: recorded and judged, not run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "support/plain_convolutions.hpp"
#include "support/recipe_models.hpp"
#include "support/recorder.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

using test::RecipeModel;

class Quiet final : public Hooks {
 public:
  void touched(std::size_t, std::span<const std::uint64_t>) override {}
  void ready(std::size_t) override {}
  void sum(runtime::DeviceSpan<double>, runtime::Stream&) override {}
};

/// An executor of a recipe's model, on samples of zeros.
class Steps {
 public:
  Steps(const RecipeModel& of, Precision precision)
      : network_{make_model(of.spec)},
        executor_{make_cuda_executor(
            network_, {.max_batch = of.batch, .bn_group = of.bn_group, .loss = of.loss, .precision = precision},
            convolutions_)},
        parameters_{arena_bytes(), Memory::device},
        gradients_{arena_bytes(), Memory::device},
        weights_{core::Bytes{executor_->weights_bytes()}, Memory::device},
        batch_{.n = of.batch} {
    executor_->bind(places_in(*executor_, parameters_.on_device<float>(), gradients_.on_device<float>(),
                              weights_.on_device<std::byte>()));
    const Node& first = network_.nodes().front();
    const bool has_ids = std::holds_alternative<Ids>(first.layer);
    x_.resize(of.batch * n_elements(first.output) *
              (has_ids                ? sizeof(std::int64_t)
               : of.spec.takes_pixels ? 1
                                      : sizeof(float)));
    if (of.spec.takes_pixels) {
      views_.resize(of.batch);
      levels_.resize(256 * first.output[0]);
      batch_.images = data::Images{.height = static_cast<int>(first.output[1]),
                                   .width = static_cast<int>(first.output[2]),
                                   .n_channels = static_cast<int>(first.output[0]),
                                   .levels = levels_,
                                   .views = views_};
    }
    y_.resize(of.batch * (of.loss == Loss::mse ? n_elements(network_.output()) * sizeof(float) : sizeof(std::int64_t)));
    batch_.x = x_;
    batch_.y = y_;
  }

  /// Like a trainer: requests sums when the next step is enqueued.
  void train() {
    executor_->enqueue(batch_, Pass::forward, {}, hooks_, stream_);
    executor_->enqueue({}, Pass::backward, {}, hooks_, stream_);
    executor_->end_sums(stream_);
    if (std::exchange(has_trained_, true)) static_cast<void>(executor_->ended_sums());
  }
  void evaluate() { executor_->enqueue(batch_, Pass::evaluation, {}, hooks_, stream_); }
  /// A step of two parts without its update.
  void accumulate() {
    for (const Pass backward : {Pass::backward, Pass::backward_adding}) {
      executor_->enqueue(batch_, Pass::forward, {}, hooks_, stream_);
      executor_->enqueue({}, backward, {}, hooks_, stream_);
    }
  }
  [[nodiscard]] std::size_t n_bytes() const {
    return executor_->n_bytes() + 2 * arena_bytes().value + executor_->weights_bytes();
  }

  /// The operands of products, which layers read in 16 bits, in elements of the arenas.
  [[nodiscard]] std::vector<core::Slice> operands() const {
    std::vector<core::Slice> slices;
    for (const ArenaSlot& slot : executor_->slots())
      if (std::ranges::any_of(network_.nodes(), [&](const Node& node) {
            const bool is_product =
                std::holds_alternative<Linear>(node.layer) || std::holds_alternative<Conv>(node.layer);
            return is_product && node.parameters[0] == slot.parameter;
          }))
        slices.push_back(slot.slice);
    return slices;
  }
  /// How a recorder's lines call the memory of parameters, and of weights.
  [[nodiscard]] std::string parameters_in(test::Recorder& recorder) { return name_in(recorder, parameters_); }
  [[nodiscard]] std::string weights_in(test::Recorder& recorder) { return name_in(recorder, weights_); }

 private:
  std::string name_in(test::Recorder& recorder, const Buffer& of) {
    static_cast<void>(recorder.take_lines());
    stream_.fill(of.on_device<std::byte>(), std::byte{0});
    const std::string line = recorder.take_lines().at(0);  // "0 fill 0 >7[0:64]"
    const std::size_t begin = line.find('>') + 1;
    return line.substr(begin, line.find('[') - begin);
  }
  [[nodiscard]] core::Bytes arena_bytes() const { return core::Bytes{executor_->arena_elements() * sizeof(float)}; }

  test::PlainConvolutions convolutions_{};
  Network network_;
  std::unique_ptr<Executor> executor_;
  Buffer parameters_, gradients_, weights_;
  runtime::Stream stream_{};
  Quiet hooks_{};
  bool has_trained_ = false;
  std::vector<std::byte> x_{}, y_{};
  std::vector<data::ImageView> views_{};
  std::vector<float> levels_{};
  data::Batch batch_;
};

class RecipeSteps : public ::testing::TestWithParam<RecipeModel> {};

// Facts that hold for a step in advance: no unnecessary allocation or wait, no access out of order, all its memory is
// declared, and the next step is the same.
TEST_P(RecipeSteps, AreKnownBeforehand) {
  test::Recorder recorder{runtime::kernel::ThreadOrder::ascending, test::Bodies::skip};
  const test::UseRecorder use{recorder};
  std::size_t most = 0;
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16}) {
    Steps steps{GetParam(), precision};
    steps.train();
    const std::size_t of_training = steps.n_bytes();
    EXPECT_EQ(recorder.n_bytes(), of_training);
    steps.evaluate();
    EXPECT_EQ(steps.n_bytes(), of_training) << "an evaluation lies where a step does";
    for (int i = 0; i < 2; ++i) steps.train();  // until the evaluation's batch is known to be sent
    static_cast<void>(recorder.take_lines());
    const int n_allocations = recorder.n_allocations(), n_waits = recorder.n_host_waits();
    steps.train();
    EXPECT_EQ(recorder.n_allocations(), n_allocations);
    const std::vector<std::string> first = take_lasting_lines(recorder);
    steps.train();
    static_cast<void>(recorder.take_lines());  // for the other place from which batches are sent
    steps.train();
    EXPECT_TRUE(take_lasting_lines(recorder) == first) << "a later step is another";
    EXPECT_EQ(recorder.n_host_waits(), n_waits + 3) << "the host waits for the step before alone";
    EXPECT_EQ(recorder.n_bytes(), steps.n_bytes());
    most = std::max(most, steps.n_bytes());
    EXPECT_EQ(recorder.peak_bytes(), most);
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

/// The bytes within `slices` of some memory that operations read ('<') or write ('>'). Elements have `n_bytes` each.
std::size_t bytes_touched(const std::vector<std::string>& lines, char access, const std::string& memory,
                          const std::vector<core::Slice>& slices, std::size_t n_bytes) {
  const std::string place = std::string{' ', access} + memory + '[';
  std::size_t n = 0;
  for (const std::string& line : lines)
    for (std::size_t at = line.find(place); at != std::string::npos; at = line.find(place, at + 1)) {
      std::size_t begin = 0, end = 0;
      char colon = 0;
      std::istringstream{line.substr(at + place.size())} >> begin >> colon >> end;
      for (const core::Slice& slice : slices)
        n += core::intersection({begin, end - begin}, {slice.offset * n_bytes, slice.count * n_bytes}).count;
    }
  return n;
}

// The owner of the parameters rounds them: parts of a step and evaluations only read the result.
TEST_P(RecipeSteps, RoundNoWeights) {
  test::Recorder recorder{runtime::kernel::ThreadOrder::ascending, test::Bodies::skip};
  const test::UseRecorder use{recorder};
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    Steps steps{GetParam(), precision};
    const std::vector<core::Slice> operands = steps.operands();
    const std::string parameters = steps.parameters_in(recorder), weights = steps.weights_in(recorder);
    std::size_t n_operands = 0;
    for (const core::Slice& slice : operands) n_operands += slice.count;
    for (void (Steps::*const pass)() : {&Steps::accumulate, &Steps::evaluate}) {
      (steps.*pass)();
      const std::vector<std::string> lines = recorder.take_lines();
      EXPECT_EQ(bytes_touched(lines, '<', parameters, operands, sizeof(float)), 0U);
      EXPECT_EQ(bytes_touched(lines, '>', weights, operands, 2), 0U);
      EXPECT_GE(bytes_touched(lines, '<', weights, operands, 2), 2 * n_operands);
    }
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

INSTANTIATE_TEST_SUITE_P(All, RecipeSteps, ::testing::ValuesIn(test::recipe_models()),
                         [](const auto& of) { return std::string{of.param.recipe}; });

// Those of small products. ResNet-50 has only its last layer of them; its gradient comes before the first gradient of
// an input, by which the test recognises the pass.
TEST(WeightGradients, AreComputedBesideThePass) {
  test::Recorder recorder{runtime::kernel::ThreadOrder::ascending, test::Bodies::skip};
  const test::UseRecorder use{recorder};
  for (const RecipeModel& model : test::recipe_models()) {
    const std::string_view recipe = model.recipe;
    if (recipe != "cifar_resnet18" && recipe != "resnet50_synthetic") continue;
    Steps steps{model, Precision::bf16};
    steps.train();
    std::string stream_of_pass;
    std::size_t n_beside = 0, n_within = 0;
    for (const std::string& line : recorder.take_lines()) {
      const std::string stream = line.substr(0, line.find(' '));
      if (line.find(" conv_input_gradient ") != std::string::npos) stream_of_pass = stream;
      if (line.find(" conv_weight_gradient ") == std::string::npos || stream_of_pass.empty()) continue;
      ++(stream == stream_of_pass ? n_within : n_beside);
    }
    EXPECT_EQ(n_within > 0, recipe == "resnet50_synthetic");
    EXPECT_EQ(n_beside > 0, recipe == "cifar_resnet18");
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

/// The value of a key of a recipe, without quotes; empty if it is not set.
std::string value_of(const std::string& text, const std::string& key) {
  std::smatch found;
  return std::regex_search(text, found, std::regex{"\n" + key + " = \"?([^\"\n]*)"}) ? found[1].str() : "";
}

/// The size after a crop, else the side of synthetic images; empty if the data set determines it.
std::string side_of(const std::string& text) {
  const std::string augment = value_of(text, "augment");
  const std::regex crop{"crop:([0-9]+)"};
  std::string side = value_of(text, "image-size");
  for (std::sregex_iterator at{augment.begin(), augment.end(), crop}, end; at != end; ++at) side = (*at)[1];
  return side;
}

TEST(RecipeModels, AreThoseOfTheRecipes) {
  std::set<std::string> shipped, known;
  for (const auto& entry : std::filesystem::directory_iterator{LOCKSTEP_RECIPES_FOLDER})
    shipped.insert(entry.path().stem().string());
  for (const RecipeModel& model : test::recipe_models()) {
    known.insert(model.recipe);
    std::ifstream file{std::filesystem::path{LOCKSTEP_RECIPES_FOLDER} / (std::string{model.recipe} + ".toml")};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    const auto expect = [&](const std::string& said, std::uint64_t here) {
      EXPECT_TRUE(said.empty() || said == std::to_string(here)) << model.recipe << " says " << said;
    };
    EXPECT_EQ(value_of(text, "model"), model.spec.name) << model.recipe;
    EXPECT_EQ(value_of(text, "batch"), std::to_string(model.batch)) << model.recipe;
    expect(value_of(text, "classes"), model.spec.n_outputs);
    EXPECT_EQ(value_of(text, "bn-group"), model.bn_group == 0 ? "" : std::to_string(model.bn_group)) << model.recipe;
    EXPECT_EQ(value_of(text, "cifar-stem"), model.spec.cifar_stem ? "true" : "") << model.recipe;
    for (std::size_t axis = 1; axis < model.spec.input.size(); ++axis) expect(side_of(text), model.spec.input[axis]);
  }
  EXPECT_EQ(known, shipped);
}

}  // namespace
}  // namespace lockstep::nn::cuda
