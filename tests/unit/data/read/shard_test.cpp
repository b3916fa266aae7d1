// What ShardWriter writes, ShardReader and HDF5 read.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "data/read/shard_reader.hpp"
#include "data/write/shard_writer.hpp"
#include "io/digest.hpp"
#include "io/hdf5.hpp"
#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;
using io::TemporaryFolder;

/// Samples of any kind, in memory.
struct InMemory {
  SetSpec spec;
  std::uint64_t n;
  std::vector<std::byte> x;
  std::vector<std::byte> y;
};

InMemory make_samples(const ArraySpec& x, const ArraySpec& y, std::uint64_t n) {
  InMemory samples{{.x = x, .y = y, .classes = {}}, n, {}, {}};
  for (std::uint64_t i = 0; i < n; ++i) {
    for (std::uint64_t j = 0; j < x.bytes(); ++j) samples.x.push_back(pattern(0, i, j));
    for (std::uint64_t j = 0; j < y.bytes(); ++j) samples.y.push_back(pattern(1, i, j));
  }
  return samples;
}

constexpr std::uint64_t first_id = 1000;

// Appends in pieces of changing size.
ShardEntry write(const std::string& folder, const InMemory& samples, const ShardLayout& layout) {
  ShardWriter writer{folder, {"train", 3, first_id, samples.n}, samples.spec, layout};
  const std::uint64_t x_bytes = samples.spec.x.bytes(), y_bytes = samples.spec.y.bytes();
  for (std::uint64_t i = 0, n = 1; i < samples.n; i += n, n = n % 7 + 1) {
    n = std::min(n, samples.n - i);
    writer.append(std::span{samples.x}.subspan(i * x_bytes, n * x_bytes),
                  std::span{samples.y}.subspan(i * y_bytes, n * y_bytes));
  }
  return writer.finish();
}

void expect_rows(const ShardReader& reader, std::string_view name, const std::vector<std::byte>& expected,
                 std::uint64_t first, std::uint64_t n) {
  const ArrayIndex& array = *reader.index().find(name);
  std::vector<std::byte> rows(n * array.row_bytes);
  reader.read_rows(array, first, n, rows);
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), expected.begin() + static_cast<long>(first * array.row_bytes)))
      << name << ", " << n << " rows from " << first;
}

void expect_chunks(const ShardReader& reader, std::string_view name, const std::vector<std::byte>& expected) {
  const ArrayIndex& array = *reader.index().find(name);
  std::vector<std::byte> all;
  for (std::uint64_t chunk = 0; chunk < array.chunks.size(); ++chunk) {
    std::vector<std::byte> rows(array.rows_in(chunk) * array.row_bytes);
    reader.read_chunk(array, chunk, rows);
    all.insert(all.end(), rows.begin(), rows.end());
    EXPECT_EQ(reader.examine_chunk(array, chunk), std::nullopt);
  }
  EXPECT_EQ(all, expected) << name;
}

void expect_hdf5(const std::string& path, const std::string& name, core::DType dtype,
                 const std::vector<std::byte>& expected) {
  const io::Hdf5File file = io::Hdf5File::open(path);
  const io::Hdf5Dataset dataset = file.open_dataset(name);
  EXPECT_EQ(dataset.dtype(), dtype);
  std::vector<std::byte> rows(expected.size());
  dataset.read_rows(0, dataset.dimensions().front(), rows);
  EXPECT_EQ(rows, expected) << name;
}

std::vector<std::byte> ids(std::uint64_t n) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < n; ++i) numbers.push_back(first_id + i);
  const auto bytes = std::as_bytes(std::span{numbers});
  return {bytes.begin(), bytes.end()};
}

class EveryKind : public testing::TestWithParam<std::tuple<core::DType, io::Filter, std::uint64_t>> {};

