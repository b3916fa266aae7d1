#include "checkpoint/weights.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "io/hdf5.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;
using core::ExitCode;
using io::expect_error;
using io::get;
using io::put;
using io::TemporaryFolder;

const std::vector<TensorSpec> specs{{"conv1.weight", {8, 3, 5, 5}},
                                    {"layer1.0.conv1.weight", {4, 2}},
                                    {"layer1.0.bn1.running_mean", {4}},
                                    {"user_factors.weight", {610, 58}}};

float value(std::size_t tensor, std::size_t element) {
  return static_cast<float>(tensor) + 0.001f * static_cast<float>(element) - 0.5f;
}

void fill(std::size_t i, std::span<float> values) {
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = value(i, k);
}

void save(const std::string& path, const std::vector<TensorSpec>& tensors = specs) {
  save_weights(path, {.model = "mine", .epoch = 3, .samples_seen = 6144}, tensors, fill, "--save-weights");
}

/// Values by tensor.
std::vector<std::vector<float>> load(const std::string& path, const std::vector<TensorSpec>& tensors = specs,
                                     const std::string& model = "mine") {
  std::vector<std::vector<float>> values;
  const auto take = [&](std::size_t i, std::span<const float> tensor) {
    EXPECT_EQ(i, values.size());
    values.emplace_back(tensor.begin(), tensor.end());
  };
  (void)load_weights(runtime::Communicator::alone(), path, model, tensors, take, "--init-from");
  return values;
}

/// Changes the byte where `text` begins in the file.
void damage(const std::string& path, const std::string& text) {
  std::string content = get(path);
  const std::size_t at = content.find(text);
  ASSERT_NE(at, std::string::npos);
  content[at] = static_cast<char>(content[at] ^ 1);
  put(path, content);
}

std::string bytes_of(float number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

TEST(Weights, ComeBackAsTheyWere) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  const auto values = load(folder / "w.h5");
  ASSERT_EQ(values.size(), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ASSERT_EQ(values[i].size(), nn::n_elements(specs[i].shape));
    for (std::size_t k = 0; k < values[i].size(); ++k)
      ASSERT_EQ(values[i][k], value(i, k)) << specs[i].name << " " << k;
  }
  const WeightsInfo info = load_weights(
      runtime::Communicator::alone(), folder / "w.h5", "mine", specs, [](auto, auto) {}, "--init-from");
  EXPECT_EQ(info.model, "mine");
  EXPECT_EQ(info.epoch, 3u);
  EXPECT_EQ(info.samples_seen, 6144u);
}

TEST(Weights, OrderAndDateDoNotMatter) {
  const TemporaryFolder folder;
  save(folder / "a.h5");
  save(folder / "b.h5");
  EXPECT_EQ(get(folder / "a.h5"), get(folder / "b.h5"));
  const auto reversed = load(folder / "a.h5", {specs.rbegin(), specs.rend()});
  EXPECT_EQ(reversed[0][5], value(3, 5));
}

TEST(Weights, AreContiguousDataSetsByTheirNames) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  const io::Hdf5File file = io::Hdf5File::open(folder / "w.h5");
  EXPECT_EQ(file.dataset_names(), (std::vector<std::string>{"/conv1.weight", "/layer1.0.bn1.running_mean",
                                                            "/layer1.0.conv1.weight", "/user_factors.weight"}));
  const io::Hdf5Dataset dataset = file.open_dataset("/conv1.weight");
  EXPECT_EQ(dataset.dimensions(), (io::Dimensions{8, 3, 5, 5}));
  EXPECT_EQ(dataset.dtype(), core::DType::float32);
  const io::Extent extent = dataset.extents().at(0);
  EXPECT_EQ(extent.bytes, 600 * sizeof(float));
  EXPECT_EQ(get(folder / "w.h5").substr(extent.address, sizeof(float)), bytes_of(value(0, 0)));
}

TEST(Weights, ReplaceAnOldFileOnlyWhenWhole) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  const std::string before = get(folder / "w.h5");
  {
    const io::FullDisk full{20'000};
    expect_error([&] { save(folder / "w.h5"); }, ExitCode::system, {"w.h5"});
  }
  EXPECT_EQ(get(folder / "w.h5"), before);
  EXPECT_EQ(folder.n_entries(), 1u) << "nothing half-written stays";
  save(folder / "w.h5", {specs[0]});
  EXPECT_EQ(load(folder / "w.h5", {specs[0]}).size(), 1u);
}

