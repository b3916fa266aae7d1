// The executor for GPUs: every layer and model against the reference in double precision, and the device operations of
// its steps.
#include <gtest/gtest.h>

#include "core/rng.hpp"
#include "data/augment/augment.hpp"
#include "runtime/staging.hpp"
#include "support/sanitized.hpp"
#include "unit/nn_cuda/on_test_device.hpp"

namespace lockstep::nn::cuda {
namespace {

class CudaExecutorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& complaint : device_.complaints()) ADD_FAILURE() << complaint;
  }

  /// A training step, the same added once more, and an evaluation.
  static void expect_as_reference(const Case& given, Precision precision, double tolerance, bool fuses = false,
                                  const PlaceParameters& place = {}) {
    SCOPED_TRACE(given.name);
    OnTestDevice on{given, precision, false, fuses, place};
    const LossSums wanted = on.reference_forward(true);
    on.forward(true);
    on.backward(0.125F);
    const LossSums found = on.sums();
    on.expect_loss(found.loss, wanted.loss, tolerance);
    EXPECT_EQ(found.n, wanted.n);
    if (precision == Precision::f32 && tolerance < 1e-3) {
      EXPECT_EQ(found.n_top1, wanted.n_top1);
      EXPECT_EQ(found.n_top5, wanted.n_top5);
    }
    on.reference().backward(0.125);
    on.expect_as_reference(tolerance);
    on.forward(true, 0);  // a backward pass overwrites what it read
    static_cast<void>(on.sums());
    on.backward(0.125F, true);
    on.expect_as_reference(tolerance, 2);
    const LossSums evaluated = on.reference_forward(false);
    on.forward(false);
    on.expect_loss(on.sums().loss, evaluated.loss, tolerance);
  }

  test::TestDevice device_{};
  const double tolerance_ = test::tolerance_in_f32(1e-5);
};

TEST_F(CudaExecutorTest, LayersAreAsTheReference) {
  for (const Case& given : layer_cases()) expect_as_reference(given, Precision::f32, tolerance_);
}

TEST_F(CudaExecutorTest, ParametersAreAnywhere) {
  for (const Case& given : layer_cases())
    expect_as_reference(given, Precision::f32, tolerance_, false, place_with_gaps);
}

TEST_F(CudaExecutorTest, LayersInBf16AreNearTheReference) {
  for (const Case& given : layer_cases()) expect_as_reference(given, Precision::bf16, 0.05);
}

TEST_F(CudaExecutorTest, LayersInF16AreNearTheReference) {
  for (const Case& given : layer_cases()) expect_as_reference(given, Precision::f16, 0.01);
}

// Strategies may keep matrices in float32 elsewhere.
TEST_F(CudaExecutorTest, LayersReadMatricesInTheirPrecisionOnly) {
  for (const Case& given : layer_cases()) {
    OnTestDevice on{given, Precision::bf16};
    for (const ArenaSlot& slot : on.executor().slots())
      if (given.network.parameters()[static_cast<std::size_t>(slot.parameter)].shape.size() > 1)
        on.stream().fill(runtime::as_writable_bytes(on.parameters().subspan(slot.slice.offset, slot.slice.count)),
                         std::byte{0xff});  // NaN
    const LossSums wanted = on.reference_forward(true);
    on.forward(true);
    on.backward(0.125F);
    on.expect_loss(on.sums().loss, wanted.loss, 0.05);
    on.reference().backward(0.125);
    on.expect_as_reference(0.05);
  }
}

TEST_F(CudaExecutorTest, ModelsAreAsTheReference) {
  for (const Case& given : model_cases()) {
    // A sanitizer takes minutes for the larger ones, whose layers it also checks in the smaller ones.
    if (given.name == "resnet50" || (is_sanitized && given.name == "resnet18_cifar")) continue;
    expect_as_reference(given, Precision::f32, 2 * tolerance_);
  }
}

