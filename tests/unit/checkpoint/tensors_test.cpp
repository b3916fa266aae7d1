#include "checkpoint/tensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "checkpoint/export.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/weights.hpp"
#include "checkpoint/writer.hpp"
#include "io/hdf5.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::checkpoint {
namespace {

using core::ExitCode;
using io::expect_error;
using io::get;
using io::put;
using io::TemporaryFolder;

const std::vector<TensorSpec> kept_specs{
    {"conv1.weight", {4, 3, 2}}, {"exp_avg/conv1.weight", {4, 3, 2}}, {"fc.bias", {5}}, {"n.\xc3\xa4", {1, 1}}};
const WeightsInfo kept_info{.model = "mine", .epoch = 3, .samples_seen = 6144};
const std::vector<std::string> kept_files{"w.h5", "w.hdf5", "w.npz", "w.safetensors"};

/// Values that only an exact copy restores.
float kept_value(std::size_t tensor, std::size_t element) {
  if (element == 1) return std::numeric_limits<float>::quiet_NaN();
  if (element == 2) return -0.0f;
  if (element == 3) return std::numeric_limits<float>::denorm_min();
  return static_cast<float>(tensor) + 0.1f * static_cast<float>(element);
}

void fill_kept(std::size_t i, std::span<float> values) {
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = kept_value(i, k);
}

void save_as(const std::string& path) { find_format(path, "--out")(path, kept_info, kept_specs, fill_kept, "--out"); }

std::vector<float> read_tensor(const TensorSource& source, std::size_t i) {
  std::vector<float> values(nn::n_elements(source.tensors.at(i).spec.shape));
  source.read(i, values);
  return values;
}

std::string bits_of(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

TensorSource open_file(const std::string& path) { return open_tensor_file(path, "--init-from"); }

/// A safetensors file: the length of the header, the header, and data.
void put_safetensors(const std::string& path, const std::string& header, const std::string& data) {
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xff);
  put(path, length + header + data);
}

TEST(Tensors, ComeBackToTheBitInEveryFormat) {
  const TemporaryFolder folder;
  for (const std::string& name : kept_files) {
    save_as(folder / name);
    const TensorSource source = open_file(folder / name);
    ASSERT_EQ(source.tensors.size(), kept_specs.size()) << name;
    for (std::size_t i = 0; i < kept_specs.size(); ++i) {
      EXPECT_EQ(source.tensors[i].spec.name, kept_specs[i].name);
      EXPECT_EQ(source.tensors[i].spec.shape, kept_specs[i].shape);
      EXPECT_EQ(source.tensors[i].dtype, core::DType::float32);
      std::vector<float> expected(nn::n_elements(kept_specs[i].shape));
      fill_kept(i, expected);
      EXPECT_EQ(bits_of(read_tensor(source, i)), bits_of(expected)) << name << " " << kept_specs[i].name;
    }
    EXPECT_EQ(source.info.model, name == "w.npz" ? "" : "mine");
    EXPECT_EQ(source.info.epoch, name == "w.npz" ? 0u : 3u);
    const std::string before = get(folder / name);
    save_as(folder / name);
    EXPECT_EQ(get(folder / name), before) << "the same bytes on any day";
  }
}

TEST(Tensors, WeightsAreLoadedFromEveryFormatAndStatesAreLeftOut) {
  const TemporaryFolder folder;
  const std::vector<TensorSpec> model{kept_specs[3], kept_specs[0], kept_specs[2]};
  const auto fill_ones = [](std::size_t, std::span<float> values) { std::ranges::fill(values, 1.0F); };
  for (const std::string& name : kept_files) {
    find_format(folder / name, "--out")(folder / name, kept_info, kept_specs, fill_ones, "--out");
    std::vector<std::size_t> sizes;
    const auto take = [&](std::size_t, std::span<const float> values) { sizes.push_back(values.size()); };
    load_weights(runtime::Communicator::alone(), folder / name, "mine", model, take, "--init-from");
    EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 24, 5}));
  }
}

