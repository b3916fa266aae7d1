#include "io/hdf5.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>

#include "io/file.hpp"
#include "temporary_folder.hpp"

namespace {

/// How far the clock that HDF5 reads is ahead.
std::atomic<std::time_t> seconds_ahead{0};

}  // namespace

/// Take the places of the C library's, for the HDF5 library too.
extern "C" [[gnu::visibility("default")]] int gettimeofday(timeval* __restrict place, void* __restrict) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *place = {.tv_sec = now.tv_sec + seconds_ahead, .tv_usec = static_cast<suseconds_t>(now.tv_nsec / 1000)};
  return 0;
}
extern "C" [[gnu::visibility("default")]] std::time_t time(std::time_t* place) noexcept {
  timeval now{};
  gettimeofday(&now, nullptr);
  if (place != nullptr) *place = now.tv_sec;
  return now.tv_sec;
}

namespace lockstep::io {
namespace {

using core::DType;
using core::ExitCode;

struct Shape {
  DType dtype;
  Dimensions dimensions;
  std::uint64_t chunk_rows;
  Filter filter;
};

std::size_t bytes_of_row(const Shape& shape) {
  std::size_t bytes = core::size_of(shape.dtype);
  for (std::size_t i = 1; i < shape.dimensions.size(); ++i) bytes *= shape.dimensions[i];
  return bytes;
}

/// All chunks as stored, the last one padded.
std::vector<std::vector<std::byte>> encode_chunks(const Shape& shape, const std::vector<std::byte>& data) {
  const std::size_t chunk_bytes = shape.chunk_rows * bytes_of_row(shape);
  std::vector<std::vector<std::byte>> chunks;
  for (std::size_t begin = 0; begin < data.size(); begin += chunk_bytes) {
    const auto part = std::span{data}.subspan(begin, std::min(chunk_bytes, data.size() - begin));
    std::vector<std::byte> chunk{part.begin(), part.end()};
    chunk.resize(chunk_bytes);
    chunks.push_back(encode(shape.filter, 0, core::size_of(shape.dtype), chunk));
  }
  return chunks;
}

std::vector<Extent> write_dataset(Hdf5File& file, const std::string& name, const Shape& shape,
                                  const std::vector<std::byte>& data) {
  Hdf5Dataset dataset = file.create_dataset(name, shape.dtype, shape.dimensions, shape.chunk_rows, shape.filter);
  if (shape.chunk_rows == 0) dataset.write_all(data);
  std::uint64_t chunk = 0;
  if (shape.chunk_rows > 0)
    for (const auto& stored : encode_chunks(shape, data)) dataset.write_chunk(chunk++, stored);
  return dataset.extents();
}

std::vector<std::byte> read_all(const Hdf5Dataset& dataset, std::size_t row_bytes) {
  std::vector<std::byte> data(dataset.dimensions().front() * row_bytes);
  dataset.read_rows(0, dataset.dimensions().front(), data);
  return data;
}

std::vector<Shape> shapes() {
  std::vector<Shape> shapes;
  for (const Filter filter : all_filters) {
    for (const DType dtype : core::all_dtypes) {
      shapes.push_back({dtype, {100, 6, 5}, 32, filter});  // the last chunk is partial
      shapes.push_back({dtype, {64}, 16, filter});         // no chunk is
      shapes.push_back({dtype, {10, 3}, 64, filter});      // a chunk larger than the data set
      shapes.push_back({dtype, {7, 2}, 7, filter});        // one chunk
    }
  }
  shapes.push_back({DType::float32, {9, 4}, 0, Filter::none});
  shapes.push_back({DType::uint8, {100000}, 0, Filter::none});
  return shapes;
}

TEST(Hdf5, ReadsThroughTheLibraryWhatWasStoredAsChunks) {
  const TemporaryFolder folder;
  for (const Shape& shape : shapes()) {
    const auto data = random_bytes(shape.dimensions.front() * bytes_of_row(shape));
    Hdf5File file = Hdf5File::create(folder / "f.h5");
    write_dataset(file, "/x", shape, data);
    file.close();
    const Hdf5File again = Hdf5File::open(folder / "f.h5");
    const Hdf5Dataset dataset = again.open_dataset("/x");
    ASSERT_EQ(dataset.dimensions(), shape.dimensions);
    ASSERT_EQ(dataset.dtype(), shape.dtype);
    ASSERT_EQ(read_all(dataset, bytes_of_row(shape)), data) << name(shape.filter) << " " << core::name(shape.dtype);
    std::vector<std::byte> rows(3 * bytes_of_row(shape));
    dataset.read_rows(2, 3, rows);
    ASSERT_EQ(std::memcmp(rows.data(), data.data() + 2 * bytes_of_row(shape), rows.size()), 0);
  }
}

TEST(Hdf5, ExtentsPointAtTheStoredBytes) {
  const TemporaryFolder folder;
  for (const Shape& shape : shapes()) {
    const auto data = random_bytes(shape.dimensions.front() * bytes_of_row(shape));
    Hdf5File file = Hdf5File::create(folder / "f.h5");
    const auto extents = write_dataset(file, "/x", shape, data);
    file.close();
    std::vector<std::vector<std::byte>> chunks{data};
    if (shape.chunk_rows > 0) chunks = encode_chunks(shape, data);
    const File raw{folder / "f.h5"};
    ASSERT_EQ(extents.size(), chunks.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      ASSERT_EQ(extents[i].bytes, chunks[i].size());
      std::vector<std::byte> stored(chunks[i].size());
      raw.read_at(extents[i].address, stored);
      ASSERT_EQ(stored, chunks[i]);
    }
    EXPECT_EQ(Hdf5File::open(folder / "f.h5").open_dataset("x").extents(), extents);
  }
}

TEST(Hdf5, AlignsLargeData) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  const Shape chunked{DType::uint8, {5, 30001}, 1, Filter::none};
  for (const Extent& extent : write_dataset(file, "x", chunked, random_bytes(5 * 30001)))
    EXPECT_EQ(extent.address % 4096, 0u);
  const Shape contiguous{DType::uint8, {100001}, 0, Filter::none};
  EXPECT_EQ(write_dataset(file, "index", contiguous, random_bytes(100001)).front().address % 4096, 0u);
}

/// Everything that Lockstep writes to a file, in the order of a shard.
void write_shard(const std::string& path) {
  Hdf5File file = Hdf5File::create(path);
  file.set_attribute("lockstep_format", "shard");
  file.set_attribute("lockstep_version", std::uint64_t{1});
  write_dataset(file, "/x", {DType::bfloat16, {100, 6, 5}, 32, Filter::zstd}, random_bytes(6000));
  write_dataset(file, "/y", {DType::int64, {100}, 32, Filter::lz4}, random_bytes(800));
  write_dataset(file, "/id", {DType::uint64, {100}, 32, Filter::none}, random_bytes(800));
  write_dataset(file, "/index", {DType::uint8, {77}, 0, Filter::none}, random_bytes(77));
  file.close();
}

/// As HDF5 makes it unless told otherwise: with the time.
void write_stamped(const std::string& path) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
  H5Dclose(H5Dcreate2(file, "x", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
}

TEST(Hdf5, TheSameCallsGiveTheSameBytesAtAnyTime) {
  const TemporaryFolder folder;
  write_shard(folder / "first.h5");
  write_stamped(folder / "stamped.h5");
  seconds_ahead = 1000;
  write_shard(folder / "second.h5");
  write_stamped(folder / "later.h5");
  seconds_ahead = 0;
  EXPECT_NE(get(folder / "stamped.h5"), get(folder / "later.h5")) << "HDF5 does not see that the clock was set";
  EXPECT_EQ(get(folder / "first.h5"), get(folder / "second.h5"));
  EXPECT_EQ(get(folder / "first.h5").find("first.h5"), std::string::npos);
}

TEST(Hdf5, HoldsNoDataSetsOrEmptyOnes) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  EXPECT_TRUE(file.dataset_names().empty());
  EXPECT_TRUE(write_dataset(file, "empty", {DType::float32, {0, 4}, 8, Filter::zstd}, {}).empty());
  EXPECT_EQ(write_dataset(file, "none", {DType::uint8, {0}, 0, Filter::none}, {}), std::vector{Extent{}});
  file.close();
  const Hdf5File again = Hdf5File::open(folder / "f.h5");
  EXPECT_TRUE(read_all(again.open_dataset("empty"), 16).empty());
  EXPECT_TRUE(read_all(again.open_dataset("none"), 1).empty());
}

TEST(Hdf5, KeepsAttributes) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  file.set_attribute("split", "train");
  file.set_attribute("split", "a longer text, with \xc3\xa4");
  file.set_attribute("empty", "");
  file.set_attribute("shard", std::uint64_t{7});
  file.close();
  const Hdf5File again = Hdf5File::open(folder / "f.h5");
  EXPECT_EQ(again.text_attribute("split"), "a longer text, with \xc3\xa4");
  EXPECT_EQ(again.text_attribute("empty"), "");
  const auto ask = [&](const std::string& name) {
    return [&, name] { static_cast<void>(again.text_attribute(name)); };
  };
  expect_error(ask("none"), ExitCode::usage, {folder / "f.h5", "'none'"});
  expect_error(ask("shard"), ExitCode::usage, {folder / "f.h5", "'shard'"});
}