TEST_P(EveryKind, RoundTrips) {
  const auto [dtype, filter, n] = GetParam();
  const TemporaryFolder folder;
  const InMemory samples = make_samples({dtype, {3, 5}}, {dtype, {2}}, n);
  const ShardEntry entry = write(folder.path(), samples, {.shard_samples = 100, .chunk_samples = 8, .filter = filter});
  EXPECT_EQ(entry.file, "train-00003.h5");
  EXPECT_EQ(entry.n_samples, n);
  EXPECT_EQ(entry.digest, io::digest_of_file(folder / entry.file));
  ReadCounters counters;
  const ShardReader reader{folder.path(), entry, samples.spec, counters};
  expect_chunks(reader, "x", samples.x);
  expect_chunks(reader, "y", samples.y);
  expect_chunks(reader, "id", ids(n));
  for (std::uint64_t first = 0; first < n; first += 5)
    for (std::uint64_t most : {1, 4, 13}) expect_rows(reader, "x", samples.x, first, std::min(most, n - first));
  expect_hdf5(folder / entry.file, "x", dtype, samples.x);
  expect_hdf5(folder / entry.file, "y", dtype, samples.y);
  expect_hdf5(folder / entry.file, "id", core::DType::uint64, ids(n));
  EXPECT_EQ(counters.n_crc_failures, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, EveryKind,
                         testing::Combine(testing::ValuesIn(core::all_dtypes), testing::ValuesIn(io::all_filters),
                                          testing::Values(43)));
INSTANTIATE_TEST_SUITE_P(Sizes, EveryKind,
                         testing::Combine(testing::Values(core::DType::uint8), testing::ValuesIn(io::all_filters),
                                          testing::Values(1, 7, 8, 9, 40)));

// Samples that are wider, and narrower, than the blocks of the check sums.
class Blocks : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Blocks, AnyRowsAreReadAndNoMoreThanTheirBlocks) {
  const TemporaryFolder folder;
  const InMemory samples = make_samples({core::DType::uint8, {GetParam()}}, {core::DType::uint8, {}}, 21);
  const ShardEntry entry = write(folder.path(), samples, {.shard_samples = 100, .chunk_samples = 16});
  ReadCounters counters;
  const ShardReader reader{folder.path(), entry, samples.spec, counters};
  for (std::uint64_t first = 0; first < 21; ++first)
    for (std::uint64_t n = 0; first + n <= 21; ++n) expect_rows(reader, "x", samples.x, first, n);
  counters.bytes = 0;
  expect_rows(reader, "x", samples.x, 3, 1);
  EXPECT_LE(counters.bytes, GetParam() + 2 * crc_block_bytes);
}

INSTANTIATE_TEST_SUITE_P(Widths, Blocks, testing::Values(100, 65536, 40'000, 131072, 70'001, 300'000));

TEST(Shard, OfEqualSamplesHasEqualBytes) {
  const TemporaryFolder one, two;
  const InMemory samples = make_samples({core::DType::float32, {9}}, {core::DType::uint8, {}}, 20);
  for (const io::Filter filter : io::all_filters) {
    const ShardLayout layout{.shard_samples = 20, .chunk_samples = 8, .filter = filter};
    EXPECT_EQ(write(one.path(), samples, layout).digest, write(two.path(), samples, layout).digest);
  }
}

TEST(Shard, TellsWhatItIs) {
  const TemporaryFolder folder;
  const ShardEntry entry = write(folder.path(), make_samples({}, {}, 2), {.shard_samples = 2, .chunk_samples = 2});
  const io::Hdf5File file = io::Hdf5File::open(folder / entry.file);
  EXPECT_EQ(file.text_attribute("lockstep_format"), "shard");
  EXPECT_EQ(file.text_attribute("split"), "train");
  EXPECT_EQ(file.dataset_names(), (std::vector<std::string>{"/id", "/index", "/x", "/y"}));
  EXPECT_EQ(file.open_dataset("index").extents().at(0), entry.index);
}

TEST(Shard, KeepsEncodedSamples) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 50}}};
  source.make_encoded();
  const Split split = write_split(folder.path(), source, 0, {.shard_samples = 50, .encoded_chunk_bytes = 300});
  const ShardEntry& entry = split.shards.at(0);
  EXPECT_EQ(folder.n_entries(), 1) << "temporary files are left";
  ReadCounters counters;
  const ShardReader reader{folder.path(), entry, source.spec(), counters};
  std::vector<std::byte> all, y(1);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto image = source.read_encoded(0, i, y);
    all.insert(all.end(), image.begin(), image.end());
  }
  expect_chunks(reader, "x", all);
  expect_hdf5(folder / entry.file, "x", core::DType::uint8, all);
  EXPECT_EQ(reader.index().find("x_offset")->n_rows, 51);
  EXPECT_EQ(reader.index().find("y")->chunks.size(), 1);
}