TEST_F(CudaExecutorTest, BottlenecksAreAsTheReference) {
  if (is_sanitized || !device_.is_recorder()) GTEST_SKIP() << "takes minutes, or products that round otherwise";
  for (const Case& given : model_cases()) {
    if (given.name != "resnet50") continue;
    // Batch normalization of four values in its last layers turns differences of 1e-7 into about 1e-2.
    expect_as_reference(given, Precision::f32, 0.05);
  }
}

// Biases, ReLU, and kept gradients, as parts of products; only a few, because a library compiles some for seconds.
TEST_F(CudaExecutorTest, FusedProductsAreAsTheReference) {
  std::vector<Case> cases;
  for (const auto& some : {layer_cases(), model_cases()})
    for (const Case& given : some)
      if (given.name == "linear" || given.name == "conv" || given.name == "mnist_cnn") cases.push_back(given);
  ASSERT_EQ(cases.size(), 3U);
  std::string seen;
  for (const Case& given : cases) {
    expect_as_reference(given, Precision::f32, 2 * tolerance_, true);
    expect_as_reference(given, Precision::bf16, 0.05, true);
    if (!device_.is_recorder()) continue;
    for (const std::string& line : device_.take_lines()) seen += line + '\n';
  }
  if (!device_.is_recorder()) return;
  for (const char* name :
       {" conv_bias ", " conv_bias_relu ", " conv_input_gradient_relu ", " conv_weight_gradient_kept "})
    EXPECT_NE(seen.find(name), std::string::npos) << name;
}

TEST_F(CudaExecutorTest, AsksForTheSameStepAgain) {
  if (!device_.is_recorder()) GTEST_SKIP() << "only a recorder tells what it is asked for";
  for (const Case& given : model_cases()) {
    if (given.name != "mnist_cnn" && (is_sanitized || given.name != "resnet18_cifar")) continue;
    OnTestDevice on{given, Precision::bf16};
    const auto step = [&] {
      on.forward(true);
      on.backward(1);
    };
    step();
    static_cast<void>(on.sums());
    step();
    static_cast<void>(device_.take_lines());
    const int n_allocations = device_.n_allocations();
    step();
    const std::vector<std::string> first = take_lasting_lines(device_);
    step();
    static_cast<void>(device_.take_lines());  // for the other place from which batches are sent
    step();
    const std::vector<std::string> again = take_lasting_lines(device_);
    ASSERT_EQ(again.size(), first.size()) << given.name;
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(again[i], first[i]) << given.name;
    EXPECT_EQ(device_.n_allocations(), n_allocations) << given.name;
  }
}

TEST_F(CudaExecutorTest, AddsUpTheGradientsOfAllReaders) {
  Network net;
  const Value x = net.conv("conv1", net.input({3, 6, 6}), {.n_out = 5, .kernel = 3, .padding = 1});
  const Value a = net.conv("conv2", x, {.n_out = 5, .kernel = 1}), b = net.batch_norm("bn1", x), c = net.relu(x);
  const Value sum = net.add(net.add(a, b), net.add(c, net.add(x, x)), {.has_relu = true});
  net.linear("fc", net.global_avg_pool(sum), {.n_out = 4});
  Case given{"readers", net};
  given.batch = {.n = 2, .classes = {3, 0}};
  for (std::uint64_t i = 0; i < 2 * 3 * 6 * 6; ++i) given.batch.x.push_back(value(21, i));
  expect_as_reference(given, Precision::f32, tolerance_);
}

// All gradients of a weight are added up, though some are computed beside the pass.
TEST_F(CudaExecutorTest, AddsUpTheGradientsOfASharedWeight) {
  Network net;
  const Value wte = net.embedding("wte", net.ids(2), {.n_rows = 9, .width = 4, .column = std::nullopt});
  const Value middle = net.linear("middle", wte, {.n_out = 9}, wte);
  net.linear("head", net.linear("fc", middle, {.n_out = 4}), {.n_out = 9, .has_bias = false}, wte);
  Case given{"shared", net};
  given.batch = {.n = 3, .ids = {3, 0, 1, 8, 3, 3}, .classes = {1, 7, 0, 3, 8, 3}};
  expect_as_reference(given, Precision::f32, tolerance_);
  expect_as_reference(given, Precision::f32, tolerance_, true);
  EXPECT_EQ((OnTestDevice{given, Precision::f32}.executor().slots().size()), 4U);
}