TEST(Hdf5, FindsAttributesOfFilesAndDataSets) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  file.set_attribute("name", "text");
  file.set_attribute("number", std::uint64_t{7});
  Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {1}, 0, Filter::none);
  dataset.set_attribute("crc32c", std::uint64_t{0xffffffff});
  file.close();
  const Hdf5File again = Hdf5File::open(folder / "f.h5");
  EXPECT_EQ(again.find_text_attribute("name"), "text");
  EXPECT_EQ(again.find_number_attribute("number"), 7u);
  EXPECT_EQ(again.open_dataset("x").find_number_attribute("crc32c"), 0xffffffffu);
  EXPECT_EQ(again.open_dataset("x").find_number_attribute("number"), std::nullopt);
  EXPECT_EQ(again.find_text_attribute("number"), std::nullopt);
  EXPECT_EQ(again.find_number_attribute("name"), std::nullopt);
  EXPECT_EQ(again.find_text_attribute("none"), std::nullopt);
}

TEST(Hdf5, FindsDataSetsByName) {
  const TemporaryFolder folder;
  write_shard(folder / "f.h5");
  const Hdf5File file = Hdf5File::open(folder / "f.h5");
  EXPECT_EQ(file.dataset_names(), (std::vector<std::string>{"/id", "/index", "/x", "/y"}));
  testing::internal::CaptureStderr();
  expect_error([&] { static_cast<void>(file.open_dataset("/z")); }, ExitCode::usage,
               {folder / "f.h5", "/z", "one of /id, /index, /x, /y"});
  expect_error([&] { static_cast<void>(file.open_dataset("indx")); }, ExitCode::usage, {"did you mean '/index'?"});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Hdf5, CanBeMovedAndOutlivedByDataSets) {
  const TemporaryFolder folder;
  Hdf5File first = Hdf5File::create(folder / "f.h5");
  Hdf5File file = std::move(first);
  Hdf5Dataset one = file.create_dataset("one", DType::uint8, {4}, 0, Filter::none);
  Hdf5Dataset other = file.create_dataset("other", DType::uint8, {4}, 4, Filter::none);
  one.write_all(random_bytes(4));
  one = std::move(other);
  one.write_chunk(0, random_bytes(4));
  file.close();  // `one` is still there
  EXPECT_EQ(read_all(Hdf5File::open(folder / "f.h5").open_dataset("other"), 1), random_bytes(4));
}

TEST(Hdf5, TellsItsVersion) { EXPECT_TRUE(hdf5_version().starts_with("1.") || hdf5_version().starts_with("2.")); }

}  // namespace
}  // namespace lockstep::io