TEST(Shard, OfEmptyImagesIsPossible) {
  const TemporaryFolder folder;
  SetSpec spec{.x = {}, .y = {}, .encoding = "image", .classes = {}};
  ShardWriter writer{folder.path(), {"train", 0, 0, 1}, spec, {.shard_samples = 1, .encoded_chunk_bytes = 300}};
  const std::byte label{0};
  writer.append_encoded({}, {&label, 1});
  ReadCounters counters;
  const ShardReader reader{folder.path(), writer.finish(), spec, counters};
  EXPECT_EQ(reader.index().find("x")->n_rows, 0);
}

// Changes a byte of the file and back.
class Flip {
 public:
  Flip(std::string path, std::size_t at) : path_{std::move(path)}, at_{at} { flip(); }
  ~Flip() { flip(); }
  Flip(const Flip&) = delete;
  Flip& operator=(const Flip&) = delete;

 private:
  void flip() {
    std::fstream file{path_, std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(static_cast<std::streamoff>(at_));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at_));
    file.put(static_cast<char>(byte ^ 1));
  }
  std::string path_;
  std::size_t at_;
};

TEST(DamagedShard, NamesFileArrayChunkAndSamples) {
  const TemporaryFolder folder;
  const InMemory samples = make_samples({core::DType::uint8, {100}}, {core::DType::uint8, {}}, 43);
  for (const io::Filter filter : io::all_filters) {
    const ShardEntry entry = write(folder.path(), samples, {.shard_samples = 43, .chunk_samples = 8, .filter = filter});
    ReadCounters counters;
    const ShardReader reader{folder.path(), entry, samples.spec, counters};
    const ArrayIndex& x = *reader.index().find("x");
    const Flip flip{folder / entry.file, x.chunks[2].address + 13};
    std::vector<std::byte> rows(100);
    expect_error([&] { reader.read_rows(x, 20, 1, rows); }, core::ExitCode::failed,
                 {entry.file, "x, chunk 2 (samples 1016 to 1023)", "CRC32C expected 0x", "found 0x"});
    EXPECT_EQ(counters.n_crc_failures, 1);
    EXPECT_NE(reader.examine_chunk(x, 2).value_or("").find("x, chunk 2 (samples 1016 to 1023): CRC32C"),
              std::string::npos);
    reader.read_rows(x, 24, 1, rows);  // the next chunk is whole
    std::filesystem::resize_file(folder / entry.file, x.chunks[1].address);
    expect_error([&] { reader.read_rows(x, 24, 1, rows); }, core::ExitCode::failed, {entry.file, "truncated"});
  }
}

TEST(DamagedShard, NamesEncodedSamples) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 50}}};
  source.make_encoded();
  const Split split = write_split(folder.path(), source, 0, {.shard_samples = 50, .encoded_chunk_bytes = 64});
  ReadCounters counters;
  const ShardReader reader{folder.path(), split.shards[0], source.spec(), counters};
  const ArrayIndex& x = *reader.index().find("x");
  const Flip flip{folder / split.shards[0].file, x.chunks[1].address};
  // Samples have 20, 21, 22, 0, 24, 25 ... bytes: bytes 64 to 127 are those of samples 4 to 6.
  EXPECT_NE(reader.examine_chunk(x, 1).value_or("").find("x, chunk 1 (samples 4 to 6)"), std::string::npos)
      << reader.examine_chunk(x, 1).value_or("");
}