TEST(Weights, APlaceThatCannotBeWrittenToNamesTheFlag) {
  const TemporaryFolder folder;
  expect_error([&] { save(folder / "none/w.h5"); }, ExitCode::usage, {"none/w.h5", "--save-weights"});
}

TEST(Weights, RefuseAModelTheyDoNotFit) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  auto model = specs;
  model[1].shape = {2, 4};
  model.push_back({"fc.bias", {10}});
  model.erase(model.begin());
  expect_error([&] { load(folder / "w.h5", model); }, ExitCode::usage,
               {"1 missing (fc.bias)", "1 unexpected (conv1.weight)",
                "1 of a different shape (layer1.0.conv1.weight: [4, 2], not [2, 4])", "--init-from", folder / "w.h5",
                "number of outputs"});
  expect_error([&] { load(folder / "w.h5", model, "yours"); }, ExitCode::usage, {"saved from model mine"});
}

/// Every name with `prefix` before it.
std::vector<TensorSpec> wrapped(const std::string& prefix, std::vector<TensorSpec> tensors = specs) {
  for (TensorSpec& tensor : tensors) tensor.name.insert(0, prefix);
  return tensors;
}

TEST(Weights, WhatAWrapperPutBeforeAllNamesIsLeftOut) {
  const TemporaryFolder folder;
  for (const std::string prefix : {"module.", "_orig_mod.", "model.", "module._orig_mod.", "_orig_mod.module.model.",
                                   "_fsdp_wrapped_module.", "net.", "module.encoder.backbone."}) {
    save(folder / "w.h5", wrapped(prefix));
    testing::internal::CaptureStderr();
    const auto values = load(folder / "w.h5");
    const std::string told = testing::internal::GetCapturedStderr();
    ASSERT_EQ(values.size(), specs.size()) << prefix;
    for (std::size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(values[i][3], value(i, 3)) << prefix << specs[i].name;
    EXPECT_EQ(told.find("info: '" + (folder / "w.h5") + "': left out '" + prefix + "', which "), 0u) << told;
    EXPECT_EQ(std::ranges::count(told, '\n'), 1) << told;
  }
  save(folder / "w.h5", wrapped("model."));
  testing::internal::CaptureStderr();
  load(folder / "w.h5", wrapped("model."));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "the model's own names";
}

TEST(Weights, AWrapperIsNamedWhereTheRestDoesNotFit) {
  const TemporaryFolder folder;
  auto tensors = wrapped("module.");
  tensors.pop_back();
  save(folder / "w.h5", tensors);
  expect_error([&] { load(folder / "w.h5"); }, ExitCode::usage,
               {"does not fit model mine, with or without 'module.', which DistributedDataParallel puts before all "
                "names; without: 1 missing (user_factors.weight)",
                "--init-from"});
  tensors = wrapped("net.");
  tensors.pop_back();
  save(folder / "w.h5", tensors);
  expect_error([&] { load(folder / "w.h5"); }, ExitCode::usage, {"4 missing (", "3 unexpected (net."});
  tensors = wrapped("module.");
  tensors.back() = specs.back();
  save(folder / "w.h5", tensors);
  expect_error([&] { load(folder / "w.h5"); }, ExitCode::usage, {"3 missing (", "3 unexpected (module."});
}

TEST(Weights, ListTheFirstDifferencesOnly) {
  const TemporaryFolder folder;
  save(folder / "w.h5", {specs[0]});
  std::vector<TensorSpec> model{specs[0]};
  for (int i = 0; i < 5; ++i) model.push_back({fmt::format("m{}", i), {1}});
  expect_error([&] { load(folder / "w.h5", model); }, ExitCode::usage, {"5 missing (m0, m1, m2, ...)"});
}

TEST(Weights, NothingIsTakenOfAFileThatDoesNotFit) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  const auto take = [](std::size_t, std::span<const float>) { FAIL() << "taken"; };
  const std::vector<TensorSpec> model{specs[0], specs[1]};
  EXPECT_THROW(load_weights(runtime::Communicator::alone(), folder / "w.h5", "mine", model, take, "--init-from"),
               core::Error);
}

TEST(Weights, NoticeDamageOfAnyTensor) {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    save(folder / "w.h5");
    damage(folder / "w.h5", bytes_of(value(i, 0)) + bytes_of(value(i, 1)));
    expect_error([&] { load(folder / "w.h5"); }, ExitCode::failed, {"is damaged", specs[i].name, "--init-from"});
  }
}

TEST(Weights, NoticeAMissingEnd) {
  const TemporaryFolder folder;
  save(folder / "w.h5");
  const std::string whole = get(folder / "w.h5");
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{100}}) {
    put(folder / "w.h5", whole.substr(0, size));
    expect_error([&] { load(folder / "w.h5"); }, ExitCode::failed, {"is damaged", "--init-from"});
  }
}