// The other input of a sum with a normalization may be the samples themselves, which need no gradient.
TEST_F(CudaExecutorTest, AddsNormalizedSamples) {
  for (const bool is_first : {true, false}) {
    Network net;
    const Value x = net.input({3, 6, 6});
    const Value a = net.conv("conv", x, {.n_out = 3, .kernel = 1}), b = net.batch_norm("bn", x);
    net.linear("fc", net.global_avg_pool(is_first ? net.add(b, a) : net.add(a, b)), {.n_out = 4});
    Case given{"samples", net};
    given.batch = {.n = 2, .classes = {3, 0}};
    for (std::uint64_t i = 0; i < 2 * 3 * 6 * 6; ++i) given.batch.x.push_back(value(23, i));
    expect_as_reference(given, Precision::f32, tolerance_);
  }
}

// Convolutions of the input with stride 2, in squares of pixels.
TEST_F(CudaExecutorTest, FoldsConvolutionsOfImages) {
  for (const std::uint64_t kernel : {3U, 5U, 7U})
    for (const std::size_t n_channels : {std::size_t{1}, std::size_t{3}, std::size_t{4}}) {
      Network net;
      const Value x = net.conv("conv", net.input({n_channels, 6, 10}),
                               {.n_out = 5, .kernel = kernel, .stride = 2, .padding = kernel / 2});
      net.linear("fc", net.global_avg_pool(net.relu(x)), {.n_out = 4});
      Case given{fmt::format("folded {} of {}", kernel, n_channels), net};
      given.batch = {.n = 2, .classes = {3, 0}};
      for (std::uint64_t i = 0; i < 2 * n_channels * 6 * 10; ++i) given.batch.x.push_back(value(22, i));
      static_cast<void>(device_.take_lines());
      expect_as_reference(given, Precision::f32, tolerance_);
      if (!device_.is_recorder()) continue;
      const std::vector<std::string> lines = device_.take_lines();
      EXPECT_TRUE(std::ranges::any_of(
          lines, [](const std::string& line) { return line.find("fold_images") != std::string::npos; }));
    }
}

// Memory from which a batch is sent is not overwritten before that is done.
TEST_F(CudaExecutorTest, AddsUpPassesThatNobodyWaitedFor) {
  const Case given = layer_cases()[2];
  OnTestDevice on{given, Precision::f32};
  const LossSums wanted = on.reference_forward(false);
  on.forward_part(Pass::evaluation, 0, 1);
  on.forward_part(Pass::evaluation, 1, 3);
  const LossSums found = on.sums();
  EXPECT_EQ(found.n, 3U);
  EXPECT_NEAR(found.loss, wanted.loss, tolerance_ * wanted.loss);
  EXPECT_EQ(on.sums().n, 0U) << "sums() begins anew";
}

// Two steps may be enqueued before the host requests the first one's sums.
TEST_F(CudaExecutorTest, KeepsTheSumsOfStepsApart) {
  const Case given = layer_cases()[2];
  OnTestDevice on{given, Precision::f32};
  const LossSums wanted = on.reference_forward(false);
  const auto step = [&](std::uint64_t begin, std::uint64_t end) {
    on.forward_part(Pass::evaluation, begin, end);
    on.executor().end_sums(on.stream());
  };
  const auto ended = [&] { return on.executor().ended_sums(); };
  step(0, 1);
  step(1, 3);
  EXPECT_ANY_THROW(on.executor().end_sums(on.stream())) << "a third";
  const LossSums first = ended();
  EXPECT_EQ(first.n, 1U);
  step(0, 0);
  const LossSums second = ended();
  EXPECT_EQ(second.n, 2U);
  EXPECT_EQ(ended().n, 0U) << "a step without samples";
  EXPECT_ANY_THROW(static_cast<void>(ended()));
  EXPECT_NEAR(first.loss + second.loss, wanted.loss, tolerance_ * wanted.loss);
}