TEST(Tensors, AFullDiskLeavesNothing) {
  for (const std::string& name : kept_files) {
    const TemporaryFolder folder;
    const io::FullDisk full{200};
    expect_error([&] { save_as(folder / name); }, ExitCode::system, {name});
    EXPECT_EQ(folder.n_entries(), 0u) << name;
  }
}

TEST(Tensors, TheEndingChoosesTheFormat) {
  for (const char* const name : {"w", "w.pt", "w.h5.gz"})
    expect_error([&] { static_cast<void>(find_format(name, "--out")); }, ExitCode::usage, {name, "--out", ".npz"});
}

// 1.5, -2, infinity, the least number above 0; in each format.
TEST(Tensors, SixteenBitFloatsAreTheSameNumbers) {
  const TemporaryFolder folder;
  put_safetensors(folder / "w.safetensors",
                  R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]}})",
                  {"\x00\x3e\x00\xc0\x00\x7c\x01\x00\xc0\x3f\x00\xc0\x80\x7f\x01\x00", 16});
  const TensorSource source = open_file(folder / "w.safetensors");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(read_tensor(source, 0), (std::vector<float>{1.5f, -2, infinity, 0x1p-24f}));
  EXPECT_EQ(read_tensor(source, 1), (std::vector<float>{1.5f, -2, infinity, 0x1p-133f}));
}

TEST(Tensors, OtherTypesAreNotRounded) {
  const TemporaryFolder folder;
  put_safetensors(folder / "w.safetensors",
                  R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                  R"("bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
                  R"("c":{"dtype":"F8_E5M2","shape":[3],"data_offsets":[16,19]}})",
                  std::string(19, '\0'));
  const TensorSource source = open_file(folder / "w.safetensors");
  expect_error([&] { read_tensor(source, 0); }, ExitCode::usage, {"stores a as float64", "float32"});
  expect_error([&] { read_tensor(source, 2); }, ExitCode::usage, {"stores c as something else than numbers"});
  EXPECT_EQ(find_weights(source), (std::vector<std::size_t>{0, 2})) << "batches are not counted here";
}

struct BadHeader {
  const char* header;
  const char* why;
};

