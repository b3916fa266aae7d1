#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "io/file.hpp"
#include "io/hdf5.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

using core::DType;
using core::ExitCode;

void write_file(const std::string& path, std::size_t n = 30000) {
  Hdf5File file = Hdf5File::create(path);
  Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {n}, n / 3, Filter::zstd);
  const std::vector<std::byte> chunk(n / 3, std::byte{7});
  for (std::uint64_t i = 0; i < 3; ++i) dataset.write_chunk(i, encode(Filter::zstd, 0, 1, chunk));
  file.close();
}

/// What the process, including libraries, prints on stderr meanwhile.
template <class F>
std::string stderr_of(F&& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

TEST(Hdf5Errors, NameWhatIsNoHdf5File) {
  const TemporaryFolder folder;
  put(folder / "text", "This is no HDF5 file.\n");
  put(folder / "empty", "");
  const auto open = [&](const std::string& name) { return [&, name] { Hdf5File::open(folder / name); }; };
  EXPECT_EQ(stderr_of([&] {
              expect_error(open("text"), ExitCode::usage, {folder / "text", "signature not found"});
              expect_error(open("empty"), ExitCode::usage, {folder / "empty"});
              expect_error(open("none"), ExitCode::usage, {folder / "none", "No such file"});
              expect_error([&] { Hdf5File::open(folder.path()); }, ExitCode::usage, {folder.path(), "folder"});
            }),
            "");
}

TEST(Hdf5Errors, NameATruncatedFile) {
  const TemporaryFolder folder;
  write_file(folder / "f.h5");
  const std::string whole = get(folder / "f.h5");
  put(folder / "cut.h5", whole.substr(0, whole.size() - 50));
  expect_error([&] { Hdf5File::open(folder / "cut.h5"); }, ExitCode::usage, {folder / "cut.h5", "truncated"});
}

TEST(Hdf5Errors, NameADamagedDataSet) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {1000}, 1000, Filter::lz4);
  dataset.write_chunk(0, std::vector<std::byte>(100, std::byte{0x55}));
  file.close();
  const Hdf5File again = Hdf5File::open(folder / "f.h5");
  const Hdf5Dataset damaged = again.open_dataset("/x");
  std::vector<std::byte> rows(10);
  EXPECT_EQ(stderr_of([&] {
              expect_error([&] { damaged.read_rows(5, 10, rows); }, ExitCode::usage,
                           {folder / "f.h5", "/x", "rows [5, 15)", "filter"});
            }),
            "");
}

TEST(Hdf5Errors, NameAPlaceThatCannotBeWrittenTo) {
  const TemporaryFolder folder;
  EXPECT_EQ(stderr_of([&] {
              expect_error([&] { Hdf5File::create(folder / "none/f.h5"); }, ExitCode::system,
                           {folder / "none/f.h5", "No such file"});
            }),
            "");
}

TEST(Hdf5Errors, NameADataSetThatExists) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  const auto create = [&] { file.create_dataset("x", DType::uint8, {4}, 0, Filter::none); };
  create();
  expect_error(create, ExitCode::system, {folder / "f.h5", "x", "exists"});
}

TEST(Hdf5Errors, NameAChunkThatWasNotWritten) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {4}, 2, Filter::none);
  dataset.write_chunk(0, std::vector<std::byte>(2));
  expect_error([&] { static_cast<void>(dataset.extents()); }, ExitCode::system, {folder / "f.h5", "x", "chunk 1"});
}

TEST(Hdf5Errors, NameAFullDisk) {
  const TemporaryFolder folder;
  EXPECT_EQ(stderr_of([&] {
              const FullDisk full{20000};
              Hdf5File file = Hdf5File::create(folder / "f.h5");
              Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {60000}, 30000, Filter::none);
              expect_error([&] { dataset.write_chunk(0, std::vector<std::byte>(30000)); }, ExitCode::system,
                           {folder / "f.h5", "data set x", "chunk 0", "File too large"});
            }).find("HDF5-DIAG"),
            std::string::npos);
}

TEST(Hdf5Errors, AFullDiskIsNoticedWhenClosing) {
  const TemporaryFolder folder;
  Hdf5File file = Hdf5File::create(folder / "f.h5");
  Hdf5Dataset dataset = file.create_dataset("x", DType::uint8, {1000}, 0, Filter::none);
  dataset.write_all(std::vector<std::byte>(1000));  // small enough to stay in memory until then
  const FullDisk full{100};
  EXPECT_EQ(stderr_of([&] {
              expect_error([&] { file.close(); }, ExitCode::system, {folder / "f.h5", "File too large"});
            }),
            "");
}

/// Runs in a process of its own, because the library's work at exit is part of the test.
[[noreturn]] void fill_the_disk_and_exit(const std::string& path) {
  {
    const FullDisk full{100};
    Hdf5File file = Hdf5File::create(path);
    file.create_dataset("x", DType::uint8, {1000}, 0, Filter::none).write_all(std::vector<std::byte>(1000));
    try {
      file.close();
    } catch (const core::Error& error) {
      std::exit(error.code() == ExitCode::system ? 3 : 1);
    }
  }
  std::exit(0);
}

TEST(Hdf5Errors, AFullDiskLeavesTheLibraryQuietAtExit) {
  const TemporaryFolder folder;
  EXPECT_EXIT(fill_the_disk_and_exit(folder / "f.h5"), testing::ExitedWithCode(3), testing::Eq(std::string{}));
}

TEST(Hdf5, ReadsAFileThatSomebodyLocks) {
  const TemporaryFolder folder;
  write_file(folder / "f.h5");
  const core::Descriptor lock{open((folder / "f.h5").c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_EQ(flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  std::vector<std::byte> row(1);
  Hdf5File::open(folder / "f.h5").open_dataset("x").read_rows(0, 1, row);
  EXPECT_EQ(row.front(), std::byte{7});
}

TEST(Hdf5, DoesNotChangeAFileItReads) {
  const TemporaryFolder folder;
  write_file(folder / "f.h5");
  const std::string before = get(folder / "f.h5");
  {
    Hdf5File file = Hdf5File::open(folder / "f.h5");
    EXPECT_THROW(file.set_attribute("a", "b"), core::Error);
    file.close();
  }
  EXPECT_EQ(get(folder / "f.h5"), before);
}

}  // namespace
}  // namespace lockstep::io