// A recording works for other samples of the same number, with other numbers.
TEST_F(CudaExecutorTest, ReplaysPasses) {
  std::vector<Case> cases = layer_cases();
  if (!is_sanitized)
    for (const Case& given : model_cases())
      if (given.name == "mnist_cnn" || given.name == "movielens") cases.push_back(given);
  for (const Case& given : cases) {
    if (given.batch.n < 2) continue;
    OnTestDevice wanted{given, Precision::f32};
    wanted.forward_part(Pass::forward, 1, 2);
    wanted.backward(0.25F);
    OnTestDevice found{given, Precision::f32};
    found.send(0, 1, 1);
    found.stream().begin_recording();
    found.enqueue_sent();
    const runtime::Recording recording = found.stream().end_recording();
    found.stream().replay(recording);
    const LossSums others = found.sums();
    found.send(1, 2, 0.25F);
    found.stream().replay(recording);
    const LossSums sums = found.sums();
    EXPECT_NE(sums.loss, others.loss) << given.name;
    EXPECT_NEAR(sums.loss, wanted.sums().loss, tolerance_ * std::abs(sums.loss)) << given.name;
    EXPECT_LE(relative_error(found.fetch_gradients(), wanted.fetch_gradients()), tolerance_) << given.name;
    found.send(0, 1, 0.5F);
    const runtime::Recording adding = found.stream().record([&] { found.enqueue_sent(true); });
    found.stream().replay(adding);
    wanted.forward_part(Pass::forward, 0, 1);
    wanted.backward(0.5F, true);
    EXPECT_LE(relative_error(found.fetch_gradients(), wanted.fetch_gradients()), tolerance_) << given.name;
  }
}

/// Four images of 7x5, viewed through windows of 6x6, and the same as floats of a loader.
struct Pictures {
  static constexpr int height = 7, width = 5, n_channels = 3, side = 6;
  static constexpr std::uint64_t n = 4;

  explicit Pictures(const data::AugmentOptions& options) {
    data::SetSpec spec;
    spec.x.shape = {height, width, n_channels};
    const data::Augment augment{spec, options};
    levels.assign(augment.levels().begin(), augment.levels().end());
    std::vector<std::byte> stored(spec.x.bytes()), kept(augment.pixels()->bytes());
    std::vector<float> of_sample(augment.output().n_elements());
    core::Random random{1};
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::byte& pixel : stored) pixel = static_cast<std::byte>(random.below(256));
      augment.apply(stored, 0, 0, 1, i, std::as_writable_bytes(std::span{of_sample}), {});
      floats.insert(floats.end(), of_sample.begin(), of_sample.end());
      views.push_back(augment.take(stored, 0, 0, 1, i, kept, {}));
      for (const std::byte pixel : kept) pixels.push_back(std::to_integer<std::uint8_t>(pixel));
    }
  }
  [[nodiscard]] static Case given(const std::vector<float>& floats, bool is_pixels) {
    Network net;
    Value x = net.input({n_channels, side, side}, {.is_pixels = is_pixels});
    x = net.conv("conv1", x, {.n_out = 5, .kernel = 3, .padding = 1});
    net.linear("fc", net.global_avg_pool(net.relu(x)), {.n_out = 4});
    Case given{is_pixels ? "pixels" : "floats", net};
    given.batch = {.n = n, .classes = {3, 0, 1, 2}};
    given.batch.x.assign(floats.begin(), floats.end());
    return given;
  }

  std::vector<float> floats{}, levels{};
  std::vector<std::uint8_t> pixels{};
  std::vector<data::ImageView> views{};
};