TEST(DamagedShard, IsNotOpened) {
  const TemporaryFolder folder, other;
  const InMemory samples = make_samples({core::DType::uint8, {100}}, {core::DType::uint8, {}}, 20);
  const ShardLayout layout{.shard_samples = 20, .chunk_samples = 8};
  const ShardEntry entry = write(folder.path(), samples, layout);
  const std::string path = folder / entry.file;
  ReadCounters counters;
  const auto open = [&](const SetSpec& spec) {
    return [&, spec] { ShardReader{folder.path(), entry, spec, counters}; };
  };
  open(samples.spec)();
  {
    const Flip flip{path, entry.index.address + 20};
    expect_error(open(samples.spec), core::ExitCode::failed, {"index is damaged", path});
  }
  SetSpec wide = samples.spec;
  wide.x.shape = {101};
  expect_error(open(wide), core::ExitCode::failed, {"type or shape", path});
  InMemory changed = samples;
  changed.x[0] ^= std::byte{1};
  (void)write(other.path(), changed, layout);
  std::filesystem::copy_file(other / entry.file, path, std::filesystem::copy_options::overwrite_existing);
  expect_error(open(samples.spec), core::ExitCode::failed, {"of another set", path});
  std::filesystem::resize_file(path, entry.bytes - 1);
  expect_error(open(samples.spec), core::ExitCode::failed, {"truncated", path});
  std::filesystem::remove(path);
  expect_error(open(samples.spec), core::ExitCode::usage, {path});
}

TEST(ShardWriter, ReportsAFullDisk) {
  const TemporaryFolder folder;
  const InMemory samples = make_samples({core::DType::uint8, {100'000}}, {core::DType::uint8, {}}, 20);
  const io::FullDisk full{500'000};
  expect_error([&] { (void)write(folder.path(), samples, {.shard_samples = 20, .chunk_samples = 2}); },
               core::ExitCode::system, {"train-00003.h5"});
}

TEST(Layout, FollowsTheBytesAskedFor) {
  const SetSpec digits{.x = {.shape = {28, 28}}, .y = {}, .classes = {}};
  const ShardLayout layout = make_layout(digits, 256 << 20, 4 << 20, io::Filter::none, 0);
  EXPECT_EQ(layout.chunk_samples, 4096);  // the power of two below 4 MiB / 784
  EXPECT_EQ(layout.shard_samples % layout.chunk_samples, 0);
  EXPECT_LE(layout.shard_samples * 793, 256 << 20);
  EXPECT_GT(layout.shard_samples * 793, 252 << 20);
  const ShardLayout large = make_layout({.x = {.shape = {5'000'000}}, .y = {}, .classes = {}}, 8 << 20, 4 << 20, {}, 0);
  EXPECT_EQ(large.chunk_samples, 1);
  EXPECT_EQ(large.shard_samples, 1);
  const ShardLayout tiny = make_layout({.x = {}, .y = {}, .classes = {}}, 1 << 30, 4 << 20, {}, 0);
  EXPECT_LE(tiny.chunk_samples * 8, 4 << 20) << "the ids are wider than the samples";
}

TEST(Layout, OfEncodedSamplesFollowsTheirUsualSize) {
  const SetSpec spec{.x = {}, .y = {}, .encoding = "image", .classes = {}};
  const ShardLayout layout = make_layout(spec, 1 << 20, 4 << 20, io::Filter::none, 0, 1000);
  EXPECT_EQ(layout.shard_samples, 1048);
  EXPECT_EQ(layout.chunk_samples, 0);
  EXPECT_EQ(layout.encoded_chunk_bytes, 1 << 20);
  expect_error([&] { (void)make_layout(spec, 1 << 20, 4 << 20, io::Filter::zstd, 0, 1000); }, core::ExitCode::usage,
               {"--compress", "none"});
}

TEST(Layout, RefusesWhatCannotBe) {
  const SetSpec spec{.x = {.shape = {1000}}, .y = {}, .classes = {}};
  expect_error([&] { (void)make_layout(spec, 1000, 1000, {}, 0); }, core::ExitCode::usage,
               {"1009 bytes", "--shard-size"});
  for (const std::uint64_t chunk : {std::uint64_t{0}, std::uint64_t{1} << 31})
    expect_error([&] { (void)make_layout(spec, 1 << 20, chunk, {}, 0); }, core::ExitCode::usage, {"--chunk-size"});
}

}  // namespace
}  // namespace lockstep::data