TEST(Tensors, ADamagedSafetensorsFileIsRefused) {
  constexpr BadHeader bad[]{
      {R"({"a":)", "its header: is not JSON: its end is missing"},
      {R"([])", "is not an HDF5, .npz or .safetensors file"},
      {R"({"a":[1]})", "its header: a is a list of 1 item; expected an object"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "a.data_offsets is missing"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
       "a.data_offsets is a list of 1 item; expected a list of 2 items"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "bytes [8, 0) do not fit the type and shape of a"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "a.shape[0] is -2; expected a whole number"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "a.shape[0] is 2.0; expected a whole number"},
      {R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", "a.dtype is 1; expected a text"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "bytes [0, 8) do not fit the type and shape of a"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}})",
       "do not fit the type and shape of a"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "it has 8 bytes of data, not 4"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "begins at byte 4 of the data, not 0"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "b begins at byte 4 of the data, not 8"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "it has 8 bytes of data, not 12"},
      {R"({"a":{"dtype":"F32","shape":[[[[2]]]],"data_offsets":[0,8]}})", "is nested more than 3 deep"},
      {R"({"__metadata__":{"epoch":3},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "__metadata__.epoch is 3; expected a text"}};
  const TemporaryFolder folder;
  for (const auto& [header, why] : bad) {
    put_safetensors(folder / "w.safetensors", header, "12345678");
    expect_error([&] { static_cast<void>(open_file(folder / "w.safetensors")); }, ExitCode::usage,
                 {"w.safetensors", "--init-from", why});
  }
}

TEST(Tensors, AHeaderOfAnyLengthIsRefusedBeforeItIsRead) {
  const TemporaryFolder folder;
  for (const std::string& length : {std::string(8, '\xff'), std::string{"\x03\0\0\0\0\0\0\0", 8}}) {
    put(folder / "w.safetensors", length + "{}");
    expect_error([&] { static_cast<void>(open_file(folder / "w.safetensors")); }, ExitCode::usage,
                 {"its header claims"});
  }
}

TEST(Tensors, AFileWithoutATensorIsRefused) {
  const TemporaryFolder folder;
  put(folder / "w.safetensors", std::string{"\x02\0\0\0\0\0\0\0", 8} + "{}");
  put(folder / "w.npz", "PK\x05\x06" + std::string(18, '\0'));
  io::Hdf5File::create(folder / "w.h5").close();
  for (const char* name : {"w.safetensors", "w.npz", "w.h5"})
    expect_error([&] { static_cast<void>(open_file(folder / name)); }, ExitCode::usage,
                 {name, "holds no tensors", "--init-from", "fix: "});
  put(folder / "w.h5", "");
  expect_error([&] { static_cast<void>(open_file(folder / "w.h5")); }, ExitCode::usage, {"w.h5' is an empty file"});
}

/// An archive whose only member has this name and no bytes.
std::string archive_of(const std::string& member) {
  const std::string length{static_cast<char>(member.size())}, zeros(40, '\0');
  const std::string local = "PK\x03\x04\x14" + zeros.substr(0, 21) + length + zeros.substr(0, 3) + member;
  const std::string central =
      "PK\x01\x02\x14" + zeros.substr(0, 1) + "\x14" + zeros.substr(0, 21) + length + zeros.substr(0, 17) + member;
  const std::string end = "PK\x05\x06" + zeros.substr(0, 4) + std::string{"\1\0\1\0", 4} +
                          static_cast<char>(central.size()) + zeros.substr(0, 3) + static_cast<char>(local.size()) +
                          zeros.substr(0, 5);
  return local + central + end;
}

TEST(Tensors, AFileOfTorchSaveNamesTheConversion) {
  const TemporaryFolder folder;
  for (const std::string& file :
       {archive_of("archive/data.pkl"), archive_of("data.pkl"), std::string{"\x80\x02\x8a\nl"}}) {
    put(folder / "w.pt", file);
    expect_error([&] { static_cast<void>(open_file(folder / "w.pt")); }, ExitCode::usage,
                 {"w.pt' is a Python pickle, as torch.save writes", "--init-from",
                  "safetensors.torch.save_file(model.state_dict(), "});
  }
}

// One changed byte, or a missing end.
TEST(Tensors, ADamagedArchiveIsRefused) {
  const TemporaryFolder folder;
  save_as(folder / "w.npz");
  const std::string archive = get(folder / "w.npz");
  const auto read_all = [&] {
    const TensorSource source = open_file(folder / "w.npz");
    for (std::size_t i = 0; i < source.tensors.size(); ++i) read_tensor(source, i);
  };
  const std::size_t at = archive.find(bits_of(std::vector{kept_value(0, 4)}));
  ASSERT_NE(at, std::string::npos);
  std::string flipped = archive;
  flipped[at] = static_cast<char>(flipped[at] ^ 1);
  put(folder / "w.npz", flipped);
  expect_error(read_all, ExitCode::usage, {"conv1.weight"});
  for (std::size_t size = 4; size < archive.size(); size += 13) {
    put(folder / "w.npz", archive.substr(0, size));
    expect_error(read_all, ExitCode::usage, {"w.npz"});
  }
}

TEST(Tensors, AnArrayHasTheBytesThatItsShapeNeeds) {
  const TemporaryFolder folder;
  save_npz(folder / "w.npz", {}, std::vector<TensorSpec>{{"a", {200, 100}}}, fill_kept, "--out");
  std::string archive = get(folder / "w.npz");
  archive.replace(archive.find("(200, 100)"), 10, "(200, 900)");
  put(folder / "w.npz", archive);
  expect_error([&] { static_cast<void>(open_file(folder / "w.npz")); }, ExitCode::usage, {"a.npy", "bytes"});
}

TEST(Tensors, AnHdf5FileThatClaimsWhatNobodyWroteIsRefused) {
  const TemporaryFolder folder;
  io::Hdf5File file = io::Hdf5File::create(folder / "w.h5");
  file.create_dataset("/a", core::DType::float32, {std::uint64_t{1} << 40}, 1 << 20, io::Filter::none);
  file.close();
  expect_error([&] { static_cast<void>(open_file(folder / "w.h5")); }, ExitCode::usage,
               {"no part of it was ever written"});
  io::Hdf5File half = io::Hdf5File::create(folder / "half.h5");
  half.create_dataset("/a", core::DType::float32, {4}, 2, io::Filter::none).write_chunk(0, std::vector<std::byte>(8));
  half.close();
  expect_error([&] { static_cast<void>(open_file(folder / "half.h5")); }, ExitCode::usage,
               {"1 of its 2 chunks was never written, the first of them at row 2"});
}

constexpr std::size_t n_lanes = 4;

std::string write_step(const std::string& folder) {
  const std::vector<Box> three{whole("parameter/fc.weight", {2, 3}), whole("exp_avg/fc.weight", {2, 3}),
                               whole("statistic/bn.running_mean", {n_lanes, 2})};
  const auto count_up = [](std::size_t i, std::span<float> values) {
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(10 * i + k);
  };
  std::optional<RankFile> file;
  write_checkpoint(
      runtime::Communicator::alone(), folder + "/" + name_of(7),
      R"({"recipe":{"model":"mine"},"state":{"epoch":2,"step":7,"samples_seen":64,"learning_rate":0,"ledger":0,)"
      R"("of_epoch":{"loss":0,"samples":8,"top1":0,"steps":1},"epoch_loss":null,"losses":""}})",
      three, count_up, file);
  return folder;
}

TEST(Tensors, OfACheckpointAreNamedAsInAFileOfWeights) {
  const TemporaryFolder folder;
  const auto& alone = runtime::Communicator::alone();
  const TensorSource source = open_tensors(alone, write_step(folder.path()), "--init-from");
  ASSERT_EQ(source.tensors.size(), 3u);
  EXPECT_EQ(source.tensors[0].spec.name, "bn.running_mean");
  EXPECT_EQ(source.tensors[1].spec.name, "exp_avg/fc.weight");
  EXPECT_EQ(source.tensors[2].spec.name, "fc.weight");
  EXPECT_EQ(read_tensor(source, 0), (std::vector<float>{23, 24})) << "the mean of the lanes";
  EXPECT_EQ(read_tensor(source, 1), (std::vector<float>{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(source.info.model, "mine");
  EXPECT_EQ(source.info.epoch, 3u) << "it is in the third";
  EXPECT_EQ(source.info.samples_seen, 64u);
  const TensorSource weights = subset(source, find_weights(source));
  ASSERT_EQ(weights.tensors.size(), 2u);
  EXPECT_EQ(read_tensor(weights, 1), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const TensorSource raw = all_tensors(open_newest(alone, folder.path(), ""));
  EXPECT_EQ(raw.tensors.back().spec.name, "statistic/bn.running_mean");
  EXPECT_EQ(raw.tensors.back().spec.shape, (nn::Shape{n_lanes, 2}));
}

TEST(Tensors, OnlyAWholeCheckpointHasThem) {
  const TemporaryFolder folder;
  const auto& alone = runtime::Communicator::alone();
  const auto open_folder = [&] { static_cast<void>(open_tensors(alone, folder.path(), "--init-from")); };
  put(folder / "weights.h5", "");
  expect_error(open_folder, ExitCode::usage, {"there is no checkpoint", "--init-from", "weights.h5"});
  write_step(folder.path());
  open_folder();
  std::filesystem::resize_file(folder / "step-000000007/rank-00000.h5", 100);
  testing::internal::CaptureStderr();
  expect_error(open_folder, ExitCode::failed, {"no checkpoint in", "is whole", "--init-from"});
  EXPECT_NE(testing::internal::GetCapturedStderr().find("is damaged"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::checkpoint