TEST(Weights, RefuseWhatIsNoFileOfWeights) {
  const TemporaryFolder folder;
  expect_error([&] { load(folder / "none.h5"); }, ExitCode::usage, {"none.h5", "--init-from"});
  put(folder / "text.h5", "these are no weights");
  expect_error([&] { load(folder / "text.h5"); }, ExitCode::usage,
               {"is not an HDF5, .npz or .safetensors file", "--init-from"});
  put(folder / "empty.h5", "");
  expect_error([&] { load(folder / "empty.h5"); }, ExitCode::usage, {"is an empty file", "--init-from"});
  io::Hdf5File shard = io::Hdf5File::create(folder / "shard.h5");
  shard.set_attribute("lockstep_format", std::string{"shard"});
  shard.close();
  expect_error([&] { load(folder / "shard.h5"); }, ExitCode::usage, {"is a Lockstep shard"});
}

TEST(Weights, RefuseValuesThatAreNotFinite) {
  const TemporaryFolder folder;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto fill_bad = [&](std::size_t i, std::span<float> values) {
      fill(i, values);
      if (i == 2) values[1] = values[3] = bad;
    };
    save_weights(folder / "w.h5", {.model = "mine"}, specs, fill_bad, "--save-weights");
    expect_error([&] { load(folder / "w.h5"); }, ExitCode::usage,
                 {"has 2 of 4 values of layer1.0.bn1.running_mean that are not finite, the first of them number 1",
                  "--init-from", "earlier step"});
  }
}

TEST(Weights, RefuseAVersionOfTheFuture) {
  const TemporaryFolder folder;
  io::Hdf5File file = io::Hdf5File::create(folder / "w.h5");
  file.set_attribute("lockstep_format", std::string{"weights"});
  file.set_attribute("lockstep_version", std::uint64_t{2});
  file.close();
  expect_error([&] { load(folder / "w.h5"); }, ExitCode::usage, {"version 2", "newer Lockstep"});
}

/// Writes a file like h5py: without attributes.
void write_foreign(const std::string& path, core::DType dtype) {
  io::Hdf5File file = io::Hdf5File::create(path);
  const std::vector<std::byte> data(6 * core::size_of(dtype));
  file.create_dataset("/fc.weight", dtype, {2, 3}, 0, io::Filter::none).write_all(data);
  file.create_dataset("/bn1.num_batches_tracked", core::DType::int64, {1}, 0, io::Filter::none)
      .write_all(std::span{data}.first(8));
  file.close();
}

TEST(Weights, AcceptFilesOfOthers) {
  const TemporaryFolder folder;
  write_foreign(folder / "f.h5", core::DType::float32);
  EXPECT_EQ(load(folder / "f.h5", {{"fc.weight", {2, 3}}}).at(0), std::vector<float>(6));
  write_foreign(folder / "d.h5", core::DType::float64);
  expect_error(
      [&] {
        load(folder / "d.h5", {{"fc.weight", {2, 3}}});
      },
      ExitCode::usage, {"stores fc.weight as float64", "float32", "dtype='f4'"});
}

TEST(Weights, AFileOfOursWithoutItsCheckSumIsDamaged) {
  const TemporaryFolder folder;
  io::Hdf5File file = io::Hdf5File::create(folder / "w.h5");
  file.set_attribute("lockstep_format", std::string{"weights"});
  file.set_attribute("lockstep_version", std::uint64_t{1});
  file.create_dataset("/fc.bias", core::DType::float32, {2}, 0, io::Filter::none).write_all(std::vector<std::byte>(8));
  file.close();
  expect_error([&] { load(folder / "w.h5", {{"fc.bias", {2}}}); }, ExitCode::failed, {"is damaged", "fc.bias"});
}

TEST(Weights, NamesOfANetworkAreItsParametersThenItsStatistics) {
  nn::Network network;
  const nn::Value x = network.input({3, 8, 8});
  network.batch_norm("bn1", network.conv("conv1", x, {.n_out = 4, .kernel = 3, .has_bias = false}));
  std::vector<std::string> names;
  for (const TensorSpec& tensor : tensors_of(network)) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                             "bn1.running_var"}));
  EXPECT_EQ(tensors_of(network).front().shape, (nn::Shape{4, 3, 3, 3}));
  EXPECT_EQ(tensors_of(network).back().shape, (nn::Shape{4}));
}

}  // namespace
}  // namespace lockstep::checkpoint