TEST_F(CudaExecutorTest, MakesTheFloatsOfALoaderOfPixels) {
  const Pictures pictures{{.steps = data::parse_augment("crop:6:1,flip,normalize:0.4/0.5/0.6:0.2/0.3/0.4", "chain")}};
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16}) {
    OnTestDevice wanted{Pictures::given(pictures.floats, false), precision};
    OnTestDevice found{Pictures::given(pictures.floats, true), precision};
    EXPECT_ANY_THROW(found.forward(true)) << "floats for a network that takes pixels";
    found.pixels = pictures.pixels;
    found.images = {.height = 7, .width = 5, .n_channels = 3, .levels = pictures.levels, .views = pictures.views};
    const auto expect_same = [&] {
      EXPECT_EQ(found.sums().loss, wanted.sums().loss);
      EXPECT_TRUE(std::ranges::equal(found.fetch_gradients(), wanted.fetch_gradients()));
    };
    for (OnTestDevice* const on : {&wanted, &found}) {
      on->forward(true);
      on->backward(0.25F);
    }
    expect_same();
    for (OnTestDevice* const on : {&wanted, &found}) on->forward_part(Pass::evaluation, 1, 4);
    expect_same();

    found.send(0, 2, 1);
    found.stream().begin_recording();
    found.enqueue_sent();
    const runtime::Recording recording = found.stream().end_recording();
    found.send(2, 4, 0.5F);
    found.stream().replay(recording);
    wanted.forward_part(Pass::forward, 2, 4);
    wanted.backward(0.5F);
    expect_same();
    found.images->height = 5, found.images->width = 7;
    EXPECT_ANY_THROW(found.send(0, 2, 1)) << "a recording is of images of one size";
  }
}

// A rank without samples has gradients of 0, and its slots become ready like all others.
TEST_F(CudaExecutorTest, TakesABatchOfNone) {
  OnTestDevice on{layer_cases()[2], Precision::f32};
  static_cast<void>(on.reference_forward(true));
  on.reference().backward(1);
  on.forward(true);
  on.backward(1);
  on.forward_part(Pass::evaluation, 0, 0);
  on.backward(1);
  on.expect_as_reference(1e-6, 0);
}

TEST_F(CudaExecutorTest, RefusesLabelsThatAreNoClass) {
  Case given = layer_cases()[1];
  given.batch.classes[2] = 7;
  OnTestDevice on{given, Precision::f32};
  on.forward(true);
  EXPECT_ANY_THROW(static_cast<void>(on.sums()));
}

TEST_F(CudaExecutorTest, RefusesToNormalizeASingleValue) {
  Network net;
  const Value x = net.conv("conv1", net.input({1, 3, 3}), {.n_out = 2, .kernel = 3});
  net.linear("fc", net.flatten(net.batch_norm("bn1", x)), {.n_out = 2});
  Case given{"single", net};
  given.batch = {.n = 3, .classes = {1, 0, 1}};
  for (std::uint64_t i = 0; i < given.batch.n * 9; ++i) given.batch.x.push_back(value(24, i));
  OnTestDevice on{given, Precision::f32};
  on.forward(true);
  try {
    on.forward_part(Pass::forward, 0, 1);
    ADD_FAILURE() << "one value has no variance";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    EXPECT_NE(std::string{error.what()}.find("bn1"), std::string::npos) << error.what();
  }
  on.forward_part(Pass::evaluation, 0, 1);
}

TEST_F(CudaExecutorTest, RefusesMorePacksThanKernelsCount) {
  const Node node{.name = "pool", .layer = MaxPool{}, .inputs = {}, .output = {}};
  const ValueLayout layout{.n_positions = std::size_t{1} << 20, .n_channels = 13, .padded_channels = 16};
  EXPECT_NO_THROW(require_indices(node, layout, 2047));
  try {
    require_indices(node, layout, 2048);
    FAIL() << "2^32 packs were taken";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    EXPECT_NE(error.problem().expected.find("at most 2047"), std::string::npos);
    EXPECT_NE(error.problem().what.find("'pool'"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda
